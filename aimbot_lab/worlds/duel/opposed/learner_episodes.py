"""Of the episodes of both agents those of the learner, which plays home and in mirrored matches."""

import numpy as np

from aimbot_lab.foundation.episodes import UNCOUNTED, Cell, EpisodeBatch
from aimbot_lab.foundation.world import Int64Array
from aimbot_lab.worlds.duel.core.state import AGENTS
from aimbot_lab.worlds.duel.episode_results import CELLS
from aimbot_lab.worlds.duel.kinds import KINDS, SELF


def learner_episodes(batch: EpisodeBatch, matches: int, *, mirrored: int) -> EpisodeBatch:
    """The learner's part of `batch`, in rows of a world of one agent.

    Rows are the home seats of all `matches`, then the away seats of the first `mirrored`. Episodes
    of these matches are of kind self and of a scenario that counts for no lesson.
    """
    order = batch.running_order[: matches + mirrored]
    scenarios = _running(batch.running_scenario, matches, mirrored)
    if not batch:  # as in most steps
        return batch._replace(running_order=order, running_scenario=scenarios)
    ended = batch.row[: len(batch.row) // AGENTS]
    both = np.flatnonzero(ended < mirrored)
    kept = np.concatenate([np.arange(len(ended)), len(ended) + both])
    rows = np.concatenate([ended, matches + ended[both]])
    own = (rows < mirrored) | (rows >= matches)
    scenario = np.where(own, UNCOUNTED, batch.scenario[kept])
    return batch._replace(
        row=rows,
        agent=np.zeros(len(rows), np.int64),
        order=batch.order[kept],
        scenario=scenario,
        cell=tuple(_cell(batch, at, own=of_own) for at, of_own in zip(kept, own, strict=True)),
        outcome=batch.outcome[kept],
        length=batch.length[kept],
        terms=batch.terms[kept],
        columns={name: column[kept] for name, column in batch.columns.items()},
        running_order=order,
        running_scenario=scenarios,
    )


def _cell(batch: EpisodeBatch, place: int, *, own: bool) -> Cell | None:
    cell = batch.cell[place]
    return CELLS[KINDS.index(SELF), cell.difficulty] if own and cell is not None else cell


def _running(scenario: Int64Array, matches: int, mirrored: int) -> Int64Array:
    if not mirrored:
        return scenario[:matches]
    running = scenario[: matches + mirrored].copy()
    running[:mirrored] = running[matches:] = UNCOUNTED
    return running
