"""The part Play: a person plays episodes, and others the same ones beside."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.panel.server.actors import (
    PERSON,
    USUAL,
    ActorLine,
    GameActor,
    actor_lines,
    find_actor,
    match_target,
    playable_settings,
    rival_lines,
    set_up,
)
from aimbot_lab.panel.server.compiling import compiled
from aimbot_lab.panel.server.game import (
    CellTally,
    ChosenEpisode,
    EpisodeGame,
    Frame,
    RealTime,
    TableRow,
    game_asks,
    line_of,
    open_game,
    played_by,
)
from aimbot_lab.panel.server.lab import Ask, PagePart, Session, leaving
from aimbot_lab.panel.server.messages import STRICT, Nothing, in_thread
from aimbot_lab.panel.server.run_list import RunLine
from aimbot_lab.worlds.registry import type_of

NAME = "play"
YOU = "you"


@dataclass(frozen=True, config=STRICT)
class WantedEpisode:
    """The episode to play, and who plays it beside; empty: no one."""

    target: Annotated[str, Field(max_length=40)]  # empty: the world's own
    difficulty: Annotated[int, Field(ge=0, le=100)]  # 0: any
    seed: Annotated[int, Field(ge=0, lt=2**31)]
    beside: Annotated[str, Field(max_length=80)]


@dataclass(frozen=True, config=STRICT)
class Begun:
    """What the page needs to know of the episode, which is paused."""

    target: str
    targets: dict[str, int]  # with the number of their difficulties
    match: str  # the target that is a match; empty: none is
    actors: list[ActorLine]  # who may play beside, or away
    names: list[str]  # of home and away in a match; else empty
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
    fighters: list[Any]  # both agents of a match, as it ended; else none
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
        self.scores: dict[tuple[str, Cell], CellTally] = {}
        self.beside: GameActor | None = None
        self.label = ""
        self.who = YOU  # the person in the table of results

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
            other = await in_thread(played_by, self.beside, self.game.chosen)
            self.tell(self.label, other)

    def tell(self, who: str, batch: EpisodeBatch) -> None:
        """Count a result and tell it."""
        cell = batch.cell[0]
        if cell is not None:
            name = self.who if who == YOU else who
            self.scores.setdefault((name, cell), CellTally()).add(batch)
        result = line_of(batch)
        table = [score.row(who, cell) for (who, cell), score in self.scores.items()]
        fighters = [asdict(one) for one in self.game.game.view.fighters]
        ended = Ended(who, result.line, result.detail, fighters, table)
        self.session.tell(NAME, "ended", ended)


async def begin(session: Session, wanted: WantedEpisode) -> Begun:
    """Begin an episode, which waits while it is paused."""
    lines = await session.lab.run_list.look()
    play = session.state.setdefault(NAME, OpenPlay(session))
    settings = await in_thread(playable_settings)
    world = type_of(settings)
    matches, levels = await in_thread(match_target)
    targets = {**world.targets(settings), **({matches: levels} if matches else {})}
    target = wanted.target or world.default_target()
    if target not in targets or wanted.difficulty > targets[target]:
        raise MisuseError(f"there is no {target!r} of difficulty {wanted.difficulty}")
    chosen = ChosenEpisode(target, wanted.difficulty, wanted.seed)
    is_match = target == matches
    await compiled(session, NAME, "match" if is_match else "play")
    opened = _opened_match if is_match else _opened_episode
    game = await opened(play, chosen, wanted.beside, lines)
    play.begin(game)
    actors = rival_lines(lines) if is_match else actor_lines(lines)
    return Begun(
        target=target,
        targets=targets,
        match=matches,
        actors=[one for one in actors if one.key != PERSON],
        names=[YOU, play.label] if is_match else [],
        seconds=game.game.seconds,
        mouse_limit=game.game.mouse.limit,
        mouse_radians=game.game.mouse.radians,
        frame=game.game.frame(),
    )


async def _opened_episode(
    play: OpenPlay, chosen: ChosenEpisode, beside: str, lines: Sequence[RunLine]
) -> EpisodeGame:
    """An episode that `beside`, where there is one, plays after the person."""
    lab = play.session.lab
    you = await in_thread(find_actor, lab, PERSON)
    other, label = None, ""
    if beside:
        other = await in_thread(find_actor, lab, beside)
        label = next((one.label for one in actor_lines(lines) if one.key == beside), beside)
    game = await in_thread(EpisodeGame, you, chosen)
    play.beside, play.label, play.who = other, label, YOU
    return game


async def _opened_match(
    play: OpenPlay, chosen: ChosenEpisode, rival: str, lines: Sequence[RunLine]
) -> EpisodeGame:
    """A match of the person against `rival`."""
    del lines
    match = await in_thread(set_up, play.session.lab, rival or USUAL)
    game = await in_thread(EpisodeGame, match.person, chosen, match.rival)
    play.beside, play.label, play.who = None, match.label, f"{YOU} against {match.label}"
    return game


async def save_replay(session: Session, _: Nothing) -> ReplayText:
    """The episode that has ended as a replay file."""
    game = open_game(session, NAME, OpenPlay).game
    text = await in_thread(game.replay)
    return ReplayText(text, f"{game.chosen.target}-{game.chosen.seed}.json")


PLAY = PagePart(
    name=NAME,
    asks={
        "begin": Ask(WantedEpisode, begin, Begun, in_turn=True),
        "leave": leaving(NAME, forgets=False),  # the results stay until the page is closed
        **game_asks(NAME, OpenPlay),
        "save_replay": Ask(Nothing, save_replay, ReplayText),
    },
    tells={"frame": Frame, "ended": Ended, "compiling": str},
)
