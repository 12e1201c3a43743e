"""Errors of ML-Agents' Python interface, by its names; each is one line."""

from aimbot_lab.foundation.errors import ActionError, ConfigurationError, LabError


class UnityException(LabError):
    """Base of all of them."""


class UnityEnvironmentException(UnityException):
    """An environment that is closed, or that was asked for what it can't do."""


class UnityCommunicationException(UnityException):
    """A message that must not come."""


class UnityObservationException(UnityException):
    """Observations or rewards that are not what was declared."""


class NotFiniteError(UnityObservationException, RuntimeError):
    """NaN or infinity in observations or rewards, for which ML-Agents raises RuntimeError."""


class UnityActionException(UnityException, ActionError):
    """An unknown behavior, or actions of another shape or without a meaning."""


class UnitySideChannelException(UnityException):
    """A message of a side channel that can't be written, read or carried out."""


class UnityTimeOutException(UnityException):
    """A build that sends nothing."""


class UnityCommunicatorStoppedException(UnityException):
    """A build that says that it goes."""


class UnityWorkerInUseException(UnityException, ConfigurationError):
    """A port that another program has."""
