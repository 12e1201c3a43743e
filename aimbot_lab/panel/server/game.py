"""A game on the page, in real time."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import Field, dataclasses

from aimbot_lab.evaluation.matches import MatchPlayer
from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import Placement, SceneEditor, SceneView
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch, parse_result, result_line, wilson
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Float32Array, Scenario, step_buffers
from aimbot_lab.panel.server.actors import GameActor, resting_of, scenes_of
from aimbot_lab.panel.server.lab import Ask, Session
from aimbot_lab.panel.server.messages import STRICT, Done, in_thread
from aimbot_lab.panel.server.replays import ResultLine, readable
from aimbot_lab.replay.episode import About, RecordedEpisode, RowRecorder, as_replay, replay_text
from aimbot_lab.worlds.registry import make_world, spec_of

MAX_DECISIONS = 10_000  # of an episode that another plays beside
ANY = 0  # difficulty: any of the target's
MAX_UNDONE = 100  # edits of a scene
ROW = 0


Way = Annotated[int, Field(ge=-1, le=1)]


@dataclasses.dataclass(frozen=True, config=STRICT)
class Keys:
    """What a person holds and has done with the mouse since the game was opened."""

    ahead: Way
    right: Way
    attack: bool
    mouse: Annotated[float, Field(ge=-1e9, le=1e9)]  # units of the action, summed; to the right


@dataclass(frozen=True)
class Frame:
    """What a page is shown after a decision."""

    number: int  # of decisions since the game was opened
    view: dict[str, Any]  # a SceneView
    mouse: float  # of `Keys.mouse`, what has become a turn or was too much
    actions: dict[str, float]  # by their names


class Game:
    """One row of the actor's world, in which episodes of `scenario` are played.

    In a world of matches the actor is a person at home, and `rival` plays away.
    """

    def __init__(
        self, actor: GameActor, scenario: Scenario, *, seed: int, rival: MatchPlayer | None = None
    ) -> None:
        self.actor, self.scenes = actor, scenes_of(actor.settings)
        self.world: Any = make_world(actor.settings)
        self.world.keep_endings = True
        self.world.set_scenario(scenario)
        self.buffers = step_buffers(self.world)
        self.world.reset(seed, self.buffers.observations)
        self._act = None if actor.make is None else actor.make(self.world, seed)
        self._rival = None if rival is None else rival.sit(seed)
        seats = len(self.buffers.rewards)
        self._masks = np.ones((seats, sum(self.world.spec.branches)), np.bool_)
        self._starts = np.ones(seats, np.bool_)
        self.mouse = self.scenes.mouse(actor.settings)
        self._mouse_taken = 0.0
        self._number = 0
        self._names = self.world.spec.action_names
        self.actions: Float32Array = np.zeros((seats, len(self._names)), np.float32)
        self.keys = Keys(ahead=0, right=0, attack=False, mouse=0.0)
        self.holds_still = False
        self.view: SceneView = self.scenes.view(self.world, 0)
        self._before = self.view

    @property
    def seconds(self) -> float:
        """Between two decisions."""
        return float(self.world.spec.decision_seconds)

    def decide(self) -> EpisodeBatch:
        """What ended with one more decision."""
        self.actions = self._made()
        batch: EpisodeBatch = self.world.step(self.actions, self.buffers)
        ended = bool(batch)
        self.view = self.scenes.view(
            self.world, 0, ended=ended, before=self._before, action=self.actions[0]
        )
        self._before = self.scenes.view(self.world, 0) if ended else self.view
        self._starts[:] = ended
        self._number += 1
        return batch

    def edited(self, *, shown: bool = True) -> None:
        """Let who acts know that the row is another now; and show it, if it is to be."""
        self._starts[:] = True
        self._before = self.scenes.view(self.world, 0)
        if shown:
            self.view = self._before

    def frame(self) -> Frame:
        """What a page is shown now."""
        return Frame(
            number=self._number,
            view=asdict(self.view),
            mouse=self._mouse_taken,
            actions=dict(zip(self._names, self.actions[0].tolist(), strict=True)),
        )

    def _made(self) -> Float32Array:
        """What all do in the next decision, [N, A]."""
        own = self._chosen()[None]
        if self._rival is None:
            return own
        self.world.action_masks(self._masks)
        seen = self.buffers.observations[1:]
        return np.concatenate([own, self._rival(seen, self._masks[1:], self._starts[1:])])

    def _chosen(self) -> Float32Array:
        if self.holds_still:
            return self.scenes.action(right=0, ahead=0, attack=False, mouse=0.0)
        if self._act is not None:
            actions: Float32Array = self._act(self.buffers.observations, self._starts)
            first: Float32Array = actions[0].copy()
            return first
        moved, self._mouse_taken = self.keys.mouse - self._mouse_taken, self.keys.mouse
        limit = self.mouse.limit
        return self.scenes.action(
            right=self.keys.right,
            ahead=self.keys.ahead,
            attack=self.keys.attack,
            mouse=max(-limit, min(moved, limit)),
        )


def line_of(batch: EpisodeBatch) -> ResultLine:
    """How the episode in `batch` ended."""
    return readable(result_line(batch, 0))


@dataclass(frozen=True)
class ChosenEpisode:
    """Which episode is played."""

    target: str
    difficulty: int  # 0: any, or the target has none
    seed: int


def scenario_of(chosen: ChosenEpisode, difficulties: Mapping[str, int]) -> Scenario:
    """Episodes of that target and difficulty."""
    levels = difficulties[chosen.target]
    if chosen.difficulty == ANY or not levels:
        return Scenario({chosen.target: 1.0})
    weights = tuple(float(level == chosen.difficulty) for level in range(1, levels + 1))
    return Scenario({chosen.target: 1.0}, {chosen.target: weights})


@dataclass
class CellTally:
    """How often episodes of a cell were won, and how long that took."""

    wins: int = 0
    episodes: int = 0
    seconds: list[float] = field(default_factory=list)  # of those that were won

    def add(self, batch: EpisodeBatch) -> None:
        """Count the episode in `batch`."""
        result = parse_result(result_line(batch, 0))
        self.episodes += 1
        self.wins += result.won
        if result.won and result.seconds is not None:
            self.seconds.append(result.seconds)

    def row(self, who: str, cell: Cell) -> "TableRow":
        """The same for the page."""
        rate = wilson(self.wins, self.episodes)
        return TableRow(
            who=who,
            cell=cell.shown,
            wins=self.wins,
            episodes=self.episodes,
            low=rate.lower,
            high=rate.upper,
            seconds=sum(self.seconds) / len(self.seconds) if self.seconds else None,
        )


@dataclass(frozen=True)
class TableRow:
    """A player's result in one cell."""

    who: str
    cell: str
    wins: int
    episodes: int
    low: float  # of the win rate's 95 % interval
    high: float
    seconds: float | None  # to win, on average


class EpisodeGame:
    """One episode of what was `chosen`, recorded as it is played; a match against `rival`."""

    def __init__(
        self, actor: GameActor, chosen: ChosenEpisode, rival: MatchPlayer | None = None
    ) -> None:
        scenario = scenario_of(chosen, spec_of(actor.settings).difficulties)
        self.chosen = chosen
        self.rival = rival
        self.game = Game(actor, scenario, seed=chosen.seed, rival=rival)
        self._recorder = RowRecorder(self.game.world, 0)
        self._recorded: RecordedEpisode | None = None

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._recorded is not None

    def decide(self) -> EpisodeBatch | None:
        """One more decision; what it ended."""
        if self.over:
            return None
        batch = self.game.decide()
        self._recorded = self._recorder.add(self.game.actions, batch)
        return batch if self.over else None

    def replay(self) -> str:
        """The episode as a replay file. Raises MisuseError before its end."""
        if self._recorded is None:
            raise MisuseError("no replay is saved: the episode has not ended")
        about: About = {
            "player": "a person",
            "behavior_type": "heuristic",
            "seed": self.chosen.seed,
            **({} if self.rival is None else {"home": "a person", "away": self.rival.name}),
        }
        return replay_text(as_replay(self._recorded, about))


def played_by(actor: GameActor, chosen: ChosenEpisode) -> EpisodeBatch:
    """How the episode of `chosen` ends as `actor` plays it, at once."""
    game = EpisodeGame(actor, chosen)
    for _ in range(MAX_DECISIONS):
        batch = game.decide()
        if batch is not None:
            return batch
    raise LabError(f"{actor.key} has not ended the episode within {MAX_DECISIONS} decisions")


class SceneGame:
    """A game of the actor's world that rests until something is assigned.

    What is won or lost leaves everything standing, at rest again.
    """

    def __init__(self, actor: GameActor) -> None:
        self.game = Game(actor, resting_of(actor.settings), seed=0)
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
        """Do what a button does. Raises MisuseError if there is no such button."""
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


Value = TypeVar("Value")
Open = TypeVar("Open")
MAX_LATE = 0.5  # s behind, from which decisions are left out rather than made up for


@dataclasses.dataclass(frozen=True, config=STRICT)
class Paused:
    """Whether no decision is made."""

    paused: bool


class RealTime:
    """Calls `decide` every `seconds` unless paused; work on the game goes one by one."""

    def __init__(self, decide: Callable[[], Awaitable[None]], *, seconds: float) -> None:
        self._decide, self._seconds = decide, seconds
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self._lock = asyncio.Lock()

    @property
    def paused(self) -> bool:
        """Whether no decision is due."""
        return not self._goes_on.is_set()

    def pause(self, paused: bool) -> None:
        """Make no more decisions, or go on."""
        if paused:
            self._goes_on.clear()
        else:
            self._goes_on.set()

    async def do(self, work: Callable[[], Value]) -> Value:
        """What `work` on the game returns, done between two decisions."""
        async with self._lock:
            return await in_thread(work)

    async def run(self) -> None:
        """Go on until cancelled."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            await self._goes_on.wait()
            await self._decide()
            due = max(due + self._seconds, clock() - MAX_LATE)
            await asyncio.sleep(max(due - clock(), 0.0))


def open_game(session: Session, part: str, kind: type[Open]) -> Open:
    """What the page has open in `part`. Raises MisuseError where that is nothing."""
    found = session.state.get(part)
    if not isinstance(found, kind) or not hasattr(found, "time"):
        raise MisuseError("no game is open here: load the page again")
    return found


def game_asks(part: str, kind: type[Any]) -> Mapping[str, Ask]:
    """The requests to pause the page's game in `part`, and what its person holds."""

    async def pause(session: Session, asked: Paused) -> Done:
        found = open_game(session, part, kind)
        found.time.pause(asked.paused or found.game.over)
        return Done()

    async def hold(session: Session, keys: Keys) -> Done:
        open_game(session, part, kind).game.game.keys = keys
        return Done()

    return {"pause": Ask(Paused, pause), "hold": Ask(Keys, hold)}
