"""How an episode ended, as the infos that Gymnasium's environments return."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.world import Float32Array, WorldSpec

Infos = dict[str, Any]


def episode_infos(episodes: EpisodeBatch, spec: WorldSpec) -> list[Infos]:
    """One info per ended episode of a world with `spec`.

    `won` and `is_success` (the same under stable-baselines3's name), `outcome` (1 win, 0 draw,
    -1 loss), `target`, `difficulty` (0: none), `episode_return`, `reward_terms` [T] in the order
    of the world's spec, the world's own columns (of the arena `seconds`), and `line`, the result
    line as a game would send it.
    """
    infos: list[Infos] = []
    for place, cell in enumerate(episodes.cell):
        won = bool(episodes.won[place])
        infos.append(
            {
                "won": won,
                "is_success": won,
                "outcome": int(episodes.outcome[place]),
                "target": None if cell is None else cell.target,
                "difficulty": 0 if cell is None else cell.difficulty,
                "episode_return": float(episodes.returns[place]),
                "reward_terms": episodes.terms[place].copy(),
                **{name: float(column[place]) for name, column in episodes.columns.items()},
                "line": result_line(episodes, place, spec.result_columns),
            }
        )
    return infos


def batch_infos(
    episodes: EpisodeBatch, final_observations: Float32Array, *, spec: WorldSpec
) -> Infos:
    """`final_obs` and `final_info` of a batch of N seats in which `episodes` ended.

    In the form of Gymnasium's own vector environments: every entry has one place per seat
    and, under its name with `_` before it, a mask [N] of the seats that it speaks of.
    """
    count = len(final_observations)
    seats = episodes.seats(count // spec.agents)
    ended = np.zeros(count, np.bool_)
    ended[seats] = True
    last = np.full(count, None, object)
    for seat in seats:
        last[seat] = final_observations[seat].copy()
    infos = episode_infos(episodes, spec)
    final: Infos = {}
    for name in infos[0]:
        final[name] = _column([info[name] for info in infos], seats, count)
        final[f"_{name}"] = ended.copy()
    return {
        "final_obs": last,
        "_final_obs": ended.copy(),
        "final_info": final,
        "_final_info": ended,
    }


def _column(values: Sequence[Any], rows: npt.NDArray[np.int64], count: int) -> npt.NDArray[Any]:
    """`values` at their `rows` of `count`; 0 elsewhere, None where they are no numbers."""
    found = np.array(values)
    if found.dtype.kind not in "bif":
        column = np.full(count, None, object)
    else:
        column = np.zeros((count, *found.shape[1:]), found.dtype)
    column[rows] = found
    return column
