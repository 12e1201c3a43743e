"""The errors a user can cause, each with the exit code the command line gives it.

And what the code of a user or of a package raised, in one line that names the place in that code.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import walk_tb

from aimbot_lab.foundation.shown_text import one_line, shortened

MAX_REASON = 200  # characters of what was raised
INSTALLED = ("site-packages", "dist-packages")  # folders of packages
WRAPPERS = ("click", "gymnasium", "numpy", "torch", "stable_baselines3", "sb3_contrib", "importlib")
"""Libraries that stand between us and the code that is meant."""
OURS = Path(__file__).parents[1]
STANDARD = Path(os.__file__).parent


class LabError(Exception):
    """Base of every error that is shown to a user as one line, without a traceback."""

    exit_code = 1


class ConfigurationError(LabError):
    """Something the user wrote is wrong; nothing was created.

    `faults` holds every fault that was found, each one complete line
    (`file:line:column: key: what is wrong, what is allowed`).
    """

    exit_code = 2

    def __init__(self, *faults: str) -> None:
        super().__init__("\n".join(faults))
        self.faults: Sequence[str] = faults


class ActionError(LabError):
    """An action that no player could take (NaN, infinite, no such branch index)."""


class StoreError(LabError):
    """The data folder or the tracking server can't be used."""


class DiskError(StoreError):
    """A file of the data folder can't be read or written; others may."""


class RunFailedError(LabError):
    """A training ended without reaching what its curriculum asks for."""


class ForeignCodeError(RunFailedError):
    """Code of a user or of a package raised, or gave what it must not, while it was played.

    In a sweep only the trial fails.
    """


class RunLostError(LabError):
    """Another process has taken over the run that this one was training."""


class AbortedError(LabError):
    """The user broke the work off; the message says what is left of it."""

    exit_code = 130


NEVER_BLAMED = (LabError, KeyboardInterrupt)
"""What is raised through foreign code and is not its fault. SystemExit is: `sys.exit` in a user's
environment must end a run as any error does, not this program."""


def reason(error: BaseException) -> str:
    """What foreign code raised, in one line."""
    lines = []
    with suppress(Exception):  # of a class whose own words raise
        lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return shortened(one_line(text), MAX_REASON)


def file_reason(error: OSError) -> str:
    """What the system refused, in one line: the file, where it is known, and why."""
    where = f"{error.filename}: " if error.filename else ""
    return one_line(f"{where}{error.strerror or error}")


def reason_and_place(error: BaseException) -> str:
    """What foreign code raised, and `(FILE:LINE)` of it where that is known."""
    place = place_of(error)
    return reason(error) if place is None else f"{reason(error)} ({place})"


def place_of(error: BaseException) -> str | None:
    """`FILE:LINE` of the last line of foreign code that `error` came through, if there is any.

    Code that is not installed goes first: who wrote it reads the message. Of installed code the
    package that was called is meant, not the libraries that it calls.
    """
    places = [one for one in _places(error) if one[2] not in WRAPPERS]
    own = [
        one
        for one in places
        if not one[0].is_relative_to(STANDARD) and not set(INSTALLED).intersection(one[0].parts)
    ]
    chosen = own or [one for one in places if one[2] == places[0][2]]
    return f"{_shown(chosen[-1][0])}:{chosen[-1][1]}" if chosen else None


def place_of_method(owner: object, name: str) -> str:
    """` (FILE:LINE)` where the class of `owner` defines a method; empty where that is unknown."""
    code = getattr(getattr(type(owner), name, None), "__code__", None)
    return f" ({_shown(Path(code.co_filename))}:{code.co_firstlineno})" if code else ""


def packages_of(error: BaseException) -> tuple[str, ...]:
    """The packages that `error` came through, ours left out, the last one first."""
    return tuple(dict.fromkeys(package for _, _, package in reversed(list(_places(error)))))


@contextmanager
def blamed(what: str, kind: type[LabError] = LabError) -> Iterator[None]:
    """Raise `kind`, in one line, for whatever foreign code raises; `what` begins that line.

    That includes `sys.exit`. A LabError and Ctrl-C are left as they are.
    """
    try:
        yield
    except NEVER_BLAMED:
        raise
    except BaseException as error:
        raise kind(f"{what} {reason_and_place(error)}") from error


def _places(error: BaseException) -> Iterator[tuple[Path, int, str]]:
    """File, line and package of each line of foreign code that `error` came through."""
    for frame, line in walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if not file.is_relative_to(OURS) and not str(file).startswith("<"):
            yield file, line, str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _shown(file: Path) -> str:
    """The path of `file` as one types it here."""
    file, here = file.absolute(), Path.cwd()
    return one_line(str(file.relative_to(here) if file.is_relative_to(here) else file))
