"""A rule is one class, which tells plan, reports, `explain`, panel and schema what to say of it."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from curriculum_game import DIFFICULTIES, Game, lesson, line
from jsonschema import Draft7Validator
from pydantic import ValidationError

from aimbot_lab.cli.commands.explain import _texts
from aimbot_lab.cli.text import lesson_line
from aimbot_lab.curriculum import rules
from aimbot_lab.curriculum.evidence import Outcome
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.reports import Measured, floors
from aimbot_lab.curriculum.rule_replay import RecordedRun, replays
from aimbot_lab.curriculum.rules import CompletionCriteria, Rule
from aimbot_lab.experiment.analysis.explanation import Explanation
from aimbot_lab.experiment.config.schema import document_schema
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.panel.server.run_list import ShownLesson

ASKED: dict[str, Any] = {"rule": "ml-agents", "threshold": 10.0, "min_lesson_length": 0}


class StreakRule(Rule):
    """Counts wins in a row: no win rate, a whole number, which is reached."""

    relation = ">="

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.episodes, self.statistic = 0, 0.0

    @staticmethod
    def judged(criteria: CompletionCriteria) -> str:
        return "wins_in_a_row"

    @staticmethod
    def bounds(measure: rules.LessonMeasure) -> rules.Bounds:
        return (("minimum", 1), ("multipleOf", 1))

    @staticmethod
    def faults(criteria: CompletionCriteria) -> Iterator[str]:
        if not criteria.measured.of_wins:
            yield f"measure must be win_rate (got {criteria.measure})"

    @staticmethod
    def ending(criteria: CompletionCriteria, limit: str) -> str:
        return f"when the wins in a row {limit}".replace("reaches", "reach")

    @staticmethod
    def question(criteria: CompletionCriteria) -> str:
        return "a row"

    @property
    def passed(self) -> bool:  # type: ignore[override]
        return self.statistic >= self.bound

    def count(self, outcome: Outcome) -> None:
        self.episodes += 1
        self.statistic = self.statistic + 1.0 if outcome.won else 0.0

    def state(self) -> dict[str, Any]:
        return {"episodes": self.episodes, "row": self.statistic}

    def resume(self, state: Mapping[str, Any]) -> None:
        self.episodes, self.statistic = state["episodes"], state["row"]


@pytest.fixture(autouse=True)
def streak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule in the place of ML-Agents', whose name the settings know."""
    changed = MappingProxyType({**rules.RULES, "ml-agents": StreakRule})
    monkeypatch.setattr(rules, "RULES", changed)


def played(*won: bool) -> Game:
    game = Game(CurriculumProgress([lesson("a", criteria=ASKED)], DIFFICULTIES))
    game.play(*map(line, won), step=7)
    return game


def test_a_threshold_within_the_rules_own_bounds_is_no_win_rate_anywhere() -> None:
    criteria = CompletionCriteria(**ASKED)
    assert criteria.ending == "when the wins in a row reach 10, after 0 episodes at least"
    assert criteria.question == "wins in a row >= 10: a row, at least 0 episodes"
    progress = played(*[True] * 9, False, *[True] * 9).progress
    assert progress.missing == "wins in a row of at least 10 (reached 9)"
    assert progress.view.threshold is None
    assert progress.view.measured == Measured("wins_in_a_row", 9.0, 10.0)
    assert lesson_line(progress.view).endswith("  wins in a row 9 against 10")
    assert progress.held_back_by() == ()


def test_a_passed_lesson_is_reported_in_the_rules_words() -> None:
    progress = played(*[True] * 10).progress
    assert progress.finished
    (report,) = progress.lesson_reports
    assert (report.asked, report.found) == ("wins in a row >= 10", "10 (no test)")
    assert report.proof("0.95") == "wins in a row 10 >= 10, by rule ml-agents"
    shown = ShownLesson(**vars(report))
    assert (shown.asked_words, shown.found_words) == (report.asked, report.found)
    assert shown.proof_words == report.proof()
    assert floors(progress._open, 0.1) == {}, "no win rate was passed, from which one could fall"


def test_explain_shows_its_relation_and_what_another_threshold_would_have_done() -> None:
    game = played(*[True] * 6, False, *[True] * 9)
    where = RecordedRun((lesson("a", criteria=ASKED),), DIFFICULTIES, 1, 100)
    found = tuple(replays(game.record, where, threshold=5.0))
    text = "\n".join(_texts(Explanation("3f2a", "a run", where, found), every=True))
    assert "missing: wins in a row of at least 10 (reached 9)" in text
    assert "with threshold 5: passed at step 7 after 5 episodes" in text
    assert "wins_in_a_row" in text
    assert ">= 10" in text


def test_its_bounds_are_those_of_the_settings_and_of_the_schema() -> None:
    schema = document_schema(CurriculumFile, title="curricula")
    validator = Draft7Validator({**schema["$defs"]["CompletionCriteria"], "$defs": schema["$defs"]})
    assert validator.is_valid(ASKED)
    for threshold, fault in (0.9, "at least 1.0"), (2.5, "a multiple of 1.0"):
        asked = {**ASKED, "threshold": threshold}
        assert not validator.is_valid(asked)
        with pytest.raises(ValidationError, match=f"threshold must be {fault}"):
            CompletionCriteria(**asked)
