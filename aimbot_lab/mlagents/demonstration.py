"""Episodes as a demonstration file of ML-Agents, for its behaviour cloning and GAIL.

The file has a header padded to 33 bytes, what the behavior is made of, then a message for each
decision and each end of an episode: what the agent observed, and what it did. The reward is that
since the message before; the end repeats the last action, as Unity's recorder does.
Source: `mlagents.trainers.demo_loader` 1.1.0, and C# `DemonstrationWriter`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BoolArray, Float32Array, Observations, WorldSpec
from aimbot_lab.mlagents.base_env import ActionTuple, BehaviorSpec, DecisionSteps, TerminalSteps
from aimbot_lab.mlagents.info_codec import ActionCodec, InfoCodec, behavior_spec, sensors_of
from aimbot_lab.mlagents.messages import new_message, parsed, write_varint
from aimbot_lab.mlagents.session import introduction

HEADER = 33  # bytes before the behavior
VERSION = 1  # of the format
ACTION = b"\x12"  # how field 2, a message, begins


class Demonstrated(NamedTuple):
    """One agent's episode of T decisions."""

    observations: Observations  # [T + 1] before each decision, and the last one
    forbidden: BoolArray  # [T, choices of all branches]
    actions: Float32Array  # [T, branches + continuous] as the world takes them
    rewards: Float32Array  # [T] for each decision
    truncated: bool  # cut off, not ended by the rules


def demonstration(
    episodes: Sequence[Demonstrated], spec: WorldSpec, *, name: str = "AimbotLab"
) -> bytes:
    """The file that holds `episodes` of a world with `spec`, for the behavior `name`.

    Raises ConfigurationError for a name that the header has no room for, and without episodes.
    """
    if not episodes:
        raise ConfigurationError("a demonstration needs an episode")
    writer = _Writer(spec)
    pairs = [pair for episode in episodes for pair in writer.pairs(episode)]
    (behavior,) = parsed("InitOutput", introduction([name], writer.spec)).brain_parameters
    return _header(episodes, name, steps=len(pairs)) + b"".join(
        map(_delimited, [bytes(behavior.SerializeToString()), *pairs])
    )


class _Writer:
    """Writes the messages of episodes."""

    def __init__(self, spec: WorldSpec) -> None:
        self.spec: BehaviorSpec = behavior_spec(spec)
        self._sensors = sensors_of(spec)
        self._infos, self._actions = InfoCodec(self.spec), ActionCodec(self.spec.action_spec)
        low, high = spec.action_ranges
        self._middle, self._half = (low + high) / 2, (high - low) / 2

    def pairs(self, episode: Demonstrated) -> list[bytes]:
        """What was observed and done, decision by decision, and the end."""
        actions = self._written_actions(episode.actions)
        infos = [*self._deciding(episode), self._ended(episode)]
        return [info + action for info, action in zip(infos, [*actions, actions[-1]], strict=True)]

    def _written_actions(self, actions: Float32Array) -> list[bytes]:
        branches = self.spec.action_spec.discrete_size
        continuous = np.clip((actions[:, branches:] - self._middle) / self._half, -1.0, 1.0)
        action = ActionTuple(continuous, actions[:, :branches].astype(np.int32))
        rows = _rows(self._actions.encode(action), len(actions))
        return [ACTION + row[1:] for row in rows]

    def _deciding(self, episode: Demonstrated) -> list[bytes]:
        count = len(episode.actions)
        ends = np.cumsum(self.spec.action_spec.discrete_branches)[:-1]
        masks = np.split(episode.forbidden, ends, axis=1)
        nothing, zeros = np.zeros(count, np.int32), np.zeros(count, np.float32)
        rewards = np.concatenate([zeros[:1], episode.rewards[:-1]])
        decisions = DecisionSteps(
            self._seen(episode.observations[:-1]), rewards, nothing, masks, nothing, zeros
        )
        return _rows(self._infos.encode(decisions, TerminalSteps.empty(self.spec)), count)

    def _seen(self, observations: Observations) -> list[Float32Array]:
        return [sensor.of(observations) for sensor in self._sensors]

    def _ended(self, episode: Demonstrated) -> bytes:
        nothing, zero = np.zeros(1, np.int32), np.zeros(1, np.float32)
        terminals = TerminalSteps(
            self._seen(episode.observations[-1:]),
            episode.rewards[-1:],
            np.array([episode.truncated]),
            nothing,
            nothing,
            zero,
        )
        return self._infos.encode(DecisionSteps.empty(self.spec), terminals)


def _rows(message: bytes, count: int) -> list[bytes]:
    """The `count` entries, of one length, of a list. Field 1, as what was observed is."""
    length = len(message) // count
    return [message[place : place + length] for place in range(0, len(message), length)]


def _header(episodes: Sequence[Demonstrated], name: str, *, steps: int) -> bytes:
    meta = new_message("DemonstrationMeta")
    meta.api_version, meta.demonstration_name = VERSION, name
    meta.number_steps, meta.number_episodes = steps, len(episodes)
    meta.mean_reward = float(np.mean([episode.rewards.sum() for episode in episodes]))
    header = _delimited(bytes(meta.SerializeToString()))
    if len(header) > HEADER:
        raise ConfigurationError(f"{name!a:.60}: is too long a name for a demonstration")
    return header.ljust(HEADER, b"\0")


def _delimited(message: bytes) -> bytes:
    return write_varint(len(message)) + message
