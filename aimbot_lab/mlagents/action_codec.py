"""Actions of all agents of a behavior, as trainers send them.

An AgentAction has its continuous numbers in field 6 and its choices in field 7. Trainers repeat
both as floats in field 1, which is not read.
"""

import numpy as np

from aimbot_lab.mlagents.base_env import ActionSpec, ActionTuple
from aimbot_lab.mlagents.messages import (
    LENGTH,
    RowLayout,
    WireError,
    floats_of,
    parsed,
    tag,
    write_varint,
)

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
        """`action` as a ListAgentAction. Raises WireError for choices that are not 0 to 127."""
        choices = action.discrete
        if choices.size and not 0 <= choices.min() <= choices.max() < ONE_BYTE:
            raise WireError(f"choices to send must be 0 to {ONE_BYTE - 1}")
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
