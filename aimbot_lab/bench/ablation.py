"""`bench ablation`: what each switch of hybrid_ppo brings by itself, from several seeds by turns.

All variants of a table play the same world and observe the same. Seconds are those of the
processor, in which other programs count little.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from types import MappingProxyType
from typing import Any

from aimbot_lab.bench.train import FILE, only, training_plan
from aimbot_lab.bench.turns import Report, Say, Table, seconds_of, turns
from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.evaluation.episodes import FIRST_SEED, play_scenario
from aimbot_lab.foundation import episodes
from aimbot_lab.foundation.episodes import Cell, student_interval
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.garbage import free_training
from aimbot_lab.foundation.shown_text import percent, shown_difference, shown_rate
from aimbot_lab.tracking.tracker import MemoryTracker
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import default_type, make_world

Switches = tuple[str, ...]  # overrides of `train`
HYBRID, MASKS, BRANCHES = ("aim=hybrid",), ("masks=true",), ("objective=per_branch",)
CLIP, LINEAR, UNITS = ("dual_clip=3",), ("target=linear",), ("network.units={}",)
TARGET, MEMORY = ("target=attention",), ("network.memory={}",)
EVERYTHING: Switches = (*HYBRID, *MASKS, *BRANCHES, *CLIP, *UNITS, *TARGET, *MEMORY)
ALONE: Mapping[str, Switches] = MappingProxyType(
    {
        "bins": (),
        "hybrid aim": HYBRID,
        "masks": MASKS,
        "per branch": BRANCHES,
        "dual clip": CLIP,
        "dual clip 1.5": ("dual_clip=1.5",),
        "all of these": (*HYBRID, *MASKS, *BRANCHES, *CLIP),
        "units": UNITS,
        "target linear": LINEAR,
        "target attention": (*UNITS, *TARGET),
        "memory": MEMORY,
    }
)
"""Each switch by itself; the first variant is plain PPO, which the others stand against.

Units stand against the same columns fed flat, `target attention` against `target linear`; keys are
made by encoders of units, so that it has these, too.
"""


def without(off: Switches, *on: str) -> Switches:
    """Everything but the switches `off`, with those that are `on` in their place."""
    return (*(one for one in EVERYTHING if one not in off), *on)


LEFT_OUT: Mapping[str, Switches] = MappingProxyType(
    {
        "everything": EVERYTHING,
        "without hybrid aim": without(HYBRID),
        "without masks": without(MASKS),
        "without per branch": without(BRANCHES),
        "without dual clip": without(CLIP),
        "without units": without((*UNITS, *TARGET), *LINEAR),
        "target linear": without(TARGET, *LINEAR),
        "without target": without(TARGET),
        "without memory": without(MEMORY),
    }
)
"""Everything on, and then each switch off in turn. Attention needs units: without them the target
is linear, so compare that variant with the one after it."""
OF_TASKS = {  # compared where none are asked for; of other tasks all
    "recall": ("memory", "bins"),
    "duel": ("bins", "units", "target linear", "target attention", "memory"),
    "stale": ("bins", "dual clip", "dual clip 1.5"),
}
FILES: Mapping[str, Path | str] = {
    "recall": "recall",
    "duel": FILE.with_name("duel.yaml"),
}  # of tasks other than targets
# Samples so old and steps so long that ratios leave 1.5; at the usual settings none does.
STALE = ("train.samples.keep=16", "train.learning_rate=0.003", "train.n_epochs=2")
CLIPPED, DUAL_CLIPPED = "train/clip_fraction", "train/dual_clip_fraction"
ATTENDING = {"target attention": "target attention", "everything": "everything (target attention)"}
"""Variants with attention, and what a sentence calls them."""


@dataclass(frozen=True)
class AblationPlan:
    """The task that every variant learns, each from the same seeds.

    Raises ConfigurationError for a variant that the table does not have.
    """

    task: str = field(default_factory=lambda: default_type().hardest_target())
    threshold: float | None = None  # win rate that a training must prove; None: the task's
    most_steps: int | None = None  # after which it has failed; None: the task's
    seeds: int = 5
    num_envs: int = 512
    n_steps: int = 64
    leave_one_out: bool = False  # everything on and then each switch off, not each on by itself
    variants: tuple[str, ...] = ()  # those compared; empty: the task's

    def __post_init__(self) -> None:
        for name in self.variants:
            if name not in self.known:
                raise ConfigurationError(
                    f"--variant {name}: there is no such variant; there are {', '.join(self.known)}"
                )

    @property
    def known(self) -> Mapping[str, Switches]:
        """All variants of the table, the one that the others stand against first."""
        return LEFT_OUT if self.leave_one_out else ALONE

    @property
    def pace(self) -> str | None:
        """The variant that learns first: the others take as many steps as it."""
        return "memory" if self.task == "recall" else None

    @property
    def switches(self) -> dict[str, Switches]:
        """What is switched on in each variant that is compared."""
        usual = () if self.leave_one_out else OF_TASKS.get(self.task, ())
        wanted = self.variants or usual or tuple(self.known)
        found = {name: own for name, own in self.known.items() if name in wanted}
        return dict(sorted(found.items(), key=lambda one: one[0] != self.pace))

    def training(self, switches: Switches, seed: int, *, steps: int | None = None) -> TrainingPlan:
        """The training of one variant, of a limited number of steps.

        A memory stays as long as the curriculum of the task has it.
        """
        stale, named = self.task == "stale", self.task in FILES
        file = FILES.get(self.task, FILE.with_name("ablation.yaml"))
        usual, own = training_plan(file).train, list(STALE if stale else ())
        batch = min(usual.batch_size, self.num_envs * self.n_steps)
        own += f"seed={seed}", f"env.num_envs={self.num_envs}"
        own += f"train.n_steps={self.n_steps}", f"train.batch_size={batch}"
        if not named:
            own.append(only(default_type().hardest_target() if stale else self.task))
        if self.threshold is not None or not named:
            threshold = self.threshold or (0.4 if stale else 0.7)
            criteria = f"{{threshold: {threshold}, min_lesson_length: 500}}"
            own.append(f"lessons.0.completion_criteria={criteria}")
        if (most := steps or self.most_steps) is not None:
            own.append(f"train.total_steps={most}")
        if getattr(usual.network, "memory", None) is not None:
            own += () if set(MEMORY) <= set(switches) else ("train.network.memory=null",)
            switches = tuple(one for one in switches if one not in MEMORY)
        return training_plan(file, *own, *(f"train.{one}" for one in switches))


@dataclass(frozen=True)
class Attempt:
    """One training."""

    variant: str
    seed: int
    reached: bool
    steps: int  # environment steps until the threshold was passed, or all there were
    seconds: float  # of the processor
    wins: int = 0  # of the trained agent, in fresh episodes
    episodes: int = 0
    clip_fraction: float | None = None  # mean over the updates; None where it was not recorded
    dual_clipped: float | None = None  # share of ratios that dual clip bounded, mean over updates


def attempts(plan: AblationPlan, say: Say) -> Iterator[Attempt]:
    """All trainings of `plan`, seed by seed; `say` is called for each before it is handed out."""
    steps: int | None = None
    for turn, variant in turns(plan.switches, plan.seeds, alternate=False):
        if variant == next(iter(plan.switches)):
            steps = None
        training = plan.training(plan.switches[variant], turn + 1, steps=steps)
        one = attempt(training, variant)
        if variant == plan.pace:
            steps = one.steps
        say(
            f"{variant}, seed {one.seed}: {'reached' if one.reached else 'NOT reached'} after "
            f"{one.steps:,} steps, {one.seconds:.1f} s; wins {one.wins} of {one.episodes} episodes"
        )
        yield one


def attempt(plan: TrainingPlan, variant: str) -> Attempt:
    """Train to the end, then play as many fresh episodes of the last lesson as there are rows."""
    free_training()
    training, sink = Training(plan), MemoryTracker()
    learn = partial(training.learn, sink, SilentObserver(), lambda: False)
    seconds = seconds_of(learn, time.process_time)
    world = make_world(plan.env)
    player = Agent(training.model.policy, world.spec, plan.train).player(world, seed=plan.seed)
    scenario = lesson_scenario(plan.lessons[-1], world.spec.difficulties)
    name = Cell(next(iter(scenario.targets)), 0)
    seed = FIRST_SEED + plan.seed
    won = play_scenario(world, player, scenario, name=name, seed=seed).won
    return Attempt(
        variant,
        plan.seed,
        reached=training.progress.goal_reached,
        steps=training.model.num_timesteps,
        seconds=seconds,
        wins=int(won.sum()),
        episodes=len(won),
        clip_fraction=mean_of([one for _, one in sink.metrics.get(CLIPPED, ())]),
        dual_clipped=mean_of([one for _, one in sink.metrics.get(DUAL_CLIPPED, ())]),
    )


def report(plan: AblationPlan, done: Sequence[Attempt]) -> Report:
    """What the attempts that are `done` come to, in the order in which variants came."""
    found, task = summaries(done), plan.training((), 1)
    sentence, lesson, keep = contrast(done), task.lessons[-1], task.train.samples.keep
    variants = [
        {**summary, "attempts": [asdict(one) for one in done if one.variant == summary["variant"]]}
        for summary in found
    ]
    what = plan.task.capitalize()
    if not lesson.difficulty:
        what += f": {lesson.name}" if lesson.name != plan.task else ""
        what += ", all difficulties"
    if keep > 1:
        what += f", updates from the last {keep} rollouts"
    assert lesson.completion_criteria is not None
    threshold = percent(lesson.completion_criteria.threshold)
    title = (
        f"{what}, until a win rate above {threshold} is proved; "
        f"median [lowest, highest] of {plan.seeds} {'seed' if plan.seeds == 1 else 'seeds'}, "
        "seconds of the processor; won: win rate in fresh episodes [95 %]"
    )
    keys = ["variant", "reached", "steps", "seconds", "won", "clip_fraction", "dual_clipped"]
    rows = [{key: one[key] for key in keys[: None if keep > 1 else 5]} for one in found]
    for row, one in zip(rows, found, strict=True):
        row["reached"] = f"{one['reached']} of {one['trained']}"
        row["won"] = shown_rate(*one["won"])
    plans = {**asdict(plan), "most_steps": task.train.total_steps}
    document = {"plan": plans, "variants": variants, "contrast": sentence}
    return Report(document, [Table(title, rows), *([] if sentence is None else [sentence])])


def summaries(done: Sequence[Attempt]) -> list[dict[str, Any]]:
    """All attempts of each variant together."""
    found = []
    for name in dict.fromkeys(one.variant for one in done):
        own = [one for one in done if one.variant == name]
        found.append(
            {
                "variant": name,
                "trained": len(own),
                "reached": sum(one.reached for one in own),
                "steps": spread([one.steps if one.reached else None for one in own]),
                "seconds": spread([one.seconds if one.reached else None for one in own]),
                "won": episodes.wilson(sum(a.wins for a in own), sum(a.episodes for a in own)),
                "clip_fraction": mean_of([one.clip_fraction for one in own]),
                "dual_clipped": mean_of([one.dual_clipped for one in own]),
            }
        )
    return found


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of those that are known; None: none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def spread(values: Sequence[float | None]) -> dict[str, float | None]:
    """Median, lowest and highest; None, which never reached the threshold, is above any number."""
    known = sorted(float("inf") if value is None else value for value in values)
    numbers = {"median": median(known), "lowest": known[0], "highest": known[-1]}
    return {name: None if one == float("inf") else one for name, one in numbers.items()}


def contrast(done: Sequence[Attempt]) -> str | None:
    """One sentence: whether attention is better than the linear head, by how much.

    By the steps to the threshold where all of both reached it, else by win rates at the end, with
    Student's interval of the seeds' differences. None without two seeds of both.
    """
    by_seed: dict[str, dict[int, Attempt]] = {}
    for one in done:
        by_seed.setdefault(one.variant, {})[one.seed] = one
    linear = by_seed.get("target linear", {})
    for name, called in ATTENDING.items():
        own = by_seed.get(name, {})
        pairs = [(own[seed], linear[seed]) for seed in sorted(own.keys() & linear.keys())]
        if len(pairs) > 1:
            text = f"{called} against target linear: {_compared(pairs)}"
            return f"{text} ({len(pairs)} seeds in pairs, 95 %)"
    return None


def _compared(pairs: Sequence[tuple[Attempt, Attempt]]) -> str:
    if all(one.reached and other.reached for one, other in pairs):
        logs = student_interval([log(one.steps / other.steps) for one, other in pairs])
        ends = ", ".join(f"{exp(end):.3f}" for end in logs[1:] if end is not None)
        interval = f" [{ends}]" if ends else ""
        times = f"it took {exp(logs.mean):.3f}{interval} times the steps to the threshold"
        return f"{_judged(logs, less_is_better=True)}, {times}"
    rates = [[one.wins / max(one.episodes, 1) for one in pair] for pair in pairs]
    more = student_interval([one - other for one, other in rates])
    found = f"its win rate at the end is higher by {shown_difference(*more)}"
    return f"{_judged(more, less_is_better=False)}, {found}"


def _judged(found: episodes.MeanInterval, *, less_is_better: bool) -> str:
    if found.lower is None or found.upper is None or found.lower <= 0 <= found.upper:
        return "not shown to be better"
    return "better" if (found.upper < 0) == less_is_better else "worse"
