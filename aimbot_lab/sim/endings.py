"""Finished episodes of the arena as an `EpisodeBatch`, with their result lines."""

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.results import EpisodeResult, format_result_line
from aimbot_lab.sim.core.state import ArenaState, EpisodeLog
from aimbot_lab.sim.scenario import TARGETS

TARGET_NAMES = {code: name for name, code in TARGETS.items()}


def episode_batch(rows: npt.NDArray[np.int64], log: EpisodeLog, state: ArenaState) -> EpisodeBatch:
    """The episodes that just ended in `rows`, which are in their next episode already."""
    terms = log.terms[rows]
    returns = terms.sum(axis=1)
    return EpisodeBatch(
        lines=tuple(
            _line(log, row, float(total)) for row, total in zip(rows, returns, strict=True)
        ),
        row=rows,
        order=log.order[rows],
        scenario=log.scenario[rows],
        length=log.length[rows],
        terms=terms,
        running_order=state.order,
        running_scenario=state.scenario,
    )


def _line(log: EpisodeLog, row: int, episode_return: float) -> str:
    return format_result_line(
        EpisodeResult(
            won=bool(log.won[row]),
            target=TARGET_NAMES[int(log.target[row])],
            difficulty=int(log.difficulty[row]) or None,
            seconds=float(log.seconds[row]),
            episode_return=episode_return,
        )
    )
