"""One training, assembled: world, face, model, curriculum and callbacks; then learned."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson
from aimbot_lab.faces.registry import make_world
from aimbot_lab.faces.reward_scale import reward_scale
from aimbot_lab.faces.sb3 import WorldVecEnv
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.sim.settings import ArenaSettings
from aimbot_lab.training.adjustments import adjustments
from aimbot_lab.training.agents import save_agent
from aimbot_lab.training.algorithms import ALGORITHMS, new_model
from aimbot_lab.training.callbacks import (
    BestAgentCallback,
    LessonCallback,
    MetricSink,
    ReportCallback,
)
from aimbot_lab.training.fingerprint import state_sha256
from aimbot_lab.training.links import UNLINKED, RunLinks
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.tally import EpisodeTally

MOST_POINTS = 2000  # of a metric over a whole training; charts draw at most 2,500


@dataclass(frozen=True)
class TrainingPlan:
    """What a training is made from."""

    seed: int
    env: ArenaSettings
    lessons: tuple[Lesson, ...]
    train: TrainSettings
    forgetting: ForgettingSettings = field(default_factory=ForgettingSettings)


@dataclass(frozen=True)
class TrainingOutcome:
    """How a training ended."""

    steps: int  # environment steps
    seconds: float
    stopped: bool  # ended by request, before its time
    state_sha256: str


class Training:
    """A training that is ready to learn; building one compiles the simulator if need be."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan = plan
        th.set_num_threads(plan.train.torch_threads)
        compile_kernels(plan.env)
        world = make_world(plan.env)
        self.progress = CurriculumProgress(
            plan.lessons,
            world.spec.difficulties,
            total_steps=plan.train.total_steps,
            forgetting=plan.forgetting,
        )
        face = ALGORITHMS[plan.train.algo].face(plan.train)
        self.env = WorldVecEnv(
            world,
            plan.train.aim_bins,
            actions=face.actions,
            show_masks=face.masks_shown,
            seed=derive_seed(plan.seed, "world"),
            reward_scale=reward_scale(
                plan.train.reward_scale, world.num_envs, gamma=plan.train.gamma
            ),
        )
        seed = derive_seed(plan.seed, "learner")
        self.model = new_model(plan.train, self.env, spec=world.spec, seed=seed)
        self.model.set_logger(Logger(folder=None, output_formats=[]))
        self._best: dict[str, th.Tensor] | None = None
        self._best_about: dict[str, Any] = {}

    def learn(
        self,
        sink: MetricSink,
        observer: Observer,
        should_stop: Callable[[], bool],
        *,
        links: RunLinks = UNLINKED,
    ) -> TrainingOutcome:
        """Train until the last lesson passes, the steps are spent, or `should_stop` says so."""
        every_steps = self.plan.train.total_steps // MOST_POINTS
        lessons = LessonCallback(
            self.env, self.progress, observer=observer, should_stop=should_stop, links=links
        )
        report = ReportCallback(
            self.env,
            self.progress,
            sink=sink,
            observer=observer,
            tally=EpisodeTally(self.env.world.spec.reward_terms, self.plan.env.decision_seconds),
            every_steps=every_steps,
        )
        best = BestAgentCallback(self.progress, self._keep_best, every_steps=every_steps)
        # Adjustments first: what is reported or kept where a rollout begins includes them.
        callbacks: list[BaseCallback] = [*adjustments(self.plan.train), lessons, report, best]
        began = time.monotonic()
        self._fit(callbacks)
        return TrainingOutcome(
            steps=self.model.num_timesteps,
            seconds=time.monotonic() - began,
            stopped=lessons.stopped,
            state_sha256=state_sha256(self.model, self.progress.state()),
        )

    def _fit(self, callbacks: list[BaseCallback]) -> None:
        try:
            self.model.learn(self.plan.train.total_steps, callback=CallbackList(callbacks))
        except ValueError as error:
            # torch refuses a distribution whose parameters are not numbers any more.
            if not self._is_finite():
                raise self._diverged() from error
            raise
        if not self._is_finite():
            raise self._diverged()

    def _is_finite(self) -> bool:
        return all(bool(th.isfinite(weight).all()) for weight in self.model.policy.parameters())

    def _diverged(self) -> RunFailedError:
        return RunFailedError(
            f"training diverged at step {self.model.num_timesteps:,}: the network's weights are no "
            "numbers any more; lower train.learning_rate or train.reward_scale"
        )

    def _keep_best(self, rank: tuple[int, float], step: int) -> None:
        weights = self.model.policy.state_dict()
        self._best = {name: tensor.clone() for name, tensor in weights.items()}
        self._best_about = {"step": step, "lesson": rank[0] + 1, "win_rate_lower": rank[1]}

    def save_agents(self, folder: Path) -> dict[str, tuple[Path, ...]]:
        """Files of the `last` agent and, once there is one, of the `best`."""
        about = {"step": self.model.num_timesteps, "lesson": self.progress.lesson + 1}
        saved: dict[str, tuple[Path, ...]] = {"last": self._save(folder / "last", about)}
        if self._best is not None:
            last = {name: t.clone() for name, t in self.model.policy.state_dict().items()}
            self.model.policy.load_state_dict(self._best)
            saved["best"] = self._save(folder / "best", self._best_about)
            self.model.policy.load_state_dict(last)
        return saved

    def _save(self, folder: Path, about: dict[str, Any]) -> tuple[Path, ...]:
        plan = self.plan
        return save_agent(self.model.policy, folder, env=plan.env, train=plan.train, about=about)


def compile_kernels(settings: ArenaSettings) -> None:
    """Have the simulator compiled (or read from the cache) by a step of a single row."""
    world = make_world(replace(settings, num_envs=1))
    world.set_scenario(Scenario({"goto": 1.0}))
    buffers = new_step_buffers(1, len(world.spec.observation_names))
    world.reset(0, buffers.observations)
    world.step(buffers.observations[:, :4] * 0.0, buffers)
