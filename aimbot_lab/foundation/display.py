"""What a world shows of itself: scenes of the web page, replays and films, play in a terminal.

`WorldScenes` is what a world offers to pages: rows as plain numbers, drawn from above or from
within (`SceneView`), and edited by a person between steps (`SceneEditor`). What can be placed comes
from the world as data; nothing above it knows what a thing is. A world without it is not drawn
there.

`WorldReplays` is for worlds with the ability `replay`. An episode is recorded as its row when it
began and the actions from there on. `replay` writes, plays and shows it; what only the world knows
stands here, with what holds for most of them.

`TerminalPlay` is for a person who plays. The session, the keyboard and the screen are written once
above; a world says which words are commands, which game is meant, and what a person sees of it.
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
    Scenario,
    StepBuffers,
    WorldSpec,
)

WALL, ENEMY, NOTHING = 0, 1, -1  # what a ray hits


@dataclass(frozen=True)
class Body:
    """A disc that stands on the floor."""

    x: float  # m
    z: float
    radius: float
    hits_left: int  # 0: it is down
    counts: bool  # whether it is a target


@dataclass(frozen=True)
class Fighter:
    """One of the two agents of a match, in the frame of the first."""

    x: float  # m
    z: float
    yaw: float
    radius: float
    view_angle: float  # degrees
    health: int  # hits left; 0: it is down
    max_health: int
    ready: bool  # whether it can shoot
    reload_seconds: float  # until it can
    fired: bool  # in the last decision
    hit: bool  # whether that shot met the other
    rays: tuple[tuple[float, float, int], ...]  # as those of a `SceneView`


@dataclass(frozen=True)
class SceneView:
    """A row of a world on a square floor: metres, x to the right, z up, yaw right of z in rad."""

    size: float  # side of the floor
    x: float  # of the agent
    z: float
    yaw: float
    radius: float
    view_angle: float  # degrees
    ready: bool  # whether it can shoot
    boxes: tuple[tuple[float, float, float, float], ...]  # min x, min z, max x, max z
    plots: tuple[tuple[float, float, float, float], ...]  # marked squares, as boxes
    circle: tuple[float, float, float] | None  # x, z, radius of what is to be reached
    bodies: tuple[Body, ...]
    rays: tuple[tuple[float, float, int], ...]  # angle to the view, length, WALL, ENEMY or NOTHING
    ray_range: float  # m, the length of those that meet nothing
    heights: tuple[float, float, float]  # m, of the eye, of walls and of bodies
    target: str  # for a person
    goal: str  # what is left to do
    seconds_left: float | None  # None: there is no end
    fired: bool = False  # in the last decision
    hit: int = -1  # the body that the shot met, -1: none
    fighters: tuple[Fighter, ...] = ()  # of a match both agents, the one above first


@dataclass(frozen=True)
class Outline:
    """A thing as seen from above before it is placed: metres from its middle, unturned."""

    name: str
    boxes: tuple[tuple[float, float, float, float], ...] = ()  # min x, min z, max x, max z
    discs: tuple[tuple[float, float, float], ...] = ()  # x, z, radius
    circle: tuple[float, float, float] | None = None  # x, z, radius of what is to be reached
    side: float = 0.0  # of the square that it takes; 0: it takes none


@dataclass(frozen=True)
class MenuEntry:
    """A kind of thing that can be placed, with its variants."""

    key: str
    label: str
    outlines: tuple[Outline, ...]
    turns: bool  # whether it has another form after a quarter turn


@dataclass(frozen=True)
class SceneButton:
    """Something that is done to a whole row."""

    key: str
    label: str
    hint: str


@dataclass(frozen=True)
class Placement:
    """What is to be placed where: its middle in metres, quarter turns to the right."""

    key: str  # of a menu's entry
    variant: int
    x: float
    z: float
    turns: int = 0


class SceneEditor(Protocol):
    """Edits rows of a world between its steps.

    What can't be done raises MisuseError in one line and changes nothing. An edit shows in the
    row's snapshot, in what it sees (`observe`), and in no other row.
    """

    @property
    def menu(self) -> Sequence[MenuEntry]:
        """What can be placed."""

    @property
    def buttons(self) -> Sequence[SceneButton]:
        """What can be done beside that."""

    def fault(self, row: int, placement: Placement) -> str | None:
        """Why `place` would refuse; None: it would not."""

    def place(self, row: int, placement: Placement) -> None:
        """Place a thing; where it comes with a target, that is assigned at once."""

    def press(self, row: int, button: str) -> None:
        """Do what the button of that key does."""

    def rests(self, row: int) -> bool:
        """Whether the row has no target: there is nothing to do until one is assigned."""

    def floor(self, row: int) -> Any:
        """What stands in `row` now, for `restore_floor`."""

    def restore_floor(self, row: int, floor: Any) -> None:
        """Let it stand there again; the agent stays where it is."""

    def carry_on(self, row: int) -> None:
        """After a step that ended the row's episode: the row as it ended, at rest."""

    def observe(self, row: int, observations: Float32Array) -> None:
        """Write what `row` sees now into `observations` [N, D], as the last step left it."""

    def text(self, row: int, name: str) -> str:
        """The row as a file's text, which `load` reads."""

    def load(self, row: int, text: str) -> None:
        """Make the row what `text` says.

        Raises ConfigurationError with every fault of the text, each with its line and column.
        """


class Mouse(NamedTuple):
    """What a person's mouse does to the view."""

    column: int  # of an action
    limit: float  # of that column, which the world clips to
    radians: float  # turned by one unit of it


class WorldScenes(ABC):
    """Rows of one kind of world as numbers to draw, and as scenes to edit."""

    resting: Scenario | None = None
    """What a row that is edited is drawn from: an episode that never ends; None: none is edited."""

    def editor(self, world: Any) -> SceneEditor:
        """Who edits rows of `world`, where there is `resting`; it loads what a first step would."""
        raise NotImplementedError

    @abstractmethod
    def view(
        self,
        world: Any,
        row: int,
        *,
        ended: bool = False,
        before: SceneView | None = None,
        action: Float32Array | None = None,
    ) -> SceneView:
        """`row` now, or as its last episode ended where that was kept.

        With the view before the last decision and its `action` [A] also what was shot.
        """

    @abstractmethod
    def replayed(self, settings: Any, state: Any) -> SceneView:
        """What `Scene.state` of an episode that was recorded under `settings` shows."""

    @abstractmethod
    def mouse(self, settings: Any) -> Mouse:
        """What the mouse does in a world of `settings`."""

    @abstractmethod
    def action(self, *, right: int, ahead: int, attack: bool, mouse: float) -> Float32Array:
        """The action [A] of a person who walks (-1, 0 or 1 each way), shoots and turns."""


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


class Thought(NamedTuple):
    """What an agent expected where it chose, and how likely each choice was."""

    value: float | None  # of its critic
    branches: Sequence[
        tuple[str, Sequence[float], int]
    ]  # name, share of each choice, the one taken


class Mind(NamedTuple):
    """What an agent expected where it decided, and how likely its choices were, N decisions."""

    values: npt.NDArray[np.float64] | None  # [N] of its critic; None: it judges no states
    choices: tuple[npt.NDArray[np.float64], ...]  # [N, K] of each branch, or (): it draws none

    def at(self, decision: int, action: Float32Array, spec: WorldSpec) -> Thought:
        """What led to `action` [A] of the world of `spec`."""
        named = zip(shown_action_names(spec), self.choices, action, strict=False)
        return Thought(
            None if self.values is None else float(self.values[decision]),
            [(name, shares[decision].tolist(), int(taken)) for name, shares, taken in named],
        )


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

    def frame(
        self, scene: Scene, *, size: int, ended: bool, thought: Thought | None = None
    ) -> Picture:
        """`scene`, of that shape; `ended`: it is how the episode ended.

        `thought` is what the first agent thought in the decision that led to it, where known.
        """


class WorldReplays(ABC):
    """What a kind of world knows of recorded episodes."""

    result_terms: Mapping[int, str] = MappingProxyType({})
    """By outcome the reward term, if any, that only an episode's result gives."""
    choice_words: Sequence[Sequence[str]] = ()
    """Of each branch what its choices do, for a person; (): they have numbers alone."""

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
        names = shown_action_names(spec)
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
        named = zip(shown_action_names(spec), action.tolist(), strict=True)
        return ", ".join(f"{name} {number:g}" for name, number in named)

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of `seconds` ended."""
        word = {WIN: "WON", DRAW: "DRAW"}.get(outcome, "LOST")
        return f"{word} after {seconds:.1f} s"


def _share(number: float, low: float, high: float) -> float:
    """Where `number` lies between two bounds, from -1 to 1."""
    return float(np.clip((2.0 * number - low - high) / (high - low), -1.0, 1.0))


def shown_action_names(spec: WorldSpec) -> tuple[str, ...]:
    """The names of the branches and continuous columns, by number where the world has none."""
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
        ended = len(batch.row) > 0  # rather than a life
        if ended:
            self._terms = batch.terms[0].copy()
        elif len(self._terms) == 1:  # of several, only the sum is known before the end
            self._terms = self._terms + buffers.rewards[0]
        return self._scene(ended=ended), batch

    def _scene(self, *, ended: bool) -> Scene:
        spec, world = self.world.spec, self.world
        limit = None if spec.max_steps is None else spec.max_steps * spec.decision_seconds
        return Scene(
            terms=self._terms,
            seconds=self._decisions * spec.decision_seconds,
            time_limit=limit,
            state=lambda: world.draw(0, ending=ended),
        )


BESIDE: Colour = (222, 222, 216)  # a picture that is no square


class _DrawnRow:
    """Shows what the world draws of itself."""

    def picture(self, scene: Scene, *, size: int, coarse: bool = False) -> Picture:
        """What the world draws, made to fit; beside what is no square there is `BESIDE`."""
        from PIL import Image, ImageOps

        del coarse
        return np.array(ImageOps.pad(Image.fromarray(scene.state()), (size, size), color=BESIDE))


class GameRequest(NamedTuple):
    """The game that a person asks for; None: the world's own choice."""

    place: str | None = None  # where it is played, such as a map
    objects: str | None = None  # what lies there, as given: a number, or a list
    target: str | None = None
    difficulty: int | None = None


class GameView(NamedTuple):
    """What a person sees of a game, [H, W] cells, the topmost first."""

    picture: Picture  # [H, W, 3] a pixel for each cell
    signs: Sequence[str]  # H lines of W characters, which tell the same without colours
    focus: tuple[int, int]  # line and column that stay in sight
    panel: Sequence[str]  # lines that stand beside it


class TerminalPlay(ABC):
    """How one kind of world is played in a terminal, in a row of its own."""

    commands: Mapping[str, tuple[float, ...]]  # word to the world action [A]
    keys: Mapping[str, str]  # letter or arrow to a word of `commands`

    @abstractmethod
    def game(self, request: GameRequest) -> tuple[Any, Scenario]:
        """(settings of a world of one row, scenario) of the game that `request` asks for.

        Raises ConfigurationError, each fault at the option of the command that it is about.
        """

    @abstractmethod
    def view(self, world: Any, *, fog: bool, ended: bool) -> GameView:
        """What is seen of row 0; with `ended` how its last episode ended, and what was possible.

        Without `fog` also what was never seen.
        """

    @abstractmethod
    def window(self, world: Any, *, ended: bool) -> Sequence[str]:
        """What row 0 sees at this moment, in signs."""

    @abstractmethod
    def frame(self, world: Any, *, ended: bool) -> Mapping[str, Any]:
        """Raw data of row 0 as plain values."""

    @abstractmethod
    def result(self, world: Any) -> Mapping[str, float]:
        """How the last episode of row 0 ended, in numbers by name."""
