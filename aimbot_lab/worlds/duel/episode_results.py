"""Finished matches as an `EpisodeBatch`: of both agents, or of the learner alone."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import UNCOUNTED, Cell, EpisodeBatch
from aimbot_lab.foundation.world import Int64Array
from aimbot_lab.worlds.duel.core.state import AGENTS, LEVELS, DuelState, MatchLog
from aimbot_lab.worlds.duel.kinds import KINDS, SELF
from aimbot_lab.worlds.episode_log import cells_of, own_columns

CELLS = cells_of({kind: number for number, kind in enumerate(KINDS)}, LEVELS)
OWN_COLUMNS = own_columns(MatchLog)
EPISODE_COLUMNS = (*OWN_COLUMNS, "score")


def episode_batch(matches: npt.NDArray[np.int64], log: MatchLog, state: DuelState) -> EpisodeBatch:
    """An episode for each agent of `matches`, which just ended, home ones first.

    They are in their next match already.
    """
    seats = np.concatenate([matches, matches + len(state.layout)])
    rows = np.concatenate([matches, matches])
    agent = np.zeros(len(rows), np.int64)
    agent[len(matches) :] = 1
    outcome = log.outcome[seats]
    kinds = zip(log.kind[matches].tolist(), log.difficulty[matches].tolist(), strict=True)
    own = {name: np.asarray(getattr(log, name)[rows], np.float64) for name in OWN_COLUMNS}
    return EpisodeBatch(
        row=rows,
        agent=agent,
        order=log.order[seats],
        scenario=log.scenario[seats],
        cell=tuple([CELLS[kind] for kind in kinds]) * AGENTS,
        outcome=outcome,
        length=log.length[rows],
        terms=log.terms[seats],
        running_order=state.seats.order,
        running_scenario=state.seats.scenario,
        columns={**own, "score": 0.5 * outcome + 0.5},
    )


def learner_episodes(batch: EpisodeBatch, matches: int, *, mirrored: int) -> EpisodeBatch:
    """Of the episodes of both agents those of the learner, in rows of a world of one agent.

    It plays home, and both sides of mirrored matches. Rows are the home seats of all `matches`,
    then the away seats of the first `mirrored`. Episodes of these matches are of kind self and of a
    scenario that counts for no lesson.
    """
    running = batch._replace(
        running_order=batch.running_order[: matches + mirrored],
        running_scenario=_running(batch.running_scenario, matches, mirrored),
    )
    if not batch:  # as in most steps
        return running
    ended = batch.row[: len(batch.row) // AGENTS]
    both = np.flatnonzero(ended < mirrored)
    kept = running.some(np.concatenate([np.arange(len(ended)), len(ended) + both]))
    rows = np.concatenate([ended, matches + ended[both]])
    own = (rows < mirrored) | (rows >= matches)
    return kept._replace(
        row=rows,
        agent=np.zeros(len(rows), np.int64),
        scenario=np.where(own, UNCOUNTED, kept.scenario),
        cell=tuple(
            _of_self(cell) if of_own else cell for cell, of_own in zip(kept.cell, own, strict=True)
        ),
    )


def _of_self(cell: Cell | None) -> Cell | None:
    return None if cell is None else CELLS[KINDS.index(SELF), cell.difficulty]


def _running(scenario: Int64Array, matches: int, mirrored: int) -> Int64Array:
    if not mirrored:
        return scenario[:matches]
    running = scenario[: matches + mirrored].copy()
    running[:mirrored] = running[matches:] = UNCOUNTED
    return running
