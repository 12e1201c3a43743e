"""What a kind of world says of itself to be played by a person in a terminal.

The session, the keyboard and the screen are written once above; a world says which words are
commands, which game is meant, and what a person sees of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from aimbot_lab.foundation.world import Picture, Scenario


class GameRequest(NamedTuple):
    """The game that a person asks for; None: the world's own choice."""

    place: str | None = None  # where it is played, such as a map
    objects: str | None = None  # what lies there, as given: a number, or a list
    target: str | None = None
    difficulty: int | None = None


class PlayedGame(NamedTuple):
    """What games are drawn from."""

    settings: Any  # of a world of one row
    scenario: Scenario


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
    def game(self, request: GameRequest) -> PlayedGame:
        """What `request` asks for.

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
