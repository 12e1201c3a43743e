"""What a kind of world with the ability `replay` says of recorded episodes.

An episode is recorded as its row when it began and the actions from there on. `replay` writes,
plays and shows it; what only the world knows stands here, with what holds for most of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.episodes import DRAW, WIN, EpisodeBatch
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    Picture,
    StepBuffers,
    WorldSpec,
)

RowArrays = Mapping[str, np.ndarray]  # by name: all that the running episode of a row depends on
MakeWorld = Callable[[Any], BatchWorld]  # settings to a world with them, not yet reset
Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Scene:
    """A row at one moment of an episode; of several agents, what concerns the first."""

    terms: npt.NDArray[np.float64]  # [T] sum of each reward term so far
    seconds: float  # of the world's time since the episode began
    time_limit: float | None  # seconds of the longest episode; None: not known
    state: Any  # what the world draws it from; read it before the next decision
    goal: str = ""  # what is to be done, and how much of it is left
    events: Mapping[str, int] = field(
        default_factory=dict
    )  # how often in the last decision, by name
    trajectory: tuple[np.ndarray, ...] = ()  # what a trajectory's hash covers of the row


class ArrowKeys(NamedTuple):
    """Four arrows, pressed or not."""

    up: bool
    down: bool
    left: bool
    right: bool


class Gauge(NamedTuple):
    """A value between two bounds."""

    name: str
    share: float  # -1 to 1, of the bounds


class Indicator(NamedTuple):
    """Something that is done or not."""

    name: str
    on: bool


class Choice(NamedTuple):
    """One of several actions, by its number."""

    name: str
    number: int | None  # None: before the first decision


Control = ArrowKeys | Gauge | Indicator | Choice


class ReplayWorld(BatchWorld, Protocol):
    """What a world with the ability `replay` has beside what all worlds have."""

    settings: Any


class ReplayRow(Protocol):
    """A world of one row in which one episode is played."""

    @property
    def world(self) -> BatchWorld:
        """The world."""

    def beginning(self) -> Scene:
        """The row before the first decision."""

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The row after world `actions` [agents, A], at its end where the episode ended, and what
        ended.
        """


class SceneRenderer(Protocol):
    """Draws the scenes of one episode, in their order."""

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """`scene`, [size, size, 3]; with `coarse` so that few pixels still show what matters."""


class FilmPainter(Protocol):
    """Paints whole frames of one episode, in their order, panels included."""

    def shape(self, size: int) -> tuple[int, int]:
        """Height and width of a frame in which the picture from above has `size` pixels a side."""

    def frame(self, scene: Scene, *, size: int, ended: bool) -> Picture:
        """`scene`, of that shape; `ended`: it is how the episode ended."""


class WorldReplays(ABC):
    """What a kind of world knows of recorded episodes."""

    result_terms: Mapping[int, str] = MappingProxyType({})
    """By outcome the reward term, if any, that only an episode's result gives."""

    def frame_seconds(self, spec: WorldSpec) -> float:
        """Of a film to a decision."""
        return spec.decision_seconds

    def colours(self) -> Sequence[Colour]:
        """Of its pictures, those that must be met where a format has few."""
        return ()

    @abstractmethod
    def row_start(self, world: Any, row: int) -> RowArrays | None:
        """A copy of what the episode of `row` depends on; None where it has begun before."""

    def row_settings(self, settings: Any) -> Any:
        """`settings` of the world of one row in which an episode is played again."""
        return replace(settings, num_envs=1)

    def row_actions(self, world: Any, row: int, actions: Float32Array) -> Float32Array:
        """What all agents of `row` did in its last step, [agents, A] of `row_settings`.

        `actions` [N, A] is what `world` was stepped with.
        """
        own: Float32Array = actions[np.arange(world.spec.agents) * world.num_envs + row]
        return own

    def kept_row(self, world: Any) -> int:
        """The row of which a training keeps episodes."""
        del world
        return 0

    def start_types(self, settings: Any, make: MakeWorld) -> Mapping[str, np.dtype[Any]]:
        """The types of the arrays of a row that begins, by name."""
        return {name: array.dtype for name, array in make(settings).snapshot().items()}

    def replay_row(self, settings: Any, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world in which the episode of `start` is about to begin.

        Raises MisuseError where `start` does not fit the world of `settings`.
        """
        world = make(settings)
        world.restore(start)
        return RestoredRow(world)

    def renderer(self, settings: Any) -> SceneRenderer:
        """Who draws an episode of the world of `settings`."""
        del settings
        return _DrawnRow()

    def seat_names(self, about: Mapping[str, Any], target: str) -> tuple[str, ...]:
        """Who the agents are in an episode of `target`, the first first; (): it has but one.

        `about` is what the replay says of itself.
        """
        del about, target
        return ()

    def film(self, settings: Any, about: Mapping[str, Any]) -> FilmPainter | None:
        """Who paints films of an episode of that world; None: its picture and a panel do.

        `about` is what the replay says of itself.
        """
        del settings, about
        return None

    def controls(
        self, spec: WorldSpec, action: Float32Array | None, scene: Scene
    ) -> Sequence[Control]:
        """What a panel shows of `action` [A], which led to `scene`; None: nothing was done yet."""
        del scene
        names = _action_names(spec)
        numbers = [None] * len(names) if action is None else action.tolist()
        count = len(spec.branches)
        return [
            *(
                Choice(name, None if number is None else int(number))
                for name, number in zip(names[:count], numbers[:count], strict=True)
            ),
            *(
                Gauge(name, 0.0 if number is None else _share(number, low, high))
                for name, number, low, high in zip(
                    names[count:], numbers[count:], *spec.action_ranges, strict=True
                )
            ),
        ]

    def action_words(self, spec: WorldSpec, action: Float32Array | None, scene: Scene) -> str:
        """What the agent does, for a person; `action` [A] led to `scene`."""
        del scene
        if action is None:
            return "begins"
        named = zip(_action_names(spec), action.tolist(), strict=True)
        return ", ".join(f"{name} {number:g}" for name, number in named)

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of `seconds` ended."""
        word = {WIN: "WON", DRAW: "DRAW"}.get(outcome, "LOST")
        return f"{word} after {seconds:.1f} s"


def _share(number: float, low: float, high: float) -> float:
    """Where `number` lies between two bounds, from -1 to 1."""
    return float(np.clip((2.0 * number - low - high) / (high - low), -1.0, 1.0))


def _action_names(spec: WorldSpec) -> tuple[str, ...]:
    count = len(spec.branches) + spec.continuous
    return spec.action_names or tuple(f"action {number}" for number in range(1, count + 1))


class RestoredRow:
    """A world of one row that was restored to the beginning of an episode."""

    def __init__(self, world: BatchWorld) -> None:
        self.world = world
        self._decisions = 0
        self._terms = np.zeros(len(world.spec.reward_terms))
        world.keep_endings = world.spec.can("draw")

    def beginning(self) -> Scene:
        """The row before the first decision."""
        return self._scene(ended=False)

    def decide(self, actions: Float32Array, buffers: StepBuffers) -> tuple[Scene, EpisodeBatch]:
        """The row after `actions` [agents, A], and what ended."""
        batch = self.world.step(actions, buffers)
        self._decisions += 1
        if batch:
            self._terms = batch.terms[0].copy()
        elif len(self._terms) == 1:  # of several, only the sum is known before the end
            self._terms = self._terms + buffers.rewards[0]
        return self._scene(ended=bool(batch)), batch

    def _scene(self, *, ended: bool) -> Scene:
        spec, world = self.world.spec, self.world
        limit = None if spec.max_steps is None else spec.max_steps * spec.decision_seconds
        return Scene(
            terms=self._terms,
            seconds=self._decisions * spec.decision_seconds,
            time_limit=limit,
            state=lambda: world.draw(0, ending=ended),
        )


class _DrawnRow:
    """Shows what the world draws of itself."""

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """What the world draws, made to fit."""
        from PIL import Image

        del coarse
        return np.array(Image.fromarray(scene.state()).resize((size, size)))
