"""How often a program looks for cyclic garbage."""

import atexit
import gc
import sys


def collect_seldom() -> None:
    """Collect garbage less often than Python does by itself, and not at this process's end.

    The libraries make a million objects as they are imported, all of which stay: Python goes
    through them again and again then, and once more as it ends, for half of a command's time.
    """
    gc.set_threshold(10_000, 10, 10)
    atexit.register(_spare_last_collection)


def _spare_last_collection() -> None:
    if "ale_py" not in sys.modules:  # which would print a list of whatever is left of its games
        gc.freeze()


def free_training() -> None:
    """Free what a training leaves: its parts refer to each other, and its buffers are large."""
    gc.collect()
