"""Where a process stands among those of one training, and how it says that it lost the others."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError

RANK = "RANK"
WORLD_SIZE = "WORLD_SIZE"
ADDRESS = "MASTER_ADDR"
PORT = "MASTER_PORT"
RUN_ID = "TORCHELASTIC_RUN_ID"  # whoever sets it chose the port
RESTART = "TORCHELASTIC_RESTART_COUNT"
AGENT_STORE = "TORCHELASTIC_USE_AGENT_STORE"
INTERFACE = "GLOO_SOCKET_IFNAME"


@dataclass(frozen=True)
class Place:
    """Which process this is, of how many."""

    rank: int
    count: int

    @property
    def leads(self) -> bool:
        """Whether it shows progress, tracks, and writes the run's folder."""
        return self.rank == 0


ALONE = Place(0, 1)


class LostError(RunFailedError):
    """Another process of the training is gone or silent; all can begin again from a checkpoint."""

    exit_code = 75  # EX_TEMPFAIL of sysexits.h


def place_from_environment(environment: Mapping[str, str] = os.environ) -> Place:
    """The place that torchrun, or whatever started this process, wrote into the environment.

    Raises ConfigurationError where the two variables contradict each other or are not numbers.
    """
    given = {name: environment[name] for name in (RANK, WORLD_SIZE) if name in environment}
    if not given:
        return ALONE
    shown = " ".join(f"{name}={value}" for name, value in given.items())
    try:
        place = Place(int(given[RANK]), int(given[WORLD_SIZE]))
    except (KeyError, ValueError) as error:
        raise ConfigurationError(
            f"environment: {shown}: {RANK} and {WORLD_SIZE} must both be whole numbers, or unset"
        ) from error
    if not 0 <= place.rank < place.count:
        raise ConfigurationError(
            f"environment: {shown}: {RANK} must be 0 to {WORLD_SIZE} - 1, {WORLD_SIZE} at least 1"
        )
    return place
