"""The errors a user can cause, each with the exit code the command line gives it."""

from collections.abc import Sequence


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


class RunFailedError(LabError):
    """A training ended without reaching what its curriculum asks for."""


class RunLostError(LabError):
    """Another process has taken over the run that this one was training."""


class AbortedError(LabError):
    """The user broke the work off; the message says what is left of it."""

    exit_code = 130
