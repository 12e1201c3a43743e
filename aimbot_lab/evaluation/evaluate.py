"""What evaluated episodes come to: win rates with intervals, time to win, return, measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from aimbot_lab.evaluation.episodes import CellEpisodes, Float64Array, play
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.statistics.intervals import wilson
from aimbot_lab.foundation.statistics.measures import measured_by_name
from aimbot_lab.foundation.world import BatchWorld
from aimbot_lab.foundation.world_type import Act


@dataclass(frozen=True)
class Score:
    """How a player did in a set of episodes."""

    episodes: int
    wins: int
    win_rate: float
    lower: float  # Wilson interval at 95 %
    upper: float
    median_seconds_to_win: float | None  # over the won episodes; None: none won, or not known
    mean_return: float | None  # None where the world does not tell
    draws: int = field(default=0, kw_only=True)  # which are no wins
    measures: Mapping[str, float | None] = field(default_factory=dict, kw_only=True)
    """What else the world measures, by name; None where no episode is of it."""


@dataclass(frozen=True)
class CellScore(Score):
    """How a player did in one cell."""

    target: str
    difficulty: int  # 0: the target has none


def evaluate(
    world: BatchWorld,
    act: Act,
    cells: Sequence[Cell],
    *,
    seed: int,
    parameters: Mapping[str, ParameterValue] | None = None,
) -> tuple[CellScore, ...]:
    """Scores of `act` in each of `cells`, over one first episode in every row of `world`.

    For a player that remembers nothing of the cell before; see `play` for the rest.
    """
    return tuple(
        score_cell(play(world, act, cell, seed=seed, parameters=parameters)) for cell in cells
    )


def score_cell(played: CellEpisodes) -> CellScore:
    """The score of one cell's episodes."""
    return CellScore(**vars(score_all([played])), **played.cell._asdict())


def score_all(played: Sequence[CellEpisodes]) -> Score:
    """The score of several cells' episodes together; with as many of each, all count alike."""
    won = np.concatenate([cell.won for cell in played])
    seconds = np.concatenate([cell.seconds for cell in played])[won]
    returns = np.concatenate([cell.returns for cell in played])
    rate = wilson(int(won.sum()), len(won))
    return Score(
        episodes=len(won),
        wins=int(won.sum()),
        win_rate=float(won.mean()),
        lower=rate.lower,
        upper=rate.upper,
        median_seconds_to_win=float(np.median(seconds)) if _is_known(seconds) else None,
        mean_return=float(returns.mean()) if _is_known(returns) else None,
        draws=sum(int(cell.drawn.sum()) for cell in played if cell.drawn is not None),
        measures=measured_by_name(played[0].measures, [cell.columns for cell in played]),
    )


def _is_known(values: Float64Array) -> bool:
    return len(values) > 0 and not bool(np.isnan(values).any())
