"""Both sides of a conversation with a trainer of ML-Agents, whatever carries the messages.

The build speaks first; each of its messages is answered by one of the trainer's. In order: a
greeting; an empty message, which the trainer answers when it resets; then what agents observed.

A player of ours describes its world, beyond what ML-Agents' messages hold, to a trainer that asks
for it: names and bounds of observations, targets with their difficulties, parameters, columns of
episodes, as JSON over a side channel of its own. A Unity build says nothing of the kind.
"""

import json
import struct
import uuid
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import BatchWorld, Float32Array, Scenario, WorldSpec, close_world
from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    ActionTuple,
    BehaviorSpec,
    DecisionSteps,
    ObservationSpec,
    TerminalSteps,
    checked_action,
    is_channels_first,
)
from aimbot_lab.mlagents.exception import (
    NotFiniteError,
    UnityActionException,
    UnityEnvironmentException,
    UnitySideChannelException,
)
from aimbot_lab.mlagents.info_codec import (
    COMPRESSION,
    DIMENSIONS,
    NAME,
    OBSERVATION,
    SHAPE,
    ActionCodec,
    InfoCodec,
    behavior_spec,
)
from aimbot_lab.mlagents.messages import (
    OK,
    QUIT,
    RESET,
    SHUT_DOWN,
    VALUE,
    VARINT,
    BuildMessage,
    Bytes,
    TrainerMessage,
    WireError,
    new_message,
    parsed,
    read_trainer_message,
    tag,
    write_build_message,
    write_bytes,
    write_packed,
    write_varint,
)
from aimbot_lab.mlagents.player import (
    BehaviorPlayer,
    PlayerChannels,
    ReceivedParameters,
    Steps,
    teams_of,
)
from aimbot_lab.mlagents.side_channel.side_channel import framed, unframed
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

COMMUNICATION = "1.5.0"  # version of the protocol
PACKAGE = "2.0.1"  # of Unity's package that speaks it as we do
TRAINER = "0.30.0"  # of ML-Agents' Python package; builds of later ones see pictures otherwise
ABILITIES = (
    *("baseRLCapabilities", "concatenatedPngObservations", "compressedChannelMapping"),
    *("hybridActions", "trainingAnalytics", "variableLengthObservation", "multiAgentGroups"),
)
DESCRIPTION = uuid.UUID("6b6f6f8c-3c5e-4f0f-9a3f-5d1c2a7e9b10")
ASKED = "AIMBOT_LAB_DESCRIBE"
"""The variable in a player's environment by which a trainer of ours asks for it."""
TOLD = (
    *("observation_names", "observation_low", "observation_high", "blocks", "targets"),
    *("difficulties", "parameters", "action_names", "decision_seconds", "time_unit", "max_steps"),
    *("has_draws", "time_column", "episode_columns", "result_columns", "turn_per_unit"),
)


def greeting() -> bytes:
    """The InitOutput that a build begins with."""
    output = new_message("InitOutput")
    output.name = "AcademySingleton"
    output.communication_version, output.package_version = COMMUNICATION, PACKAGE
    for ability in ABILITIES:
        setattr(output.capabilities, ability, True)
    return _written(output)


def introduction(behaviors: Iterable[str], spec: BehaviorSpec) -> bytes:
    """The InitOutput that comes with the first agents of `behaviors`."""
    output = new_message("InitOutput")
    for name in behaviors:
        brain = output.brain_parameters.add()
        brain.brain_name, brain.is_training = name, True
        actions = brain.action_spec
        actions.num_continuous_actions = spec.action_spec.continuous_size
        actions.num_discrete_actions = spec.action_spec.discrete_size
        actions.discrete_branch_sizes.extend(spec.action_spec.discrete_branches)
    return _written(output)


def trainers_seed(initialization: bytes) -> int:
    """The seed in the trainer's InitInput.

    Raises UnityEnvironmentException for a trainer of another major version, WireError for other
    bytes.
    """
    given = _init_input(initialization)
    _require_version(given, "the trainer", "this build")
    return int(given.seed)


def reads_channels_first(initialization: bytes) -> bool:
    """Whether the trainer of this InitInput reads pictures as [C, H, W], as those from 1.0 on do.

    Trainers of 0.x read [H, W, C]; one that names no version is taken for a new one.
    """
    return not str(_init_input(initialization).package_version).startswith("0.")


def _init_input(initialization: bytes) -> Any:
    return parsed("InitInput", initialization, "the trainer's first message can't be read")


def check_build(initialization: bytes) -> None:
    """Raise UnityEnvironmentException for a build whose InitOutput is of another major version."""
    given = parsed("InitOutput", initialization, "the build's first message can't be read")
    _require_version(given, "the build", "this trainer")


def _require_version(given: Any, other: str, own: str) -> None:
    version = str(given.communication_version)
    if version.partition(".")[0] != COMMUNICATION.partition(".")[0]:
        raise UnityEnvironmentException(
            f"{other} speaks version {version!a:.20} of the protocol, {own} "
            f"{COMMUNICATION}: the numbers before the point must be the same"
        )


def trainers_answer(seed: int) -> bytes:
    """The InitInput that answers a build's greeting, with a seed of 31 bits."""
    given = new_message("InitInput")
    given.seed, given.num_areas = seed, 1
    given.communication_version, given.package_version = COMMUNICATION, TRAINER
    for ability in ABILITIES:
        setattr(given.capabilities, ability, True)
    return _written(given)


def action_specs(initialization: bytes) -> dict[str, ActionSpec]:
    """The actions of the behaviors that an InitOutput introduces.

    Raises WireError for other bytes and behaviors without an action.
    """
    given = parsed("InitOutput", initialization, "what a build says of its behaviors can't be read")
    found = {}
    for brain in given.brain_parameters:
        spec = brain.action_spec
        branches = tuple(int(size) for size in spec.discrete_branch_sizes)
        if not spec.num_continuous_actions and not branches:
            raise WireError(
                f"behavior {brain.brain_name!a:.60} has no actions, or those of a version of "
                "ML-Agents before 1.3"
            )
        found[str(brain.brain_name)] = ActionSpec(int(spec.num_continuous_actions), branches)
    return found


def _written(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def describe(spec: WorldSpec, *, raw: bool = False) -> bytes:
    """`spec` as a message over `DESCRIPTION`, whose agents take `raw` actions."""
    document = spec_document(spec)
    turn, (_, high) = spec.turn_per_unit, spec.action_ranges
    document["turn_per_unit"] = None if turn is None else turn * (1.0 if raw else float(high[0]))
    return json.dumps(document).encode("utf-8")


def described(message: bytes) -> dict[str, Any]:
    """Fields of a WorldSpec that `message` tells.

    Raises UnitySideChannelException where it is not such a description.
    """
    try:
        spec = spec_from(json.loads(message))
    except ValueError as error:
        raise UnitySideChannelException(
            f"what a build says of its world can't be read: {shortened(one_line(repr(error)), 80)}"
        ) from error
    return {name: getattr(spec, name) for name in TOLD}


DATA, MAPPING, PNG = 3, 5, 1  # fields of an observation, and its kind of compression
SHADES = 3  # of a pixel of each file
FRAME = 128  # bytes of a file beside its pixels, and of what is around
DECIDING = "reward", "agent_id", "action_mask", "group_id", "group_reward"
ENDED = "reward", "interrupted", "agent_id", "group_id", "group_reward"


class PictureInfoCodec:
    """Writes ListAgentInfo messages whose first observation is a picture of shades 0 to 1.

    Other observations and all else go as `InfoCodec` writes them.
    """

    def __init__(self, spec: BehaviorSpec) -> None:
        self._sensor, *others = spec.observation_specs
        self._others = InfoCodec(BehaviorSpec(others, spec.action_spec))
        self._tail = _tail(self._sensor)

    @property
    def longest_info(self) -> int:
        """Bytes that an agent takes at most: those of pixels that can't be compressed."""
        height, width, channels = pixels_shape(self._sensor)
        files = -(-channels // SHADES)
        picture = files * (height * (1 + SHADES * width) + FRAME)
        return self._others.longest_info + picture + picture // 1000 + len(self._tail) + FRAME

    def encode(self, decisions: DecisionSteps, terminals: TerminalSteps) -> bytes:
        """Both as a ListAgentInfo, those that ended first. Ids are from 0 on."""
        pictures = [*terminals.obs[0], *decisions.obs[0]]
        data = self._others.encode(
            DecisionSteps(decisions.obs[1:], *_beside(decisions, DECIDING)),
            TerminalSteps(terminals.obs[1:], *_beside(terminals, ENDED)),
        )
        infos = parsed("ListOfBytes", data).value
        return b"".join(
            write_bytes(VALUE, self._picture(picture) + info)
            for picture, info in zip(pictures, infos, strict=True)
        )

    def _picture(self, picture: Float32Array) -> bytes:
        """An observation, as a field of an info."""
        pixels = picture.reshape(self._sensor.shape)
        if is_channels_first(self._sensor):
            pixels = pixels.transpose(1, 2, 0)
        files = b"".join(map(png_file, in_threes(np.rint(pixels * 255.0).astype(np.uint8))))
        return write_bytes(OBSERVATION, write_bytes(DATA, files) + self._tail)


def pixels_shape(sensor: ObservationSpec) -> tuple[int, int, int]:
    """Height, width and channels of a picture."""
    one, two, three = sensor.shape
    return (two, three, one) if is_channels_first(sensor) else (one, two, three)


def in_threes(pixels: Bytes) -> list[Bytes]:
    """Pixels [H, W, C] as pictures of three shades: a single one thrice, zeros after the last."""
    if pixels.shape[2] == 1:
        return [np.repeat(pixels, SHADES, axis=2)]
    padded = np.pad(pixels, ((0, 0), (0, 0), (0, -pixels.shape[2] % SHADES)))
    return np.split(padded, padded.shape[2] // SHADES, axis=2)


def png_file(pixels: Bytes) -> bytes:
    """`pixels` [H, W, 3] as a PNG file, without filters."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + SHADES * width), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 1)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check


def _tail(sensor: ObservationSpec) -> bytes:
    """The fields of an observation beside the pixels."""
    channels = pixels_shape(sensor)[2]
    tail = write_packed(SHAPE, sensor.shape) + tag(COMPRESSION, VARINT) + write_varint(PNG)
    if channels not in (1, SHADES):  # 1 and 3 need no mapping: the mean, or each as it is
        unused = [-1] * (-channels % SHADES)
        tail += write_packed(MAPPING, [*range(channels), *unused])
    tail += write_packed(DIMENSIONS, map(int, sensor.dimension_property))
    return tail + write_bytes(NAME, sensor.name.encode("utf-8"))


def _beside(steps: DecisionSteps | TerminalSteps, names: Sequence[str]) -> list[Any]:
    return [getattr(steps, name) for name in names]


MAX_MESSAGE = 4 * 1024 * 1024  # bytes that trainers take
REST = 256 * 1024  # bytes of a message that are kept for names and what is around
REPORT = 128  # bytes that a number of an ended episode takes at most; its line takes twice as many
REPORTS = (STATS, STRING_LOG)


class PlayerSession:
    """`world` as a build, from its first message to its last.

    `reports` are the channels over which results are sent, in lines without fields if `plain`;
    `raw` actions are those of the world itself; `png` compresses pictures; with `describes` the
    world is described to a trainer of ours. Raises ConfigurationError where the messages of all
    agents are longer than trainers take.
    """

    def __init__(
        self,
        world: BatchWorld,
        scenario: Scenario,
        *,
        name: str = "AimbotLab",
        reports: Collection[uuid.UUID] = REPORTS,
        plain: bool = False,
        raw: bool = False,
        png: bool = False,
        describes: bool = False,
    ) -> None:
        spec = behavior_spec(world.spec)
        self._codec = (
            PictureInfoCodec if png and (len(spec.observation_specs[0].shape) == 3) else InfoCodec
        )
        self._infos, self._actions = self._codec(spec), ActionCodec(spec.action_spec)
        _refuse_long_messages(self._infos, world)
        self._world, self._name, self._spec, self._reports = world, name, spec, reports
        self._teams = teams_of(world, name)
        parameters = ReceivedParameters(world, scenario)
        log = next((channel for channel in reports if channel != STATS), None)
        self._channels = PlayerChannels(world, parameters, log=log, plain=plain)
        self._player: BehaviorPlayer | None = None
        self._introduced, self._describes, self._raw = False, describes, raw

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
                self._world, name=self._name, seed=seed, channels_first=first, raw=self._raw
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
            told.append((DESCRIPTION, describe(self._world.spec, raw=self._raw)))
        self._introduced = True
        return write_build_message(BuildMessage(OK, infos, framed(told), news))


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
