"""Arrays that the fused engine works in: for samples, and for each thread."""

import numpy as np

from aimbot_lab.foundation.kernels.atomic import SyncFlags
from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.kernels.spin_sync import SPIN_LIMIT, STRIDE
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    Head,
    KindArrays,
    Samples,
    SequenceArrays,
    ThreadWorkspace,
    WorkQueue,
    Workspace,
)
from aimbot_lab.training.fused.layout import (
    GATES,
    USUAL,
    KindShape,
    NetworkShape,
    dense_widths,
    head_widths,
    net_size,
    net_views,
    usual_kinds,
)

MAX_THREADS = 8


def new_thread_workspaces(
    shape: NetworkShape, rows: int, sync_flags: SyncFlags, *, length: int
) -> tuple[ThreadWorkspace, ...]:
    """Of the caller and its workers, for pieces of `rows` sequences of `length` steps."""

    def new_thread_workspace(number: int) -> ThreadWorkspace:
        gradient = np.zeros(net_size(shape), np.float32)
        return ThreadWorkspace(
            thread_id=number,
            spin_limit=SPIN_LIMIT,
            workspace=new_workspace(shape, rows, length=length),
            gradient=gradient,
            of=net_views(shape, gradient),
        )

    return tuple(map(new_thread_workspace, range(1 + sync_flags.size // STRIDE)))


def new_queue(sync_flags: SyncFlags) -> WorkQueue:
    """What the caller and the workers with these `sync_flags` tell each other, before any work."""
    taken, numbers = np.zeros((2, 2 * STRIDE), np.int64)  # in cache lines of their own
    return WorkQueue(sync_flags, taken, numbers)


def new_workspace(
    shape: NetworkShape, rows: int, *, length: int = 1, judges: bool = True
) -> Workspace:
    """Arrays for pieces of `rows` sequences of `length` steps; for values where it `judges`."""
    count, core, ones = rows * length, shape.core_columns, np.ones(rows * length, np.float32)
    samples = _new_samples(shape, count)
    scalars, of_scalars = _dense_arrays(samples.inputs, shape.scalars)
    kept = np.ones(count, np.float32)
    memories = tuple(
        _new_sequence(shape.lanes if k < shape.memories else 0, rows, kept) for k in range(USUAL)
    )
    forward = samples.inputs if shape.bare else _zeros(count, core)
    of_core = _zeros(0 if shape.bare else count, core)
    layers = [2 * units for _, units in head_widths(shape)]
    outputs, gradients = (tuple(_zeros(count, size) for size in layers) for _ in range(2))
    given, of_given = _given(shape, (forward, of_core), memories)
    return Workspace(
        samples=samples,
        scalars=scalars,
        of_scalars=of_scalars,
        kinds=tuple(_new_kind(kind, count) for kind in usual_kinds(shape)),
        core=forward,
        of_core=of_core,
        more_of_core=_zeros(count if shape.memories == USUAL else 0, core),
        memories=memories,
        carried=_zeros(rows, shape.states, shape.lanes),
        outputs=outputs,
        gradients=gradients,
        actor_given=(given[0], *outputs),
        critic_given=(given[1], *outputs),
        of_actor_given=of_given[0],
        of_critic_given=of_given[1],
        query=_zeros(count, shape.keys),
        of_query=_zeros(count, shape.keys),
        head=_new_head(shape, count, judges=judges),
        ones=ones,
    )


def _dense_arrays(
    inputs: Floats, layers: tuple[int, ...]
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """(the inputs, then the outputs of layers; derivatives by these outputs)."""
    widths = [units for _, units in dense_widths(0, layers)[1:]]
    outputs, of = (tuple(_zeros(len(inputs), units) for units in widths) for _ in range(2))
    return (inputs, *outputs), (_zeros(0, 0), *of)


def _given(
    shape: NetworkShape, core: tuple[Floats, Floats], memories: tuple[SequenceArrays, ...]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """What actor and critic are given, and derivatives by it, of which the second may be spare."""
    if shape.memories == USUAL:
        actor, critic = memories
        return (actor.hidden, critic.hidden), (actor.of_hidden, critic.of_hidden)
    given, of_given = (memories[0].hidden, memories[0].of_hidden) if shape.memories else core
    return (given, given), (of_given, np.zeros_like(of_given))


def _new_samples(shape: NetworkShape, count: int) -> Samples:
    heads = shape.heads
    return Samples(
        inputs=_zeros(count, shape.plain),
        masks=_zeros(heads.masks, count),
        actions=_zeros(heads.branches, count),
        old_log_probs=_zeros(heads.ratios, count),
        advantages=_zeros(count),
        returns=_zeros(count),
        old_values=_zeros(count),
    )


def _new_head(shape: NetworkShape, count: int, *, judges: bool) -> Head:
    heads = shape.heads
    return Head(
        outputs=_zeros(count, whole_lanes(shape.outputs)),
        logits=_zeros(shape.outputs, count),
        probs=_zeros(sum(heads.choices), count),
        values=_zeros(count if judges else 0, 1),
        log_sums=_zeros(len(heads.choices), count),
        entropies=_zeros(len(heads.choices), count),
        log_probs=_zeros(heads.branches, count),
        dloss_dlogp=_zeros(heads.branches, count),
    )


def _new_kind(kind: KindShape, count: int) -> KindArrays:
    units, size, keys = count * kind.slots, whole_lanes(kind.size), whole_lanes(kind.keys)
    layers, of_layers = _dense_arrays(_zeros(units, whole_lanes(kind.inputs)), kind.layers)
    return KindArrays(
        first=np.zeros(count + 1, np.int64),
        slots=np.zeros(units, np.int64),
        layers=layers,
        of_layers=of_layers,
        outputs=_zeros(units, size + keys),
        of_keys=_zeros(units, keys),
        pooled=_zeros(count, size),
        best=np.zeros((count, size), np.int32),
        of_pooled=_zeros(count, size),
    )


def _new_sequence(units: int, rows: int, kept: Floats) -> SequenceArrays:
    count, gates = len(kept), GATES * units
    return SequenceArrays(
        kept=kept,
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
