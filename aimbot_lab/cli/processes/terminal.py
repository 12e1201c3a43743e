"""How a terminal treats the keys that send signals."""

import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LOCAL_FLAGS = 3  # place among the attributes of a terminal


@contextmanager
def quiet_keys(descriptor: int) -> Iterator[None]:
    """Keep the terminal at `descriptor` from showing ^C and dropping output while the block runs.

    Both would spoil what is drawn there. Does nothing where this process is not in the
    terminal's foreground: the keys are not meant for it, and it would be halted for trying.
    """
    if not _is_in_foreground(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    quiet = [*before]
    quiet[LOCAL_FLAGS] = before[LOCAL_FLAGS] & ~termios.ECHOCTL | termios.NOFLSH
    try:
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
        yield
    finally:
        # The terminal may have been closed, or the process been sent to the background.
        if _is_in_foreground(descriptor):
            with suppress(termios.error):
                termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _is_in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return False
