"""Arrays that a thread works in where a network has parts."""

import numpy as np

from aimbot_lab.foundation.kernels.atomic import SyncFlags
from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.kernels.spin_sync import SPIN_LIMIT, STRIDE
from aimbot_lab.training.fused.core.parts import Floats, Head
from aimbot_lab.training.fused.parts.core.arrays import (
    KindArrays,
    PartsThread,
    PartsWorkspace,
    SequenceArrays,
)
from aimbot_lab.training.fused.parts.net import (
    GATES,
    USUAL,
    dense_widths,
    head_widths,
    parts_size,
    parts_views,
    usual_kinds,
)
from aimbot_lab.training.fused.parts.shape import KindShape, PartsShape, width
from aimbot_lab.training.fused.workspace import new_head, new_samples


def new_parts_threads(
    shape: PartsShape, rows: int, sync_flags: SyncFlags, *, length: int, seen: int = 0
) -> tuple[PartsThread, ...]:
    """Of the caller and its workers, for pieces of `rows` sequences of `length` steps.

    Those that act are shown observations of `seen` numbers.
    """

    def new_thread(number: int) -> PartsThread:
        gradient = np.zeros(parts_size(shape), np.float32)
        return PartsThread(
            thread_id=number,
            spin_limit=SPIN_LIMIT,
            workspace=new_parts_workspace(shape, rows, length=length, seen=seen),
            gradient=gradient,
            of=parts_views(shape, gradient),
        )

    return tuple(map(new_thread, range(1 + sync_flags.size // STRIDE)))


def new_parts_workspace(shape: PartsShape, rows: int, *, length: int, seen: int) -> PartsWorkspace:
    """Arrays for pieces of `rows` sequences of `length` steps, and for `seen` features."""
    count, core, ones = rows * length, width(shape.core), np.ones(rows * length, np.float32)
    samples = new_samples(shape.heads, count, inputs=shape.plain)
    scalars, of_scalars = _dense_arrays(samples.inputs, shape.scalars)
    kept = np.ones(count, np.float32)
    memories = tuple(
        _new_sequence(shape.lanes if k < shape.memories else 0, rows, kept) for k in range(USUAL)
    )
    forward, of_core = _zeros(count, core), _zeros(count, core)
    layers = [2 * units for _, units in head_widths(shape)]
    outputs, gradients = (tuple(_zeros(count, size) for size in layers) for _ in range(2))
    given, of_given = _given(shape, (forward, of_core), memories)
    return PartsWorkspace(
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
        head=_new_head(shape, count),
        ones=ones,
        scratch=_zeros(seen),
    )


def _dense_arrays(
    inputs: Floats, layers: tuple[int, ...]
) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """(the inputs, then the outputs of layers; derivatives by these outputs)."""
    widths = [units for _, units in dense_widths(0, layers)[1:]]
    outputs, of = (tuple(_zeros(len(inputs), units) for units in widths) for _ in range(2))
    return (inputs, *outputs), (_zeros(0, 0), *of)


def _given(
    shape: PartsShape, core: tuple[Floats, Floats], memories: tuple[SequenceArrays, ...]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """What actor and critic are given, and derivatives by it, of which the second may be spare."""
    if shape.memories == USUAL:
        actor, critic = memories
        return (actor.hidden, critic.hidden), (actor.of_hidden, critic.of_hidden)
    given, of_given = (memories[0].hidden, memories[0].of_hidden) if shape.memories else core
    return (given, given), (of_given, np.zeros_like(of_given))


def _new_head(shape: PartsShape, count: int) -> Head:
    outputs, logits = _zeros(count, whole_lanes(shape.outputs)), _zeros(shape.outputs, count)
    return new_head(shape.heads, count)._replace(outputs=outputs, logits=logits)


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
