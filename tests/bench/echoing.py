"""What a process of a group does, in a module that a fresh process imports at once."""

import os
from multiprocessing.connection import Connection


def echo(end: Connection, word: str) -> None:
    while (asked := end.recv()) != "break":
        end.send({word: asked, "rank": os.environ["RANK"]})
    raise ValueError("it broke")
