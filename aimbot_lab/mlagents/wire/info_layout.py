"""AgentInfo messages as rows of bytes of one length, all agents at once.

Numbers that protobuf would leave out where they are 0 are written, and ids are padded to five
bytes, so that every agent's row is as long.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array
from aimbot_lab.mlagents.actions import Int32Array
from aimbot_lab.mlagents.behaviors import BehaviorSpec, ObservationSpec, ObservationType
from aimbot_lab.mlagents.wire.wire_format import FIXED32, LENGTH, VARINT, write_bytes, write_varint

VALUE = 1  # field of the list
REWARD, DONE, MAX_STEP, ID, MASK = 7, 8, 9, 10, 11
OBSERVATION, GROUP_ID, GROUP_REWARD = 13, 14, 15
SHAPE, COMPRESSION, FLOATS, DIMENSIONS, KIND, NAME = 1, 2, 4, 6, 7, 8  # of an observation
ID_BYTES = 5  # of a padded number of 32 bits
MAX_ROWS = 256  # looked at together, so that rows of many lengths don't take the square of the time
Bytes = npt.NDArray[np.uint8]


class Columns(NamedTuple):
    """What n agents tell, by column."""

    reward: Float32Array  # [n]
    done: BoolArray  # [n]
    max_step: BoolArray  # [n] the episode was cut off
    agent_id: Int32Array  # [n]
    forbidden: BoolArray | None  # [n, choices of all branches]; None: nothing is
    obs: list[Float32Array]  # [n, ...] of each sensor
    group_id: Int32Array  # [n]
    group_reward: Float32Array  # [n]


class InfoLayout:
    """Where the numbers of an AgentInfo are in a row of bytes."""

    def __init__(self, spec: BehaviorSpec, *, masked: bool, grouped: bool) -> None:
        self._sensors = spec.observation_specs
        self._row = b""
        self._places: dict[str, slice] = {}
        choices = sum(spec.action_spec.discrete_branches)
        self._add("reward", write_varint(REWARD << 3 | FIXED32), size=4)
        self._add("done", write_varint(DONE << 3 | VARINT), size=1)
        self._add("max_step", write_varint(MAX_STEP << 3 | VARINT), size=1)
        self._add("agent_id", write_varint(ID << 3 | VARINT), size=ID_BYTES)
        if masked:
            head = write_varint(MASK << 3 | LENGTH) + write_varint(choices)
            self._add("forbidden", head, size=choices)
        for number, sensor in enumerate(self._sensors):
            self._add_sensor(f"obs{number}", sensor)
        if grouped:
            self._add("group_id", write_varint(GROUP_ID << 3 | VARINT), size=ID_BYTES)
            self._add("group_reward", write_varint(GROUP_REWARD << 3 | FIXED32), size=4)
        self._close()

    def _add(self, name: str, head: bytes, *, size: int, tail: bytes = b"") -> None:
        start = len(self._row) + len(head)
        self._row += head + bytes(size) + tail
        self._places[name] = slice(start, start + size)

    def _add_sensor(self, name: str, sensor: ObservationSpec) -> None:
        size = 4 * int(np.prod(sensor.shape))
        before = _numbers(SHAPE, sensor.shape)
        floats = write_bytes(FLOATS, write_bytes(1, bytes(size)))
        after = _numbers(DIMENSIONS, [int(one) for one in sensor.dimension_property])
        if sensor.observation_type != ObservationType.DEFAULT:
            after += write_varint(KIND << 3 | VARINT) + write_varint(sensor.observation_type.value)
        after += write_bytes(NAME, sensor.name.encode("utf-8"))
        whole = write_bytes(OBSERVATION, before + floats + after)
        head = whole[: len(whole) - len(after) - size]
        self._add(name, head, size=size, tail=after)

    def _close(self) -> None:
        """Make the row an entry of the list, and note which bytes all rows share."""
        row = write_bytes(VALUE, self._row)
        head, self._row = len(row) - len(self._row), row
        fixed = np.ones(len(row), np.bool_)
        for name, at in self._places.items():
            self._places[name] = slice(at.start + head, at.stop + head)
            fixed[self._places[name]] = False
        self._zeros: Bytes = np.frombuffer(row, np.uint8)
        self._fixed: Int64Array = np.flatnonzero(fixed)

    @property
    def length(self) -> int:
        """Bytes of a row."""
        return len(self._zeros)

    def write(self, columns: Columns) -> bytes:
        """All agents of `columns`, entries of a ListAgentInfo."""
        if not len(columns.reward):
            return b""
        rows = np.empty((len(columns.reward), len(self._zeros)), np.uint8)
        rows[:] = self._zeros
        at = self._places
        rows[:, at["reward"]] = _as_bytes(columns.reward)
        rows[:, at["done"].start] = columns.done
        rows[:, at["max_step"].start] = columns.max_step
        rows[:, at["agent_id"]] = _padded(columns.agent_id)
        if columns.forbidden is not None:
            rows[:, at["forbidden"]] = columns.forbidden
        for number, seen in enumerate(columns.obs):
            rows[:, at[f"obs{number}"]] = _as_bytes(seen.reshape(len(rows), -1))
        if "group_id" in at:
            rows[:, at["group_id"]] = _padded(columns.group_id)
            rows[:, at["group_reward"]] = _as_bytes(columns.group_reward)
        return rows.tobytes()

    def read(self, data: bytes, start: int) -> tuple[Columns, int]:
        """Those agents at `start` of `data` that are laid out like this, and where they end."""
        length = len(self._zeros)
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
        at = self._places
        short = ["done", "max_step"] + ["forbidden"] * ("forbidden" in at)
        alike: BoolArray = (rows[:, self._fixed] == self._zeros[self._fixed]).all(axis=1)
        for name in short:
            alike &= (rows[:, at[name]] < 0x80).all(axis=1)
        for name in ["agent_id"] + ["group_id"] * ("group_id" in at):
            padded = rows[:, at[name]]
            alike &= (padded[:, :-1] >= 0x80).all(axis=1) & (padded[:, -1] < 0x10)
        return alike

    def _columns(self, rows: Bytes) -> Columns:
        at, count = self._places, len(rows)
        grouped = "group_id" in at
        obs = [
            _floats(rows[:, at[f"obs{number}"]]).reshape(count, *sensor.shape)
            for number, sensor in enumerate(self._sensors)
        ]
        return Columns(
            reward=_floats(rows[:, at["reward"]])[:, 0],
            done=rows[:, at["done"].start] != 0,
            max_step=rows[:, at["max_step"].start] != 0,
            agent_id=_unpadded(rows[:, at["agent_id"]]),
            forbidden=rows[:, at["forbidden"]] != 0 if "forbidden" in at else None,
            obs=obs,
            group_id=_unpadded(rows[:, at["group_id"]]) if grouped else np.zeros(count, np.int32),
            group_reward=_floats(rows[:, at["group_reward"]])[:, 0]
            if grouped
            else np.zeros(count, np.float32),
        )


def _numbers(field: int, values: Sequence[int]) -> bytes:
    """A packed field of numbers."""
    return write_bytes(field, b"".join(write_varint(value) for value in values))


def _as_bytes(values: Float32Array) -> Bytes:
    """[n, 4 F] of values [n] or [n, F]."""
    floats = np.ascontiguousarray(values, "<f4").reshape(len(values), -1)
    return floats.view(np.uint8)


def _floats(rows: Bytes) -> Float32Array:
    """[n, F] of bytes [n, 4 F]."""
    width = rows.shape[1] // 4
    floats = np.ascontiguousarray(rows).view("<f4").reshape(len(rows), width)
    return floats.astype(np.float32, copy=False)


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
