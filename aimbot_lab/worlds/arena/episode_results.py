"""Finished episodes of the arena as an `EpisodeBatch`."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.worlds.arena.core.state import DIFFICULTY_COUNT, ArenaState, EpisodeLog
from aimbot_lab.worlds.arena.scenario import TARGETS

CELLS = {
    (code, difficulty): Cell(name, difficulty)
    for name, code in TARGETS.items()
    for difficulty in range(DIFFICULTY_COUNT + 1)
}


def episode_batch(rows: npt.NDArray[np.int64], log: EpisodeLog, state: ArenaState) -> EpisodeBatch:
    """The episodes that just ended in `rows`, which are in their next episode already."""
    kinds = zip(log.target[rows].tolist(), log.difficulty[rows].tolist(), strict=True)
    return EpisodeBatch(
        row=rows,
        agent=np.zeros(len(rows), np.int64),
        order=log.order[rows],
        scenario=log.scenario[rows],
        cell=tuple([CELLS[kind] for kind in kinds]),
        outcome=log.outcome[rows],
        length=log.length[rows],
        terms=log.terms[rows],
        running_order=state.order,
        running_scenario=state.scenario,
        columns={"seconds": log.seconds[rows]},
    )
