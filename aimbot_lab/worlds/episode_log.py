"""Logs of ended episodes: what a kernel writes where an episode ends, and the columns of it.

A world declares its log beside its state, as a NamedTuple of arrays with an entry for each row.
A field that is not in `KNOWN` is an episode column of that world's own: it takes the field and the
line of the kernel that writes it. Imported by worlds with kernels.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch

KNOWN = frozenset(
    {"outcome", "won", "target", "kind", "difficulty", "length", "order", "scenario", "terms"}
)
L = TypeVar("L")
FLOAT64 = np.dtype(np.float64)
IntArray = npt.NDArray[np.int64]


def own_columns(log: type[NamedTuple]) -> tuple[str, ...]:
    """The names of the episode columns that a `log` of this type adds."""
    return tuple(name for name in log._fields if name not in KNOWN)


def new_log(kind: type[L], rows: int, *, terms: int) -> L:
    """A log of this type for `rows` rows and `terms` reward terms, all zeros."""
    arrays: dict[str, Any] = {
        name: np.zeros((rows, terms) if name == "terms" else rows, _dtype(array))
        for name, array in kind.__annotations__.items()
    }
    make: Any = kind
    log: L = make(**arrays)
    return log


def _dtype(array: Any) -> np.dtype[Any]:
    """That of the array type `npt.NDArray[...]`."""
    dtype: np.dtype[Any] = np.dtype(get_args(get_args(array)[1])[0])
    return dtype


def cells_of(targets: Mapping[str, int], levels: int) -> dict[tuple[int, int], Cell]:
    """The cell of each target's number and difficulty, 0 (none) to `levels`."""
    return {
        (number, level): Cell(name, level)
        for name, number in targets.items()
        for level in range(levels + 1)
    }


def ended_episodes(
    rows: IntArray,
    log: Any,
    running: Any,
    *,
    cells: Mapping[tuple[int, int], Cell],
    outcome: npt.NDArray[np.int8],
    length: IntArray,
    columns: tuple[str, ...],
    sums: tuple[int, tuple[str, ...]] | None = None,
) -> EpisodeBatch:
    """The episodes that just ended in `rows` [E], which are in their next episode already.

    `running` has the `order` and `scenario` [B] of the episodes that run. `outcome` and `length`
    are those of the ended ones [E]; `columns` names the arrays of `log` that they carry. With
    `sums` only so many of `log.terms` are reward terms, and the others columns of these names.
    """
    terms = log.terms[rows]
    own = {}
    for name in columns:
        values = getattr(log, name)[rows]
        own[name] = values if values.dtype is FLOAT64 else values.astype(np.float64)
    if sums is not None and sums[1]:
        for place, name in enumerate(sums[1], sums[0]):
            own[name] = terms[:, place]
        terms = terms[:, : sums[0]]
    kinds = zip(log.target[rows].tolist(), log.difficulty[rows].tolist(), strict=True)
    return EpisodeBatch(
        row=rows,
        agent=np.zeros(len(rows), np.int64),
        order=log.order[rows],
        scenario=log.scenario[rows],
        cell=tuple([cells[kind] for kind in kinds]),
        outcome=outcome,
        length=length,
        terms=terms,
        running_order=running.order,
        running_scenario=running.scenario,
        columns=own,
    )
