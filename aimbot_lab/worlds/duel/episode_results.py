"""Finished matches as an `EpisodeBatch`: an episode for each agent, home ones first."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.worlds.duel.core.state import LEVELS, DuelState, MatchLog
from aimbot_lab.worlds.duel.kinds import KINDS

CELLS = {
    (number, difficulty): Cell(kind, difficulty)
    for number, kind in enumerate(KINDS)
    for difficulty in range(LEVELS + 1)
}


def episode_batch(matches: npt.NDArray[np.int64], log: MatchLog, state: DuelState) -> EpisodeBatch:
    """The episodes of `matches`, which just ended and are in their next one already."""
    seats = np.concatenate([matches, matches + len(state.layout)])
    rows = np.concatenate([matches, matches])
    agent = np.zeros(len(rows), np.int64)
    agent[len(matches) :] = 1
    outcome = log.outcome[seats]
    kinds = zip(log.kind[matches].tolist(), log.difficulty[matches].tolist(), strict=True)
    return EpisodeBatch(
        row=rows,
        agent=agent,
        order=log.order[seats],
        scenario=log.scenario[seats],
        cell=tuple([CELLS[kind] for kind in kinds]) * 2,
        outcome=outcome,
        length=log.length[rows],
        terms=log.terms[seats],
        running_order=state.seats.order,
        running_scenario=state.seats.scenario,
        columns={"seconds": log.seconds[rows], "score": 0.5 * outcome + 0.5},
    )
