"""`aimbot-lab bench ablation`: what does each switch of hybrid_ppo bring by itself?"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.cli import options
from aimbot_lab.cli.views.text import print_json, table
from aimbot_lab.foundation.statistics.intervals import shown_rate

if TYPE_CHECKING:
    from aimbot_lab.bench.ablation.trainings import AblationPlan, Attempt, Spread
    from aimbot_lab.foundation.statistics.intervals import WinRate


CLIPPING = ("clipped", "by dual clip")  # heads of columns: shares of all ratios


class TaskChoice(options.TargetChoice):
    """A target of the world that is meant where none is named, or a task of its own name."""

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """Every task's name."""
        from aimbot_lab.bench.ablation.task_names import OWN_TASKS

        return (*super().choices, *OWN_TASKS)


@click.command(short_help="Compare hybrid_ppo's switches, each by itself.")
@click.option(
    "--task",
    "--target",
    "task",
    cls=options.TargetOption,
    type=TaskChoice(lambda world: world.hardest_target()),
    show_default=True,
    help="What is learned: a target in all its difficulties; recall, which needs a memory; duel, "
    "against scripts; or stale, from rollouts that are kept.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="A variant to compare, for example 'target linear'; repeatable. [default: all; of recall "
    "memory and bins, of stale bins and two bounds of dual clip, of duel the parts of a network]",
)
@click.option(
    "--leave-one-out",
    is_flag=True,
    help="Begin with everything on and switch off one thing at a time.",
)
@click.option(
    "--threshold",
    type=options.NumberRange(0, 1, min_open=True, max_open=True),
    help="Win rate that a training must prove to exceed. [default: 0.7; of stale 0.4, of recall "
    "0.8]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Trainings of each variant.",
)
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="Environment steps after which a training has failed. [default: 4 million; of recall 16 "
    "million]",
)
@options.as_json
def ablation(variants: tuple[str, ...], steps: int | None, as_json: bool, **given: Any) -> None:
    """Train with each switch of hybrid_ppo on, alone: steps and seconds to a threshold.

    Bins are plain PPO, and the others stand against it: the same world, in which all observe units
    (rays and the enemies in sight), the same lesson, settings and seeds. Each trained agent then
    plays fresh episodes. Seconds are the processor's. A row of encoders or memory takes some
    minutes a seed, of the others some seconds; Ctrl-C shows what is done so far. Of recall the
    agent with a memory learns first, and the others take as many steps as it did.

    \b
    Examples:
      aimbot-lab bench ablation --task free --threshold 0.6
      aimbot-lab bench ablation --task recall --seeds 3
    """
    from aimbot_lab.bench.ablation.trainings import AblationPlan, attempts

    _refuse_unknown(variants, leave_one_out=given["leave_one_out"])
    plan = AblationPlan(variants=variants, most_steps=steps, **given)
    done: list[Attempt] = []
    try:
        for attempt in attempts(plan, lambda line: click.echo(line, err=True)):
            done.append(attempt)
    finally:
        if done:
            _show(plan, done, as_json=as_json)


def _refuse_unknown(variants: Sequence[str], *, leave_one_out: bool) -> None:
    """Raise ConfigurationError for the first of `variants` that a table does not have."""
    from aimbot_lab.bench.ablation.variants import known_variants
    from aimbot_lab.foundation.errors import ConfigurationError

    known = known_variants(leave_one_out=leave_one_out)
    for name in variants:
        if name not in known:
            raise ConfigurationError(
                f"--variant {name}: there is no such variant; there are {', '.join(known)}"
            )


def _show(plan: "AblationPlan", done: Sequence["Attempt"], *, as_json: bool) -> None:
    from aimbot_lab.bench.ablation.contrast import contrast
    from aimbot_lab.bench.ablation.trainings import summaries
    from aimbot_lab.bench.timing.machine import this_machine

    if not as_json:
        click.echo(_head(plan))
        click.echo(_table(done, clipping=plan.learned.train.samples.keep > 1))
        if (sentence := contrast(done)) is not None:
            click.echo(f"\n{sentence}")
        return
    variants: list[dict[str, Any]] = [
        {**asdict(summary), "attempts": [asdict(one) for one in done if one.variant == name]}
        for name, summary in summaries(done).items()
    ]
    print_json(
        {
            "schema": 1,
            "version": aimbot_lab.__version__,
            "machine": asdict(this_machine()),
            "plan": {**asdict(plan), "most_steps": plan.budget},
            "variants": variants,
            "contrast": contrast(done),
        }
    )


def _head(plan: "AblationPlan") -> str:
    task = plan.learned
    what = task.name.capitalize()
    if not task.lesson.difficulty:
        what += f": {task.lesson.name}" if task.lesson.name != task.name else ""
        what += ", all difficulties"
    if task.train.samples.keep > 1:
        what += f", updates from the last {task.train.samples.keep} rollouts"
    criteria = task.lesson.completion_criteria
    assert criteria is not None
    return (
        f"{what}, until a win rate above {criteria.threshold:g} is proved; median [lowest, "
        f"highest] of {plan.seeds} seeds; win rate in fresh episodes [95 %]\n"
    )


def _table(done: Sequence["Attempt"], *, clipping: bool) -> str:
    """A line for each variant; with `clipping` also how much of its samples was clipped."""
    from aimbot_lab.bench.ablation.trainings import summaries

    head = ["variant", "reached", "steps", "seconds of processor", "win rate at the end"]
    if clipping:
        head += CLIPPING
    body = [
        (
            name,
            f"{summary.reached} of {summary.trained}",
            _shown(summary.steps, ",.0f"),
            _shown(summary.seconds, ".1f"),
            _win_rate(summary.won),
            *((_share(summary.clip_fraction), _share(summary.dual_clipped)) if clipping else ()),
        )
        for name, summary in summaries(done).items()
    ]
    return table(head, body)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.5f}"


def _win_rate(won: "WinRate") -> str:
    return shown_rate(*won)


def _shown(spread: "Spread", form: str) -> str:
    ends = (spread.median, spread.lowest, spread.highest)
    middle, low, high = ("never" if end is None else format(end, form) for end in ends)
    return f"{middle} [{low}, {high}]"
