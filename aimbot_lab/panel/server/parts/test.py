"""The part Test: one row in real time, in which a person places things and gives targets."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import Placement
from aimbot_lab.foundation.episodes import COMMAND_LINE
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.panel.server.actors import RUN, ActorLine, GameActor, actor_lines, find_actor
from aimbot_lab.panel.server.compiling import compiled
from aimbot_lab.panel.server.game import ROW, Frame, RealTime, SceneGame, game_asks, open_game
from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, Done, Nothing, in_thread
from aimbot_lab.panel.server.replays import ResultLine
from aimbot_lab.panel.server.run_report import keep_agent

NAME = "test"
Metres = Annotated[float, Field(ge=-1e4, le=1e4)]


@dataclass(frozen=True, config=STRICT)
class ChosenActor:
    """Who is to act, by the key in the list."""

    actor: str = Field(min_length=1, max_length=80)


@dataclass(frozen=True, config=STRICT)
class WantedPlacement:
    """What is to be placed where."""

    key: Annotated[str, Field(max_length=80)]
    variant: Annotated[int, Field(ge=0, le=10_000)]
    x: Metres
    z: Metres
    turns: Annotated[int, Field(ge=0, le=3)]

    @property
    def placement(self) -> Placement:
        """The same for an editor."""
        return Placement(self.key, self.variant, self.x, self.z, self.turns)


@dataclass(frozen=True, config=STRICT)
class Fault:
    """Why it can't be placed there; None: it can."""

    fault: str | None


@dataclass(frozen=True, config=STRICT)
class Pressed:
    """A button."""

    button: str = Field(max_length=40)


@dataclass(frozen=True, config=STRICT)
class SceneText:
    """A scene as a YAML file."""

    text: str = Field(max_length=60_000)


@dataclass(frozen=True, config=STRICT)
class SceneName:
    """What the scene is called, and its block as a preset."""

    name: str = Field(min_length=1, max_length=60)


@dataclass(frozen=True, config=STRICT)
class Opened:
    """What the page needs to know of the game."""

    actor: str
    step: int | None  # of the weights that act
    actors: list[ActorLine]
    menu: list[Any]  # of MenuEntry
    buttons: list[Any]  # of SceneButton
    seconds: float  # between two decisions
    mouse_limit: float
    mouse_radians: float  # turned by a unit
    paused: bool
    frame: Any  # a Frame


@dataclass(frozen=True, config=STRICT)
class Sent:
    """What became of the command to save the agent."""

    said: str


class OpenGame:
    """The game of one page."""

    def __init__(self, session: Session, game: SceneGame) -> None:
        self.session, self.game = session, game
        self.time = RealTime(self.decide, seconds=game.game.seconds)

    async def decide(self) -> None:
        """Make a decision and show it."""
        line = await self.time.do(self.game.decide)
        self.show()
        if line is not None:
            self.session.tell(NAME, "line", line)

    async def edit(self, work: Callable[[], None]) -> None:
        """Do `work` between two decisions and show it. Raises LabError where it is refused."""
        await self.time.do(work)
        self.show()

    def text(self) -> str:
        """What stands, as a scene's file."""
        return self.game.editor.text(ROW, "scene")

    def show(self) -> None:
        """Show the row as it is."""
        self.session.show(NAME, "frame", self.game.game.frame())


def _open_game(session: Session) -> OpenGame:
    return open_game(session, NAME, OpenGame)


async def choose(session: Session, chosen: ChosenActor) -> Opened:
    """Have another act; what stands on the floor stays where the worlds are alike."""
    lines = await session.lab.run_list.look()
    before = session.state.get(NAME)
    await compiled(session, NAME, "test")
    actor = await in_thread(find_actor, session.lab, chosen.actor)
    text, paused = "", False
    if isinstance(before, OpenGame):
        text, paused = await before.time.do(before.text), before.time.paused
    game = await in_thread(_new_game, actor, text)
    opened = OpenGame(session, game)
    opened.time.pause(paused)
    session.state[NAME] = opened
    session.go_on(NAME, opened.time.run())
    return Opened(
        actor=actor.key,
        step=actor.step,
        actors=actor_lines(lines),
        menu=[asdict(entry) for entry in game.editor.menu],
        buttons=[asdict(button) for button in game.editor.buttons],
        seconds=game.game.seconds,
        mouse_limit=game.game.mouse.limit,
        mouse_radians=game.game.mouse.radians,
        paused=opened.time.paused,
        frame=asdict(game.game.frame()),
    )


def _new_game(actor: GameActor, text: str) -> SceneGame:
    game = SceneGame(actor)
    with suppress(LabError):  # another world, in which what stood does not fit
        if text:
            game.editor.load(ROW, text)
            game.refresh()
    return game


async def step(session: Session, _: Nothing) -> Done:
    """Make a single decision, paused."""
    game = _open_game(session)
    game.time.pause(True)
    await game.decide()
    return Done()


async def preview(session: Session, wanted: WantedPlacement) -> Fault:
    """Whether it can be placed there."""
    game = _open_game(session)
    return Fault(await game.time.do(lambda: game.game.editor.fault(ROW, wanted.placement)))


async def place(session: Session, wanted: WantedPlacement) -> Done:
    """Place it."""
    game = _open_game(session)
    await game.edit(lambda: game.game.place(wanted.placement))
    return Done()


async def press(session: Session, pressed: Pressed) -> Done:
    """Do what a button does."""
    game = _open_game(session)
    await game.edit(lambda: game.game.press(pressed.button))
    return Done()


async def undo(session: Session, _: Nothing) -> Done:
    """Take the last edit back."""
    game = _open_game(session)
    await game.edit(game.game.undo)
    return Done()


async def save_agent(session: Session, _: Nothing) -> Sent:
    """Send the command of the original; a run that trains saves the agent that acts here."""
    key, lab = _open_game(session).game.game.actor.key, session.lab
    session.tell(NAME, "line", ResultLine(COMMAND_LINE))
    run, _colon, name = key.removeprefix(RUN).partition(":")
    if not key.startswith(RUN):
        return Sent("The command was sent, but no run trains here: nothing was saved.")
    line = await in_thread(lab.run_list.line, run)
    if name or line is None or line.state != "trains":
        return Sent("The command was sent. That agent is saved already, with its run.")
    kept = await keep_agent(lab, run)
    return Sent(f"The run has saved its present agent as {kept.name}: {kept.evaluate}")


async def save_scene(session: Session, asked: SceneName) -> SceneText:
    """The scene as a file."""
    game = _open_game(session)
    return SceneText(await game.time.do(lambda: game.game.editor.text(ROW, asked.name)))


async def load_scene(session: Session, asked: SceneText) -> Done:
    """Make the row what a file says."""
    game = _open_game(session)
    try:
        await game.edit(lambda: game.game.load(asked.text))
    except ConfigurationError as error:
        raise MisuseError("; ".join(error.faults[:3])) from error
    return Done()


TEST = PagePart(
    name=NAME,
    asks={
        "choose": Ask(ChosenActor, choose, Opened, in_turn=True),
        "leave": leaving(NAME),
        **game_asks(NAME, OpenGame),
        "step": Ask(Nothing, step),
        "preview": Ask(WantedPlacement, preview, Fault),
        "place": Ask(WantedPlacement, place),
        "press": Ask(Pressed, press),
        "undo": Ask(Nothing, undo),
        "save_agent": Ask(Nothing, save_agent, Sent),
        "save_scene": Ask(SceneName, save_scene, SceneText),
        "load_scene": Ask(SceneText, load_scene),
    },
    tells={"frame": Frame, "line": ResultLine, "compiling": str},
)
