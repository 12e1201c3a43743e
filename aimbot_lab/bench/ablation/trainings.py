"""What each switch of hybrid_ppo brings by itself: one small curriculum, with it and without.

Seconds are those of the processor, so that other programs on the machine count little.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

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


@dataclass(frozen=True)
class AblationPlan:
    """The task that every variant learns, each from the same seeds."""

    task: str = field(default_factory=lambda: task_names()[0])
    threshold: float | None = None  # win rate that a training must prove; None: the task's
    most_steps: int = 4_000_000  # after which it has failed
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
        return {name: known[name] for name in known if not wanted or name in wanted}

    def training(self, switches: Switches, seed: int) -> TrainingPlan:
        """The training of one variant."""
        task = self.learned
        train = replace(switched(task.train, switches), total_steps=self.most_steps)
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


class Nowhere:
    """Takes metrics and keeps none."""

    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        """Let them go."""


def attempts(plan: AblationPlan, say: Callable[[str], None]) -> Iterator[Attempt]:
    """All trainings of `plan`, seed by seed; `say` is called for each before it is handed out."""
    for seed in range(1, plan.seeds + 1):
        for variant, switches in plan.switches.items():
            attempt = _attempt(plan.training(switches, seed), variant)
            what = "reached" if attempt.reached else "NOT reached"
            say(
                f"{variant}, seed {seed}: {what} after {attempt.steps:,} steps, "
                f"{attempt.seconds:.1f} s; wins {attempt.wins} of {attempt.episodes} episodes"
            )
            yield attempt


def _attempt(plan: TrainingPlan, variant: str) -> Attempt:
    training = Training(plan)
    began = time.process_time()
    ended = training.learn(Nowhere(), SilentObserver(), lambda: False)
    seconds = time.process_time() - began
    reached, won = training.progress.goal_reached, _fresh_episodes(training)
    return Attempt(variant, plan.seed, reached, ended.steps, seconds, int(won.sum()), len(won))


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
    )


def spread(values: Sequence[float | None]) -> Spread:
    """Median, lowest and highest; None counts as larger than any number."""
    known = sorted(float("inf") if value is None else value for value in values)
    numbers = (median(known), known[0], known[-1])
    return Spread(*(None if number == float("inf") else number for number in numbers))
