"""What each switch of hybrid_ppo brings by itself: one small curriculum, with it and without.

Seconds are those of the processor, so that other programs on the machine count little.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from aimbot_lab.bench.ablation.tasks import N_STEPS, Task, task_names, task_of
from aimbot_lab.bench.ablation.variants import Switches, known_variants, switched
from aimbot_lab.curriculum.cells import lesson_scenario
from aimbot_lab.evaluation.episodes import FIRST_SEED, play_scenario
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.statistics.intervals import WinRate, wilson
from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.registry import make_world

CLIPPED, DUAL_CLIPPED = "train/clip_fraction", "train/dual_clip_fraction"
CLIPPING = {CLIPPED, DUAL_CLIPPED}


@dataclass(frozen=True)
class AblationPlan:
    """The task that every variant learns, each from the same seeds."""

    task: str = field(default_factory=lambda: task_names()[0])
    threshold: float | None = None  # win rate that a training must prove; None: the task's
    most_steps: int | None = None  # after which it has failed; None: the task's
    seeds: int = 5
    num_envs: int = 512
    n_steps: int = N_STEPS
    leave_one_out: bool = False  # everything on and then each switch off, not each on by itself
    variants: tuple[str, ...] = ()  # those compared; empty: the task's

    @property
    def learned(self) -> Task:
        """The task."""
        return task_of(
            self.task, threshold=self.threshold, num_envs=self.num_envs, n_steps=self.n_steps
        )

    @property
    def switches(self) -> Mapping[str, Switches]:
        """What is switched on in each variant that is compared."""
        known = known_variants(leave_one_out=self.leave_one_out)
        wanted = self.variants or (() if self.leave_one_out else self.learned.variants)
        names = [name for name in known if not wanted or name in wanted]
        names.sort(key=lambda name: name != self.learned.pace)
        return {name: known[name] for name in names}

    @property
    def budget(self) -> int:
        """Steps after which a training has failed."""
        return self.learned.steps if self.most_steps is None else self.most_steps

    def training(
        self, switches: Switches, seed: int, *, most_steps: int | None = None
    ) -> TrainingPlan:
        """The training of one variant, of so many steps at most."""
        task = self.learned
        steps = self.budget if most_steps is None else most_steps
        train = replace(switched(task.train, switches), total_steps=steps)
        return TrainingPlan(seed, task.env, (task.lesson,), train)


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


@dataclass(frozen=True)
class Spread:
    """Of several attempts; None where one that never reached the threshold stands there."""

    median: float | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True)
class Summary:
    """All attempts of one variant."""

    variant: str
    trained: int
    reached: int
    steps: Spread
    seconds: Spread
    won: WinRate  # of all its agents in fresh episodes, with the interval at 95 %
    clip_fraction: float | None = None  # means over the attempts
    dual_clipped: float | None = None


class Averages:
    """Takes metrics and keeps the means of some."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Count those of one update."""
        del step
        for name in CLIPPING & metrics.keys():
            self._values.setdefault(name, []).append(metrics[name])

    def mean(self, name: str) -> float | None:
        """The mean of a metric; None where there was none."""
        return mean_of(self._values.get(name, []))


def attempts(plan: AblationPlan, say: Callable[[str], None]) -> Iterator[Attempt]:
    """All trainings of `plan`, seed by seed; `say` is called for each before it is handed out."""
    for seed in range(1, plan.seeds + 1):
        steps = plan.budget
        for variant, switches in plan.switches.items():
            attempt = _attempt(plan.training(switches, seed, most_steps=steps), variant)
            if variant == plan.learned.pace:
                steps = attempt.steps
            what = "reached" if attempt.reached else "NOT reached"
            say(
                f"{variant}, seed {seed}: {what} after {attempt.steps:,} steps, "
                f"{attempt.seconds:.1f} s; wins {attempt.wins} of {attempt.episodes} episodes"
            )
            yield attempt


def _attempt(plan: TrainingPlan, variant: str) -> Attempt:
    training = Training(plan)
    averages, began = Averages(), time.process_time()
    ended = training.learn(averages, SilentObserver(), lambda: False)
    seconds = time.process_time() - began
    won = _fresh_episodes(training)
    return Attempt(
        variant,
        plan.seed,
        reached=training.progress.goal_reached,
        steps=ended.steps,
        seconds=seconds,
        wins=int(won.sum()),
        episodes=len(won),
        clip_fraction=averages.mean(CLIPPED),
        dual_clipped=averages.mean(DUAL_CLIPPED),
    )


def _fresh_episodes(training: Training) -> BoolArray:
    """Whether the agent wins each of as many episodes as there are rows, of the last lesson."""
    plan = training.plan
    world = make_world(plan.env)
    player = Agent(training.model.policy, world.spec, plan.train).player(world, seed=plan.seed)
    scenario = lesson_scenario(plan.lessons[-1], world.spec.difficulties)
    name = Cell(next(iter(scenario.targets)), 0)
    return play_scenario(world, player, scenario, name=name, seed=FIRST_SEED + plan.seed).won


def summaries(done: Sequence[Attempt]) -> dict[str, Summary]:
    """What the attempts of each variant come to, in the order in which variants came."""
    names = dict.fromkeys(attempt.variant for attempt in done)
    return {name: _summary(name, [one for one in done if one.variant == name]) for name in names}


def _summary(variant: str, own: Sequence[Attempt]) -> Summary:
    return Summary(
        variant,
        trained=len(own),
        reached=sum(attempt.reached for attempt in own),
        steps=spread([attempt.steps if attempt.reached else None for attempt in own]),
        seconds=spread([attempt.seconds if attempt.reached else None for attempt in own]),
        won=wilson(sum(attempt.wins for attempt in own), sum(one.episodes for one in own)),
        clip_fraction=mean_of([one.clip_fraction for one in own]),
        dual_clipped=mean_of([one.dual_clipped for one in own]),
    )


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of those that are known; None: none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def spread(values: Sequence[float | None]) -> Spread:
    """Median, lowest and highest; None counts as larger than any number."""
    known = sorted(float("inf") if value is None else value for value in values)
    numbers = (median(known), known[0], known[-1])
    return Spread(*(None if number == float("inf") else number for number in numbers))
