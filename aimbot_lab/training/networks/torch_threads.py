"""How many threads torch works with."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch as th


def one_thread() -> None:
    """Have torch work with one thread from now on."""
    th.set_num_threads(1)


@contextmanager
def one_torch_thread() -> Iterator[int]:
    """Have torch work with one thread; the number that it had before, and has again after."""
    threads = th.get_num_threads()
    try:
        th.set_num_threads(1)
        yield threads
    finally:
        th.set_num_threads(threads)
