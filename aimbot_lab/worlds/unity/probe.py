"""A build is started once to ask what its agents observe and do."""

import time
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.mlagents.builds import Behaviors, Build, BuildLink, Launch
from aimbot_lab.mlagents.handshake import DESCRIPTION, described
from aimbot_lab.mlagents.messages import RESET, STEP, BuildMessage
from aimbot_lab.mlagents.side_channel.side_channel import unframed
from aimbot_lab.worlds.unity.parameters import engine_message
from aimbot_lab.worlds.unity.settings import UnitySettings
from aimbot_lab.worlds.unity.shape import BuildShape, learned_behavior, plain_name


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
