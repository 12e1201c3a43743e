"""`aimbot-lab explain`: why did a lesson end, or not?"""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_runs
from aimbot_lab.cli.text import print_json, table, wrapped
from aimbot_lab.foundation.shown_text import (
    odds,
    shown_evidence,
    shown_measure,
    shown_odds,
    shown_rate,
    terminal_lines,
)

if TYPE_CHECKING:
    from aimbot_lab.curriculum.reports import Check
    from aimbot_lab.curriculum.rule_replay import Replayed, RuleReplay
    from aimbot_lab.experiment.analysis.explanation import Explanation

HEAD = ("episodes", "step", "evidence", "needed", "")


@click.command(short_help="Explain why lessons ended, or did not.")
@click.argument("run", shell_complete=complete_runs)
@click.option("--threshold", type=float, help="Also show the effect of this threshold.")
@click.option(
    "--all", "every", is_flag=True, help="Show every check, not only the informative ones."
)
@options.trust
@options.place
@options.as_json
def explain(
    run: str, threshold: float | None, every: bool, place: options.StorePlace, as_json: bool
) -> None:
    """Explain why each lesson of RUN (its id, or the beginning of it) ended or did not.

    Replays the lesson's rule on the episodes that the run recorded, also while it still trains.
    `evidence` is the odds against luck that the win rate exceeds the threshold; a lesson passes at
    1 / alpha. Rules without a test compare the measure itself. Another threshold is applied to the
    same episodes; what the agent would have learned with it is unknown.

    \b
    Example:
      aimbot-lab explain 3f2a --threshold 0.85
    """
    from aimbot_lab.experiment.analysis.explanation import explain_run

    if threshold is not None and not math.isfinite(threshold):
        raise click.BadParameter("must be a number", param_hint="--threshold")
    explanation = explain_run(
        run, place.folder, tracking_uri=place.tracking_uri, threshold=threshold
    )
    if as_json:
        print_json(_document(explanation, every=every))
    else:
        click.echo(wrapped(terminal_lines("\n\n".join(_texts(explanation, every=every)))))


def _texts(explanation: "Explanation", *, every: bool) -> Iterator[str]:
    from aimbot_lab.experiment.analysis.explanation import disagreements

    yield f"run {explanation.run_id}  {explanation.name}"
    for replayed in explanation.replayed:
        yield "\n".join(_lesson(explanation, replayed, every=every))
    for number in disagreements(explanation):
        lesson = explanation.replayed[number].attempt.lesson + 1
        yield f"The record of lesson {lesson} has a gap: the run ended it elsewhere."


def _lesson(explanation: "Explanation", replayed: "Replayed", *, every: bool) -> Iterator[str]:
    from aimbot_lab.experiment.analysis.explanation import informative_checks

    attempt = replayed.attempt
    lesson = explanation.world.lessons[attempt.lesson]
    named = f"lesson {attempt.lesson + 1} {lesson.name!r}"
    yield f"{named if explanation.has_lessons else 'no lessons'}: {_ending(replayed)}"
    if replayed.own is not None:
        yield f"  asks for {replayed.own.criteria.question}"
    if lacking := _lacking(replayed.own):
        yield f"  {lacking}"
    for event in attempt.events:
        yield f"  {_event(event)}"
    if replayed.other is not None:
        yield f"  {_what_if(replayed.other)}"
    if replayed.refused:
        yield f"  what if: {replayed.refused}"
    if replayed.own is not None and replayed.own.checks:
        checks = replayed.own.checks if every else informative_checks(replayed.own)
        rows = [_row(check, replayed.own) for check in checks]
        by_evidence = replayed.own.criteria.by_evidence
        found = HEAD[2] if by_evidence else replayed.own.criteria.judged
        head = (*HEAD[:2], found, *HEAD[3:])
        yield "\n".join(f"  {line}" for line in table(head, rows).splitlines())


def _ending(replayed: "Replayed") -> str:
    end, counted = replayed.attempt.end, len(replayed.attempt.episodes)
    if end is not None:
        where = f"at step {end['step']:,} after {counted:,} episodes"
        if end["decision"] == "demote":
            return f"left for an earlier lesson {where}"
        return f"passed {where}{_proof(replayed.own)}"
    if replayed.own is None:
        return f"ends when all steps are taken; {counted:,} episodes counted"
    return f"not passed; {counted:,} episodes counted"


def _proof(replay: "RuleReplay | None") -> str:
    """What a lesson that was passed has shown; empty where the replay does not say so."""
    from aimbot_lab.curriculum.reports import lesson_report

    if replay is None or replay.passed is None:
        return ""
    report = lesson_report(replay.lesson, replay.passed.step)
    won = shown_rate(report.win_rate, report.lower, report.upper) + report.level
    return f": {report.proof(won)}"


def _lacking(replay: "RuleReplay | None") -> str:
    """The cell that holds a lesson back, or what is missing of a measure that asks no cell."""
    from aimbot_lab.curriculum.reports import held_back, missing
    from aimbot_lab.foundation.episodes import Cell

    if replay is None or replay.passed is not None:
        return ""
    if lacks := missing(replay.lesson):
        return f"missing: {lacks}"
    cells = held_back(replay.lesson)
    if not cells:
        return ""
    cell = cells[0]
    name = Cell(cell.target, cell.difficulty).shown
    if not cell.episodes:
        return f"held back by {name}: no episode of it has counted"
    won = shown_rate(cell.win_rate, cell.lower, cell.upper)
    return f"held back by {name}: win rate {won} over its last {cell.episodes} episodes"


def _event(event: dict[str, Any]) -> str:
    from aimbot_lab.curriculum.current_lesson import GreedyCheck, Regression

    where = f"at step {event['step']:,}, after {event['episodes']:,} episodes"
    if event["kind"] == "weights":
        weights = " ".join(f"{weight:.3g}" for weight in event["weights"])
        return f"{where}: difficulty weights of {event['target']} moved to {weights}"
    if event["kind"] == "greedy":
        played, won, passed = event["played"], event["won"], event["passed"]
        return f"{where}: {GreedyCheck(played, won, passed).line}"
    if event["kind"] == "targets":
        pairs = zip(event["targets"], event["weights"], strict=True)
        weights = " ".join(f"{target} {weight:.3g}" for target, weight in pairs)
        return f"{where}: weights of the targets moved to {weights}"
    regression = Regression(**event["regression"])
    evidence = shown_evidence(odds(regression.log_evidence), odds(regression.log_bound))
    return f"{where}: {regression.line} (evidence {evidence})"


def _what_if(other: "RuleReplay") -> str:
    passed = other.passed
    threshold = shown_measure(other.criteria.judged, other.criteria.threshold)
    if passed is None:
        return f"with threshold {threshold}: not passed by these episodes"
    return (
        f"with threshold {threshold}: passed at step {passed.step:,} "
        f"after {passed.episodes:,} episodes"
    )


def _row(check: "Check", replay: "RuleReplay") -> tuple[str, ...]:
    found, needed = _found(check, replay)
    enough = replay.reached(check) and check.decision == "stay"
    why = "not without exploration" if replay.attempt.refused(check) else "too few episodes"
    note = "passed" if check.decision != "stay" else f"enough, but {why}" * enough
    return f"{check.episodes:,}", f"{check.step:,}", found, needed, note


def _found(check: "Check", replay: "RuleReplay") -> tuple[str, str]:
    if replay.criteria.by_evidence:
        needed = odds(check.bound)
        return shown_odds(odds(check.statistic), needed), shown_odds(needed)
    judged, is_known = replay.criteria.judged, not math.isnan(check.statistic)
    found = shown_measure(judged, check.statistic, digits=4) if is_known else "-"
    return found, f"{replay.criteria.rule_type.relation} {shown_measure(judged, check.bound)}"


def _document(explanation: "Explanation", *, every: bool) -> dict[str, Any]:
    lessons = [_lesson_document(explanation, one, every=every) for one in explanation.replayed]
    return {"schema": 1, "run_id": explanation.run_id, "name": explanation.name, "lessons": lessons}


def _lesson_document(
    explanation: "Explanation", replayed: "Replayed", *, every: bool
) -> dict[str, Any]:
    from aimbot_lab.curriculum.reports import lesson_report, missing

    attempt, own, other, refused = replayed
    document: dict[str, Any] = {
        "lesson": attempt.lesson + 1,
        "name": explanation.world.lessons[attempt.lesson].name,
        "began_at_step": attempt.began_at_step,
        "episodes": len(attempt.episodes),
        "end": attempt.end,
        "events": list(attempt.events),
        "criteria": None if own is None else asdict(own.criteria),
    }
    if own is not None:
        from aimbot_lab.experiment.analysis.explanation import informative_checks

        shown = own.checks if every else informative_checks(own)
        document |= {
            "checks_made": len(own.checks),
            "checks": [_check_document(check) for check in shown],
        }
        step = None if own.passed is None else own.passed.step
        document["report"] = asdict(lesson_report(own.lesson, step))
        document["missing"] = missing(own.lesson)
        document["agrees"] = own.agrees
    if other is not None:
        passed = other.passed and _check_document(other.passed)
        document["what_if"] = {"threshold": other.criteria.threshold, "passed": passed}
    if refused:
        document["what_if"] = {"refused": refused}
    return document


def _check_document(check: "Check") -> dict[str, Any]:
    statistic = None if math.isnan(check.statistic) else check.statistic
    return {
        "episodes": check.episodes,
        "step": check.step,
        "statistic": statistic,
        "bound": check.bound,
        "decision": check.decision,
    }
