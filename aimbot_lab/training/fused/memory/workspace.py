"""Arrays that a thread works in where the policy remembers."""

import numpy as np

from aimbot_lab.foundation.kernels.atomic import SyncFlags
from aimbot_lab.foundation.threads.spin_sync import SPIN_LIMIT, STRIDE
from aimbot_lab.training.fused.core.memory_parts import (
    MemoryThread,
    MemoryWorkspace,
    SequenceArrays,
)
from aimbot_lab.training.fused.core.parts import Floats, Gradients, Samples
from aimbot_lab.training.fused.memory.weights import (
    GATES,
    RememberingShape,
    weights_size,
    weights_views,
)
from aimbot_lab.training.fused.workspace import new_workspace


def new_memory_threads(
    shape: RememberingShape, rows: int, sync_flags: SyncFlags, *, length: int
) -> tuple[MemoryThread, ...]:
    """Of the caller and its workers, for pieces of `rows` sequences of `length` steps."""

    def new_thread(number: int) -> MemoryThread:
        flat = np.zeros(weights_size(shape), np.float32)
        of, sequence = weights_views(shape, flat), _new_sequence(shape, rows, length=length)
        workspace = new_workspace(shape.heads, rows * length)
        samples = workspace.samples
        workspace = workspace._replace(samples=samples._replace(inputs=sequence.hidden))
        return MemoryThread(
            thread_id=number,
            spin_limit=SPIN_LIMIT,
            workspace=workspace,
            gradients=Gradients(flat, of.net),
            memory=_new_memory_workspace(shape, samples, sequence),
            of_memory=of.memory,
        )

    return tuple(map(new_thread, range(1 + sync_flags.size // STRIDE)))


def _new_memory_workspace(
    shape: RememberingShape, samples: Samples, sequence: SequenceArrays
) -> MemoryWorkspace:
    count = len(sequence.hidden)
    inputs = _zeros(count, shape.inputs)
    sizes = [(count, width) for width in shape.widths[1:]] + [(0, 0)] * shape.unused
    return MemoryWorkspace(
        samples=samples._replace(inputs=inputs),
        layers=(inputs, *(_zeros(*size) for size in sizes)),
        of_layers=(_zeros(0, 0), *(_zeros(*size) for size in sizes)),
        sequence=sequence,
        indices=np.zeros(count, np.int64),
        shown=_zeros(count, shape.lanes + shape.heads.masks),
    )


def _new_sequence(shape: RememberingShape, rows: int, *, length: int) -> SequenceArrays:
    count, units, gates = rows * length, shape.lanes, GATES * shape.lanes
    return SequenceArrays(
        kept=np.ones(count, np.float32),
        gates=_zeros(count, gates),
        recurrent=_zeros(rows, gates),
        hidden_before=_zeros(count, units),
        cells_before=_zeros(count, units),
        cells=_zeros(rows, units),
        squashed=_zeros(count, units),
        hidden=_zeros(count, units),
        of_hidden=_zeros(count, units),
        of_next=_zeros(rows, units),
        of_cells=_zeros(rows, units),
    )


def _zeros(*size: int) -> Floats:
    return np.zeros(size, np.float32)
