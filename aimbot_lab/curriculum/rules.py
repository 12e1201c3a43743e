"""What ends a lesson: the criteria as a curriculum writes them, their measures, and the rules.

A rule is fed the lesson's episodes one by one and, after each step of the world, one look. It
carries its checks, its bounds, its words and its evidence: a new one is a class here, an entry of
`RULES` and a name in `RuleName`; a new measure is an entry of `MEASURES` and a name in
`MeasureName`. Reports, `explain`, the panel and the schema ask the rule.
"""

import math
import operator
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol

import numpy as np

from aimbot_lab.curriculum.evidence import (
    ALL_CELLS,
    RESTART_EVERY,
    Evidence,
    EvidenceTest,
    Order,
    Outcome,
    RateWindow,
)
from aimbot_lab.foundation.episodes import Cell, WinRate
from aimbot_lab.foundation.ratings import expected_score
from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.foundation.shown_text import odds, shown_evidence, shown_measure

MeasureName = Literal["win_rate", "reward", "progress", "score", "elo"]
RuleName = Literal["evidence", "ml-agents"]
MAX_ELO = 4000
KEPT, NEW = 0.25, 0.75  # weights of ML-Agents' smoothed measure and of the present one
Bounds = tuple[tuple[str, int], ...]
"""Bounds of a threshold: words of JSON Schema, each with its number; empty: any number."""
SHARE: Bounds = (("exclusiveMinimum", 0), ("exclusiveMaximum", 1))
SHARE_FROM_ZERO: Bounds = (("minimum", 0), ("exclusiveMaximum", 1))
_BOUND_CHECKS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = MappingProxyType(
    {
        "exclusiveMaximum": ("less than", operator.lt),
        "maximum": ("at most", operator.le),
        "exclusiveMinimum": ("greater than", operator.gt),
        "minimum": ("at least", operator.ge),
        "multipleOf": ("a multiple of", lambda value, unit: value % unit == 0),
    }
)


@plain_dataclass(frozen=True, kw_only=True)
class LessonMeasure:
    """A measure that `completion_criteria.measure` names."""

    name: str
    value: Callable[[Outcome], bool | float | None]
    """What an episode brings; None where it did not say."""
    noun: str  # what it is, for a person
    of_wins: bool = False  # whether it is a win rate
    of_rewards: bool = False  # whether it has no bounds but those that are declared
    of_episodes: bool = True  # whether episodes are evidence for it, in each cell by themselves
    bounds: Bounds = SHARE  # of a threshold, unless the rule has its own
    of_points: bool = False  # whether it is in rating points, which an expected score stands for
    of_opponents: bool = False  # whether one of the lesson's targets may be named as the opponent

    @property
    def needs_wins(self) -> bool:
        """Whether it tells nothing where no episode can be won."""
        return self.of_wins or self.of_opponents


WIN_RATE = LessonMeasure(name="win_rate", value=lambda one: one.won, noun="win rate", of_wins=True)
REWARD = LessonMeasure(
    name="reward", value=lambda one: one.reward, noun="reward", of_rewards=True, bounds=()
)
SCORE = LessonMeasure(
    name="score", value=lambda one: one.score, noun="score, a draw being half", of_opponents=True
)
ELO = LessonMeasure(
    name="elo",
    value=lambda one: one.score,
    noun="rating above the opponent",
    of_points=True,
    of_opponents=True,
    bounds=(),
)
PROGRESS = LessonMeasure(
    name="progress",
    value=lambda one: one.won,
    noun="share of steps taken",
    of_episodes=False,
    bounds=SHARE_FROM_ZERO,
)
MEASURES: Mapping[str, LessonMeasure] = MappingProxyType(
    {one.name: one for one in (WIN_RATE, REWARD, PROGRESS, SCORE, ELO)}
)


class Rule(Protocol):
    """The open question whether a lesson is passed, by the criteria that it is made of.

    One that needs what outlives a lesson keeps it in `memory`. What has no `abstractmethod` is what
    most rules do.
    """

    order: Order = "beginnings"  # in which it wants episodes: as they began, or as they end
    every_step: bool = False  # whether each step of the world is a check, not only each episode
    is_test: bool = False  # whether its statistic is the log of evidence, which passes at its bound
    relation: Literal[">", ">="] = ">"  # that what it judges must have to the threshold
    statistic: float  # what is compared with `bound`; NaN as long as there is nothing to compare
    passed: bool  # whether the lesson is passed at this very moment
    episodes: int  # how many it has counted
    _criteria: "CompletionCriteria"
    _memory: "MlAgentsMemory"

    def __init__(
        self, criteria: "CompletionCriteria", cells: Sequence[Cell], memory: "MlAgentsMemory"
    ) -> None:
        self._criteria, self._memory = criteria, memory
        self.ask(cells)

    @staticmethod
    @abstractmethod
    def faults(criteria: "CompletionCriteria") -> Iterator[str]:
        """What is wrong with `criteria` that ask for this rule."""

    @staticmethod
    def judged(criteria: "CompletionCriteria") -> str:
        """The name of what is compared with the threshold; `win_rate` for nothing but win rates."""
        return criteria.measure

    @staticmethod
    def bounds(measure: LessonMeasure) -> Bounds:
        """Bounds of the threshold, where `measure` is measured."""
        return measure.bounds

    @classmethod
    def passes(cls, statistic: float, bound: float) -> bool:
        """Whether `statistic` is enough, for a rule that asks for `bound`."""
        return statistic >= bound if cls.is_test or cls.relation == ">=" else statistic > bound

    @staticmethod
    @abstractmethod
    def ending(criteria: "CompletionCriteria", limit: str) -> str:
        """When a lesson ends, as a plan says it; `limit` is what its measure must do."""

    @staticmethod
    @abstractmethod
    def question(criteria: "CompletionCriteria") -> str:
        """How it is found out that the measure exceeds its threshold, as an explanation says it."""

    @abstractmethod
    def count(self, outcome: Outcome) -> None:
        """Take one more episode."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""

    @abstractmethod
    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""

    @property
    def bound(self) -> float:
        """What the statistic must reach or exceed: see `passes`."""
        return self._criteria.threshold

    @property
    def log_evidence(self) -> float | None:
        """Log of the evidence, of the weakest cell where every cell must pass; None: no test."""
        return self.statistic if self.is_test else None

    @property
    def log_bound(self) -> float | None:
        """Log of the evidence that passes; None: no test."""
        return self.bound if self.is_test else None

    def look(self, share: float) -> None:
        """A step of the world is over; `share` of all training steps are taken."""
        del share

    def ask(self, cells: Sequence[Cell]) -> None:
        """The lesson's mix is made of `cells` now."""
        del cells

    def lacks(self, cell: Cell) -> bool:  # noqa: ARG002
        """Whether `cell` has not passed; where all are judged together, whether these have not."""
        return not self.passed

    def missing(self) -> str:
        """What the statistic lacks, in words; empty: nothing."""
        if math.isnan(self.statistic) or self.passes(self.statistic, self.bound):
            return ""
        judged, over = self._criteria.judged, "over" if self.relation == ">" else "of at least"
        limit = shown_measure(judged, self.bound)
        found = shown_measure(judged, self.statistic, digits=4)
        return f"{judged.replace('_', ' ')} {over} {limit} (reached {found})"

    def proven(self) -> dict[Cell, RateWindow]:
        """Of each cell, or of ALL_CELLS, the episodes that prove a win rate, and its interval.

        Empty where the lesson is not passed, or by no win rate.
        """
        return {}

    def tally(self) -> dict[str, Any]:
        """What only reports need, and nothing that is learned depends on, as plain JSON values."""
        return {}

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Go on from what `tally()` gave; empty: it is not known."""
        del tally


class EvidenceRule(Rule):
    """Tests the win rate or score, or the reward between the bounds that are declared for it.

    Where the criteria name an opponent, only the episodes of that target count.
    """

    is_test = True

    def __init__(
        self, criteria: "CompletionCriteria", cells: Sequence[Cell], memory: "MlAgentsMemory"
    ) -> None:
        self._test = evidence_test(criteria)
        self.episodes = 0
        self._parts: dict[Cell, _Part] = {}
        self.below_range = 0  # rewards below the lowest that was declared
        self._asked: list[Cell] = []
        super().__init__(criteria, cells, memory)

    @staticmethod
    def faults(criteria: "CompletionCriteria") -> Iterator[str]:
        """What is wrong with `criteria` for a test, or for a share of steps without one."""
        if criteria.signal_smoothing is not None:
            yield "signal_smoothing is for rule: ml-agents; evidence smooths nothing"
        if criteria.every_cell and not criteria.measured.of_episodes:
            yield f"scope must be pooled for {criteria.measure}, which is the same in every cell"
        if not criteria.measured.of_rewards:
            if criteria.reward_range is not None:
                yield f"reward_range is for measure: reward (got {criteria.measure})"
        elif criteria.reward_range is None:
            yield (
                "reward_range is missing: evidence on a reward needs [lowest, high]; "
                "rule: ml-agents does without"
            )
        elif not criteria.reward_range[0] < criteria.threshold < criteria.reward_range[1]:
            low, high = criteria.reward_range
            yield (
                f"reward_range must hold the threshold, {criteria.threshold:g}, between its two "
                f"numbers (got {low:g} and {high:g})"
            )

    @staticmethod
    def bounds(measure: LessonMeasure) -> Bounds:
        """Rating points stand for an expected score, which differs from 0 and 1."""
        of_points: Bounds = (("minimum", -MAX_ELO), ("maximum", MAX_ELO))
        return of_points if measure.of_points else measure.bounds

    @staticmethod
    def ending(criteria: "CompletionCriteria", limit: str) -> str:
        """When a lesson ends."""
        whose = "in every cell " if criteria.every_cell else ""
        measure = criteria.measure.replace("_", " ")
        return f"on evidence {whose}that {measure} {limit} (alpha {criteria.alpha:g})"

    @staticmethod
    def question(criteria: "CompletionCriteria") -> str:
        """How much evidence is asked for."""
        scope = "in every cell" if criteria.every_cell else "over all cells"
        return f"evidence of {1 / criteria.alpha:g} (alpha {criteria.alpha:g}) {scope}"

    def ask(self, cells: Sequence[Cell]) -> None:
        """The lesson's mix is made of `cells` now; what others have shown is kept."""
        known = [cell for cell in cells if self._is_asked(cell)]
        self._asked = known if self._criteria.every_cell else [ALL_CELLS]
        for cell in self._asked:
            self._parts.setdefault(cell, _Part(self._test))

    def _is_asked(self, cell: Cell | None) -> bool:
        against = self._criteria.against
        return against is None or (cell is not None and cell.target == against)

    @property
    def statistic(self) -> float:  # type: ignore[override]
        """Log of the evidence, of the weakest cell where every cell must pass."""
        return min(self._parts[cell].log_evidence for cell in self._asked)

    @property
    def bound(self) -> float:
        """Log of the evidence that passes."""
        return self._test.log_bound

    @property
    def passed(self) -> bool:  # type: ignore[override]
        """Whether the lesson is passed at this very episode."""
        long_enough = self.episodes >= self._criteria.min_lesson_length
        return long_enough and all(not self._parts[cell].lacks for cell in self._asked)

    def lacks(self, cell: Cell) -> bool:
        """Whether `cell` has not passed, or all together."""
        if not self._is_asked(cell):
            return False
        return self._parts[cell if self._criteria.every_cell else ALL_CELLS].lacks

    def count(self, outcome: Outcome) -> None:
        """Take one more episode."""
        if not self._is_asked(outcome.cell):
            return
        self.episodes += 1
        if self._criteria.reward_range is not None and outcome.reward is not None:
            self.below_range += outcome.reward < self._criteria.reward_range[0]
        place = outcome.cell if self._criteria.every_cell else ALL_CELLS
        if place in self._parts:
            self._parts[place].count(measured(outcome, self._criteria))

    @property
    def weakest(self) -> Cell:
        """The cell with the least evidence; ALL_CELLS where these are judged together."""
        return min(self._asked, key=lambda cell: self._parts[cell].log_evidence)

    def missing(self) -> str:
        """The evidence that lacks."""
        if self.statistic >= self.bound:
            return ""
        criteria, measure = self._criteria, self._criteria.measure
        cell = f" in {self.weakest.shown}" if criteria.every_cell else ""
        evidence = shown_evidence(odds(self.statistic), odds(self.bound))
        claim = f"{measure.replace('_', ' ')} exceeds {shown_measure(measure, criteria.threshold)}"
        return f"evidence that {claim}{cell} ({evidence})"

    def proven(self) -> dict[Cell, RateWindow]:
        """Of each cell, or of ALL_CELLS, the episodes that prove a win rate, and its interval."""
        parts = {cell: self._parts[cell] for cell in self._asked}
        is_known = self._criteria.measured.of_wins and all(part.won for part in parts.values())
        if not (self.passed and is_known):
            return {}
        return {cell: part.proven() for cell, part in parts.items()}

    def tally(self) -> dict[str, Any]:
        """What `proven` needs beside `state()`, as plain JSON values."""
        return {"won": [[*cell, *part.won] for cell, part in self._parts.items()]}

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Go on from what `tally()` gave; empty: it is not known."""
        kept = {Cell(target, level): won for target, level, *won in tally.get("won", ())}
        for cell, part in self._parts.items():
            part.won = kept.get(cell, [])

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        parts = [[*cell, *part.state()] for cell, part in self._parts.items()]
        return {"episodes": self.episodes, "below_range": self.below_range, "parts": parts}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.episodes, self.below_range = state["episodes"], state["below_range"]
        self._parts = {}
        for target, difficulty, *kept in state["parts"]:
            part = self._parts[Cell(target, difficulty)] = _Part(self._test)
            part.resume(kept)


class _Part:
    """The evidence of all cells together, or of one."""

    def __init__(self, test: EvidenceTest) -> None:
        self._test = test
        self.won = [0]  # wins in each block of RESTART_EVERY episodes; empty: not known
        self._take(test.start())

    def _take(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.log_evidence = float(self._test.log_evidence(evidence))

    @property
    def lacks(self) -> bool:
        return self.log_evidence < self._test.log_bound

    def count(self, value: bool | float) -> None:
        self._take(self._test.fold(self._evidence, value))
        if self.won:
            self.won[-1] += value is True
            if self._evidence.episodes % RESTART_EVERY == 0:
                self.won.append(0)

    def proven(self) -> RateWindow:
        """The episodes since the start that proves most, and the interval of the test."""
        wins = np.cumsum(self.won[::-1])[::-1]
        episodes = self._evidence.episodes - RESTART_EVERY * np.arange(len(wins))
        lower, start = self._test.proven(wins, episodes)
        count, won = int(episodes[start]), int(wins[start])
        return RateWindow(count, won, WinRate(won / count, lower, 1.0))

    def state(self) -> list[Any]:
        return [self._evidence.log_wealth.tolist(), self._evidence.episodes]

    def resume(self, state: Iterable[Any]) -> None:
        log_wealth, episodes = state
        self.won = []
        self._take(Evidence(np.array(log_wealth, np.float64), episodes))


def evidence_test(criteria: "CompletionCriteria") -> EvidenceTest:
    """The test of `criteria`, in the units of `measured`."""
    if criteria.measured.of_points:  # the expected score at that many points
        return EvidenceTest(expected_score(criteria.threshold), criteria.alpha)
    return EvidenceTest(_scaled(criteria.threshold, criteria), criteria.alpha)


def measured(outcome: Outcome, criteria: "CompletionCriteria") -> bool | float:
    """What the test of `criteria` reads off an episode: won, or the reward as a share of its range.

    A reward above the range counts as its upper end, which can only weaken the evidence; one below
    counts as its lower end, and there the range was declared wrongly.
    """
    value = criteria.measured.value(outcome)
    if value is None:
        raise ValueError("an episode without a reward")
    if isinstance(value, bool):
        return value
    return min(max(_scaled(value, criteria), 0.0), 1.0)


def _scaled(value: float, criteria: "CompletionCriteria") -> float:
    """`value`, of the threshold or of an episode, between 0 and 1."""
    if criteria.reward_range is None:
        return value
    low, high = criteria.reward_range
    return (value - low) / (high - low)


class ProgressRule(Rule):
    """Compares the share of all training steps that are taken: nothing there is uncertain."""

    every_step = True
    faults = EvidenceRule.faults

    def __init__(
        self, criteria: "CompletionCriteria", cells: Sequence[Cell], memory: "MlAgentsMemory"
    ) -> None:
        super().__init__(criteria, cells, memory)
        self.episodes, self.statistic, self.passed = 0, math.nan, False

    @staticmethod
    def ending(criteria: "CompletionCriteria", limit: str) -> str:
        """When a lesson ends."""
        return f"when the {criteria.measured.noun} {limit}"

    @staticmethod
    def question(criteria: "CompletionCriteria") -> str:  # noqa: ARG004
        """What is compared."""
        return "share of the steps"

    def count(self, outcome: Outcome) -> None:  # noqa: ARG002
        """Take one more episode towards the least length."""
        self.episodes += 1

    def look(self, share: float) -> None:
        """Compare the share of all training steps."""
        self.statistic = share
        long_enough = self.episodes >= self._criteria.min_lesson_length
        self.passed = long_enough and share > self.bound

    def state(self) -> dict[str, Any]:
        """Everything that was counted, as plain JSON values."""
        share = None if math.isnan(self.statistic) else self.statistic
        return {"episodes": self.episodes, "share": share, "passed": self.passed}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.episodes, self.passed = state["episodes"], state["passed"]
        self.statistic = math.nan if state["share"] is None else state["share"]


class MlAgentsMemory:
    """What outlives a lesson: the values of the last episodes, newest first, and the smoothing."""

    def __init__(self, criteria: "Iterable[CompletionCriteria]") -> None:
        lengths = [one.min_lesson_length for one in criteria if one.rule == "ml-agents"]
        self.values: deque[float] = deque(maxlen=max(1, *lengths, 1))
        self.smoothing = 0.0

    def end_lesson(self) -> None:
        """Drop the episodes; the smoothed measure stays."""
        self.values.clear()

    def state(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"values": list(self.values), "smoothing": self.smoothing}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.values.extend(state["values"])
        self.smoothing = state["smoothing"]


class MlAgentsRule(Rule):
    """One lesson under the rule by which ML-Agents ends it, with what is odd about it.

    Read in its Python package, version 1.1.0: `CompletionCriteriaSettings.need_increment` in
    trainers/settings.py, and where it is called from. What surprises:

    - It is asked after every step of the environment, not after an episode, and the smoothed
      measure moves towards the same mean each time: it delays by a few steps and filters nothing.
    - The mean is over the last episodes to end, as many as the *largest* `min_lesson_length` of all
      lessons; those that began under an earlier lesson count.
    - The smoothed measure starts at 0 and is carried from lesson to lesson; the episodes are
      dropped.

    Its documentation has a measure Elo that its code never had: here the running rating after the
    last episode stands in the place of the mean.
    """

    order: Order = "ends"
    every_step = True

    def __init__(
        self, criteria: "CompletionCriteria", cells: Sequence[Cell], memory: MlAgentsMemory
    ) -> None:
        super().__init__(criteria, cells, memory)
        self._counted, self.statistic, self.passed = 0, math.nan, False

    @staticmethod
    def faults(criteria: "CompletionCriteria") -> Iterator[str]:
        """What is wrong with `criteria` that ask for ML-Agents' rule."""
        if criteria.every_cell:
            yield "scope must be pooled under rule: ml-agents, which knows no cells"
        if criteria.reward_range is not None:
            yield "reward_range is for rule: evidence; rule: ml-agents has no bounds"

    @staticmethod
    def ending(criteria: "CompletionCriteria", limit: str) -> str:
        """When a lesson ends."""
        if not criteria.measured.of_episodes:
            return f"when the {criteria.measured.noun} {limit}"
        if criteria.by_running_rating:
            return f"as in ML-Agents, when the running rating in self-play {limit}"
        return f"as in ML-Agents, when the mean {criteria.measure.replace('_', ' ')} {limit}"

    @staticmethod
    def question(criteria: "CompletionCriteria") -> str:
        """Whether the measure is smoothed."""
        is_smoothed = criteria.smoothed and criteria.measured.of_episodes
        return f"rule ml-agents{', smoothed (with a quarter of the value before)' * is_smoothed}"

    @property
    def episodes(self) -> int:  # type: ignore[override]
        """How many of the lesson have ended."""
        return max(self._counted, len(self._memory.values))

    def count(self, outcome: Outcome) -> None:
        """Take one more episode that has ended."""
        self._counted += 1
        self._memory.values.appendleft(self._value(outcome))

    def _value(self, outcome: Outcome) -> float:
        if self._criteria.by_running_rating:
            return math.nan if outcome.rating is None else outcome.rating
        value = self._criteria.measured.value(outcome)
        return float(outcome.won if value is None else value)

    def look(self, share: float) -> None:
        """Ask whether the lesson is over."""
        self.passed = self._need_increment(share)

    def _need_increment(self, share: float) -> bool:
        criteria, memory = self._criteria, self._memory
        if len(memory.values) < criteria.min_lesson_length:
            return False
        if not criteria.measured.of_episodes:
            self.statistic = share
            return share > criteria.threshold
        if not memory.values:
            return False
        values = memory.values
        measure = values[0] if criteria.by_running_rating else float(np.mean(values))
        if math.isnan(measure):
            return False
        if criteria.smoothed:
            measure = KEPT * memory.smoothing + NEW * measure
            memory.smoothing = measure
        self.statistic = measure
        return measure > criteria.threshold

    def tally(self) -> dict[str, Any]:
        """What `episodes` needs beside `state()`."""
        return {"episodes": self._counted}

    def resume_tally(self, tally: Mapping[str, Any]) -> None:
        """Go on from what `tally()` gave."""
        self._counted = tally.get("episodes", 0)

    def state(self) -> dict[str, Any]:
        """Everything that the lesson has by itself, as plain JSON values."""
        statistic = None if math.isnan(self.statistic) else self.statistic
        return {"statistic": statistic, "passed": self.passed}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.statistic = math.nan if state["statistic"] is None else state["statistic"]
        self.passed = state["passed"]


RULES: Mapping[RuleName, type[Rule]] = MappingProxyType(
    {"evidence": EvidenceRule, "ml-agents": MlAgentsRule}
)
"""By name: what finds out that a lesson is passed."""


def rule_class(rule: RuleName, measure: LessonMeasure) -> type[Rule]:
    """The class that finds it out, where `measure` is measured."""
    if rule == "evidence" and not measure.of_episodes:
        return ProgressRule
    return RULES[rule]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CompletionCriteria:
    """What ends a lesson: a measure that exceeds a threshold, and the rule that decides it."""

    measure: MeasureName = "win_rate"
    """What is measured: the share of episodes won, the mean reward of an episode, the share of the
    training's steps, the mean score (1 won, 0.5 drawn, 0 lost), or the rating points (Elo) by which
    the agent exceeds the opponent `against` (with rule `ml-agents`, its running rating in
    self-play)."""
    rule: RuleName = "evidence"
    """How it is decided. `evidence`: by a test that may be evaluated after every episode, and is
    wrong with a probability of at most `alpha`. `ml-agents`: by the mean of the last episodes, as
    in ML-Agents, which sooner or later passes by luck."""
    against: str | None = None
    """For `score` and `elo`: the only target whose episodes count; `elo` needs one."""
    threshold: Float
    """Value that the measure must exceed."""
    min_lesson_length: Annotated[Int, Ge(0)] = 100
    """Minimum number of episodes of the lesson; with `ml-agents`, the largest of all lessons is
    also the number of episodes in the mean."""
    alpha: Annotated[Float, Gt(0), Le(0.5)] = 0.05
    """Upper bound on the probability that the lesson ends although the threshold was never
    exceeded."""
    scope: Literal["pooled", "every_cell"] = "pooled"
    """Whether all episodes together must pass, or every target at every difficulty."""
    greedy_proof: Bool = True
    """Whether an agent that explores while it learns (dqn, qrdqn, q_learning) must show the same
    evidence in further episodes without exploring or learning; until it does, the lesson
    continues."""
    reward_range: tuple[Float, Float] | None = None
    """Lowest possible return of an episode, and an upper end that higher returns count as.
    `evidence` needs it for `reward`, because no test holds for unbounded values."""
    signal_smoothing: Bool | None = None
    """With `ml-agents`: mix a quarter of the previous measure into the current one, as ML-Agents
    does."""

    def __post_init__(self) -> None:
        of_rule = self.rule_type.faults(self)
        faults = [*self._opponent_faults(), *self._threshold_faults(), *of_rule]
        if faults:
            raise ValueError("\n".join(faults))

    @property
    def smoothed(self) -> bool:
        """Whether ML-Agents' rule smooths its measure."""
        return self.signal_smoothing is not False

    @property
    def every_cell(self) -> bool:
        """Whether each cell must pass by itself."""
        return self.scope == "every_cell"

    @property
    def by_evidence(self) -> bool:
        """Whether a test decides."""
        return self.rule_type.is_test

    @property
    def by_running_rating(self) -> bool:
        """Whether the rating decides that is kept while the learner meets itself."""
        return self.rule == "ml-agents" and self.measured.of_points

    @property
    def measured(self) -> LessonMeasure:
        """What is measured."""
        return MEASURES[self.measure]

    @property
    def rule_type(self) -> type[Rule]:
        """What finds out that the lesson is passed."""
        return rule_class(self.rule, self.measured)

    @property
    def judged(self) -> str:
        """The name of what is compared with the threshold."""
        return self.rule_type.judged(self)

    @property
    def of_win_rate(self) -> bool:
        """Whether the threshold is one of the win rate."""
        return self.judged == WIN_RATE.name

    @property
    def ending(self) -> str:
        """When the lesson ends, as a plan says it."""
        does = "exceeds" if self.rule_type.relation == ">" else "reaches"
        limit = f"{does} {shown_measure(self.judged, self.threshold)}"
        if self.against is not None:
            limit = f"against {self.against} {limit}"
        ends = self.rule_type.ending(self, limit)
        return f"{ends}, after {self.min_lesson_length:,} episodes at least"

    @property
    def question(self) -> str:
        """What is asked, as an explanation says it."""
        opponent = "" if self.against is None else f" against {self.against}"
        how = f"{self.rule_type.question(self)}, at least {self.min_lesson_length:,} episodes"
        limit = f"{self.rule_type.relation} {shown_measure(self.judged, self.threshold)}"
        return f"{self.judged.replace('_', ' ')}{opponent} {limit}: {how}"

    def _opponent_faults(self) -> Iterator[str]:
        measure = self.measured
        if self.against is not None and not measure.of_opponents:
            yield f"against is for measure: score or elo (got {self.measure})"
        elif self.against is not None and self.rule != "evidence":
            yield "against is for rule: evidence"
        elif measure.of_points and self.rule == "evidence" and self.against is None:
            yield "against is missing: elo under evidence is points above one of the targets"

    def _threshold_faults(self) -> Iterator[str]:
        for word, limit in self.rule_type.bounds(self.measured):
            what, holds = _BOUND_CHECKS[word]
            if not holds(self.threshold, limit):
                fault = f"threshold must be {what} {float(limit)} (got {self.threshold})"
                if self.measure == "progress" and self.threshold == 1.0:
                    fault += "; a last lesson without completion_criteria takes all steps"
                yield fault
