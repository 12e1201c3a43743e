"""A curriculum's plan as `run --dry-run` prints it."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli.views.text import print_json, terminal_width
from aimbot_lab.foundation.shown_text import one_line

if TYPE_CHECKING:
    from aimbot_lab.curriculum.promotion.forecast import Expectation
    from aimbot_lab.experiment.runs.plan import CurriculumPlan, PlannedCell, PlannedLesson

MARGIN = 13  # characters before what is said of a lesson
WIDEST = 100


def show_plan(plan: "CurriculumPlan", *, as_json: bool) -> None:
    """Print `plan` on standard output, and its warnings also on standard error."""
    for warning in plan.warnings:
        click.echo(one_line(f"warning: {warning}"), err=True)
    if as_json:
        print_json(plan.as_json())
    else:
        click.echo("\n\n".join(plan_text(plan, terminal_width() or WIDEST)))


def plan_text(plan: "CurriculumPlan", width: int) -> Iterator[str]:
    """Head, lessons and the whole configuration, in lines of at most `width` characters."""
    config = plan.curriculum.config
    count = len(plan.lessons)
    yield (
        f"{config.name}: {count} {'lesson' if count == 1 else 'lessons'}, at most "
        f"{config.train.total_steps:,} steps, seed {config.seed}; nothing was created"
    )
    yield "\n".join(textwrap.wrap(str(plan.cost), max(width, 3 * MARGIN)))
    keep = config.train.samples.keep
    if keep > 1:
        steps = f"{plan.epoch_samples:,} steps"
        yield f"samples: an epoch passes over the last {keep} rollouts, {steps}"
    yield "\n".join(textwrap.wrap(f"scaling: {plan.scaling}", max(width, 3 * MARGIN)))
    if plan.sharing is not None:
        yield "\n".join(textwrap.wrap(str(plan.sharing), max(width, 3 * MARGIN)))
    if plan.network:
        yield "\n".join(_network_lines(plan))
    for number, planned in enumerate(plan.lessons, start=1):
        lines = [f"lesson {number}/{count} {planned.lesson.name!r}"]
        for head, text in _lesson_lines(planned):
            lines += textwrap.wrap(
                text,
                max(width, 3 * MARGIN),
                initial_indent=f"  {head}".ljust(MARGIN),
                subsequent_indent=" " * MARGIN,
            )
        yield "\n".join(lines)
    yield f"the whole configuration:\n\n{plan.curriculum.resolved_text}".rstrip()


def _network_lines(plan: "CurriculumPlan") -> Iterator[str]:
    weights = sum(part.weights for part in plan.network)
    yield f"network: {weights:,} weights, engine {plan.engine}"
    for part in plan.network:
        yield f"  {part.name:<19} {part.inputs:>5} -> {part.outputs:<5} {part.weights:>10,} weights"


def _lesson_lines(planned: "PlannedLesson") -> Iterator[tuple[str, str]]:
    yield "mix", ", ".join(map(_cell, planned.cells))
    if planned.lesson.parameters:
        parameters = planned.lesson.parameters.items()
        yield "parameters", ", ".join(f"{name} {_parameter(value)}" for name, value in parameters)
    criteria = planned.lesson.completion_criteria
    if criteria is None:
        yield "ends", "when all steps are taken"
        return
    yield "ends", criteria.ending
    if planned.expected:
        yield "takes", _takes(planned.expected)


def _cell(cell: "PlannedCell") -> str:
    from aimbot_lab.experiment.runs.result import cell_name

    return f"{cell_name(cell.target, cell.difficulty)} {100 * cell.share:.3g}%"


def _parameter(value: Any) -> str:
    if isinstance(value, int | float):
        return f"{value:g}"
    from dataclasses import asdict

    document = asdict(value)
    return f"{document['sampler_type']} ({_pairs(document['sampler_parameters'])})"


def _pairs(parameters: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in parameters.items() if value is not None)


def _takes(expected: "Sequence[Expectation]") -> str:
    first, *rest = expected
    takes = [f"{_count(one)} at {one.win_rate:.4g}" for one in rest]
    start = f"{_count(first)} episodes at a true win rate of {first.win_rate:.4g}"
    return f"{', '.join([start, *takes])} (medians)"


def _count(expected: "Expectation") -> str:
    return "too many" if expected.episodes is None else f"{expected.episodes:,}"
