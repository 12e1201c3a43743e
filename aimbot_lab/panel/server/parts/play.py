"""The part Play: a person plays episodes, and others the same ones beside."""

import asyncio
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.panel.server.games.actors import (
    PERSON,
    Actor,
    ActorLine,
    actor_lines,
    find_actor,
)
from aimbot_lab.panel.server.games.episode_game import (
    ChosenEpisode,
    EpisodeGame,
    Score,
    TableRow,
    played_by,
)
from aimbot_lab.panel.server.games.game import Frame, line_of
from aimbot_lab.panel.server.games.real_time import RealTime
from aimbot_lab.panel.server.messages import STRICT, Nothing
from aimbot_lab.panel.server.part import Ask, Part, leaving
from aimbot_lab.panel.server.parts.games import game_asks, open_game
from aimbot_lab.panel.server.session import Session
from aimbot_lab.worlds.registry import type_of

NAME = "play"
YOU = "you"


@dataclass(frozen=True, config=STRICT)
class Wanted:
    """The episode to play, and who plays it beside; empty: nobody."""

    target: Annotated[str, Field(max_length=40)]  # empty: the world's own
    difficulty: Annotated[int, Field(ge=0, le=100)]  # 0: any
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    beside: Annotated[str, Field(max_length=80)]


@dataclass(frozen=True, config=STRICT)
class Begun:
    """What the page needs to know of the episode, which is paused."""

    target: str
    targets: dict[str, int]  # with the number of their difficulties
    actors: list[ActorLine]
    seconds: float
    mouse_limit: float
    mouse_radians: float
    frame: Any  # a Frame


@dataclass(frozen=True, config=STRICT)
class Ended:
    """How an episode ended for one player, and all results of this page."""

    who: str
    line: str
    detail: str
    table: list[TableRow]


@dataclass(frozen=True, config=STRICT)
class ReplayText:
    """A replay file."""

    text: str
    name: str


class OpenPlay:
    """The episodes of one page."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.scores: dict[tuple[str, Cell], Score] = {}
        self.beside: Actor | None = None
        self.label = ""
        self.beginning = asyncio.Lock()  # one episode at a time

    def begin(self, game: EpisodeGame) -> None:
        """Have that episode wait for its player."""
        self.game = game
        self.time = RealTime(self.decide, seconds=game.game.seconds)
        self.time.pause(True)
        self.session.go_on(NAME, self.time.run())

    async def decide(self) -> None:
        """Make a decision and show it; at the end have the other play the same."""
        batch = await self.time.do(self.game.decide)
        self.session.show(NAME, "frame", self.game.game.frame())
        if batch is None:
            return
        self.time.pause(True)
        self.tell(YOU, batch)
        if self.beside is not None:
            other = await asyncio.to_thread(played_by, self.beside, self.game.chosen)
            self.tell(self.label, other)

    def tell(self, who: str, batch: EpisodeBatch) -> None:
        """Count a result and tell it."""
        cell = batch.cell[0]
        if cell is not None:
            self.scores.setdefault((who, cell), Score()).add(batch)
        result = line_of(batch)
        table = [score.row(who, cell) for (who, cell), score in self.scores.items()]
        self.session.tell(NAME, "ended", Ended(who, result.line, result.detail, table))


async def begin(session: Session, wanted: Wanted) -> Begun:
    """Begin an episode, which waits until it is no longer paused."""
    lines = actor_lines(await session.lab.run_list.look())
    play = session.state.setdefault(NAME, OpenPlay(session))
    you = await asyncio.to_thread(find_actor, session.lab, PERSON)
    world = type_of(you.settings)
    targets = dict(world.targets(you.settings))
    target = wanted.target or world.default_target()
    if target not in targets or wanted.difficulty > targets[target]:
        raise MisuseError(f"there is no {target!r} of difficulty {wanted.difficulty}")
    async with play.beginning:
        beside, label = None, ""
        if wanted.beside:
            beside = await asyncio.to_thread(find_actor, session.lab, wanted.beside)
            label = next((one.label for one in lines if one.key == wanted.beside), wanted.beside)
        chosen = ChosenEpisode(target, wanted.difficulty, wanted.seed)
        game = await asyncio.to_thread(EpisodeGame, you, chosen)
        play.beside, play.label = beside, label
        play.begin(game)
    limit, radians = game.game.mouse_limits
    return Begun(
        target=target,
        targets=targets,
        actors=[one for one in lines if one.key != PERSON],
        seconds=game.game.seconds,
        mouse_limit=limit,
        mouse_radians=radians,
        frame=game.game.frame(),
    )


async def save_replay(session: Session, _: Nothing) -> ReplayText:
    """The episode that has ended as a replay file."""
    game = open_game(session, NAME, OpenPlay).game
    text = await asyncio.to_thread(game.replay)
    return ReplayText(text, f"{game.chosen.target}-{game.chosen.seed}.json")


PLAY = Part(
    name=NAME,
    asks={
        "begin": Ask(Wanted, begin, Begun),
        "leave": leaving(NAME, forgets=False),  # the results stay until the page is closed
        **game_asks(NAME, OpenPlay),
        "save_replay": Ask(Nothing, save_replay, ReplayText),
    },
    tells={"frame": Frame, "ended": Ended},
)
