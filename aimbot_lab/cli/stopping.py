"""Ctrl-C once stops and saves, twice aborts."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether the user asked to stop; a training polls it after every step."""

    def __init__(self) -> None:
        self.requested = False
        self._polled = False

    def __call__(self) -> bool:
        """Whether to stop now."""
        self._polled = True
        return self.requested

    def receive(self, _number: int, _frame: FrameType | None) -> None:
        """Note the signal; abort where nobody polls yet or it is the second one."""
        if self.requested or not self._polled:
            raise KeyboardInterrupt
        self.requested = True
        click.echo("\nstopping: saving the agent (once more aborts without saving)", err=True)


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """A stop request that SIGINT and SIGTERM set while the block runs."""
    request = StopRequest()
    before = {number: signal.signal(number, request.receive) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
