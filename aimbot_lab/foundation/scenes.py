"""What a kind of world says of its rows for pages that draw and edit them.

`WorldScenes` is what a world offers: rows as plain numbers, drawn from above or from within
(`SceneView`), and edited by a person between steps (`SceneEditor`). What can be placed comes from
the world as data; nothing above it knows what a thing is. A world without it is not drawn there.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from aimbot_lab.foundation.world import Float32Array, Scenario

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
