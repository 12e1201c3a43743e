"""One training, assembled: world, adapter, model, curriculum and callbacks; then learned."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.logger import Logger

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson
from aimbot_lab.evaluation.settings import EvaluationSettings
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.best_agent import BestAgent, saved_agents
from aimbot_lab.training.agents.fingerprint import state_sha256
from aimbot_lab.training.algorithms.adjustments import adjustments
from aimbot_lab.training.algorithms.models import new_model
from aimbot_lab.training.callbacks.checkpoint_callback import CheckpointCallback
from aimbot_lab.training.callbacks.divergence import diverged, failure, is_finite
from aimbot_lab.training.callbacks.episode_stats import EpisodeTally
from aimbot_lab.training.callbacks.greedy_episodes import greedy_play
from aimbot_lab.training.callbacks.lesson_callback import LessonCallback
from aimbot_lab.training.callbacks.lesson_replays import KeptEpisodesCallback
from aimbot_lab.training.callbacks.periodic_evaluation import EvaluationCallback
from aimbot_lab.training.callbacks.report_callback import (
    BestAgentCallback,
    MetricSink,
    ReportCallback,
)
from aimbot_lab.training.callbacks.self_play_callback import self_play_callbacks
from aimbot_lab.training.callbacks.stopping import StoppedInUpdate, stoppable_updates
from aimbot_lab.training.checkpoint.checkpoint import Checkpoint, no_part
from aimbot_lab.training.checkpoint.model_state import begin_episodes, model_state, restore_model
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.checkpoint.random_state import Space, random_state, restore_random
from aimbot_lab.training.checkpoint.rollout_parts import sample_parts
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.run_hooks import UNLINKED, RecordSink, RunLinks
from aimbot_lab.training.self_play.session import SelfPlay
from aimbot_lab.training.self_play.settings import SelfPlaySettings
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.training.vec_env import new_vec_env
from aimbot_lab.worlds.registry import make_world, type_of

FORMAT = 2  # of a checkpoint's state
REFUSALS = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, LabError)
MAX_POINTS = 2000  # of a metric over a whole training; charts draw at most 2,500


@dataclass(frozen=True)
class TrainingPlan:
    """What a training is made from."""

    seed: int
    env: WorldSettings
    lessons: tuple[Lesson, ...]
    train: TrainSettings
    forgetting: ForgettingSettings = field(default_factory=ForgettingSettings)
    evaluation: EvaluationSettings | None = None  # while it trains; None: none
    self_play: SelfPlaySettings | None = None  # None: it never meets itself


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
        type_of(plan.env).warm_up(plan.env)
        seed = derive_seed(plan.seed, "learner")
        self.self_play = None
        if plan.self_play is not None:
            self.self_play = SelfPlay(plan.self_play, plan.env, plan.train, seed=seed)
        world = make_world(plan.env) if self.self_play is None else self.self_play.world()
        self.progress = CurriculumProgress(
            plan.lessons,
            world.spec.difficulties,
            total_steps=plan.train.total_steps,
            forgetting=plan.forgetting,
        )
        if (own := self.self_play) is not None:
            self.progress.rating = lambda: own.running_rating
        self.env = new_vec_env(world, plan.train, seed=derive_seed(plan.seed, "world"))
        self.model = new_model(plan.train, self.env, spec=world.spec, seed=seed)
        self.model.set_logger(Logger(folder=None, output_formats=[]))
        self._best = BestAgent()
        self._samples = sample_parts(self.model)
        self._resumed: Mapping[str, Any] | None = None
        self._random = random_state(self._spaces)
        self._mark: tuple[int, dict[str, Any]] = 0, self.progress.state()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should know before it starts, each in a line."""
        remarks: tuple[str, ...] = getattr(self.model, "remarks", ())
        return remarks

    def start_from(self, agent: Agent) -> None:
        """Begin `learn` with the weights and statistics of `agent`, which must be of its kind."""
        self.model.policy.load_state_dict(agent.policy.state_dict())

    def resume(self, state: bytes, read_part: Callable[[str], bytes] = no_part) -> None:
        """Go on in `learn` from a checkpoint's state, to the bit.

        `read_part` gives the checkpoint's parts by their names. The training it is of must have
        had the same plan, but for fewer `total_steps`. Raises LabError, after which this
        training is of no use, where it does not fit.
        """
        try:
            self._restore(unpack(state), read_part)
        except REFUSALS as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LabError(f"the checkpoint does not fit this training: {reason}") from error

    def _restore(self, state: Mapping[str, Any], read_part: Callable[[str], bytes]) -> None:
        if state["format"] != FORMAT:
            raise ValueError(f"it has format {state['format']}, this version reads {FORMAT}")
        begun = self.env.resume(state["env"])
        self.progress.resume(state["progress"])
        self._best.resume(state["best"])
        restore_model(self.model, state["model"])
        if begun is not None:
            begin_episodes(self.model, begun)
        self._samples.resume(state["replay"], read_part)
        if self.self_play is not None:
            self.self_play.resume(state["self_play"], read_part)
        self._resumed, self._random = state, state["random"]

    @property
    def _spaces(self) -> tuple[Space, ...]:
        return self.model.action_space, self.model.observation_space

    def learn(
        self,
        sink: MetricSink,
        observer: Observer,
        should_stop: Callable[[], bool],
        *,
        links: RunLinks = UNLINKED,
    ) -> TrainingOutcome:
        """Train until the last lesson passes, the steps are spent, or `should_stop` says so.

        That is asked after every step of the environments and before every gradient step.
        Of a training that is stopped nothing counts that came after its last rollout began.
        """
        lessons, report, best = self._callbacks(sink, observer, should_stop, links)
        evaluation = EvaluationCallback(self.plan, sink)
        if self._resumed is not None:
            evaluation.resume(self._resumed["evaluation"])
            self._resume_callbacks(self._resumed, report, best)

        def keep() -> None:
            if links.record is not None:
                links.record.sync()
            if links.checkpoints is not None:
                links.checkpoints.keep(self._checkpoint(report, best, evaluation))

        # Adjustments first: what is reported or kept where a rollout begins includes them.
        first = adjustments(self.plan.train, self.model.policy)
        last = [report, evaluation, best, CheckpointCallback(self._set_mark, keep)]
        callback = CallbackList([*first, lessons, *self._others(sink, links), *last])
        if not self._run(callback, should_stop) or lessons.stopped:
            lessons.stopped = True
            self._back_to_mark(links.record)
        else:
            evaluation.finish()
        return TrainingOutcome(
            steps=self.model.num_timesteps,
            seconds=report.seconds,
            stopped=lessons.stopped,
            state_sha256=state_sha256(self.model, self.progress.state()),
        )

    def _resume_callbacks(
        self, state: Mapping[str, Any], report: ReportCallback, best: BestAgentCallback
    ) -> None:
        report.resume(state["report"])
        if state["total_steps"] != self.plan.train.total_steps:
            report.spread(self.plan.train.total_steps - self.model.num_timesteps)
        best.resume(state["best_offers"])

    def _callbacks(
        self,
        sink: MetricSink,
        observer: Observer,
        should_stop: Callable[[], bool],
        links: RunLinks,
    ) -> tuple[LessonCallback, ReportCallback, BestAgentCallback]:
        every_steps = self.plan.train.total_steps // MAX_POINTS
        lessons = LessonCallback(
            self.env,
            self.progress,
            observer=observer,
            should_stop=should_stop,
            links=links,
            greedy=greedy_play(self.plan, self.model, should_stop=should_stop),
        )
        report = ReportCallback(
            self.env,
            self.progress,
            sink=sink,
            observer=observer,
            tally=EpisodeTally.of(self.env.world.spec),
            every_steps=every_steps,
            stopped=lambda: lessons.stopped,
        )
        best = BestAgentCallback(
            self.progress, self._best, every_steps=every_steps, stopped=lambda: lessons.stopped
        )
        return lessons, report, best

    def _others(self, sink: MetricSink, links: RunLinks) -> list[BaseCallback]:
        """Self-play and what keeps replays, where these are asked for."""
        own = self_play_callbacks(self.self_play, self.model, self.progress, sink=sink)
        if links.replays is None:
            return own
        lessons, kept = self.plan.lessons, links.replays
        return [*own, KeptEpisodesCallback(self.env, self.progress, lessons=lessons, sink=kept)]

    def _run(self, callback: BaseCallback, should_stop: Callable[[], bool]) -> bool:
        """Train; False where `should_stop` ended that in the middle of an update."""
        restore_random(self._random, self._spaces)  # whatever came between may have drawn
        # A training that goes on has its counter from before; these steps come on top of it.
        steps = self.plan.train.total_steps
        fresh = self._resumed is None
        left = steps if fresh else steps - self.model.num_timesteps
        try:
            with stoppable_updates(self.model, should_stop):
                self.model.learn(left, callback=callback, reset_num_timesteps=fresh)
        except StoppedInUpdate:
            return False
        except Exception as error:
            failed = failure(self.model, error, train=self.plan.train)
            if failed is None:
                raise
            raise failed from error
        if not is_finite(self.model):
            raise diverged(self.model)
        return True

    def _checkpoint(
        self, report: ReportCallback, best: BestAgentCallback, evaluation: EvaluationCallback
    ) -> Checkpoint:
        own = self.self_play
        parts = {**self._samples.take(), **({} if own is None else own.parts())}
        state = {
            "format": FORMAT,
            "total_steps": self.plan.train.total_steps,
            "env": self.env.state(),
            "progress": self.progress.state(),
            "model": model_state(self.model),
            "replay": self._samples.state(),
            "random": random_state(self._spaces),
            "report": report.state(),
            "best": self._best.state(),
            "best_offers": best.state(),
            "evaluation": evaluation.state(),
            "self_play": None if own is None else own.state(),
        }
        return Checkpoint(self.model.num_timesteps, pack(state), parts)

    def _set_mark(self) -> None:
        self._mark = self.model.num_timesteps, self.progress.state()

    def _back_to_mark(self, record: RecordSink | None) -> None:
        """Forget what a rollout that was broken off has brought: its resumption plays it anew."""
        self.model.num_timesteps, progress = self._mark
        self.progress.resume(progress)
        if self.self_play is not None:
            self.self_play.back_to_mark()
        if record is not None:
            for name, text, place in self.progress.record:
                record.grow(name, text, place=place)

    def save_agents(self, folder: Path) -> dict[str, tuple[Path, ...]]:
        """Files of the `last` agent and, once there is one, of the `best`."""
        about = {"step": self.model.num_timesteps, "lesson": self.progress.lesson + 1}
        plan, best = self.plan, self._best
        if self.self_play is not None:
            best = self.self_play.best(best)
        return saved_agents(
            self.model.policy, best, folder, env=plan.env, train=plan.train, about=about
        )
