"""Episodes played for an evaluation: the same starts for every player, on seeds of their own."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.result_lines import EpisodeResult, UnparsedLineError, parse_line
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Cell,
    Float32Array,
    Scenario,
    new_step_buffers,
)

Act = Callable[[Float32Array], Float32Array]  # observations [B, D] to world actions [B, A]
Float64Array = npt.NDArray[np.float64]

FIRST_SEED = 2**32  # a training's seeds are 32 bits wide: none of them is as large


@dataclass(frozen=True)
class CellEpisodes:
    """One episode per row of a world, all of one cell."""

    cell: Cell
    won: BoolArray  # [N]
    seconds: Float64Array  # [N] s that it took; NaN where the world does not tell
    returns: Float64Array  # [N] sum of its rewards; NaN where the world does not tell


def evaluation_seed(seed: int, cell: Cell) -> int:
    """The seed of the world for `cell` in the evaluation `seed`.

    No training can be given it, and no two cells share their episodes' beginnings.
    """
    return FIRST_SEED + derive_seed(seed, "evaluation", cell.target, cell.difficulty)


def cell_scenario(
    cell: Cell, difficulties: int, parameters: Mapping[str, ParameterValue] | None = None
) -> Scenario:
    """The scenario that draws `cell` alone, under `parameters`."""
    weights = tuple(float(level == cell.difficulty) for level in range(1, difficulties + 1))
    difficulty = {cell.target: weights} if difficulties else {}
    return Scenario({cell.target: 1.0}, difficulty, dict(parameters or {}))


def play(
    world: BatchWorld,
    act: Act,
    cell: Cell,
    *,
    seed: int,
    parameters: Mapping[str, ParameterValue] | None = None,
) -> CellEpisodes:
    """The first episode of `act` in every row of `world`, all of `cell`.

    How episode i begins depends on `seed`, the cell and i alone: two players meet the same
    beginnings, and more rows only add some. Every row counts once, however soon it ends:
    counting whatever has ended after a while would count too many wins, since losses take
    longest. Raises LabError where the world's result lines can't be read.
    """
    world.set_scenario(cell_scenario(cell, world.spec.difficulties[cell.target], parameters))
    played = CellEpisodes(
        cell,
        won=np.zeros(world.num_envs, np.bool_),
        seconds=np.zeros(world.num_envs),
        returns=np.zeros(world.num_envs),
    )
    for row, result in _first_results(world, act, evaluation_seed(seed, cell)):
        played.won[row] = result.won
        played.seconds[row] = np.nan if result.seconds is None else result.seconds
        told = result.episode_return
        played.returns[row] = np.nan if told is None else told
    return played


def _first_results(world: BatchWorld, act: Act, seed: int) -> Iterator[tuple[int, EpisodeResult]]:
    running = np.ones(world.num_envs, np.bool_)
    buffers = new_step_buffers(world.num_envs, len(world.spec.observation_names))
    world.reset(seed, buffers.observations)
    while running.any():
        batch = world.step(act(buffers.observations), buffers)
        for row, line in zip(batch.row.tolist(), batch.lines, strict=True):
            if running[row]:
                running[row] = False
                yield row, _result(line)


def _result(line: str) -> EpisodeResult:
    result = parse_line(line)
    if result == "command":
        raise UnparsedLineError("a command where a result was due")
    return result
