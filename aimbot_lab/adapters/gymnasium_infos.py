"""How an episode ended, as the infos that Gymnasium's environments return."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.result_lines import EpisodeResult, UnparsedLineError, parse_line
from aimbot_lab.foundation.world import Float32Array

Infos = dict[str, Any]


def episode_infos(episodes: EpisodeBatch) -> list[Infos]:
    """One info per ended episode.

    `won` and `is_success` (the same under stable-baselines3's name), `target`, `difficulty`
    (0: none), `seconds`, `episode_return`, `reward_terms` [T] in the order of the world's spec,
    and `line`, the result line as the game sent it.
    """
    infos = []
    for line, terms in zip(episodes.lines, episodes.terms, strict=True):
        result = episode_result(line)
        infos.append(
            {
                "won": result.won,
                "is_success": result.won,
                "target": result.target,
                "difficulty": result.difficulty or 0,
                "seconds": result.seconds,
                "episode_return": float(terms.sum()),
                "reward_terms": terms.copy(),
                "line": line,
            }
        )
    return infos


def episode_result(line: str) -> EpisodeResult:
    """What a result line tells. Raises UnparsedLineError for any other line."""
    result = parse_line(line)
    if result == "command":
        raise UnparsedLineError(f"{line!r} is no result of an episode")
    return result


def batch_infos(episodes: EpisodeBatch, final_observations: Float32Array) -> Infos:
    """`final_obs` and `final_info` of a batch of B rows in which `episodes` ended.

    In the form of Gymnasium's own vector environments: every entry has one place per row and,
    under its name with `_` before it, a mask [B] of the rows that it speaks of.
    """
    count = len(final_observations)
    ended = np.zeros(count, np.bool_)
    ended[episodes.row] = True
    last = np.full(count, None, object)
    for row in episodes.row:
        last[row] = final_observations[row].copy()
    infos = episode_infos(episodes)
    final: Infos = {}
    for name in infos[0]:
        final[name] = _column([info[name] for info in infos], episodes.row, count)
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
