"""Episodes played for an evaluation: the same starts for every player, on seeds of their own."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.result_lines import UnparsedLineError
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BatchWorld, BoolArray, Scenario, seats_of, step_buffers
from aimbot_lab.foundation.world_type import Act

Float64Array = npt.NDArray[np.float64]

FIRST_SEED = 2**32  # a training's seeds are 32 bits wide: none of them is as large


@dataclass(frozen=True)
class CellEpisodes:
    """One episode per row of a world, all of one cell; of several agents, those of the first."""

    cell: Cell
    won: BoolArray  # [B]
    seconds: Float64Array  # [B] s that it took
    returns: Float64Array  # [B] sum of its rewards; NaN where a game did not say


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
    longest. `act` acts for all agents. Raises UnparsedLineError where a game's report of an
    episode can't be read.
    """
    world.set_scenario(cell_scenario(cell, world.spec.difficulties[cell.target], parameters))
    played = CellEpisodes(
        cell,
        won=np.zeros(world.num_envs, np.bool_),
        seconds=np.zeros(world.num_envs),
        returns=np.zeros(world.num_envs),
    )
    running = np.ones(world.num_envs, np.bool_)
    starts = np.ones(seats_of(world), np.bool_)
    buffers = step_buffers(world)
    world.reset(evaluation_seed(seed, cell), buffers.observations)
    while running.any():
        batch = world.step(act(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
        if batch.unread:
            raise UnparsedLineError(batch.unread[0])
        if batch:
            _note(batch, played, running, decision_seconds=world.spec.decision_seconds)
    return played


def _note(
    batch: EpisodeBatch, played: CellEpisodes, running: BoolArray, *, decision_seconds: float
) -> None:
    """Keep the first agent's results in rows whose first episode this is."""
    first = np.flatnonzero(running[batch.row] & (batch.agent == 0))
    rows = batch.row[first]
    seconds = batch.columns.get("seconds", batch.length * decision_seconds)
    played.won[rows] = batch.won[first]
    played.seconds[rows] = seconds[first]
    played.returns[rows] = batch.returns[first]
    running[rows] = False
