"""What a kind of world says of its rows for pages; a world that has none is not drawn there."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from aimbot_lab.foundation.scenes.editing import SceneEditor
from aimbot_lab.foundation.scenes.view import SceneView
from aimbot_lab.foundation.world import Float32Array, Scenario


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
