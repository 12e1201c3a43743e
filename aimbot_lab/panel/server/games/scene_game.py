"""The test mode: a row at rest, in which a person places things and gives targets."""

from collections import deque
from typing import Any

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.scenes.editing import Placement, SceneEditor
from aimbot_lab.panel.server.games.actors import Actor, resting_of
from aimbot_lab.panel.server.games.game import Game, line_of
from aimbot_lab.panel.server.result_words import ResultLine

MAX_UNDONE = 100  # edits
ROW = 0


class SceneGame:
    """A game of the actor's world that rests until something is assigned.

    What is won or lost leaves everything standing, at rest again.
    """

    def __init__(self, actor: Actor, *, seed: int = 0) -> None:
        self.game = Game(actor, resting_of(actor.settings), seed=seed)
        self.editor: SceneEditor = self.game.scenes.editor(self.game.world)
        self._floors: deque[Any] = deque(maxlen=MAX_UNDONE)

    @property
    def over(self) -> bool:
        """Never: a scene goes on as long as its page."""
        return False

    def decide(self) -> ResultLine | None:
        """One more decision; the line of what it won or lost. A script waits for a target."""
        self.game.holds_still = self.game.actor.is_script and self.editor.rests(ROW)
        batch = self.game.decide()
        if not batch:
            return None
        self.editor.carry_on(ROW)
        self.refresh(shown=False)  # how it ended is shown first
        return line_of(batch)

    def place(self, placement: Placement) -> None:
        """Place a thing. Raises MisuseError where it can't be."""
        floor = self.editor.floor(ROW)
        self.editor.place(ROW, placement)
        self._edited(floor)

    def press(self, button: str) -> None:
        """Do what a button does. Raises MisuseError where there is none such."""
        floor = self.editor.floor(ROW)
        self.editor.press(ROW, button)
        self._edited(floor)

    def load(self, text: str) -> None:
        """Make the row what the file `text` says. Raises ConfigurationError, MisuseError."""
        floor = self.editor.floor(ROW)
        self.editor.load(ROW, text)
        self._edited(floor)

    def undo(self) -> None:
        """Take the last edit back. Raises MisuseError: there is none, or the agent is there."""
        if not self._floors:
            raise MisuseError("there is nothing to undo")
        self.editor.restore_floor(ROW, self._floors[-1])
        self._floors.pop()
        self.refresh()

    def _edited(self, floor: Any) -> None:
        self._floors.append(floor)
        self.refresh()

    def refresh(self, *, shown: bool = True) -> None:
        """Let who acts see the row as it is now; and show it, if it is to be."""
        self.editor.observe(ROW, self.game.buffers.observations)
        self.game.edited(shown=shown)
