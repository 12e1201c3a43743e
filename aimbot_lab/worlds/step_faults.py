"""What a step of a world must not give, each fault in words that follow "its step gave"."""

from typing import Any

import numpy as np

from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import BoolArray, Float32Array, StepBuffers, WorldSpec

OUTCOMES = (LOSS, DRAW, WIN)
COUNTED = ("row", "agent", "order", "scenario", "outcome", "length")  # [E] whole numbers


def numbers_fault(
    numbers: Float32Array, spec: WorldSpec, *, where: BoolArray | None = None
) -> str | None:
    """NaN or infinity among rewards [N] or observations [N, D]; `where` [N] says which count."""
    if where is None:
        with np.errstate(all="ignore"):
            total = numbers.sum()
        if np.isfinite(total):
            return None  # one number that is not finite makes the sum none
    elif not where.any():
        return None
    finite = np.isfinite(numbers)
    if where is not None:
        finite |= ~where[:, None]
    if finite.all():
        return None  # finite numbers may have a sum that is not
    place = np.argwhere(~finite)[0]
    value, seat = numbers[tuple(place)], place[0]
    if numbers.ndim == 1:
        return f"a reward of {value:g} (seat {seat})"
    return f"observation {spec.observation_names[place[1]]} as {value:g} (seat {seat})"


def masks_fault(masks: BoolArray, spec: WorldSpec) -> str | None:
    """A branch without a choice in `masks` [N, sum of branches]."""
    start = 0
    for number, size in enumerate(spec.branches):
        if not masks[:, start : start + size].any(axis=1).all():
            name = spec.action_names[number] if spec.action_names else f"branch {number}"
            return f"no choice for {name}"
        start += size
    return None


def episodes_fault(batch: Any, buffers: StepBuffers, *, spec: WorldSpec, rows: int) -> str | None:
    """What does not fit in the episodes that ended in a step of `rows` rows."""
    if not isinstance(batch, EpisodeBatch):
        return f"{_short(batch)} in the place of an EpisodeBatch"
    seats = len(buffers.rewards)
    for name in ("running_order", "running_scenario"):
        fault = _shape_fault(name, getattr(batch, name), (seats,))
        if fault is not None:
            return fault
    if (buffers.truncated & ~buffers.finished).any():
        return "truncated where finished is False"
    fault = _columns_fault(batch, spec) if len(batch.cell) else None
    if fault is not None:
        return fault
    return _places_fault(batch, buffers, spec=spec, rows=rows)


def _columns_fault(batch: EpisodeBatch, spec: WorldSpec) -> str | None:
    """A column of E episodes that is missing, of another shape, or not of numbers."""
    count = len(batch.cell)
    for name in COUNTED:
        values = getattr(batch, name)
        fault = _shape_fault(name, values, (count,))
        if fault is None and values.dtype.kind not in "iu":
            fault = f"{name} as {values.dtype} in the place of whole numbers"
        if fault is not None:
            return f"episodes with {fault}"
    fault = _shape_fault("terms", batch.terms, (count, len(spec.reward_terms)))
    if fault is not None:
        return f"episodes with {fault}"
    for name in spec.episode_columns:
        if name not in batch.columns:
            return f"episodes without the column {name}"
        fault = _shape_fault(name, batch.columns[name], (count,))
        if fault is not None:
            return f"episodes with the column {fault}"
    return None


def _places_fault(
    batch: EpisodeBatch, buffers: StepBuffers, *, spec: WorldSpec, rows: int
) -> str | None:
    """Episodes of seats that did not finish, of no target, or without an outcome."""
    ended = np.flatnonzero(buffers.finished).tolist()
    seats = sorted(batch.seats(rows).tolist()) if len(batch.cell) else []
    if seats != ended and not batch.unread:
        return f"episodes of the seats {_short(seats)}; finished is True at {_short(ended)}"
    for cell in batch.cell:
        if cell is not None and not _is_cell(cell, spec):
            return f"an episode of {_short(cell)}, which is no Cell of its spec"
    if len(batch.cell) and not np.isin(batch.outcome, OUTCOMES).all():
        return f"outcomes {_short(batch.outcome.tolist())}; allowed are -1, 0 and 1"
    return None


def _is_cell(cell: Any, spec: WorldSpec) -> bool:
    return isinstance(cell, Cell) and (
        0 <= cell.difficulty <= spec.difficulties.get(cell.target, -1)
    )


def _shape_fault(name: str, values: Any, shape: tuple[int, ...]) -> str | None:
    if not isinstance(values, np.ndarray):
        return f"{name} as {_short(values)} in the place of an array"
    return None if values.shape == shape else f"{name} of shape {values.shape} instead of {shape}"


def _short(value: Any) -> str:
    return shortened(one_line(repr(value)), 80)
