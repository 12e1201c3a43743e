"""A world as a build that a trainer of ML-Agents talks to, whatever carries the messages.

The build speaks first; each of its messages is answered by one of the trainer's. In order: a
greeting; an empty message, which the trainer answers when it resets; then what agents observed.
"""

import uuid
from collections.abc import Collection

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BatchWorld, Float32Array, Scenario, close_world
from aimbot_lab.mlagents.action_codec import ActionCodec
from aimbot_lab.mlagents.base_env import ActionTuple, BehaviorSpec, checked_action
from aimbot_lab.mlagents.exception import NotFiniteError, UnityActionException
from aimbot_lab.mlagents.handshake import (
    DESCRIPTION,
    describe,
    greeting,
    introduction,
    reads_channels_first,
    trainers_seed,
)
from aimbot_lab.mlagents.info_codec import InfoCodec
from aimbot_lab.mlagents.messages import (
    OK,
    QUIT,
    RESET,
    SHUT_DOWN,
    BuildMessage,
    TrainerMessage,
    read_trainer_message,
    write_build_message,
)
from aimbot_lab.mlagents.picture_codec import PictureInfoCodec
from aimbot_lab.mlagents.player import BehaviorPlayer, Steps, teams_of
from aimbot_lab.mlagents.player_channels import PlayerChannels, ReceivedParameters
from aimbot_lab.mlagents.sensors import behavior_spec
from aimbot_lab.mlagents.side_channel.side_channel import framed, unframed
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

MAX_MESSAGE = 4 * 1024 * 1024  # bytes that trainers take
REST = 256 * 1024  # bytes of a message that are kept for names and what is around
REPORT = 128  # bytes that a number of an ended episode takes at most; its line takes twice as many
REPORTS = (STATS, STRING_LOG)


class PlayerSession:
    """`world` as a build, from its first message to its last.

    `reports` are the channels over which results are sent; `png` compresses pictures; with
    `describes` the world is described to a trainer of ours. Raises ConfigurationError where
    the messages of all agents are longer than trainers take.
    """

    def __init__(
        self,
        world: BatchWorld,
        scenario: Scenario,
        *,
        name: str = "AimbotLab",
        reports: Collection[uuid.UUID] = REPORTS,
        png: bool = False,
        describes: bool = False,
    ) -> None:
        spec = behavior_spec(world.spec)
        self._codec = PictureInfoCodec if png and _first_is_picture(spec) else InfoCodec
        self._infos, self._actions = self._codec(spec), ActionCodec(spec.action_spec)
        _refuse_long_messages(self._infos, world)
        self._world, self._name, self._spec, self._reports = world, name, spec, reports
        self._teams = teams_of(world, name)
        parameters = ReceivedParameters(world, scenario)
        self._channels = PlayerChannels(world, parameters, log=_log_of(reports))
        self._player: BehaviorPlayer | None = None
        self._introduced, self._describes = False, describes

    def close(self) -> None:
        """End the world."""
        close_world(self._world)

    def begin(self) -> bytes:
        """The first message."""
        return write_build_message(BuildMessage(OK, {}, b"", greeting()))

    def answer(self, data: bytes) -> bytes | None:
        """The message that follows the trainer's `data`; None: it wants no more.

        Raises UnityException for what can't be read or carried out.
        """
        message = read_trainer_message(data)
        if message.status != OK or message.command == QUIT:
            return None
        if self._player is None:
            seed = abs(trainers_seed(message.initialization))
            first = reads_channels_first(message.initialization)
            self._player = BehaviorPlayer(
                self._world, name=self._name, seed=seed, channels_first=first
            )
            self._infos = self._codec(self._player.spec)
            self._prepare()
            return write_build_message(BuildMessage(OK, {}, b"", b""))
        self._channels.receive(unframed(message.side_channels))
        if message.command == RESET or not self._introduced:
            return self._told(self._player.reset(), None)
        return self._told(*self._player.step(self._given(message)))

    def _prepare(self) -> None:
        """Have all kernels compiled.

        A trainer waits a minute for each message, so that neither the greeting nor the answer to
        its reset may take the time. That reset begins anew, whatever was played here.
        """
        player = BehaviorPlayer(self._world, name=self._name, seed=0)
        player.reset()
        player.step({})

    def end(self) -> bytes:
        """The message that tells the trainer that the build goes."""
        return write_build_message(BuildMessage(SHUT_DOWN, {}, b"", b""))

    def _given(self, message: TrainerMessage) -> dict[str, ActionTuple]:
        given = {}
        for behavior, data in message.actions.items():
            if behavior not in self._teams:
                raise UnityActionException(
                    f"no behavior {behavior!a:.60}; there are: {', '.join(self._teams)}"
                )
            given[behavior] = checked_action(
                self._actions.decode(data),
                self._spec.action_spec,
                agents=self._world.num_envs,
                name=behavior,
            )
        return given

    def _told(self, steps: Steps, episodes: EpisodeBatch | None) -> bytes:
        for decisions, terminals in steps.values():
            for seen in decisions.obs:
                _require_finite(seen, "observations")
            for rewards in (decisions.reward, terminals.reward):
                _require_finite(rewards, "rewards")
        infos = {behavior: self._infos.encode(*both) for behavior, both in steps.items()}
        news = b"" if self._introduced else introduction(infos, self._spec)
        told = self._channels.reports(episodes, self._reports) if episodes else []
        if self._describes and not self._introduced:
            told.append((DESCRIPTION, describe(self._world.spec)))
        self._introduced = True
        return write_build_message(BuildMessage(OK, infos, framed(told), news))


def _first_is_picture(spec: BehaviorSpec) -> bool:
    return len(spec.observation_specs[0].shape) == 3


def _log_of(reports: Collection[uuid.UUID]) -> uuid.UUID | None:
    """The one of `reports` that lines go over; None: none does."""
    return next((channel for channel in reports if channel != STATS), None)


def _refuse_long_messages(codec: InfoCodec | PictureInfoCodec, world: BatchWorld) -> None:
    """Raise ConfigurationError where all agents, each with two infos, are too long a message."""
    reports = REPORT * (3 + len(world.spec.episode_columns))
    per_row = (2 * codec.longest_info + reports) * world.spec.agents
    rows, fit = world.num_envs, (MAX_MESSAGE - REST) // per_row
    if rows > fit:
        raise ConfigurationError(
            f"agents: {rows} rows make messages of up to {rows * per_row / 2**20:.1f} MiB; "
            f"trainers take {MAX_MESSAGE // 2**20} MiB, which at most {fit} rows fit"
        )


def _require_finite(values: Float32Array, name: str) -> None:
    """Raise NotFiniteError where `values`, an array of `name`, hold NaN or infinity.

    A trainer stops at them.
    """
    with np.errstate(all="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        kind = "NaN" if np.isnan(values).any() else "infinite"
        raise NotFiniteError(f"the {name} provided by the world have {kind} values")
