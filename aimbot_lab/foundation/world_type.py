"""What the layers above know of a kind of world before one is made: its settings and its rules.

A world's package makes one `WorldType`; `worlds.registry` finds them by name.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from aimbot_lab.foundation.display import TerminalPlay, WorldReplays, WorldScenes
from aimbot_lab.foundation.named_code import NamedCode, is_allowed, require_allowed
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Int64Array,
    Observations,
    Scenario,
    StepBuffers,
    WorldSpec,
    step_buffers,
)
from aimbot_lab.foundation.yaml_files import FileFormat

if TYPE_CHECKING:
    from PIL.Image import Image

Act = Callable[[Float32Array, BoolArray], Float32Array]
"""Observations [N, D], and where an episode begins with them [N], to world actions [N, A]."""
MakePlayer = Callable[[BatchWorld, int], Act]  # a world and a seed to a player in that world

StepParts = Mapping[str, Callable[[Float32Array], None]]


class WorldSettings(Protocol):
    """What the settings of every world have: a frozen pydantic dataclass."""

    @property
    def world(self) -> str:
        """The world's name in the registry."""

    @property
    def num_envs(self) -> int:
        """Rows that are stepped together."""


@dataclass(frozen=True)
class Bounds:
    """Which values a parameter takes."""

    low: float
    high: float
    whole: bool

    def __str__(self) -> str:
        """What a value must do, for a person."""
        return f"lie between {self.low:g} and {self.high:g}"


class LibraryObservations(NamedTuple):
    """What scripts of stable-baselines3 are shown of an environment."""

    space: Any  # of Gymnasium
    drawn: Callable[[int, int], tuple[Any, Observations]]
    """A number of rows and a seed to that many elements of it, and what a world shows of each."""


class FileTable(NamedTuple):
    """What some files hold, as a table for a person and as plain data, in the same order."""

    head: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]
    documents: tuple[dict[str, Any], ...]


class KeptFiles(NamedTuple):
    """Files that the settings of a world name, and that a run keeps as one text.

    `listed`, `count` and `draw` take files and folders, and mean the world's own files where they
    are given none. They raise ConfigurationError with every fault of every file.
    """

    key: str  # of the settings, whose value is a list of paths, or a path where `single`
    form: FileFormat
    read: Callable[[Sequence[Path | str]], str]  # files, folders and kept texts as one text
    listed: Callable[[Sequence[Path]], FileTable]
    count: Callable[[Sequence[Path]], int]  # how many they hold, each fit to use beside the world's
    draw: Callable[[Sequence[Path]], "Image"]  # all that they hold on one sheet
    single: bool = False
    is_own: Callable[[str], bool] = bool  # whether an entry is a user's file, not a shipped one
    make: Callable[[int, Mapping[str, float]], str] | None = None
    """A seed and settings to the text of a generated file."""


class Content(NamedTuple):
    """What settings name and do not hold, such as a map."""

    noun: str  # what it is called: "map"
    name: str
    sha256: str  # of what it holds


class Opponents(Protocol):
    """Players against the learner, on the other side of B matches.

    A world of two-sided matches seats a player where a match begins, has it act in every step of
    that match, and says how it ended.

    A match is of a kind: either one that these play, such as a past self, or one that the world
    plays itself, which they also see begin and end, so that they can count its result.
    """

    @property
    def needs_masks(self) -> bool:
        """Whether `act` reads the masks."""

    def begin(self, matches: int) -> None:
        """There are `matches` matches, and no player sits in any yet."""

    def seat(self, matches: Int64Array, kinds: Sequence[str]) -> None:
        """Choose who plays each of `matches` [R], which begin now and are of `kinds` [R]."""

    def act(self, observations: Float32Array, masks: BoolArray, actions: Float32Array) -> None:
        """Write the `actions` [B, A] of the matches that these play, and of no other.

        They see `observations` [B, D] and the world's `masks` [B, choices] of these seats.
        """

    def ended(self, matches: Int64Array, scores: np.ndarray) -> None:
        """These `matches` [R] ended, with `scores` [R] of the learner: 1 won, 0.5 drawn, 0 lost."""

    def state(self) -> dict[str, Any]:
        """Everything that the future depends on."""

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""


class WorldType(ABC):
    """A kind of world, by the name that `env.world` gives it."""

    name: str
    settings: type[Any]
    files: KeptFiles | None = None
    in_scenes: bool = False
    """Whether its agents act in scenes of Unity, which agents that learned there go back into."""
    benched: bool = False
    """Whether benchmarks of the simulator measure it, with its default settings."""
    bounds_are_ranges: bool = True
    """Whether what is seen fills the bounds that the spec declares, so that they scale it well."""
    copies: bool = False
    """Whether a row is a copy of a user's environment, of which one alone can be trained in."""
    shape_keys: tuple[str, ...] = ()
    """Settings that decide what is observed and which actions there are."""
    bounding_keys: tuple[str, ...] = ()
    """Settings that parameters are checked against."""
    gymnasium_ids: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    """Ids such as `package/Name-v0` under which Gymnasium knows it, each with the targets that its
    episodes mix, by weight."""

    self_play_targets: tuple[str, ...] = ()
    """Targets in which a past self of the learner sits opposite; (): there is no self-play."""
    terminal: TerminalPlay | None = None
    """How a person plays it in a terminal."""
    replays: WorldReplays | None = None
    """How recorded episodes are played and shown, for worlds with the ability `replay`."""
    scenes: WorldScenes | None = None
    """How pages show its rows, and how a person edits them."""

    @abstractmethod
    def spec(self, settings: Any) -> WorldSpec:
        """The shape of a world with `settings`, without making one."""

    @abstractmethod
    def make(self, settings: Any) -> BatchWorld:
        """A world with `settings`, not yet reset."""

    @abstractmethod
    def targets(self, settings: Any | None) -> Mapping[str, int]:
        """Targets that a lesson may mix, each with its number of difficulties (0: has none).

        Without settings those of the world's defaults.
        """

    def default_target(self) -> str:
        """The target that is meant where none is named."""
        return next(iter(self.targets(None)))

    def hardest_target(self) -> str:
        """The target on which benchmarks compare learners."""
        return self.default_target()

    @abstractmethod
    def baselines(self, settings: Any) -> Mapping[str, MakePlayer]:
        """Scripted players to compare agents with."""

    def code(self, settings: Any) -> NamedCode | None:
        """The code that `settings` name, which making the world runs; None: they name none.

        It is asked of worlds of this package. One that a package brings is installed code itself.
        """
        del settings
        return None

    def keep_spec(self, settings: Any, spec: WorldSpec) -> None:
        """Take `spec` for the shape of a world that can't be asked here, having been kept."""
        del settings, spec

    def knows_spec(self, settings: Any) -> bool:
        """Whether the shape of the world with `settings` is known without forbidden code."""
        del settings
        return True

    def observation_size(self, settings: Any) -> int:
        """Numbers of an observation."""
        return len(self.spec(settings).observation_names)

    def content(self, settings: Any) -> Content | None:
        """What `settings` name and do not hold, without which nothing repeats; None: nothing."""
        del settings
        return None

    def library_observations(self, settings: Any, spec: WorldSpec) -> LibraryObservations | None:
        """How its environments, of `spec`, show themselves to others; None: as that says."""
        del settings, spec
        return None

    def evaluated(self, settings: Any) -> Any:
        """`settings` of the world in which agents that learned under `settings` are judged.

        Others where a world can hold back what no training has met, such as maps.
        """
        return settings

    def filmed(self, settings: Any) -> Any:
        """`settings` of the world in which episodes of agents are filmed: others to be drawn by."""
        return settings

    def rows(self, settings: Any) -> int:
        """Rows that are stepped together in a world with `settings`."""
        rows: int = settings.num_envs
        return rows

    def single_settings(self, settings: Any) -> Any:
        """`settings` with one learner, for a world that has `self_play_targets`."""
        return settings

    def match_settings(self, settings: Any) -> Any:
        """`settings` with every seat played from outside, for such a world."""
        return settings

    def self_play_settings(self, settings: Any, share: float) -> Any:
        """Settings for `make_opposed` in which this `share` of the matches is mirrored.

        In a mirrored match the learner has both seats. Its targets hold `self_play_targets`.
        """
        del settings, share
        raise NotImplementedError

    def make_opposed(self, settings: Any, opponents: Opponents) -> BatchWorld:
        """A world with `settings` of self-play, whose past selves `opponents` play."""
        del settings, opponents
        raise NotImplementedError

    def parameters(self, settings: Any | None) -> Mapping[str, Bounds] | None:
        """Parameters that a lesson may set; None: any, and the world itself judges them."""
        del settings
        return {}

    def parameter_texts(self) -> Mapping[str, str]:
        """What each parameter is, for a person; those that are not known beforehand left out."""
        return {}

    def parameter_fault(self, name: str, value: ParameterValue, settings: Any | None) -> str | None:
        """What is wrong with giving parameter `name` that value; None: nothing is.

        Without settings only what holds in every world of this kind is checked.
        """
        del name, value, settings
        return None

    def together_fault(self, given: Mapping[str, ParameterValue], settings: Any) -> str | None:
        """What is wrong with these parameters together; None: nothing is."""
        del given, settings
        return None

    def drawing_fault(self, settings: Any, target: str, weights: Sequence[float]) -> str | None:
        """Why no lesson can draw `target` by these weights of its difficulties; None: one can.

        Where `settings` name files of a user's own, they hold the text of these.
        """
        del settings, target, weights
        return None

    def reward_bound(self, settings: Any) -> float:
        """The largest reward weight, so that learners can check what 32 bits hold; 0: unknown."""
        del settings
        return 0.0

    def states_fault(self, settings: Any) -> str | None:
        """What `settings` lack for `WorldSpec.states`, as what a table needs; None: nothing."""
        if self.spec(settings).states is not None:
            return None
        return f"a world whose states are numbered ({self.name} has none)"

    def warm_up(self, settings: Any, scenario: Scenario) -> None:
        """Compile, or read from a cache, what a first step of `scenario` would have to."""
        del settings, scenario

    def spread_episodes(
        self, world: Any, scenario: Scenario, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Begin episodes of `scenario` in all rows, where possible so that they end at all times.

        Benchmarks measure from there. `play` takes a number of steps of random play.
        """
        del play
        world.set_scenario(scenario)
        world.reset(seed, step_buffers(world).observations)

    def step_parts(self, world: Any, scenario: Scenario, buffers: StepBuffers) -> StepParts:
        """The parts of a step of `scenario`, by name, for benchmarks; "reset" runs on every row.

        Each runs on all rows of `world` by itself, given actions [B, A]. Empty: a step can't be
        taken apart.
        """
        del world, scenario, buffers
        return {}


class AskedType(WorldType):
    """A kind of world that has to be made before its shape is known: code that its settings name.

    Where that code may not run, its shape is the one that was kept when it last ran.
    """

    bounds_are_ranges = False

    def __init__(self) -> None:
        self._kept: dict[str, WorldSpec] = {}

    @abstractmethod
    def asked_spec(self, settings: Any) -> WorldSpec:
        """The shape of the world with `settings`, which is made for it."""

    @abstractmethod
    def made(self, settings: Any) -> BatchWorld:
        """The world with `settings`, not yet reset."""

    @abstractmethod
    def shape_of(self, settings: Any) -> Any:
        """What of `settings` decides its shape."""

    def spec(self, settings: Any) -> WorldSpec:
        """The shape of the world with `settings`.

        Raises UntrustedCodeError where nothing was kept and its code may not run here, and
        ConfigurationError where it can't be made.
        """
        kept = self._kept.get(repr(self.shape_of(settings)))
        code = self.code(settings)
        if kept is not None and not is_allowed(code):
            return kept
        require_allowed(code)
        return self.asked_spec(settings)

    def make(self, settings: Any) -> BatchWorld:
        """The world with `settings`, not yet reset; raises as `spec` does."""
        require_allowed(self.code(settings))
        return self.made(settings)

    def baselines(self, settings: Any) -> Mapping[str, MakePlayer]:
        """A random player."""
        del settings
        return {"random": lambda world, seed: RandomAgent(world.spec, seed, masked=world)}

    def parameters(self, settings: Any | None) -> Mapping[str, Bounds] | None:
        """Any: what is played has them by name."""
        del settings
        return None

    def keep_spec(self, settings: Any, spec: WorldSpec) -> None:
        """Take `spec` for the shape of the world with `settings` where its code may not run."""
        self._kept[repr(self.shape_of(settings))] = spec

    def knows_spec(self, settings: Any) -> bool:
        """Whether `spec` runs nothing that this process may not run."""
        return is_allowed(self.code(settings)) or repr(self.shape_of(settings)) in self._kept


class RandomAgent:
    """A player that acts at random: the baseline of every world.

    Draws every branch and continuous column uniformly; the same actions for the same seed. With
    `masked`, a world, only choices that make sense in its present state are drawn.
    """

    def __init__(self, spec: WorldSpec, seed: int, *, masked: BatchWorld | None = None) -> None:
        self._masked = masked if spec.can("masks") else None
        self._branches = spec.branches
        limit, self._columns = spec.continuous_limit, spec.continuous
        self._low: Any
        self._high: Any
        self._low, self._high = spec.action_ranges if spec.continuous_bounds else (-limit, limit)
        self._random = np.random.default_rng(seed)

    def __call__(
        self, observations: Float32Array, _starts: BoolArray | None = None
    ) -> Float32Array:
        """The next actions [N, A]; of `observations` [N, D] only the number of rows counts."""
        rows = len(observations)
        discrete = self._random.integers(0, self._branches, (rows, len(self._branches)))
        if self._masked is not None:
            discrete = self._allowed(self._masked, rows)
        continuous = self._random.uniform(self._low, self._high, (rows, self._columns))
        return np.column_stack([discrete, continuous]).astype(np.float32)

    def _allowed(self, world: BatchWorld, rows: int) -> Int64Array:
        """Choices [N, branches] that the masks of `world` allow."""
        masks = np.ones((rows, sum(self._branches)), np.bool_)
        world.action_masks(masks)
        parts = np.split(masks, np.cumsum(self._branches)[:-1], axis=1)
        order = [np.where(part, self._random.random(part.shape), -1.0) for part in parts]
        return np.column_stack([one.argmax(axis=1) for one in order])
