"""Evaluated episodes: the same starts for every player, on seeds of their own, and their scores."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import (
    Cell,
    Columns,
    EpisodeBatch,
    Measure,
    UnparsedLineError,
    mean_interval,
    measured_by_name,
    wilson,
)
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Int64Array,
    Scenario,
    StepBuffers,
    WorldSpec,
    observation_bytes,
    seats_of,
    step_buffers,
)
from aimbot_lab.foundation.world_type import Act

Float64Array = npt.NDArray[np.float64]

FIRST_SEED = 2**32  # a training's seeds are 32 bits wide: none of them is as large
MAX_STEPS = 30_000  # of an episode, in worlds that name no longest one
TRACED_STEPS = 100
NO_PLACES = np.zeros(0, np.int64)


@dataclass(frozen=True)
class CellEpisodes:
    """E episodes of one cell, by their beginning; of several agents, those of the first."""

    cell: Cell
    won: BoolArray  # [E]
    seconds: Float64Array  # [E] s that it took
    returns: Float64Array  # [E] sum of its rewards; NaN where a game did not say
    drawn: BoolArray | None = None  # [E]; None: none was
    columns: Columns = field(default_factory=dict)  # [E] each, of the world's own
    starts: tuple[bytes, ...] = ()  # [E] a hash of what was seen first; empty: not known
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


def endless(cell: Cell, episodes: int, limit: int) -> Callable[[int], RunFailedError]:
    """The error of `episodes` of `cell`, some of which did not end in `limit` steps."""
    return lambda running: RunFailedError(
        f"{running} of {episodes} episodes of {cell.shown} did not end within {limit:,} "
        "steps: give the world a limit, or raise this one with --max-steps or evaluation.max_steps"
    )


def first_episodes(
    world: BatchWorld,
    act: Act,
    buffers: StepBuffers,
    *,
    episodes: int | None = None,
    limit: int,
    error: Callable[[int], RunFailedError],
) -> Iterator[tuple[Float32Array, EpisodeBatch, Int64Array, Int64Array]]:
    """Play `world`, just reset into `buffers`, until the first `episodes` that begin have ended.

    `act` acts for all agents. By default one episode counts in every row, and its rank is its row.
    With another number ranks are by beginning; `world` must be one whose episodes begin by their
    rank alone, in whichever row. Gives after every step the actions [N, A], the batch of what
    ended, the places in it of episodes that count, as the row's first agent had them, and their
    ranks. What begins later counts for nothing, however soon it ends: counting whatever has ended
    after a while would count too many wins, since losses take longest. Raises `error`, of the
    number that has not ended, once an episode takes `limit` steps.
    """
    by_row = episodes in (None, world.num_envs)
    running = np.ones(world.num_envs if episodes is None else episodes, np.bool_)
    starts = np.ones(seats_of(world), np.bool_)
    lengths = np.zeros(world.num_envs, np.int64)
    while running.any():
        if lengths.max() >= limit:
            raise error(int(running.sum()))
        actions = act(buffers.observations, starts)
        batch = world.step(actions, buffers)
        starts = buffers.finished.copy()
        lengths += 1
        places = ranks = NO_PLACES
        if batch:
            lengths[batch.row] = 0
            all_ranks = batch.row if by_row else _ranks(batch.order, world.spec)
            places = np.flatnonzero((batch.agent == 0) & (all_ranks < len(running)))
            places = places[running[all_ranks[places]]]
            ranks = all_ranks[places]
            running[ranks] = False
        yield actions, batch, places, ranks


def play(
    world: BatchWorld,
    act: Act,
    cell: Cell,
    *,
    seed: int,
    episodes: int | None = None,
    parameters: Mapping[str, ParameterValue] | None = None,
    max_steps: int | None = None,
) -> CellEpisodes:
    """The first `episodes` of `act` in `world`, all of `cell`; without a number one in every row.

    How episode i begins depends on `seed`, the cell and i alone: two players meet the same
    beginnings, and more episodes only add some. Raises what `play_scenario` raises.
    """
    scenario = cell_scenario(cell, world.spec.difficulties[cell.target], parameters)
    drawn = evaluation_seed(seed, cell)
    return play_scenario(
        world, act, scenario, name=cell, seed=drawn, episodes=episodes, max_steps=max_steps
    )


def play_scenario(
    world: BatchWorld,
    act: Act,
    scenario: Scenario,
    *,
    name: Cell,
    seed: int,
    episodes: int | None = None,
    max_steps: int | None = None,
) -> CellEpisodes:
    """The first `episodes` of `act` in `world`, drawn from `scenario` by `seed`.

    See `first_episodes`; `name` is what the episodes are called. Raises UnparsedLineError where a
    game's report of an episode can't be read, and RunFailedError where one has not ended within
    `longest_episode`.
    """
    world.set_scenario(scenario)
    rows, spec, buffers = world.num_envs, world.spec, step_buffers(world)
    count = rows if episodes is None else episodes
    world.reset(seed, buffers.observations)
    starts = {row: _seen_hash(buffers, row, rows) for row in range(rows)}
    played = CellEpisodes(
        name,
        won=np.zeros(count, np.bool_),
        seconds=np.zeros(count),
        returns=np.zeros(count),
        drawn=np.zeros(count, np.bool_),
        columns={column: np.zeros(count) for column in spec.episode_columns},
        measures=spec.measures,
    )
    limit = longest_episode(spec, max_steps)
    error = endless(name, count, limit)
    steps = first_episodes(world, act, buffers, episodes=count, limit=limit, error=error)
    for _, batch, places, ranks in steps:
        _note(batch, played, places, ranks, spec=spec)
        if count > rows and batch:
            begun = _ranks(batch.running_order[batch.row], spec).tolist()
            for row, rank in zip(batch.row.tolist(), begun, strict=True):
                starts[rank] = _seen_hash(buffers, row, rows)
    return replace(played, starts=tuple(starts[rank] for rank in range(count)))


def _ranks(order: Int64Array, spec: WorldSpec) -> Int64Array:
    """Ranks by beginning of the rows' episodes, from `order`, the ranks of their agents'."""
    return order // spec.agents


def _seen_hash(buffers: StepBuffers, row: int, rows: int) -> bytes:
    """A hash of what the agents of `row` see."""
    seen = observation_bytes(buffers.observations[row::rows])
    return hashlib.blake2b(seen, digest_size=8).digest()


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
    digest = hashlib.blake2b(observation_bytes(buffers.observations))
    for _ in range(TRACED_STEPS):
        world.step(act(buffers.observations, starts), buffers)
        starts = buffers.finished.copy()
        digest.update(observation_bytes(buffers.observations))
        digest.update(buffers.rewards.tobytes() + starts.tobytes())
    return digest.digest()


def _note(
    batch: EpisodeBatch,
    played: CellEpisodes,
    places: Int64Array,
    ranks: Int64Array,
    *,
    spec: WorldSpec,
) -> None:
    """Keep the results at `places` of `batch` as those of episodes `ranks`.

    Raises UnparsedLineError where a game's report of an episode can't be read.
    """
    if batch.unread:
        raise UnparsedLineError(batch.unread[0])
    if not len(places):
        return
    seconds = batch.columns.get(spec.time_column or "", batch.length * spec.decision_seconds)
    played.won[ranks] = batch.won[places]
    played.seconds[ranks] = seconds[places]
    played.returns[ranks] = batch.returns[places]
    if played.drawn is not None:
        played.drawn[ranks] = batch.drawn[places]
    for name, column in played.columns.items():
        known = batch.columns.get(name)  # a game may leave one out
        column[ranks] = np.nan if known is None else known[places]


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
    return_lower: float | None = field(default=None, kw_only=True)  # interval at 95 %
    return_upper: float | None = field(default=None, kw_only=True)
    draws: int = field(default=0, kw_only=True)  # which are no wins
    measures: Mapping[str, float | None] = field(default_factory=dict, kw_only=True)
    """What else the world measures, by name; None where no episode is of it."""


@dataclass(frozen=True)
class CellScore(Score):
    """How a player did in one cell."""

    target: str
    difficulty: int  # 0: the target has none


def score_cell(played: CellEpisodes) -> CellScore:
    """The score of one cell's episodes."""
    return CellScore(**vars(score_all([played])), **played.cell._asdict())


def score_all(played: Sequence[CellEpisodes]) -> Score:
    """The score of several cells' episodes together; with as many of each, all count alike."""
    won = np.concatenate([cell.won for cell in played])
    seconds = np.concatenate([cell.seconds for cell in played])[won]
    returns = np.concatenate([cell.returns for cell in played])
    rate = wilson(int(won.sum()), len(won))
    earned = mean_interval(returns.tolist()) if _is_known(returns) else None
    return Score(
        episodes=len(won),
        wins=int(won.sum()),
        win_rate=float(won.mean()),
        lower=rate.lower,
        upper=rate.upper,
        median_seconds_to_win=float(np.median(seconds)) if _is_known(seconds) else None,
        mean_return=earned and earned.mean,
        return_lower=earned and earned.lower,
        return_upper=earned and earned.upper,
        draws=sum(int(cell.drawn.sum()) for cell in played if cell.drawn is not None),
        measures=measured_by_name(played[0].measures, [cell.columns for cell in played]),
    )


def _is_known(values: Float64Array) -> bool:
    return len(values) > 0 and not bool(np.isnan(values).any())
