"""What memories begin with and end with."""

from aimbot_lab.foundation.kernels.jit import inlined
from aimbot_lab.training.fused.core.parts import Floats
from aimbot_lab.training.fused.parts.core.arrays import PartsNetworks, PartsWorkspace


@inlined
def copy_state(state: Floats, out: Floats) -> None:
    """Write `state` [S, H] to `out`."""
    for k in range(state.shape[0]):
        for unit in range(state.shape[1]):
            out[k, unit] = state[k, unit]


@inlined
def give_states(whole: PartsNetworks, workspace: PartsWorkspace) -> None:
    """Give the first step of each row what is carried to it, 0 where an episode begins."""
    for number in range(whole.layout.memories):
        sequence = workspace.memories[number]
        for row in range(sequence.cells.shape[0]):
            kept, state = sequence.kept[row], workspace.carried[row]
            hidden, cells = state[2 * number], state[2 * number + 1]
            hidden_before, cells_before = sequence.hidden_before[row], sequence.cells_before[row]
            for k in range(hidden.size):
                hidden_before[k] = hidden[k] * kept
            for k in range(hidden.size):
                cells_before[k] = cells[k] * kept


@inlined
def take_states(whole: PartsNetworks, workspace: PartsWorkspace, row: int) -> None:
    """Carry on what `row` has after the last step."""
    for number in range(whole.layout.memories):
        sequence = workspace.memories[number]
        last = sequence.hidden.shape[0] - sequence.cells.shape[0]
        state, hidden, cells = (
            workspace.carried[row],
            sequence.hidden[last + row],
            sequence.cells[row],
        )
        for k in range(hidden.size):
            state[2 * number, k] = hidden[k]
            state[2 * number + 1, k] = cells[k]
