"""Processes of a build: one that is asked for its shape; those that are played.

They are started together, restarted one by one, as often as ML-Agents would, and ended with the
world.
"""

import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.mlagents.builds import Behaviors, Build, BuildLink, Launch
from aimbot_lab.mlagents.exception import (
    UnityCommunicatorStoppedException,
    UnityEnvironmentException,
    UnityTimeOutException,
)
from aimbot_lab.mlagents.messages import RESET, STEP, BuildMessage
from aimbot_lab.mlagents.session import DESCRIPTION, described
from aimbot_lab.mlagents.side_channel.side_channel import unframed
from aimbot_lab.worlds.unity.channels import engine_message
from aimbot_lab.worlds.unity.settings import UnitySettings
from aimbot_lab.worlds.unity.shape import BuildShape, learned_behavior, plain_name

LOST = (UnityCommunicatorStoppedException, UnityEnvironmentException, UnityTimeOutException)
"""What a new process may cure; what a build says wrongly, it would say again."""
Start = Callable[[int], BuildLink]  # a process by its number


def launch_of(settings: UnitySettings) -> Launch:
    """How builds of `settings` are started."""
    return Launch(
        file_name=settings.file_name,
        arguments=settings.env_args,
        no_graphics=settings.no_graphics,
        timeout_wait=settings.timeout_wait,
        base_port=settings.base_port,
        log_folder=settings.log_folder,
    )


def probe(settings: UnitySettings) -> BuildShape:
    """What a build of `settings` is; it is started for that, and ended.

    Raises ConfigurationError, in a line, where it can't be started or understood.
    """
    link = Build(launch_of(settings), 0)
    try:
        return _asked(link, settings)
    except ConfigurationError:
        raise
    except LabError as error:
        raise ConfigurationError(f"env.file_name: {error}") from error
    finally:
        link.close()


def _asked(link: BuildLink, settings: UnitySettings) -> BuildShape:
    link.greet(0)
    link.send(RESET, {}, engine_message(settings))
    behaviors, told = Behaviors(), dict[str, Any]()
    until = time.monotonic() + settings.timeout_wait
    while True:
        message = link.receive()
        known = behaviors.of(message)
        for channel, data in unframed(message.side_channels):
            if channel == DESCRIPTION:
                told = described(data)
        if known:
            name = learned_behavior(tuple(known), settings)
            agents = _agents(message, behaviors, name)
            if agents:
                spec = next(one.spec for key, one in known.items() if plain_name(key) == name)
                return BuildShape(name, spec, agents, told)
        if time.monotonic() > until:
            raise ConfigurationError(
                f"env.file_name: the build showed no agents within {settings.timeout_wait:g} s"
            )
        link.send(STEP, _zeros(message, behaviors), b"")


def _agents(message: BuildMessage, behaviors: Behaviors, name: str) -> int:
    """Agents of the behavior `name`, all teams, that need an action."""
    return sum(
        len(behaviors.known[key].infos.decode(infos)[0])
        for key, infos in message.infos.items()
        if plain_name(key) == name and key in behaviors.known
    )


def _zeros(message: BuildMessage, behaviors: Behaviors) -> dict[str, bytes]:
    """Actions of zeros for all agents of `message` that need one."""
    sent = {}
    for name, infos in message.infos.items():
        if name in behaviors.known:
            behavior = behaviors.known[name]
            count = len(behavior.infos.decode(infos)[0])
            sent[name] = behavior.actions.encode(behavior.spec.action_spec.empty_action(count))
    return sent


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


class RestartLimit:
    """Counts the restarts of one process."""

    def __init__(
        self, settings: UnitySettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._times: list[float] = []

    def refusal(self) -> str | None:
        """Why the process must not be started again; None, counting it, where it may."""
        settings, now = self._settings, self._clock()
        most, period = settings.max_lifetime_restarts, settings.restarts_rate_limit_period_s
        if 0 <= most <= len(self._times):
            return f"it was restarted {most} times, as env.max_lifetime_restarts allows"
        recent = sum(now - moment < period for moment in self._times)
        if 0 <= settings.restarts_rate_limit_n <= recent:
            return (
                f"it was restarted {recent} times within {period:g} s, as "
                "env.restarts_rate_limit_n allows"
            )
        self._times.append(now)
        return None
