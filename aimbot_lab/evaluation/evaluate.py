"""Win rates of an agent per target and difficulty, on episodes that depend on the seed alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aimbot_lab.foundation.intervals import wilson
from aimbot_lab.foundation.results import UnparsedLineError, parse_line
from aimbot_lab.foundation.world import (
    BatchWorld,
    Cell,
    Float32Array,
    Scenario,
    StepBuffers,
    new_step_buffers,
)

Act = Callable[[Float32Array], Float32Array]  # observations [B, D] to world actions [B, A]


@dataclass(frozen=True)
class CellScore:
    """How an agent did in one cell."""

    target: str
    difficulty: int
    episodes: int
    wins: int
    win_rate: float
    lower: float  # Wilson interval at 95 %
    upper: float
    seconds_to_win: float | None  # mean over the won episodes; None: none won, or not told
    mean_return: float | None  # None where the world does not tell


def cell_scenario(cell: Cell, difficulties: int) -> Scenario:
    """The scenario that draws `cell` alone."""
    weights = tuple(float(level == cell.difficulty) for level in range(1, difficulties + 1))
    return Scenario({cell.target: 1.0}, {cell.target: weights} if difficulties else {})


def evaluate(
    world: BatchWorld, act: Act, cells: Sequence[Cell], *, seed: int
) -> tuple[CellScore, ...]:
    """Scores of `act` in each of `cells`, over one first episode in every row of `world`.

    All cells and all agents meet the same seeds. Raises LabError where the world's result
    lines can't be read.
    """
    return tuple(_score(world, act, cell, seed) for cell in cells)


def _score(world: BatchWorld, act: Act, cell: Cell, seed: int) -> CellScore:
    world.set_scenario(cell_scenario(cell, world.spec.difficulties[cell.target]))
    won, seconds, returns = _first_episodes(world, act, seed)
    rate = wilson(int(won.sum()), len(won))
    return CellScore(
        target=cell.target,
        difficulty=cell.difficulty,
        episodes=len(won),
        wins=int(won.sum()),
        win_rate=float(won.mean()),
        lower=rate.lower,
        upper=rate.upper,
        seconds_to_win=_mean(seconds[won]),
        mean_return=_mean(returns),
    )


def _mean(values: np.ndarray) -> float | None:
    """The mean; None of no values, and where one is not known (NaN)."""
    return None if not len(values) or np.isnan(values).any() else float(values.mean())


def _first_episodes(
    world: BatchWorld, act: Act, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(won [B], seconds [B], return [B]) of the first episode of every row.

    Every row counts once, however soon it ends: counting whatever has ended after a while
    would count too many wins, since losses take longest.
    """
    won = np.zeros(world.num_envs, np.bool_)
    seconds, returns = np.zeros(world.num_envs), np.zeros(world.num_envs)
    running = np.ones(world.num_envs, np.bool_)
    buffers = new_step_buffers(world.num_envs, len(world.spec.observation_names))
    world.reset(seed, buffers.observations)
    while running.any():
        for row, line in _ended(world, act, buffers):
            if running[row]:
                running[row] = False
                result = parse_line(line)
                if result == "command":
                    raise UnparsedLineError("a command where a result was due")
                won[row] = result.won
                seconds[row] = np.nan if result.seconds is None else result.seconds
                told = result.episode_return
                returns[row] = np.nan if told is None else told
    return won, seconds, returns


def _ended(world: BatchWorld, act: Act, buffers: StepBuffers) -> list[tuple[int, str]]:
    batch = world.step(act(buffers.observations), buffers)
    return list(zip(batch.row.tolist(), batch.lines, strict=True))
