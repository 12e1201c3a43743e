"""Episodes that a person plays, each recorded, with others who play the same beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.result_lines import parse_result, result_line
from aimbot_lab.foundation.statistics.intervals import wilson
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.panel.server.games.actors import Actor
from aimbot_lab.panel.server.games.game import Game

if TYPE_CHECKING:
    from aimbot_lab.evaluation.matches import MatchPlayer
    from aimbot_lab.replay.episode import RecordedEpisode

MAX_DECISIONS = 10_000  # of an episode that another plays beside
ANY = 0  # difficulty: any of the target's


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
class Score:
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
        self, actor: Actor, chosen: ChosenEpisode, rival: "MatchPlayer | None" = None
    ) -> None:
        from aimbot_lab.replay.recorder import RowRecorder
        from aimbot_lab.worlds.registry import spec_of

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
        from aimbot_lab.replay.episode import About
        from aimbot_lab.replay.files import replay_text
        from aimbot_lab.replay.playback import as_replay

        if self._recorded is None:
            raise MisuseError("no replay is saved: the episode has not ended")
        about: About = {
            "player": "a person",
            "behavior_type": "heuristic",
            "seed": self.chosen.seed,
            **({} if self.rival is None else {"home": "a person", "away": self.rival.name}),
        }
        return replay_text(as_replay(self._recorded, about))


def played_by(actor: Actor, chosen: ChosenEpisode) -> EpisodeBatch:
    """How the episode of `chosen` ends as `actor` plays it, at once."""
    game = EpisodeGame(actor, chosen)
    for _ in range(MAX_DECISIONS):
        batch = game.decide()
        if batch is not None:
            return batch
    raise LabError(f"{actor.key} has not ended the episode within {MAX_DECISIONS} decisions")
