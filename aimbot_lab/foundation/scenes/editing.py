"""What a world offers whose rows a person may edit between steps: things placed, targets assigned.

What can be placed comes from the world as data; nothing above it knows what a thing is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aimbot_lab.foundation.world import Float32Array


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
        ...

    @property
    def buttons(self) -> Sequence[SceneButton]:
        """What can be done beside that."""
        ...

    def fault(self, row: int, placement: Placement) -> str | None:
        """Why `place` would refuse; None: it would not."""
        ...

    def place(self, row: int, placement: Placement) -> None:
        """Place a thing; where it comes with a target, that is assigned at once."""
        ...

    def press(self, row: int, button: str) -> None:
        """Do what the button of that key does."""
        ...

    def rests(self, row: int) -> bool:
        """Whether the row has no target: there is nothing to do until one is assigned."""
        ...

    def floor(self, row: int) -> Any:
        """What stands in `row` now, for `restore_floor`."""
        ...

    def restore_floor(self, row: int, floor: Any) -> None:
        """Let it stand there again; the agent stays where it is."""
        ...

    def carry_on(self, row: int) -> None:
        """After a step that ended the row's episode: the row as it ended, at rest."""
        ...

    def observe(self, row: int, observations: Float32Array) -> None:
        """Write what `row` sees now into `observations` [N, D], as the last step left it."""
        ...

    def text(self, row: int, name: str) -> str:
        """The row as a file's text, which `load` reads."""
        ...

    def load(self, row: int, text: str) -> None:
        """Make the row what `text` says.

        Raises ConfigurationError with every fault of the text, each with its line and column.
        """
        ...
