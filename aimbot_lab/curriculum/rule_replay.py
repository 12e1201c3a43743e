"""A run's lessons once more, from what it recorded: every check, and what others would have done.

The very classes that decided in the run read its recorded episodes again, so a replay with the
run's own criteria ends every lesson where the run did.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pydantic import ValidationError

from aimbot_lab.curriculum.current_lesson import CurrentLesson
from aimbot_lab.curriculum.progress import ADVICE, DAMAGED, CountedEpisode, KeptRecord
from aimbot_lab.curriculum.reports import Check, Decision
from aimbot_lab.curriculum.rules import CompletionCriteria, MlAgentsMemory
from aimbot_lab.curriculum.settings import Lesson, LiveMix, MixWeights
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.shown_text import one_line


@dataclass(frozen=True)
class RecordedRun:
    """What a replay must know of the run besides its record."""

    lessons: tuple[Lesson, ...]
    difficulties: Mapping[str, int]
    seats: int  # environment steps that one step of the world makes
    total_steps: int


@dataclass(frozen=True)
class LessonAttempt:
    """One time that a lesson was learned, as it was recorded."""

    lesson: int  # from 0
    began_at_step: int
    episodes: tuple[CountedEpisode, ...]  # that the lesson counted
    events: tuple[dict[str, Any], ...]
    end: dict[str, Any] | None  # the event that ended it; None: it was open when the run ended

    def refused(self, check: Check) -> bool:
        """Whether the run took what was found at `check` back: not shown without exploration."""
        taken = ("greedy", check.step, check.episodes, False)
        keys = ("kind", "step", "episodes", "passed")
        return any(tuple(map(event.get, keys)) == taken for event in self.events)


@dataclass(frozen=True)
class RuleReplay:
    """An attempt under some criteria, which may be others than the run's."""

    attempt: LessonAttempt
    criteria: CompletionCriteria
    checks: tuple[Check, ...]  # in order, without those that repeat the one before
    lesson: CurrentLesson  # after the last check

    @property
    def passed(self) -> Check | None:
        """The check that passed the lesson; None where none did."""
        last = self.checks[-1] if self.checks else None
        return last if last is not None and last.decision != "stay" else None

    def reached(self, check: Check) -> bool:
        """Whether what was found at `check` passes, were there episodes enough."""
        return self.criteria.rule_type.passes(check.statistic, check.bound)

    @property
    def agrees(self) -> bool:
        """Whether the run itself ended the lesson at this check, or as little as this replay."""
        end, passed = self.attempt.end, self.passed
        if end is None or end["decision"] == "demote":
            return passed is None
        return passed is not None and passed.step == end["step"]


def attempts(record: KeptRecord) -> tuple[LessonAttempt, ...]:
    """The lessons in the order in which they were learned, each with its record."""
    found = []
    counted = [episode for episode in record.episodes if episode.outcome.counts]
    lesson, began, place, events = 0, 0, 0, list[dict[str, Any]]()
    for event in (*record.events, None):
        if event is not None and event["kind"] != "lesson":
            events.append(event)
            continue
        first = place
        while place < len(counted) and counted[place].lesson == lesson:
            place += 1
        episodes = tuple(counted[first:place])
        found.append(LessonAttempt(lesson, began, episodes, tuple(events), event))
        if event is None or event["next"] is None:
            break
        lesson, began, events = event["next"], event["step"], []
    return tuple(found)


class Replayed(NamedTuple):
    """An attempt under the run's own criteria and under another threshold."""

    attempt: LessonAttempt
    own: RuleReplay | None  # None: the lesson has no criterion
    other: RuleReplay | None  # None: nor was another threshold given, or it does not take it
    refused: str = ""  # why it does not take the other threshold


def replays(
    record: KeptRecord, world: RecordedRun, *, threshold: float | None = None
) -> Iterator[Replayed]:
    """Every attempt, each with all that came before it as it was in the run.

    A lesson whose criterion does not take `threshold` says so in `refused`. Raises LabError where
    the record is none of these lessons.
    """
    criteria = [one.completion_criteria for one in world.lessons if one.completion_criteria]
    memory = MlAgentsMemory(criteria)
    for attempt in attempts(record):
        memory.end_lesson()
        if attempt.lesson >= len(world.lessons):
            what = f"lesson {attempt.lesson + 1} began, and the run has {len(world.lessons)}"
            raise _contradiction(attempt.began_at_step, what)
        lesson = world.lessons[attempt.lesson]
        if lesson.completion_criteria is None:
            yield Replayed(attempt, None, None)
            continue
        other, refused = None, ""
        if threshold is not None:
            changed, refused = _with_threshold(lesson, lesson.completion_criteria, threshold)
            if changed is not None:
                other = _replay(attempt, changed, world, memory=deepcopy(memory))
        yield Replayed(attempt, _replay(attempt, lesson, world, memory=memory), other, refused)


def _with_threshold(
    lesson: Lesson, criteria: CompletionCriteria, threshold: float
) -> tuple[Lesson | None, str]:
    """The lesson with another threshold, or why there is none."""
    try:
        changed = replace(criteria, threshold=threshold)
    except ValidationError as error:
        return None, error.errors()[0]["msg"].removeprefix("Value error, ")
    return replace(lesson, completion_criteria=changed), ""


def _replay(
    attempt: LessonAttempt, lesson: Lesson, world: RecordedRun, *, memory: MlAgentsMemory
) -> RuleReplay:
    mix = LiveMix(lesson, world.difficulties)
    opened = CurrentLesson(lesson, mix.cells, memory=memory)
    checks = list(_checks(_Game(attempt, opened, mix), world))
    if lesson.completion_criteria is None:
        raise ValueError(f"lesson {lesson.name!r} has no criterion")
    return RuleReplay(attempt, lesson.completion_criteria, tuple(checks), opened)


def _contradiction(step: int, what: str) -> LabError:
    return LabError(f"{DAMAGED}: at step {step:,} {one_line(what)}; {ADVICE}")


KINDS = ("weights", "targets")  # of events that are changes of the mix


class _Game:
    """An attempt that plays its recorded episodes into a lesson."""

    def __init__(self, attempt: LessonAttempt, opened: CurrentLesson, mix: LiveMix) -> None:
        self.attempt, self.opened, self._mix = attempt, opened, mix
        self.settled = False  # whether no look changes anything until the next episode has ended
        self._changes = [event for event in attempt.events if event["kind"] in KINDS]

    def count(self, episode: CountedEpisode) -> None:
        """Play one episode, and before it what was changed by hand."""
        while self._changes and self._changes[0]["episodes"] <= self.opened.episodes:
            change = self._changes.pop(0)
            self._change(change)
            self.opened.ask(self._mix.cells)
        cell = episode.outcome.cell
        if cell is not None and cell not in self._mix.known:
            name = cell.shown
            raise _contradiction(episode.step, f"ended an episode of {name}, which it can't draw")
        try:
            self.opened.show(episode.outcome)
            self.opened.count(episode.outcome)
        except ValueError as error:
            raise _contradiction(episode.step, f"there was {error}") from error

    def look(self, step: int, total_steps: int) -> Check:
        """Ask the lesson's rule after a step of the world."""
        rule, share = self.opened.rule, step / total_steps
        before = math.nan if rule is None else rule.statistic
        self.opened.look(share)
        statistic, bound = (math.nan, math.nan) if rule is None else (rule.statistic, rule.bound)
        repeats = statistic == before or (math.isnan(statistic) and math.isnan(before))
        self.settled = repeats or (share > 1 and statistic == share)
        decision: Decision = "promote" if self.opened.passed else "stay"
        episodes = self.opened.episodes
        return Check(self.attempt.lesson, step, episodes, statistic, bound, decision)

    def _change(self, change: Mapping[str, Any]) -> None:
        weights, locked = tuple(change["weights"]), tuple(change["locked"])
        try:
            target = None if change["kind"] == "targets" else change["target"]
            keys = range(1, len(weights) + 1) if target is not None else change["targets"]
            self._mix.put(target, MixWeights(tuple(keys), weights, locked))
        except ConfigurationError as error:
            raise _contradiction(change["step"], str(error)) from error


def _checks(game: _Game, world: RecordedRun) -> Iterator[Check]:
    """One check for each episode, or for each step where the rule looks at each."""
    attempt, opened = game.attempt, game.opened
    by_step = opened.rule is not None and opened.rule.every_step
    one_by_one = ((episode.step, (episode,)) for episode in attempt.episodes)
    for step, episodes in _steps(game, world.seats) if by_step else one_by_one:
        for episode in episodes:
            game.count(episode)
        check = game.look(step, world.total_steps)
        if attempt.refused(check):
            yield replace(check, decision="stay")
            opened.begin_evidence()
            continue
        yield _where_the_run_looked(check, attempt) if by_step and opened.passed else check
        if opened.passed:
            return


def _where_the_run_looked(check: Check, attempt: LessonAttempt) -> Check:
    """`check`, which passes, or the run's own where it can't have looked before that.

    Without an ended episode it looks where a rollout ends alone, which is in no record.
    """
    end = attempt.end
    if end is None or end["decision"] == "demote" or check.step >= end["step"]:
        return check
    if any(check.step <= episode.step < end["step"] for episode in attempt.episodes):
        return check
    return replace(check, step=end["step"], statistic=end["statistic"])


def _steps(game: _Game, seats: int) -> Iterator[tuple[int, Sequence[CountedEpisode]]]:
    """The steps of the world until `game` has settled, with the episodes that each brought."""
    attempt = game.attempt
    ends = [episode.step for episode in attempt.episodes]
    last = attempt.end["step"] if attempt.end else max(ends, default=attempt.began_at_step)
    place, step = 0, attempt.began_at_step + seats
    while step <= last:
        first, place = place, bisect_right(ends, step, lo=place)
        yield step, attempt.episodes[first:place]
        following = ends[place] if place < len(ends) else last + 1
        quiet = (following - step - 1) // seats if first == place and game.settled else 0
        step += seats * (1 + max(quiet, 0))
