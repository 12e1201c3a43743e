"""What a world is: a batch of rows stepped together over NumPy arrays, and the spec of its shape.

Adapters, evaluation and replay are written once against `BatchWorld`. A world resets a finished row
within the same step.

Observations are float32 columns [N, D]. Where a world shows pictures they are records [N], with
`columns` [D] and each picture [H, W, C] in uint8 by its block's name, so that they are indexed,
copied and kept in one piece all the same. Units are things of one kind, each shown by the same
features in its own columns: a view, `observations[:, block.columns]` [N, U, F].

Arrays of agents are by seat: with A agents a row and B rows there are N = A x B seats, and agent
a of row r has seat a * B + r, so that what one policy acts for is a contiguous slice. With one
agent a seat is a row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import EpisodeBatch, Measure
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.metric_names import EVAL_RETURN
from aimbot_lab.foundation.settings import ParameterValue


@dataclass(frozen=True)
class UnitBlock:
    """U slots for units of one kind; a slot without a unit is 0 throughout."""

    kind: str
    features: tuple[str, ...]  # [F]
    columns: npt.NDArray[np.int64]  # [U, F] of the observation
    fixed: npt.NDArray[np.float32]  # [U, S] what is known of each slot beforehand
    seen: str | None = None  # the feature that is 1 where there is a unit; None: there always is
    place: tuple[str, str] | None = None  # the features m ahead and to the right; None: has none
    place_scale: float = 1.0  # m over which the place is scaled
    distance: str | None = None  # the feature that is a distance in m, 0 where nothing is met
    labels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The values of features that are labels and no quantities."""
    target: bool = False  # whether an agent may choose one of them to aim at

    @property
    def slots(self) -> int:
        """U, how many units there may be."""
        return int(self.columns.shape[0])

    def column_of(self, feature: str) -> npt.NDArray[np.int64]:
        """Columns [U] of `feature`."""
        found: npt.NDArray[np.int64] = self.columns[:, self.features.index(feature)]
        return found


def unit_faults(block: object, width: int) -> Iterator[str]:
    """What does not fit together in `block` of an observation of `width` columns, each a line."""
    if not isinstance(block, UnitBlock):
        yield "units: each must be a UnitBlock"
        return
    columns, fixed, where = np.asarray(block.columns), np.asarray(block.fixed), block.kind
    if columns.ndim != 2 or not columns.size or columns.shape[1] != len(block.features):
        yield f"units: {where}: columns must be [slots, {len(block.features)} features]"
    elif not ((columns >= 0) & (columns < width)).all():
        yield f"units: {where}: every column must be one of the observation's, 0 to {width - 1}"
    elif fixed.ndim != 2 or len(fixed) != len(columns):
        yield f"units: {where}: fixed must have a row for each of {len(columns)} slots"
    asked = (block.seen, *(block.place or ()), block.distance, *block.labels)
    for name in asked:
        if name is not None and name not in block.features:
            yield f"units: {where}: there is no feature {name!r}"
    if not block.place_scale > 0:
        yield f"units: {where}: place_scale must be above 0 (got {block.place_scale:g})"
    if block.target and (block.seen is None or block.place is None):
        yield f"units: {where}: a target needs a feature that says it is seen, and a place"


Float32Array = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
Int64Array = npt.NDArray[np.int64]
Picture = npt.NDArray[np.uint8]  # [height, width, 3] red, green, blue
Observations = npt.NDArray[Any]
"""Columns [N, D] in float32, or records [N] of `WorldSpec.observation_dtype`."""
COLUMNS = "columns"
"""The field of the float columns in records; no picture may be called so."""


BlockKind = Literal["vector", "rays", "units", "image"]


@dataclass(frozen=True)
class ObservationBlock:
    """A named part of an observation, which a network may treat in its own way.

    `vector` [F] and `rays` [R, F] are plain numbers, `units` [U, F] up to U things of one kind,
    followed by U columns that are 1 for those that are there: adjacent columns. `image` [H, W, C]
    is a picture in uint8, beside the columns.
    """

    name: str
    kind: BlockKind
    shape: tuple[int, ...]
    sensor: str | None = None
    """The sensor of its own that it is to trainers of ML-Agents, together with earlier observations
    of the same; None: it is part of the vector."""
    channels_first: bool = False
    """Whether a picture came with its channels first. Learners then have it so in memory, too,
    which decides the last bits of a convolution."""
    path: tuple[str | int, ...] = ()
    """Keys that lead to it in an environment's own observation; (): it is the whole."""
    own: "OwnForm | None" = None
    """How an environment of a user's own shows it; None: it is not from one."""

    @property
    def columns(self) -> int:
        """How many columns of the observation it takes; a picture takes none."""
        if self.kind == "image":
            return 0
        return prod(self.shape) + (self.shape[0] if self.kind == "units" else 0)


class OwnForm(NamedTuple):
    """How an environment's own observation holds what a block shows."""

    shape: tuple[int, ...]
    choices: tuple[tuple[int, int], ...] = ()  # least value and number of each; of numbers none
    shades: tuple[float, float] | None = None  # of a picture, where these are not 0 and 255


ABILITIES = ("snapshot", "masks", "draw", "replay", "paired", "parts", "goals")
"""What a world may be able to do: go on from a snapshot bit for bit, mask choices, draw a row, play
a recorded episode again, begin an episode from its seed alone, be some of the rows of a larger
one, and say by `goal_rewards` what would be gained for reaching another goal."""
GOALS = "achieved_goal", "desired_goal"
"""Blocks of an observation in a world of goals, beside others."""


SpaceKind = Literal["discrete", "multi_discrete", "multi_binary", "box", "dict", "tuple"]


@dataclass(frozen=True)
class EnvironmentActions:
    """How an environment takes actions in its own units, as plain data.

    A world's action has an index for each choice, of which 0 means the smallest value in `starts`,
    then a column for each number, which is cut at `low` and `high`; whole numbers are rounded. An
    action has `shape` and NumPy's `dtype`. One of several `parts` is a tuple of them, or a dict
    under `keys`: the choices of all parts come first, then all numbers.
    """

    kind: SpaceKind
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    starts: tuple[int, ...] = ()  # smallest value of each branch
    low: tuple[float, ...] = ()  # [C] of the continuous columns, infinite where there is no bound
    high: tuple[float, ...] = ()  # [C]
    parts: tuple["EnvironmentActions", ...] = ()
    keys: tuple[str | int, ...] = ()

    @classmethod
    def joined(
        cls, parts: "Sequence[EnvironmentActions]", keys: Sequence[str | int] | None
    ) -> "EnvironmentActions":
        """A dict of `parts` under their `keys`; without keys a tuple of them."""
        every: dict[str, Any] = {
            name: tuple(one for part in parts for one in getattr(part, name))
            for name in ("starts", "low", "high")
        }
        kind: SpaceKind = "tuple" if keys is None else "dict"
        return cls(kind, **every, parts=tuple(parts), keys=tuple(keys or ()))

    @cached_property
    def whole(self) -> BoolArray:
        """Which continuous columns [C] are whole numbers."""
        if self.parts:
            return np.concatenate([part.whole for part in self.parts])
        return np.full(len(self.low), np.dtype(self.dtype).kind in "iub")

    @cached_property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """(low, high) of each continuous column in single precision, none within the exact ones."""
        exact = np.array([self.low, self.high], np.float64)
        near = exact.astype(np.float32)
        beyond = np.nextafter(near, np.array([[-np.inf], [np.inf]], np.float32))
        inside = np.stack([near[0] > exact[0], near[1] < exact[1]])
        low, high = np.where(inside, beyond, near).tolist()
        return tuple(zip(low, high, strict=True))

    @cached_property
    def _number(self) -> type[np.generic]:
        return np.dtype(self.dtype).type

    @cached_property
    def _exact(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        kind = np.dtype(self.dtype)
        return np.array(self.low, kind), np.array(self.high, kind)

    @cached_property
    def bounded(self) -> BoolArray:
        """Which continuous columns [C] have two bounds."""
        low, high = np.isfinite(np.array([self.low, self.high], np.float64))
        both: BoolArray = low & high
        return both

    def flat(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """World actions [B, A] in the environment's units and type [B, A], within its bounds."""
        count, kind = len(self.starts), np.dtype(self.dtype)
        if self.parts:
            flat = [part.flat(given) for part, given in self.by_part(actions)]
            counts = [len(part.starts) for part in self.parts]
            pairs = [*zip(flat, counts, strict=True)]
            choices, numbers = [one[:, :k] for one, k in pairs], [one[:, k:] for one, k in pairs]
            return np.concatenate([*choices, *numbers], axis=1)
        if not self.low:
            branches = actions[:, :count].astype(np.int64) + np.array(self.starts, np.int64)
            return branches.astype(kind)
        values, (low, high) = actions[:, count:], self._exact
        with np.errstate(invalid="ignore", over="ignore"):  # where a bound is taken instead
            inner = (np.rint(values) if kind.kind in "iub" else values).astype(kind)
        return np.where(values <= low, low, np.where(values >= high, high, inner))

    def of(self, actions: npt.NDArray[Any]) -> npt.NDArray[Any] | list[Any]:
        """World actions [B, A] as the environment takes them: [B, *shape], or a list of B."""
        if self.kind not in ("dict", "tuple"):
            return self.flat(actions).reshape(len(actions), *self.shape)
        columns = [part.each(given) for part, given in self.by_part(actions)]
        rows = zip(*columns, strict=True) if columns else ((),) * len(actions)
        if self.kind == "tuple":
            return list(rows)
        return [dict(zip(self.keys, row, strict=True)) for row in rows]

    def each(self, actions: npt.NDArray[Any]) -> list[Any]:
        """World actions [B, A] one by one; a single choice as NumPy's number, as spaces draw it."""
        if self.kind == "discrete":
            if len(actions) == 1:  # which is faster without NumPy
                return [self._number(int(actions[0, 0]) + self.starts[0])]
            choices = actions[:, 0].astype(np.int64)
            if self.starts[0]:
                choices += self.starts[0]
            return list(choices if self.dtype == "int64" else choices.astype(self.dtype))
        given = self.of(actions)
        return given if isinstance(given, list) else [one[...] for one in given]

    def by_part(
        self, actions: npt.NDArray[Any]
    ) -> Iterator[tuple["EnvironmentActions", npt.NDArray[Any]]]:
        """Each part with its columns of world `actions` [B, A]."""
        choice, number = 0, len(self.starts)
        for part in self.parts:
            choices, numbers = choice + len(part.starts), number + len(part.low)
            columns = actions[:, choice:choices], actions[:, number:numbers]
            yield part, np.concatenate(columns, axis=1)
            choice, number = choices, numbers


class StateTable(NamedTuple):
    """How the state's number follows from an observation [D] of whole numbers.

    The chosen columns, each times its weight, sum to a place; the same with `rest_weights` sum to
    what is added to the first state of that place. One world has places alone, another has several
    states in each. Plain data, so that a kernel can work the number out.
    """

    size: int  # states
    columns: Int64Array  # [K] of an observation
    place_weights: Int64Array  # [K]
    rest_weights: Int64Array  # [K]
    first_states: Int64Array  # [P] of each place; -1 where no agent can be


def table_of_one_hot(size: int) -> StateTable:
    """The table of a world that shows its state as `size` columns, of which one is 1."""
    return StateTable(
        size=size,
        columns=np.arange(size),
        place_weights=np.zeros(size, np.int64),
        rest_weights=np.arange(size),
        first_states=np.zeros(1, np.int64),
    )


@dataclass(frozen=True)
class WorldSpec:
    """The fixed shape of a world: what it observes, what it accepts, what it rewards."""

    observation_names: tuple[str, ...]  # [D]
    observation_low: Float32Array  # [D] declared lower bounds, in the world's units
    observation_high: Float32Array  # [D] declared upper bounds
    branches: tuple[int, ...]  # size of each discrete action branch
    continuous: int  # number of continuous action columns, after the branches
    continuous_limit: float  # what aim bins are shares of; a bound where a column has no other
    targets: Mapping[str, int]  # target name -> its code in episodes and observations
    difficulties: Mapping[str, int]  # target name -> number of difficulties (0: has none)
    reward_terms: tuple[str, ...]  # [T] names of the reward's parts
    parameters: tuple[str, ...]  # names that a scenario may set
    turn_per_unit: float | None = None  # rad to the right by a unit of the first continuous column
    action_names: tuple[str, ...] = ()  # of the branches, then of the continuous columns
    decision_seconds: float = 1.0  # of the world's time, between two steps
    time_unit: str = "s"  # of that time; "steps" where the world has no clock
    max_steps: int | None = None  # of the longest episode; None: not known
    abilities: frozenset[str] = frozenset()  # of ABILITIES
    agents: int = 1  # agents a row
    blocks: tuple[ObservationBlock, ...] = ()  # of all D columns in order, pictures between them
    units: tuple[UnitBlock, ...] = ()  # kinds of units whose features are among the columns
    episode_columns: tuple[str, ...] = ()  # names of what the world counts of an episode itself
    has_draws: bool = False  # whether an episode may end in a draw
    has_wins: bool = True  # whether an episode may be won; else every one counts as lost
    time_column: str | None = None  # which of these is its time; None: decisions tell it

    continuous_bounds: tuple[tuple[float, float], ...] = ()
    """(low, high) of each continuous column, which the world clips to, infinite where there is
    none; (): all go from -`continuous_limit` to `continuous_limit`."""

    measures: tuple[Measure, ...] = ()  # what is shown and tracked of these; (): each one's mean
    result_columns: tuple[str, ...] | None = None
    """Those of `episode_columns` that stand in result lines, in order, before the return; None: all
    of them, after it."""
    states: StateTable | None = None  # the number of the state that an observation shows; None: no
    environment_actions: EnvironmentActions | None = None
    """How environments take actions, where the world is a batch of those that others wrote and that
    take other numbers than its columns; None: as the columns say."""

    @cached_property
    def action_bounds(self) -> tuple[Float32Array, Float32Array]:
        """Bounds of the continuous columns, as declared."""
        limit = self.continuous_limit
        pairs = self.continuous_bounds or ((-limit, limit),) * self.continuous
        low, high = np.array(pairs, np.float32).reshape(self.continuous, 2).T
        return low, high

    @cached_property
    def action_ranges(self) -> tuple[Float32Array, Float32Array]:
        """Finite ranges of the continuous columns, to draw or choose from.

        A column without bounds goes from -`continuous_limit` to `continuous_limit`, and one with a
        single bound as far from there.
        """
        limit, (low, high) = np.float32(self.continuous_limit), self.action_bounds
        from_above = np.where(np.isfinite(high), high - 2 * limit, -limit)
        from_below = np.where(np.isfinite(low), low + 2 * limit, limit)
        first = np.where(np.isfinite(low), low, from_above).astype(np.float32)
        return first, np.where(np.isfinite(high), high, from_below).astype(np.float32)

    @cached_property
    def pictures(self) -> tuple[ObservationBlock, ...]:
        """The blocks that are pictures."""
        return tuple(block for block in self.blocks if block.kind == "image")

    @cached_property
    def observation_dtype(self) -> np.dtype[Any]:
        """What a seat is shown: D columns, or a record of these and of each picture."""
        columns = np.dtype((np.float32, (len(self.observation_names),)))
        shown = [(block.name, np.uint8, block.shape) for block in self.pictures]
        return np.dtype([(COLUMNS, columns), *shown], align=True) if shown else columns

    @property
    def observation_blocks(self) -> tuple[ObservationBlock, ...]:
        """`blocks`, or the whole observation as a vector."""
        whole = ObservationBlock("observation", "vector", (len(self.observation_names),))
        return self.blocks or (whole,)

    @property
    def columns_by_block(self) -> Iterator[tuple[ObservationBlock, slice]]:
        """Each block that is no picture, with its columns of an observation."""
        first = 0
        for block in self.observation_blocks:
            if block.kind != "image":
                yield block, slice(first, first := first + block.columns)

    def can(self, ability: str) -> bool:
        """Whether the world has one of `ABILITIES`."""
        return ability in self.abilities


_RETURN = Measure(
    "return", "total_reward", "return [95 %]", interval=True, decimals=2, evaluation=EVAL_RETURN
)
WITHOUT_WINS: Mapping[str, Any] = MappingProxyType(
    {"has_wins": False, "episode_columns": ("total_reward",), "measures": (_RETURN,)}
)
"""Fields of the spec of a world that says of no episode whether it was won."""


@dataclass(frozen=True)
class Scenario:
    """What the next episodes are drawn from; running episodes are left alone.

    `targets` maps a target's name to its weight, `difficulty` a target's name to the weights
    of its difficulties, `parameters` an environment parameter to its value or sampler. Weights
    need not sum to 1.
    """

    targets: Mapping[str, float]
    difficulty: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    parameters: Mapping[str, ParameterValue] = field(default_factory=dict)


class StepBuffers(NamedTuple):
    """Arrays that a world writes one step into, by seat; the caller owns them.

    All seats of a row finish together.
    """

    observations: Observations  # [N, D] or [N], after the step (after a reset where finished)
    rewards: Float32Array  # [N]
    finished: BoolArray  # [N] the episode ended in this step
    truncated: BoolArray  # [N] and was cut off, not ended by its rules
    final_observations: Observations  # the last one of the episode; written only where finished


def new_step_buffers(seats: int, observation: int | np.dtype[Any]) -> StepBuffers:
    """Fresh arrays for one step of `seats` seats.

    An `observation` is a number of columns, or what `WorldSpec.observation_dtype` says.
    """
    kind = np.dtype((np.float32, (observation,))) if isinstance(observation, int) else observation
    return StepBuffers(
        observations=np.zeros(seats, kind),
        rewards=np.zeros(seats, np.float32),
        finished=np.zeros(seats, np.bool_),
        truncated=np.zeros(seats, np.bool_),
        final_observations=np.zeros(seats, kind),
    )


def step_buffers(world: "BatchWorld") -> StepBuffers:
    """Fresh arrays for one step of `world`."""
    return new_step_buffers(seats_of(world), world.spec.observation_dtype)


def new_observations(world: "BatchWorld") -> Observations:
    """Zeros of the shape and type in which `world` writes observations."""
    return np.zeros(seats_of(world), world.spec.observation_dtype)


def columns_of(observations: Observations) -> Float32Array:
    """The float columns [N, D] of `observations`."""
    columns: Float32Array = observations
    return columns if observations.dtype.names is None else observations[COLUMNS]


def as_observations(given: Any, spec: WorldSpec) -> Observations:
    """`given` as a world of `spec` shows it: so already, or its blocks [N, ...] by name.

    Of an environment of a user's own also a batch of what it shows itself: an array of N
    observations, or a Dict or Tuple of arrays [N, ...]. A picture that is all there is may come
    alone. Raises ConfigurationError for another shape.
    """
    if isinstance(given, np.ndarray) and given.dtype.names is not None:
        return given
    if not spec.pictures and not isinstance(given, Mapping | tuple):
        plain: Observations = np.asarray(given)
        if plain.ndim == 2 and plain.shape[1] == len(spec.observation_names):
            return plain
    parts = [_part_of(given, block) for block in spec.observation_blocks]
    if len({*map(len, parts)}) != 1:
        raise ConfigurationError("observations: their entries are not equally many")
    found, first = np.zeros(len(parts[0]), spec.observation_dtype), 0
    for block, part in zip(spec.observation_blocks, parts, strict=True):
        if block.kind == "image":
            found[block.name] = part
        else:
            columns_of(found)[:, first : first + block.columns] = part
            first += block.columns
    return found


def _part_of(given: Any, block: ObservationBlock) -> npt.NDArray[Any]:
    """What a batch holds of `block`: [N, its columns], or [N, H, W, C] of a picture."""
    try:
        if isinstance(given, Mapping) and block.name in given:
            given = given[block.name]
        else:
            for key in block.path:
                given = given[key]
        found = np.asarray(given)
    except (KeyError, IndexError, TypeError, ValueError):
        raise ConfigurationError(f"observations: there is no {block.name}") from None
    shape, own = (block.shape if block.kind == "image" else (block.columns,)), block.own
    rows = len(found) if found.ndim else 0
    if own is not None and found.shape == (rows, *own.shape):
        if own.choices:
            flat = found.reshape(rows, len(own.choices))
            pairs = zip(flat.T, own.choices, strict=True)
            return np.concatenate(
                [part[:, None] == np.arange(least, least + size) for part, (least, size) in pairs],
                axis=1,
            )
        if own.shades is not None:
            low, high = own.shades
            found = np.rint(((found - np.float64(low)) * (255.0 / (high - low))).clip(0.0, 255.0))
        return (np.moveaxis(found, 1, 3) if block.channels_first else found).reshape(rows, *shape)
    if found.shape[1:] != shape and (block.kind == "image" or found.size != rows * block.columns):
        wanted = ", ".join(map(str, ("N", *(shape if own is None else own.shape))))
        raise ConfigurationError(
            f"observations: {block.name} must be [{wanted}] (got {list(found.shape)})"
        )
    return found.reshape(rows, *shape)


def observation_bytes(observations: Observations) -> bytes:
    """All that `observations` hold, to be hashed; without the gaps between fields of records."""
    names = observations.dtype.names or ()
    columns = columns_of(observations).astype("<f4", copy=False)
    return b"".join([columns.tobytes(), *(observations[name].tobytes() for name in names[1:])])


def seats_of(world: "BatchWorld") -> int:
    """How many agents there are in all rows of `world` together."""
    return world.spec.agents * world.num_envs


def new_notices(world: "BatchWorld") -> Sequence[str]:
    """What a person should know of `world` since this was last asked; most worlds say nothing.

    A world that has something to say has a method `take_notices`.
    """
    take = getattr(world, "take_notices", None)
    return () if take is None else take()


def dropped_episodes(world: "BatchWorld") -> int | None:
    """How many episodes were lost with programs that play them; None: `world` has no programs."""
    dropped: int | None = getattr(world, "dropped_episodes", None)
    return dropped


def logged_errors(world: "BatchWorld") -> int | None:
    """How many errors programs that play `world` have logged; None: `world` has no programs."""
    logged: int | None = getattr(world, "logged_errors", None)
    return logged


def save_commands(world: "BatchWorld") -> int:
    """How often programs that play `world` have asked for the agent to be saved, so far."""
    commands: int = getattr(world, "save_commands", 0)
    return commands


def close_world(world: "BatchWorld") -> None:
    """End what `world` holds beside memory: programs, windows, threads; most hold nothing.

    A world that does has a method `close`, which may be called twice.
    """
    close = getattr(world, "close", None)
    if close is not None:
        close()


@contextmanager
def closed_on_failure(close: Callable[[], None]) -> Iterator[None]:
    """Call `close` where the block ends by an exception, which is then the one that is raised.

    Whatever `close`, which may be a user's code, raises itself.
    """
    try:
        yield
    except BaseException:
        with suppress(Exception, SystemExit):
            close()
        raise


@contextmanager
def closing(world: "BatchWorld") -> "Iterator[BatchWorld]":
    """`world`, which is closed when the block ends."""
    with closed_on_failure(partial(close_world, world)):
        yield world
    close_world(world)


NEW_EPISODES = (
    "its environments can't be restored in the middle of an episode: new episodes begin, and the "
    "run differs from one that was not interrupted"
)


class RestartingWorld(Protocol):
    """What a world without the ability `snapshot` has beside what all worlds have."""

    def resume_episodes(self, observations: Observations) -> BoolArray:
        """Go on with the episodes of the snapshot that was restored, or begin others.

        Writes `observations` [N]; [N] True where an episode began. A notice reports these.
        """


class BatchWorld(Protocol):
    """A batch of `num_envs` independent rows that are stepped together."""

    spec: WorldSpec
    num_envs: int
    keep_endings: bool
    """Whether steps keep how each row's last episode ended, for `draw`; False at first."""

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set, and then nothing is played."""

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Higher than every number before it.
        """

    def reset(self, seed: int, observations: Observations) -> None:
        """Start first episodes in all rows from `seed`; `observations` [N] are overwritten."""

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step.

        `actions` [N, branches + continuous]: branch indices as whole numbers, then the
        continuous columns. Raises ActionError, leaving the world as it was, where an action
        is not finite or a branch index does not exist.
        """

    def action_masks(self, masks: BoolArray) -> None:
        """Write `masks` [N, sum of branches], True where a branch index makes sense now.

        No branch is ever masked as a whole.
        """

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, the scenario included, by name."""

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Go on from `snapshot` of a world with the same settings, bit for bit.

        Without the ability `snapshot` only counters and the scenario are restored, and
        `RestartingWorld.resume_episodes` is due before the next step.
        """

    def draw(self, row: int, *, ending: bool = False) -> Picture:
        """Row `row` as a person would look at it; with `ending` as its last episode ended.

        Endings are kept where `keep_endings` was set before the step.
        """
