"""Episodes played for an evaluation: the same starts for every player, on seeds of their own."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.result_lines import UnparsedLineError
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.statistics.measures import Columns, Measure
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Scenario,
    WorldSpec,
    seats_of,
    step_buffers,
)
from aimbot_lab.foundation.world_type import Act

Float64Array = npt.NDArray[np.float64]

FIRST_SEED = 2**32  # a training's seeds are 32 bits wide: none of them is as large
MAX_STEPS = 30_000  # of an episode, in worlds that name no longest one
TRACED_STEPS = 100


@dataclass(frozen=True)
class CellEpisodes:
    """One episode per row of a world, all of one cell; of several agents, those of the first."""

    cell: Cell
    won: BoolArray  # [B]
    seconds: Float64Array  # [B] s that it took
    returns: Float64Array  # [B] sum of its rewards; NaN where a game did not say
    drawn: BoolArray | None = None  # [B]; None: none was
    columns: Columns = field(default_factory=dict)  # [B] each, of the world's own
    starts: tuple[bytes, ...] = ()  # [B] a hash of what was seen first; empty: not known
    measures: tuple[Measure, ...] = ()  # what the world shows of these


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


def longest_episode(spec: WorldSpec, max_steps: int | None = None) -> int:
    """Steps after which an episode counts as endless: those that were asked for, if any."""
    if max_steps is not None:
        return max_steps
    return MAX_STEPS if spec.max_steps is None else 2 * spec.max_steps


def endless(cell: Cell, *, running: int, rows: int, steps: int) -> RunFailedError:
    """That so many of the episodes in `rows` rows have not ended in so many steps."""
    target = cell.shown
    return RunFailedError(
        f"{running} of {rows} episodes of {target} did not end within {steps:,} steps: give the "
        "world a limit, or raise this one with --max-steps or evaluation.max_steps"
    )


def play(
    world: BatchWorld,
    act: Act,
    cell: Cell,
    *,
    seed: int,
    parameters: Mapping[str, ParameterValue] | None = None,
    max_steps: int | None = None,
) -> CellEpisodes:
    """The first episode of `act` in every row of `world`, all of `cell`.

    How episode i begins depends on `seed`, the cell and i alone: two players meet the same
    beginnings, and more rows only add some. Raises what `play_scenario` raises.
    """
    scenario = cell_scenario(cell, world.spec.difficulties[cell.target], parameters)
    drawn = evaluation_seed(seed, cell)
    return play_scenario(world, act, scenario, name=cell, seed=drawn, max_steps=max_steps)


def play_scenario(
    world: BatchWorld,
    act: Act,
    scenario: Scenario,
    *,
    name: Cell,
    seed: int,
    max_steps: int | None = None,
) -> CellEpisodes:
    """The first episode of `act` in every row of `world`, drawn from `scenario` by `seed`.

    Every row counts once, however soon it ends: counting whatever has ended after a while would
    count too many wins, since losses take longest. `act` acts for all agents; `name` is what the
    episodes are called. Raises UnparsedLineError where a game's report of an episode can't be
    read, and RunFailedError where one has not ended within `longest_episode`.
    """
    world.set_scenario(scenario)
    played, rows = _blank(name, world), world.num_envs
    running = np.ones(world.num_envs, np.bool_)
    starts = np.ones(seats_of(world), np.bool_)
    buffers = step_buffers(world)
    world.reset(seed, buffers.observations)
    played = replace(played, starts=_hashed(buffers.observations, rows))
    steps, limit = 0, longest_episode(world.spec, max_steps)
    while running.any():
        if steps == limit:
            raise endless(name, running=int(running.sum()), rows=rows, steps=limit)
        steps += 1
        batch = world.step(act(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
        if batch.unread:
            raise UnparsedLineError(batch.unread[0])
        if batch:
            _note(batch, played, running, spec=world.spec)
    return played


def traced(
    world: BatchWorld,
    act: Act,
    cell: Cell,
    *,
    seed: int,
    parameters: Mapping[str, ParameterValue] | None = None,
) -> bytes:
    """A hash of all that `act` sees and gains in the first TRACED_STEPS steps of `play`.

    Twice the same where the world repeats its episodes from their seed.
    """
    world.set_scenario(cell_scenario(cell, world.spec.difficulties[cell.target], parameters))
    starts, buffers = np.ones(seats_of(world), np.bool_), step_buffers(world)
    world.reset(evaluation_seed(seed, cell), buffers.observations)
    digest = hashlib.blake2b(buffers.observations.tobytes())
    for _ in range(TRACED_STEPS):
        world.step(act(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
        for shown in (buffers.observations, buffers.rewards, starts):
            digest.update(shown.tobytes())
    return digest.digest()


def _hashed(observations: Float32Array, rows: int) -> tuple[bytes, ...]:
    """A hash of what all agents of each row see."""
    by_row = observations.reshape(-1, rows, observations.shape[-1]).swapaxes(0, 1)
    return tuple(hashlib.blake2b(seen.tobytes(), digest_size=8).digest() for seen in by_row)


def _blank(cell: Cell, world: BatchWorld) -> CellEpisodes:
    """Where the results of `world`'s rows will stand."""
    rows, spec = world.num_envs, world.spec
    return CellEpisodes(
        cell,
        won=np.zeros(rows, np.bool_),
        seconds=np.zeros(rows),
        returns=np.zeros(rows),
        drawn=np.zeros(rows, np.bool_),
        columns={name: np.zeros(rows) for name in spec.episode_columns},
        measures=spec.measures,
    )


def _note(
    batch: EpisodeBatch, played: CellEpisodes, running: BoolArray, *, spec: WorldSpec
) -> None:
    """Keep the first agent's results in rows whose first episode this is."""
    first = np.flatnonzero(running[batch.row] & (batch.agent == 0))
    rows = batch.row[first]
    seconds = batch.columns.get(spec.time_column or "", batch.length * spec.decision_seconds)
    played.won[rows] = batch.won[first]
    played.seconds[rows] = seconds[first]
    played.returns[rows] = batch.returns[first]
    if played.drawn is not None:
        played.drawn[rows] = batch.drawn[first]
    for name, column in played.columns.items():
        known = batch.columns.get(name)  # a game may leave one out
        column[rows] = np.nan if known is None else known[first]
    running[rows] = False
