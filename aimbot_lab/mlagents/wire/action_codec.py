"""Actions of all agents of a behavior, as trainers send them.

An AgentAction has its continuous numbers in field 6 and its choices in field 7. Trainers repeat
both as floats in field 1, which nobody reads.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.world import Int64Array
from aimbot_lab.mlagents.actions import ActionSpec, ActionTuple
from aimbot_lab.mlagents.wire.wire_format import (
    FIXED32,
    LENGTH,
    VARINT,
    Field,
    WireError,
    fields,
    packed_numbers,
    signed32,
    write_bytes,
)

VALUE, DEPRECATED, CONTINUOUS, DISCRETE = 1, 1, 6, 7  # numbers of fields
ONE_BYTE = 0x80  # below which a choice takes one byte
Bytes = npt.NDArray[np.uint8]


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
        """The same for any order of fields, packed or not, with fields that nobody knows."""
        sizes = self._spec.continuous_size, self._spec.discrete_size
        rows = [field for field in fields(data) if (field.number, field.kind) == (VALUE, LENGTH)]
        continuous = np.zeros((len(rows), sizes[0]), np.float32)
        discrete = np.zeros((len(rows), sizes[1]), np.int32)
        for row, field in enumerate(rows):
            floats, choices = _numbers(data, field)
            if (len(floats) // 4, len(choices)) != sizes:
                raise WireError(
                    f"action {row} has {len(floats) // 4} continuous numbers and {len(choices)} "
                    f"choices; it must have {sizes[0]} and {sizes[1]}"
                )
            continuous[row], discrete[row] = np.frombuffer(floats, "<f4"), choices
        return ActionTuple(continuous, discrete)

    def encode(self, action: ActionTuple) -> bytes:
        """`action` as a ListAgentAction. Raises WireError for choices that are not 0 to 127."""
        choices = action.discrete
        if choices.size and not 0 <= choices.min() <= choices.max() < ONE_BYTE:
            raise WireError(f"choices to send must be 0 to {ONE_BYTE - 1}")
        layout = self._layouts[-1]
        rows = np.tile(layout.row, (len(choices), 1))
        floats = np.ascontiguousarray(action.continuous, "<f4")
        rows[:, layout.continuous] = floats.view(np.uint8)
        rows[:, layout.discrete] = choices
        return rows.tobytes()


class _Layout(NamedTuple):
    """Where the numbers of an action are in a row of bytes."""

    row: Bytes  # [L] an action of zeros, as an entry of the list
    fixed: Int64Array  # places of the bytes that all actions share
    continuous: slice
    discrete: slice


def _layout(spec: ActionSpec, *, deprecated: bool) -> _Layout:
    floats, choices = 4 * spec.continuous_size, spec.discrete_size
    repeated = floats + 4 * choices if deprecated else 0
    inner, places = b"", {"repeated": slice(0), "floats": slice(0), "choices": slice(0)}
    parts = ((DEPRECATED, repeated), (CONTINUOUS, floats), (DISCRETE, choices))
    for (number, size), name in zip(parts, places, strict=True):
        if size:
            inner += write_bytes(number, bytes(size))
            places[name] = slice(len(inner) - size, len(inner))
    row = np.frombuffer(write_bytes(VALUE, inner), np.uint8)
    fixed, head = np.ones(len(row), np.bool_), len(row) - len(inner)
    moved = {name: slice(at.start + head, at.stop + head) for name, at in places.items() if at.stop}
    for at in moved.values():
        fixed[at] = False
    nothing = slice(0, 0)
    return _Layout(
        row,
        np.flatnonzero(fixed),
        continuous=moved.get("floats", nothing),
        discrete=moved.get("choices", nothing),
    )


def _decode_rows(data: bytes, layout: _Layout) -> ActionTuple | None:
    """The actions in `data`, if each is laid out like this."""
    count, rest = divmod(len(data), len(layout.row))
    if rest:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(count, len(layout.row))
    choices = rows[:, layout.discrete]
    if (rows[:, layout.fixed] != layout.row[layout.fixed]).any() or (choices >= ONE_BYTE).any():
        return None
    floats = np.ascontiguousarray(rows[:, layout.continuous])
    width = floats.shape[1] // 4
    return ActionTuple(floats.view("<f4").reshape(count, width), choices)


def _numbers(data: bytes, action: Field) -> tuple[bytes, list[int]]:
    """Bytes of the continuous numbers, and the choices, of one AgentAction."""
    floats, choices = b"", list[int]()
    for field in fields(data, action.start, action.end):
        if field.number == CONTINUOUS and field.kind in (LENGTH, FIXED32):
            floats += data[field.start : field.end]
        elif field.number == DISCRETE and field.kind == VARINT:
            choices.append(signed32(field.value))
        elif field.number == DISCRETE and field.kind == LENGTH:
            choices += [signed32(value) for value in packed_numbers(data, field)]
    if len(floats) % 4:
        raise WireError("continuous numbers of an action are cut off")
    return floats, choices
