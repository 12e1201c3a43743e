"""Finished episodes of the arena as an `EpisodeBatch`, with their result lines."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import EpisodeResult, format_result_line
from aimbot_lab.worlds.arena.core.state import DIFFICULTY_COUNT, ArenaState, EpisodeLog
from aimbot_lab.worlds.arena.scenario import TARGETS

# The lines are made thousands of times a second; but for the two last fields there are only
# these, by outcome, target and difficulty.
BEGINNINGS = {
    (won, code, difficulty): format_result_line(EpisodeResult(won, name, difficulty or None))
    for won in (False, True)
    for name, code in TARGETS.items()
    for difficulty in range(DIFFICULTY_COUNT + 1)
}


def episode_batch(rows: npt.NDArray[np.int64], log: EpisodeLog, state: ArenaState) -> EpisodeBatch:
    """The episodes that just ended in `rows`, which are in their next episode already."""
    terms = log.terms[rows]
    return EpisodeBatch(
        lines=_lines(rows, log, returns=terms.sum(axis=1)),
        row=rows,
        order=log.order[rows],
        scenario=log.scenario[rows],
        length=log.length[rows],
        terms=terms,
        running_order=state.order,
        running_scenario=state.scenario,
    )


def _lines(
    rows: npt.NDArray[np.int64], log: EpisodeLog, *, returns: npt.NDArray[np.float64]
) -> tuple[str, ...]:
    """What `format_result_line` would give for each of `rows`, at a fraction of its time."""
    kinds = zip(
        log.won[rows].tolist(),
        log.target[rows].tolist(),
        log.difficulty[rows].tolist(),
        strict=True,
    )
    numbers = zip(kinds, log.seconds[rows].tolist(), returns.tolist(), strict=True)
    return tuple(
        [
            f"{BEGINNINGS[kind]}|seconds={seconds:.1f}|return={total!r}"
            for kind, seconds, total in numbers
        ]
    )
