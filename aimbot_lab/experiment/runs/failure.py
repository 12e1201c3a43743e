"""What a run that ended by an error keeps of it: the traceback, which no message shows."""

import traceback
from contextlib import suppress

from aimbot_lab.foundation.errors import RunLostError
from aimbot_lab.tracking.address import without_password
from aimbot_lab.tracking.tracker import Tracker

TRACEBACK_NAME = "traceback.txt"  # among a run's artifacts


def keep_traceback(error: BaseException, tracker: Tracker) -> None:
    """Log the traceback of `error`, and of what it came from, if the run still can be logged to."""
    if not isinstance(error, Exception) or isinstance(error, RunLostError):
        return
    text = "".join(traceback.format_exception(error))
    with suppress(RuntimeError, RunLostError, OSError):  # ended, taken over, no room
        tracker.log_text(without_password(text), TRACEBACK_NAME)
