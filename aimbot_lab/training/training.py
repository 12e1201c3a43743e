"""One training, assembled: world, adapter, model, curriculum and callbacks; then learned."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.foundation.world import BatchWorld, close_world, closed_on_failure
from aimbot_lab.training.actors.actor import ActorGroup, LocalActors
from aimbot_lab.training.actors.rollouts import ActorRollouts
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import BestAgent, saved_agents
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.models import new_model, new_vec_env, schedule_jumps
from aimbot_lab.training.callbacks.assembly import Learner, TrainingCallbacks
from aimbot_lab.training.callbacks.lesson_callback import (
    Agreement,
    StoppedInUpdate,
    TrainingOver,
    diverged,
    failure,
    is_finite,
    steps_without_denormals,
    stoppable_updates,
)
from aimbot_lab.training.callbacks.own_callbacks import OwnCallbacks
from aimbot_lab.training.callbacks.report_callback import MetricSink
from aimbot_lab.training.checkpoint import (
    Space,
    begin_episodes,
    joined,
    model_state,
    of_rows,
    own_part,
    pack,
    random_state,
    restore_model,
    restore_random,
    sample_parts,
    state_sha256,
    unpack,
)
from aimbot_lab.training.checks import action_remarks, own_shards, plan_remarks
from aimbot_lab.training.processes.exchange import Alone, Exchange
from aimbot_lab.training.run_hooks import (
    UNLINKED,
    Checkpoint,
    Observer,
    RecordSink,
    RunLinks,
    TrainingOutcome,
    no_part,
)
from aimbot_lab.training.self_play.session import SelfPlay
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.worlds.registry import make_world, type_of

FORMAT = 3  # of a checkpoint's state
REFUSALS = (ValueError, LookupError, TypeError, AttributeError, RuntimeError, LabError)


class Training:
    """A training that is ready to learn; building one compiles the simulator if need be."""

    def __init__(
        self,
        plan: TrainingPlan,
        *,
        exchange: Exchange | None = None,
        group: ActorGroup | None = None,
        callbacks: Sequence[BaseCallback] = (),
    ) -> None:
        self.plan, self._exchange = plan, exchange or Alone()
        self._shards = own_shards(plan, self._exchange.place)
        self._own = OwnCallbacks(plan.train, callbacks)
        th.set_num_threads(plan.train.torch_threads)
        world_type = type_of(plan.env)
        first = lesson_scenario(plan.lessons[0], world_type.targets(plan.env))
        world_type.warm_up(plan.env, first)
        seed = derive_seed(plan.seed, "learner")
        self.self_play = None
        if plan.self_play is not None:
            self.self_play = SelfPlay(plan.self_play, plan.env, plan.train, seed=seed)
        self._actors: ActorRollouts | None = None
        if plan.train.actors is not None:
            self._actors = ActorRollouts(plan, group or LocalActors())
        world = self._new_world()
        with closed_on_failure(partial(close_world, world)):
            self._assemble(world, seed)

    def _assemble(self, world: BatchWorld, seed: int) -> None:
        """Put together what learns in `world`."""
        plan = self.plan
        self.progress = CurriculumProgress(
            plan.lessons,
            world.spec.difficulties,
            total_steps=plan.train.total_steps,
            forgetting=plan.forgetting,
            has_wins=world.spec.has_wins,
        )
        self.env = new_vec_env(world, plan.train, seed=derive_seed(plan.seed, "world"))
        shared = {} if self._shards is None else {"own_shards": self._shards}
        self.model = new_model(plan.train, self.env, spec=world.spec, seed=seed, **shared)
        self.model.set_logger(Logger(folder=None, output_formats=[]))
        self.model.observation_space.seed(seed)  # unused, but checkpoints keep it
        self._agreement = Agreement(self._exchange, self._first_row, self._weights)
        if self._shards is not None:
            assert isinstance(self.model, HybridPPO)
            self.model.exchange = self._exchange
        if self._actors is not None:
            self._actors.join(self.model, self.env, self.progress)
        self._best = BestAgent()
        self._samples = sample_parts(self.model)
        self._callbacks: TrainingCallbacks | None = None
        self._resumed: Mapping[str, Any] | None = None
        self._random = random_state(self._spaces)
        self._mark: tuple[int, dict[str, Any]] = 0, self.progress.state()

    def _new_world(self) -> BatchWorld:
        if (shards := self._shards) is not None:
            world: Any = make_world(self.plan.env, shards.here * shards.rows)
            world.place(shards.first_row, shards.total * shards.rows)
            return world  # type: ignore[no-any-return]
        if self._actors is not None:
            return self._actors.world
        return make_world(self.plan.env) if self.self_play is None else self.self_play.world()

    @property
    def _first_row(self) -> int:
        return 0 if self._shards is None else self._shards.first_row

    def _weights(self) -> bytes:
        """All that is learned."""
        weights = self.model.policy.state_dict().values()
        return b"".join(one.numpy(force=True).tobytes() for one in weights)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should know before it starts, each in a line."""
        of_actions = action_remarks(self.plan.train, self.env.world.spec)
        of_replay = plan_remarks(self.plan.train, self.plan.env)
        of_model: tuple[str, ...] = getattr(self.model, "remarks", ())
        of_actors = () if self._actors is None else self._actors.remarks
        return (*of_actions, *of_replay, *of_model, *of_actors)

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
            reason = shortened(" ".join(str(error).split()) or type(error).__name__, 200)
            raise LabError(f"the checkpoint does not fit this training: {reason}") from error

    def _restore(self, state: Mapping[str, Any], read_part: Callable[[str], bytes]) -> None:
        if state["format"] != FORMAT:
            raise ValueError(f"it has format {state['format']}, this version reads {FORMAT}")
        env, model = state["env"], state["model"]
        if self._shards is not None:
            env, model = own_part(self.env, state, self._shards.first_row)
        begun = None if self._actors is not None else self.env.resume(env)
        self.progress.resume(state["progress"])
        self._best.resume(state["best"])
        restore_model(self.model, model)
        if begun is not None:
            begin_episodes(self.model, *begun)
        if self._actors is not None:
            self._actors.resume(state)
        self._samples.resume(state["replay"], read_part)
        if self.self_play is not None:
            self.self_play.resume(state["self_play"], read_part)
        self._resumed, self._random = state, state["random"]

    @property
    def schedule_jumps(self) -> dict[str, tuple[float, float]]:
        """What the change of `total_steps` since the checkpoint moved at once: from and to."""
        before = self._resumed["total_steps"] if self._resumed else self.plan.train.total_steps
        return schedule_jumps(self.model, self.plan.train, before=before)

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

        That is asked after every step of the environments and before every gradient step. Of a
        training that is stopped nothing counts that came after its last rollout began.
        """

        def keep() -> None:
            rows = self._all_rows()
            if links.record is not None:
                links.record.sync()
            if links.checkpoints is not None:
                links.checkpoints.keep(self._checkpoint(callbacks, rows))

        callbacks = TrainingCallbacks(
            Learner(
                self.plan,
                self.env,
                self.model,
                self.progress,
                self._best,
                self.self_play,
                self._agreement,
                self._own,
            ),
            sink,
            observer,
            should_stop,
            links=links,
            mark=self._set_mark,
            keep=keep,
        )
        if self._resumed is not None:
            callbacks.resume(self._resumed, step=self.model.num_timesteps)
        lessons = callbacks.lessons
        self._callbacks = callbacks
        with self._playing(should_stop):
            if not self._run(callbacks.all, should_stop) or lessons.stopped:
                lessons.stopped = True
                self._back_to_mark(links.record)
            else:
                callbacks.evaluation.finish()
                if not self.progress.finished:
                    keep()  # more steps go on here
        return TrainingOutcome(
            steps=self.model.num_timesteps,
            seconds=callbacks.report.seconds,
            stopped=lessons.stopped,
            state_sha256=state_sha256(self.model, self.progress.state()),
        )

    def close(self) -> None:
        """End its worlds and its actors, after which it can't learn.

        Raises ForeignCodeError where an environment refuses, once all have ended.
        """
        with ExitStack() as stack:
            stack.callback(self.env.close)
            if self._callbacks is not None:
                stack.callback(self._callbacks.close)
            if self._actors is not None:
                stack.callback(self._actors.close)

    def _all_rows(self) -> Sequence[Any]:
        """What a checkpoint keeps of every row, by the processes that play them."""
        own = of_rows(self.env, model_state(self.model))
        return self._agreement.gather(own) if self._actors is None else self._actors.rows(own)

    @contextmanager
    def _playing(self, should_stop: Callable[[], bool]) -> Iterator[None]:
        """Have actors, where there are any, play until `should_stop` says so, then end them."""
        if self._actors is None:
            yield
            return
        self._actors.should_stop = should_stop
        try:
            yield
        finally:
            self._actors.close()

    def _run(self, callback: BaseCallback, should_stop: Callable[[], bool]) -> bool:
        """Train; False where `should_stop` ended that in the middle of an update."""
        restore_random(self._random, self._spaces)  # whatever came between may have drawn
        # A training that goes on has its counter from before; these steps come on top of it.
        steps = self.plan.train.total_steps
        fresh = self._resumed is None
        left = steps if fresh else steps - self.model.num_timesteps
        breaks_off = (lambda: False) if self._agreement.is_shared else should_stop
        try:
            with stoppable_updates(self.model, breaks_off), steps_without_denormals(self.model):
                self.model.learn(left, callback=callback, reset_num_timesteps=fresh)
        except StoppedInUpdate:
            self._own.on_training_end()
            return False
        except TrainingOver:
            callback.on_training_end()
        except (Exception, SystemExit) as error:
            failed = failure(self.model, error, self.plan)
            if failed is None:
                raise
            raise failed from error
        if not is_finite(self.model):
            raise diverged(self.model)
        return True

    def _checkpoint(self, callbacks: TrainingCallbacks, rows: Sequence[Any]) -> Checkpoint:
        """The present state; `rows` are the parts that the processes have of it."""
        own = self.self_play
        parts = {**self._samples.take(), **({} if own is None else own.parts())}
        env, seen = joined(self.env, rows) if len(rows) > 1 else rows[0].values()
        model = {**model_state(self.model), **seen}
        state = {
            "format": FORMAT,
            "total_steps": self.plan.train.total_steps,
            "env": env,
            "progress": self.progress.state(),
            "model": model,
            "replay": self._samples.state(),
            "random": random_state(self._spaces),
            "best": self._best.state(),
            **callbacks.state(),
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
        plan, own = self.plan, self.self_play
        best = self._best if own is None else own.best(self._best)
        return saved_agents(
            self.model.policy, best, folder, env=plan.env, train=plan.train, about=about
        )
