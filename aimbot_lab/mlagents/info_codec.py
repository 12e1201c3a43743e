"""What agents observe and do, as ML-Agents' messages: sensors, infos, actions.

A world's pictures, and rays as ML-Agents tells them, are sensors of their own; all else is a
vector. An AgentAction has its continuous numbers in field 6 and its choices in field 7. Trainers
repeat both as floats in field 1, which is not read.

A list of AgentInfo holds those whose episodes ended (`done`) and those that need an action. It is
written, and read where others write it likewise, as rows of bytes of one length, all agents at
once: numbers that protobuf would leave out where they are 0 are written, and ids are padded to five
bytes. Protobuf reads all other lists.
"""

import math
from collections.abc import Iterator
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.foundation.shown_text import one_line
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Int64Array,
    ObservationBlock,
    Observations,
    WorldSpec,
    columns_of,
)
from aimbot_lab.mlagents.base_env import (
    ActionSpec,
    ActionTuple,
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    Int32Array,
    ObservationSpec,
    ObservationType,
    TerminalSteps,
    is_channels_first,
)
from aimbot_lab.mlagents.exception import UnityObservationException
from aimbot_lab.mlagents.messages import (
    FIXED32,
    LENGTH,
    VARINT,
    Bytes,
    RowLayout,
    WireError,
    bytes_of,
    floats_of,
    new_message,
    parsed,
    tag,
    write_bytes,
    write_packed,
    write_varint,
)

PNG_HEADER = b"\x89PNG\r\n\x1a\n"
MOVABLE = DimensionProperty.TRANSLATIONAL_EQUIVARIANCE


def behavior_spec(spec: WorldSpec, *, channels_first: bool = True) -> BehaviorSpec:
    """The behavior of agents in a world with `spec`: its sensors, and its actions."""
    sensors = sensors_of(spec, channels_first=channels_first)
    actions = ActionSpec(spec.continuous, tuple(int(size) for size in spec.branches))
    return BehaviorSpec([sensor.spec for sensor in sensors], actions)


class Sensor(NamedTuple):
    """What agents are shown as one observation."""

    spec: ObservationSpec
    columns: Int64Array | None  # of the world's observation; None: all of them
    picture: str | None = None  # the block whose shades, from 0 to 1, are shown instead

    def of(self, observations: Observations) -> Float32Array:
        """[n, ...] of the world's observations [n]."""
        if self.picture is not None:
            shades = observations[self.picture].astype(np.float32) / np.float32(255)
            first = self.spec.dimension_property[0] != MOVABLE
            return np.ascontiguousarray(np.moveaxis(shades, 3, 1)) if first else shades
        columns = columns_of(observations)
        if self.columns is None:
            return columns
        return columns[:, self.columns].reshape(len(columns), *self.spec.shape)


def sensors_of(spec: WorldSpec, *, channels_first: bool = True) -> tuple[Sensor, ...]:
    """The sensors of a world with `spec`, by name, as Unity sorts them; a build's in its order.

    A picture is [C, H, W] with `channels_first`, as trainers from 1.0 on read it, and [H, W, C]
    without, as those of before. Earlier observations stand before later ones: in a picture as
    further channels, elsewhere as further numbers.
    """
    columns = {block: np.arange(at.start, at.stop) for block, at in spec.columns_by_block}
    order = [block.sensor for block in spec.observation_blocks]
    own = None not in order and len({*order}) == len(order)  # as of a build, whose sensors they are
    made = [_picture(block, channels_first=channels_first) for block in spec.pictures]
    names = dict.fromkeys(block.sensor for block in columns if block.sensor)
    for name in names:
        ages = [c for block, c in columns.items() if block.sensor == name]
        full = name if len(ages) == 1 else f"StackingSensor_size{len(ages)}_{name}"
        together = np.concatenate(ages)
        several = [b.shape for b in columns if b.sensor == name and b.kind == "rays" and own]
        made.append(Sensor(_flat(full, *(several or [(len(together),)])[0]), together))
    rest = [c for block, c in columns.items() if block.sensor is None]
    if rest:
        size = sum(map(len, rest))
        made.append(
            Sensor(_flat(f"VectorSensor_size{size}", size), np.concatenate(rest) if made else None)
        )
    if not own:
        return tuple(sorted(made, key=lambda sensor: sensor.spec.name))
    return tuple(sorted(made, key=lambda sensor: order.index(sensor.spec.name)))


def _flat(name: str, *shape: int) -> ObservationSpec:
    none = (DimensionProperty.NONE,) * len(shape)
    return ObservationSpec(shape, none, ObservationType.DEFAULT, name)


def _picture(block: ObservationBlock, *, channels_first: bool) -> Sensor:
    height, width, channels = block.shape
    shape, properties = block.shape, (MOVABLE, MOVABLE, DimensionProperty.NONE)
    if channels_first:
        shape, properties = (channels, height, width), (DimensionProperty.NONE, MOVABLE, MOVABLE)
    name = block.sensor or block.name
    spec = ObservationSpec(shape, properties, ObservationType.DEFAULT, name)
    return Sensor(spec, None, block.name)


DEPRECATED, CONTINUOUS, DISCRETE = 1, 6, 7  # numbers of fields
ONE_BYTE = 0x80  # below which a choice takes one byte


class ActionCodec:
    """Reads and writes ListAgentAction messages of one kind of actions.

    Where all choices are below 128, each action has the same length, and all are one array.
    """

    def __init__(self, spec: ActionSpec) -> None:
        self._spec = spec
        self._layouts = [_layout(spec, deprecated=repeated) for repeated in (True, False)]

    def decode(self, data: bytes) -> ActionTuple:
        """The actions in `data`, a ListAgentAction. Raises WireError for those of another kind."""
        for layout in self._layouts:
            found = _decode_rows(data, layout)
            if found is not None:
                return found
        return self._decode_any(data)

    def _decode_any(self, data: bytes) -> ActionTuple:
        """The same for any order of fields, packed or not, with fields that are not declared."""
        sizes = self._spec.continuous_size, self._spec.discrete_size
        actions = parsed("ListAgentAction", data).value
        continuous = np.zeros((len(actions), sizes[0]), np.float32)
        discrete = np.zeros((len(actions), sizes[1]), np.int32)
        for row, action in enumerate(actions):
            floats, choices = action.continuous_actions, action.discrete_actions
            if (len(floats), len(choices)) != sizes:
                raise WireError(
                    f"action {row} has {len(floats)} continuous numbers and {len(choices)} "
                    f"choices; it must have {sizes[0]} and {sizes[1]}"
                )
            continuous[row], discrete[row] = floats, choices
        return ActionTuple(continuous, discrete)

    def encode(self, action: ActionTuple) -> bytes:
        """`action` as a ListAgentAction. Raises WireError for negative choices."""
        choices = action.discrete
        if choices.size and choices.min() < 0:
            raise WireError("choices to send must not be negative")
        if choices.size and choices.max() >= ONE_BYTE:
            message = new_message("ListAgentAction")
            for numbers, chosen in zip(action.continuous, choices, strict=True):
                message.value.add(continuous_actions=numbers, discrete_actions=chosen.tolist())
            return bytes(message.SerializeToString())
        layout = self._layouts[-1]
        rows = np.tile(layout.row, (len(choices), 1))
        floats = np.ascontiguousarray(action.continuous, "<f4")
        rows[:, layout.places["continuous"]] = floats.view(np.uint8)
        rows[:, layout.places["discrete"]] = choices
        return rows.tobytes()


def _layout(spec: ActionSpec, *, deprecated: bool) -> RowLayout:
    floats, choices = 4 * spec.continuous_size, spec.discrete_size
    repeated = floats + 4 * choices if deprecated else 0
    layout = RowLayout()
    for number, name, size in (
        (DEPRECATED, "deprecated", repeated),
        (CONTINUOUS, "continuous", floats),
        (DISCRETE, "discrete", choices),
    ):
        head = tag(number, LENGTH) + write_varint(size) if size else b""
        layout.add(name, head, size=size)
    layout.close()
    return layout


def _decode_rows(data: bytes, layout: RowLayout) -> ActionTuple | None:
    """The actions in `data`, if each is laid out like this."""
    count, rest = divmod(len(data), len(layout.row))
    if rest:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(count, len(layout.row))
    choices = rows[:, layout.places["discrete"]]
    if not layout.alike(rows).all() or (choices >= ONE_BYTE).any():
        return None
    return ActionTuple(floats_of(rows[:, layout.places["continuous"]]), choices)


REWARD, DONE, MAX_STEP, ID, MASK = 7, 8, 9, 10, 11  # numbers of fields
OBSERVATION, GROUP_ID, GROUP_REWARD = 13, 14, 15
SHAPE, COMPRESSION, FLOATS, DIMENSIONS, KIND, NAME = 1, 2, 4, 6, 7, 8  # of an observation
ID_BYTES = 5  # of a padded number of 32 bits
MAX_ROWS = 256  # looked at together, so that rows of many lengths don't take the square of the time


class AgentColumns(NamedTuple):
    """What n agents tell, by column."""

    reward: Float32Array  # [n]
    done: BoolArray  # [n]
    max_step: BoolArray  # [n] the episode was cut off
    agent_id: Int32Array  # [n]
    forbidden: BoolArray | None  # [n, choices of all branches]; None: nothing is
    obs: list[Float32Array]  # [n, ...] of each sensor
    group_id: Int32Array  # [n]
    group_reward: Float32Array  # [n]


class InfoCodec:
    """Reads and writes ListAgentInfo messages of one behavior."""

    def __init__(self, spec: BehaviorSpec) -> None:
        self._spec = spec
        branches = spec.action_spec.discrete_branches
        self._choices, self._branch_ends = sum(branches), np.cumsum(branches)[:-1].tolist()
        self._layouts = {
            (masked, grouped): InfoLayout(spec, masked=masked, grouped=grouped)
            for masked in (False, True)
            for grouped in (False, True)
            if self._choices or not masked
        }

    @property
    def longest_info(self) -> int:
        """Bytes that an agent takes at most."""
        return max(layout.length for layout in self._layouts.values())

    def encode(self, decisions: DecisionSteps, terminals: TerminalSteps) -> bytes:
        """Both as a ListAgentInfo, those that ended first. Ids are from 0 on."""
        deciding = AgentColumns(
            reward=decisions.reward,
            done=np.zeros(len(decisions), np.bool_),
            max_step=np.zeros(len(decisions), np.bool_),
            agent_id=decisions.agent_id,
            forbidden=_joined_masks(decisions),
            obs=decisions.obs,
            group_id=decisions.group_id,
            group_reward=decisions.group_reward,
        )
        ended = AgentColumns(
            reward=terminals.reward,
            done=np.ones(len(terminals), np.bool_),
            max_step=terminals.interrupted,
            agent_id=terminals.agent_id,
            forbidden=None,
            obs=terminals.obs,
            group_id=terminals.group_id,
            group_reward=terminals.group_reward,
        )
        return self._write(ended) + self._write(deciding)

    def _write(self, columns: AgentColumns) -> bytes:
        for ids in (columns.agent_id, columns.group_id):
            if len(ids) and ids.min() < 0:
                raise WireError(f"an id to send must not be negative (got {ids.min()})")
        grouped = bool(columns.group_id.any() or columns.group_reward.any())
        return self._layouts[columns.forbidden is not None, grouped].write(columns)

    def decode(self, data: bytes) -> tuple[DecisionSteps, TerminalSteps]:
        """The steps in `data`, a ListAgentInfo, in its order.

        Raises WireError for other bytes, UnityObservationException for other observations.
        """
        parts, start = [], 0
        while start < len(data):
            for layout in self._layouts.values():
                columns, end = layout.read(data, start)
                if end > start:
                    break
            else:
                return self._steps([self._stacked(parsed("ListAgentInfo", data))])
            parts.append(columns)
            start = end
        return self._steps(parts or [self._stacked(parsed("ListAgentInfo", b""))])

    def _stacked(self, message: Any) -> AgentColumns:
        """The agents of a ListAgentInfo of protobuf."""
        message.DiscardUnknownFields()
        infos, sensors = list(message.value), self._spec.observation_specs
        masks = np.zeros((len(infos), self._choices), np.bool_)
        obs = [np.zeros((len(infos), *sensor.shape), np.float32) for sensor in sensors]
        for row, info in enumerate(infos):
            if len(info.action_mask) == self._choices:  # another says nothing, as in ML-Agents
                masks[row] = info.action_mask
            if len(info.observations) != len(sensors):
                raise UnityObservationException(
                    f"agent {info.id} has {len(info.observations)} observations; it must have "
                    f"{len(sensors)}"
                )
            for seen, one, sensor in zip(obs, info.observations, sensors, strict=True):
                seen[row] = _numbers_of(one, sensor)
        return AgentColumns(
            reward=np.array([info.reward for info in infos], np.float32),
            done=np.array([info.done for info in infos], np.bool_),
            max_step=np.array([info.max_step_reached for info in infos], np.bool_),
            agent_id=np.array([info.id for info in infos], np.int32),
            forbidden=masks,
            obs=obs,
            group_id=np.array([info.group_id for info in infos], np.int32),
            group_reward=np.array([info.group_reward for info in infos], np.float32),
        )

    def _steps(self, parts: list[AgentColumns]) -> tuple[DecisionSteps, TerminalSteps]:
        whole = _concatenated(parts, self._choices)
        done, going = whole.done, ~whole.done
        assert whole.forbidden is not None
        masks = np.split(whole.forbidden[going], self._branch_ends, axis=1)
        decisions = DecisionSteps(
            [seen[going] for seen in whole.obs],
            whole.reward[going],
            whole.agent_id[going],
            masks if self._choices and going.any() else None,
            whole.group_id[going],
            whole.group_reward[going],
        )
        terminals = TerminalSteps(
            [seen[done] for seen in whole.obs],
            whole.reward[done],
            whole.max_step[done],
            whole.agent_id[done],
            whole.group_id[done],
            whole.group_reward[done],
        )
        return decisions, terminals


def observation_specs(infos: bytes) -> list[ObservationSpec] | None:
    """The sensors of the first agent in `infos`, a ListAgentInfo; None: there is no agent.

    Raises WireError and UnityObservationException as `decode` does.
    """
    for info in parsed("ListAgentInfo", infos, "an agent of a build can't be read").value:
        return [_sensor(seen) for seen in info.observations]
    return None


def _sensor(seen: Any) -> ObservationSpec:
    shape = tuple(map(int, seen.shape))
    if any(size < 0 for size in shape):
        raise WireError(f"sensor {seen.name!a:.60}: no observation has the shape {shape!s:.60}")
    given = tuple(map(DimensionProperty, seen.dimension_properties))
    unspecified = (DimensionProperty.UNSPECIFIED,) * len(shape)
    known = {one.value for one in ObservationType}
    sensor = ObservationSpec(
        shape=shape,
        dimension_property=given if len(given) == len(shape) else unspecified,
        observation_type=ObservationType(
            seen.observation_type if seen.observation_type in known else 0
        ),
        name=str(seen.name),
    )
    _numbers_of(seen, sensor)
    return sensor


def _numbers_of(observation: Any, sensor: ObservationSpec) -> Float32Array:
    """What an Observation of protobuf holds, in its sensor's shape."""
    if (shape := tuple(observation.shape)) != sensor.shape:
        raise UnityObservationException(
            f"sensor {sensor.name!a}: an observation has the shape {shape!s:.60}; before it had "
            f"{sensor.shape}"
        )
    if observation.compression_type:
        mapping = list(observation.compressed_channel_mapping)
        return _shades(observation.compressed_data, mapping, sensor)
    data = observation.float_data
    count, size = len(data.data), math.prod(sensor.shape)
    if count != size:
        raise UnityObservationException(
            f"sensor {sensor.name!a}: an observation has {count} numbers; it must have "
            f"{size}, of shape {sensor.shape}"
        )
    packed = data.SerializeToString()  # an array at once; protobuf gives number by number
    return np.frombuffer(packed, "<f4", count, len(packed) - 4 * count).reshape(sensor.shape)


def _shades(data: bytes, mapping: list[int], sensor: ObservationSpec) -> Float32Array:
    """The picture in PNG files one after the other, in its sensor's shape, shades from 0 to 1.

    Entry k of `mapping` is the channel that channel k of the files belongs to, -1: to none; those
    of one channel are averaged. Without it one channel is the mean of the first file, else those at
    the beginning count.
    """
    first, where = is_channels_first(sensor), f"sensor {sensor.name!a}: a compressed picture"
    if len(sensor.shape) != 3:
        raise UnityObservationException(f"{where} has the shape {sensor.shape}")
    channels, height, width = sensor.shape if first else (sensor.shape[2], *sensor.shape[:2])
    files = [_pixels(one, (height, width), where) for one in _png_files(data)]
    found = np.concatenate(files, axis=2) if files else np.zeros((height, width, 0), np.float32)
    if not mapping and channels == 1 and files:
        found = files[0].mean(axis=2, keepdims=True)
    elif mapping:
        wanted = {*range(channels)}
        if len(mapping) != found.shape[2] or {one for one in mapping if one >= 0} != wanted:
            what = (
                f"{where} of {found.shape[2]} channels is mapped to {channels} by {mapping!s:.60}"
            )
            raise UnityObservationException(what)
        to = np.array(mapping)
        found = np.stack([found[..., to == one].mean(axis=2) for one in range(channels)], axis=2)
    if found.shape[2] < channels:
        what = f"{where} has {found.shape[2]} channels; it must have {channels}"
        raise UnityObservationException(what)
    shades: Float32Array = found[..., :channels] / np.float32(255)
    return np.moveaxis(shades, 2, 0) if first else shades


def _png_files(data: bytes) -> Iterator[bytes]:
    """Each file in `data`, to the end of its last chunk."""
    begin = 0
    while begin < len(data):
        end = begin + len(PNG_HEADER)
        kind = b""
        while kind != b"IEND" and end + 8 <= len(data):
            kind = data[end + 4 : end + 8]
            end += 12 + int.from_bytes(data[end : end + 4], "big")
        yield data[begin:end]
        begin = end


def _pixels(file: bytes, size: tuple[int, int], where: str) -> Float32Array:
    """Pixels [H, W, C] from 0 to 255 of a PNG file of this height and width."""
    from PIL import Image

    width, height = (int.from_bytes(file[at : at + 4], "big") for at in (16, 20))
    if file[:8] + file[12:16] != PNG_HEADER + b"IHDR":
        raise WireError(f"{where} can't be read: it is not a PNG file")
    if (height, width) != size:  # before it is opened: a wrong one may be of any size
        raise UnityObservationException(
            f"{where} has {width}x{height} pixels; it must have {size[1]}x{size[0]}"
        )
    try:
        with Image.open(BytesIO(file), formats=("PNG",)) as image:
            if image.mode.startswith("I"):  # one channel of 16 bits
                grey = np.asarray(image, np.float32)[..., None] / np.float32(257)
                return np.repeat(grey, 3, axis=2)
            shown = image if image.mode in ("RGB", "RGBA") else image.convert("RGB")
            return np.asarray(shown, np.float32)
    except Exception as error:  # a broken file raises errors of many kinds
        what = one_line(str(error)).partition(" <")[0]
        raise WireError(f"{where} can't be read: {what:.60}") from error


def _joined_masks(decisions: DecisionSteps) -> BoolArray | None:
    """[n, choices of all branches]; None where nothing is forbidden."""
    if not decisions.action_mask:
        return None
    forbidden = np.concatenate(decisions.action_mask, axis=1)
    return forbidden if forbidden.any() else None


def _concatenated(parts: list[AgentColumns], choices: int) -> AgentColumns:
    masks = [
        np.zeros((len(part.done), choices), np.bool_) if part.forbidden is None else part.forbidden
        for part in parts
    ]
    obs = [np.concatenate(seen) for seen in zip(*(part.obs for part in parts), strict=True)]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("reward", "done", "max_step", "agent_id", "group_id", "group_reward")
    }
    return AgentColumns(forbidden=np.concatenate(masks), obs=obs, **columns)


class InfoLayout:
    """Where the numbers of an AgentInfo are in a row of bytes."""

    def __init__(self, spec: BehaviorSpec, *, masked: bool, grouped: bool) -> None:
        self._sensors = spec.observation_specs
        choices = sum(spec.action_spec.discrete_branches)
        self._layout = layout = RowLayout()
        layout.add("reward", tag(REWARD, FIXED32), size=4)
        layout.add("done", tag(DONE, VARINT), size=1)
        layout.add("max_step", tag(MAX_STEP, VARINT), size=1)
        layout.add("agent_id", tag(ID, VARINT), size=ID_BYTES)
        if masked:
            layout.add("forbidden", tag(MASK, LENGTH) + write_varint(choices), size=choices)
        for number, sensor in enumerate(self._sensors):
            size = 4 * math.prod(sensor.shape)
            floats = write_bytes(FLOATS, write_bytes(1, bytes(size)))
            tail = write_packed(DIMENSIONS, map(int, sensor.dimension_property))
            if sensor.observation_type != ObservationType.DEFAULT:
                tail += tag(KIND, VARINT) + write_varint(sensor.observation_type.value)
            tail += write_bytes(NAME, sensor.name.encode("utf-8"))
            whole = write_bytes(OBSERVATION, write_packed(SHAPE, sensor.shape) + floats + tail)
            layout.add(f"obs{number}", whole[: len(whole) - len(tail) - size], size=size, tail=tail)
        if grouped:
            layout.add("group_id", tag(GROUP_ID, VARINT), size=ID_BYTES)
            layout.add("group_reward", tag(GROUP_REWARD, FIXED32), size=4)
        layout.close()

    @property
    def length(self) -> int:
        """Bytes of a row."""
        return len(self._layout.row)

    def write(self, columns: AgentColumns) -> bytes:
        """All agents of `columns`, entries of a ListAgentInfo."""
        if not len(columns.reward):
            return b""
        rows = np.empty((len(columns.reward), self.length), np.uint8)
        rows[:] = self._layout.row
        at = self._layout.places
        rows[:, at["reward"]] = bytes_of(columns.reward)
        rows[:, at["done"].start] = columns.done
        rows[:, at["max_step"].start] = columns.max_step
        rows[:, at["agent_id"]] = _padded(columns.agent_id)
        if columns.forbidden is not None:
            rows[:, at["forbidden"]] = columns.forbidden
        for number, seen in enumerate(columns.obs):
            rows[:, at[f"obs{number}"]] = bytes_of(seen)
        if "group_id" in at:
            rows[:, at["group_id"]] = _padded(columns.group_id)
            rows[:, at["group_reward"]] = bytes_of(columns.group_reward)
        return rows.tobytes()

    def read(self, data: bytes, start: int) -> tuple[AgentColumns, int]:
        """Those agents at `start` of `data` that are laid out like this, and where they end."""
        length = self.length
        count = min((len(data) - start) // length, MAX_ROWS)
        rows = np.frombuffer(data, np.uint8, count * length, start).reshape(count, length)
        if not self._alike(rows[:1]).all():
            rows, count = rows[:0], 0
        unlike = ~self._alike(rows)
        if unlike.any():
            count = int(unlike.argmax())
        return self._columns(rows[:count]), start + count * length

    def _alike(self, rows: Bytes) -> BoolArray:
        """[n] Whether a row has the bytes that all share, and numbers as long as they are here."""
        at, alike = self._layout.places, self._layout.alike(rows)
        for name in ("done", "max_step", "forbidden"):
            if name in at:
                alike &= (rows[:, at[name]] < 0x80).all(axis=1)
        for name in ("agent_id", "group_id"):
            if name in at:
                padded = rows[:, at[name]]
                alike &= (padded[:, :-1] >= 0x80).all(axis=1) & (padded[:, -1] < 0x10)
        return alike

    def _columns(self, rows: Bytes) -> AgentColumns:
        at, count = self._layout.places, len(rows)
        grouped = "group_id" in at
        obs = [
            floats_of(rows[:, at[f"obs{number}"]]).reshape(count, *sensor.shape)
            for number, sensor in enumerate(self._sensors)
        ]
        return AgentColumns(
            reward=floats_of(rows[:, at["reward"]])[:, 0],
            done=rows[:, at["done"].start] != 0,
            max_step=rows[:, at["max_step"].start] != 0,
            agent_id=_unpadded(rows[:, at["agent_id"]]),
            forbidden=rows[:, at["forbidden"]] != 0 if "forbidden" in at else None,
            obs=obs,
            group_id=_unpadded(rows[:, at["group_id"]]) if grouped else np.zeros(count, np.int32),
            group_reward=floats_of(rows[:, at["group_reward"]])[:, 0]
            if grouped
            else np.zeros(count, np.float32),
        )


def _padded(numbers: Int32Array) -> Bytes:
    """[n, 5] of numbers [n] from 0 on."""
    shifts = np.arange(0, 7 * ID_BYTES, 7)
    digits = numbers.astype(np.int64)[:, None] >> shifts & 0x7F
    digits[:, :-1] |= 0x80
    return digits.astype(np.uint8)


def _unpadded(rows: Bytes) -> Int32Array:
    """[n] numbers of bytes [n, 5]."""
    digits = (rows & 0x7F).astype(np.int64) << np.arange(0, 7 * ID_BYTES, 7)
    numbers: Int32Array = digits.sum(axis=1).astype(np.uint32).view(np.int32)
    return numbers
