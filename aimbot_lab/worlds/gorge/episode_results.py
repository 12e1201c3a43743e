"""Finished episodes of Gorge Walk as an `EpisodeBatch`."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.worlds.gorge.core.state import DIFFICULTY_COUNT, EpisodeLog, GorgeState
from aimbot_lab.worlds.gorge.spec import EPISODE_COLUMNS, TARGETS

CELLS = {
    (code, difficulty): Cell(name, difficulty)
    for name, code in TARGETS.items()
    for difficulty in range(DIFFICULTY_COUNT + 1)
}


def episode_batch(rows: npt.NDArray[np.int64], log: EpisodeLog, state: GorgeState) -> EpisodeBatch:
    """The episodes that just ended in `rows`, which are in their next episode already."""
    kinds = zip(log.target[rows].tolist(), log.difficulty[rows].tolist(), strict=True)
    return EpisodeBatch(
        row=rows,
        agent=np.zeros_like(rows),
        order=log.order[rows],
        scenario=log.scenario[rows],
        cell=tuple([CELLS[kind] for kind in kinds]),
        outcome=np.where(log.won[rows], WIN, LOSS).astype(np.int8),
        length=log.steps[rows],
        terms=log.terms[rows],
        running_order=state.order,
        running_scenario=state.scenario,
        columns={name: getattr(log, name)[rows].astype(np.float64) for name in EPISODE_COLUMNS},
    )
