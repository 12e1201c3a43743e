"""Processes of a build, started together, restarted one by one, and ended with the world."""

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

from aimbot_lab.foundation.errors import ForeignCodeError, LabError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.mlagents.builds import Build, BuildLink, Launch
from aimbot_lab.mlagents.exception import (
    UnityCommunicatorStoppedException,
    UnityEnvironmentException,
    UnityTimeOutException,
)
from aimbot_lab.worlds.unity.restarts import RestartLimit
from aimbot_lab.worlds.unity.settings import UnitySettings

LOST = (UnityCommunicatorStoppedException, UnityEnvironmentException, UnityTimeOutException)
"""What a new process may cure; what a build says wrongly, it would say again."""
Start = Callable[[int], BuildLink]  # a process by its number


def starter(launch: Launch) -> Start:
    """Starts builds by `launch`."""
    return lambda number: Build(launch, number)


class Processes:
    """Up to `count` processes. They end with this object, or with the interpreter."""

    def __init__(self, start: Start, count: int, *, settings: UnitySettings) -> None:
        self._start = start
        self._limits = [RestartLimit(settings) for _ in range(count)]
        self._links: list[BuildLink] = []
        self._starts = 0
        weakref.finalize(self, _close_all, self._links)

    def begin(self, seed: int) -> Sequence[BuildLink]:
        """All processes, started where they are not running yet, with seeds that follow."""
        if not self._links:
            try:
                for number in range(len(self._limits)):
                    self._links.append(self._start(number))
                for number, link in enumerate(self._links):
                    link.greet(self._seed(seed, number))
            except BaseException:
                self.close()
                raise
        return tuple(self._links)

    def replace(self, number: int, error: LabError, seed: int) -> BuildLink:
        """A new process in the place of one that was lost by `error`.

        Raises ForeignCodeError where there were too many restarts.
        """
        refusal = self._limits[number].refusal()
        if refusal is not None:
            raise ForeignCodeError(f"{error}; {refusal}") from error
        self._links[number].close(at_once=True)
        self._starts += 1
        link = self._links[number] = self._start(number)
        link.greet(self._seed(seed, number))
        return link

    def _seed(self, seed: int, number: int) -> int:
        return derive_seed(seed, "build", number, self._starts) % 2**31

    def close(self) -> None:
        """End all processes."""
        _close_all(self._links)


def _close_all(links: list[BuildLink]) -> None:
    for link in links:
        with suppress(LabError, OSError):
            link.close()
    links.clear()
