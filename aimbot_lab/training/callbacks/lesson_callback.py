"""Lessons beside learning: episodes go to the curriculum, its scenario to the world.

All of it happens where a rollout begins: what all processes agree on, the lessons, the end of a
training, answers to requests and the checkpoints.
"""

import hashlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from torch.optim import Optimizer

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.current_lesson import GreedyPlay
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import WeightChange
from aimbot_lab.foundation.episodes import ARRAYS, NONE_RUNNING, Cell, EpisodeBatch, joined, oldest
from aimbot_lab.foundation.errors import (
    ConfigurationError,
    ForeignCodeError,
    LabError,
    RunFailedError,
    reason_and_place,
)
from aimbot_lab.foundation.world import BatchWorld, save_commands
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.registry import foreign_failure
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.processes.cores import denormals_as_zero
from aimbot_lab.training.processes.exchange import Alone, Exchange
from aimbot_lab.training.run_hooks import MAX_SHARE, UNLINKED, Observer, Requests, RunLinks
from aimbot_lab.training.settings import TrainingPlan

NONE = -1  # in the place of a rank: no episode runs that counts


@dataclass(frozen=True)
class RolloutReport:
    """What is known where a rollout begins: by one process, then by all of them."""

    ended: Sequence[EpisodeBatch] = ()  # of each step in which episodes ended, in order
    stop: bool = False  # whether any process is to end the training
    keep: bool = False  # a checkpoint is due: the leader says so
    asked: Sequence[tuple[str, Any]] = ()  # the leader's requests
    again: Sequence[tuple[int, Any]] = ()  # changes that the leader makes once more


class Agreement:
    """Makes the reports of all processes known to each, once a rollout.

    `weights` gives the bytes of what is learned, which must be the same everywhere.
    """

    def __init__(self, exchange: Exchange, first_row: int, weights: Callable[[], bytes]) -> None:
        self._exchange, self._first_row, self._weights = exchange, first_row, weights

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one process."""
        return self._exchange.place.count > 1

    def of_all(
        self, own: RolloutReport, *, step: int, running: int | None, first: int | None
    ) -> RolloutReport:
        """The report of all processes together, their episodes in the order of the rows.

        Where the last rollout began, `running` was the rank of the oldest episode that counts,
        those of scenario `first` and later ones. Raises RunFailedError where a process has learned
        something else.
        """
        if not self.is_shared:
            return own
        said = {
            "steps": packed_episodes(own.ended, self._first_row),
            "running": running,
            "stop": own.stop,
            "weights": hashlib.sha256(self._weights()).hexdigest(),
            "host": socket.gethostname(),
            "leader": [own.keep, list(own.asked), list(own.again)],
        }
        heard = [unpack(one) for one in self._exchange.gather(pack(said))]
        _check_weights(heard, step)
        keep, asked, again = heard[0]["leader"]
        return RolloutReport(
            ended=episodes_of_all(
                [one["steps"] for one in heard], [one["running"] for one in heard], first
            ),
            stop=any(one["stop"] for one in heard),
            keep=keep,
            asked=[tuple(one) for one in asked],
            again=[tuple(one) for one in again],
        )

    def gather(self, state: Any) -> list[Any]:
        """The `state` of every process, in the order of their rows."""
        if not self.is_shared:
            return [state]
        return [unpack(one) for one in self._exchange.gather(pack(state))]


def _check_weights(heard: Sequence[Mapping[str, Any]], step: int) -> None:
    for rank, one in enumerate(heard):
        if one["weights"] != heard[0]["weights"]:
            raise RunFailedError(
                f"process {rank} has other weights than process 0 at step {step:,} (on "
                f"{one['host']} and {heard[0]['host']}): their processors or libraries differ; "
                "train in one process, or on machines of one kind"
            )


def packed_episodes(ended: Sequence[EpisodeBatch], first_row: int) -> dict[str, Any]:
    """The batches `ended` as columns of all their episodes, whose rows are counted among all.

    Of the episodes that run on, only the oldest is kept that counts, as `EpisodeBatch.beside`
    leaves it.
    """
    running = [int(one.running_order[0]) if one.running_order.size else NONE for one in ended]
    cells = [cell for one in ended for cell in one.cell]
    kinds = list(dict.fromkeys(cells))
    found: dict[str, Any] = {
        "step": np.array([one.step for one in ended], np.int64),
        "count": np.array([len(one.cell) for one in ended], np.int64),
        "running": np.array(running, np.int64),
        "kinds": [None if kind is None else list(kind) for kind in kinds],
        "cell": np.array([kinds.index(cell) for cell in cells], np.int64),
    }
    if ended:
        for name in ARRAYS:
            found[name] = np.concatenate([getattr(one, name) for one in ended])
        found["row"] = found["row"] + first_row
        found["own"] = {
            name: np.concatenate([one.columns[name] for one in ended]) for name in ended[0].columns
        }
    return found


def episodes_of_all(
    parts: Sequence[Mapping[str, Any]], running: Sequence[int | None], first: int | None
) -> list[EpisodeBatch]:
    """The batches of all `parts`, those of the same step together.

    Where each part began, its oldest episode had the rank `running`.
    """
    oldest, places = list(running), [0] * len(parts)
    ends = [np.cumsum(part["count"]) for part in parts]
    ended = []
    for step in sorted({int(one) for part in parts for one in part["step"]}):
        batches = []
        for rank, part in enumerate(parts):
            at = places[rank]
            if at < len(part["step"]) and part["step"][at] == step:
                end = int(ends[rank][at])
                batches.append(_batch(part, slice(end - int(part["count"][at]), end), step))
                runs = int(part["running"][at])
                oldest[rank], places[rank] = None if runs == NONE else runs, at + 1
        known = min((one for one in oldest if one is not None), default=None)
        ended.append(joined(batches).beside(known, first))
    return ended


def _batch(part: Mapping[str, Any], which: slice, step: int) -> EpisodeBatch:
    """The episodes `which` of `part`, which ended at `step`."""
    kinds = [None if kind is None else Cell(*kind) for kind in part["kinds"]]
    return EpisodeBatch(
        **{name: part[name][which] for name in ARRAYS},
        cell=tuple(kinds[k] for k in part["cell"][which].tolist()),
        running_order=NONE_RUNNING,
        running_scenario=NONE_RUNNING,
        columns={name: column[which] for name, column in part["own"].items()},
        step=step,
    )


class TrainingOver(Exception):  # noqa: N818 not an error: nothing is left to learn, or wanted
    """A training ends where a rollout would begin, which stable-baselines3 can't do by itself."""


class StoppedInUpdate(Exception):  # noqa: N818 not an error: someone asked for it
    """The training was asked to stop while it made an update; the rest of that is left out."""


@contextmanager
def stoppable_updates(model: BaseAlgorithm, should_stop: Callable[[], bool]) -> Iterator[None]:
    """Ask `should_stop` before every gradient step of `model` while the block runs.

    Raises StoppedInUpdate out of the block where it says so. What the update has changed by then
    stays: a resumption begins at the last checkpoint, which knows nothing of it.
    """

    def ask(*_: Any) -> None:
        if should_stop():
            raise StoppedInUpdate

    hooks = [one.register_step_pre_hook(ask) for one in optimizers(model)]
    engine = model.engine if isinstance(model, HybridPPO) else None
    if engine is not None:
        engine.before_step = ask
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        if engine is not None:
            engine.before_step = None


@contextmanager
def steps_without_denormals(model: BaseAlgorithm) -> Iterator[None]:
    """Let the optimizers of `model` step with 0 for denormal numbers while the block runs.

    Only where torch has one thread: its other threads keep the mode in which they were started, and
    the bits would depend on when that was.
    """
    if th.get_num_threads() > 1:
        yield
        return
    with ExitStack() as hooks, ExitStack() as step:

        def begin(optimizer: Optimizer, *_: Any) -> None:
            step.enter_context(denormals_as_zero(optimizer))

        def end(*_: Any) -> None:
            step.close()

        for one in optimizers(model):
            hooks.callback(one.register_step_pre_hook(begin).remove)
            hooks.callback(one.register_step_post_hook(end).remove)
        yield


def optimizers(model: BaseAlgorithm) -> list[Optimizer]:
    """Everything that steps along a gradient of `model`."""
    holders: list[Any] = [
        model.policy,
        getattr(model, "actor", None),
        getattr(model, "critic", None),
    ]
    found = [getattr(one, "optimizer", None) for one in holders]
    found.append(getattr(model, "ent_coef_optimizer", None))
    return [one for one in found if isinstance(one, Optimizer)]


def is_finite(model: BaseAlgorithm) -> bool:
    """Whether all weights are finite."""
    return all(bool(th.isfinite(weight).all()) for weight in model.policy.parameters())


def diverged(model: BaseAlgorithm) -> RunFailedError:
    """The end of a training whose weights contain NaN or infinity."""
    return RunFailedError(
        f"training diverged at step {model.num_timesteps:,}: the network's weights "
        "became NaN or infinite; lower train.learning_rate or train.reward_scale"
    )


def failure(model: BaseAlgorithm, error: BaseException, plan: TrainingPlan) -> LabError | None:
    """What `error` means for a person; None for an unforeseen one, and for a LabError."""
    if isinstance(error, LabError):
        return None
    found = _of_numbers(model, error) if isinstance(error, ValueError | RuntimeError) else None
    found = found or foreign_failure(plan.train, error, env=plan.env)
    if found is None and isinstance(error, SystemExit):
        return ForeignCodeError(f"code that the training called raised {reason_and_place(error)}")
    return found


def _of_numbers(model: BaseAlgorithm, error: Exception) -> RunFailedError | None:
    if not is_finite(model):  # torch refuses a distribution of NaN
        return diverged(model)
    if "sample before the end of the first episode" in str(error):
        return RunFailedError(
            f"training failed at step {model.num_timesteps:,}: replay_buffer: her samples from "
            "episodes that have ended, and none has; let train.options.learning_starts be larger "
            "than the longest episode's steps"
        )
    if "overflow" not in str(error):
        return None
    return RunFailedError(
        f"training failed at step {model.num_timesteps:,}: a number of the update is too large "
        "for 32 bits; lower train.learning_rate or train.reward_scale"
    )


class CheckpointCallback(BaseCallback):
    """Calls `mark` where each rollout begins, and there `keep` where a checkpoint is `wanted`.

    One `is_due` after `every` environment steps; without that, when `keep` takes no more than
    MAX_SHARE of the time: rollouts that are over in no time share a checkpoint. Where the training
    `ends`, one is kept and TrainingOver raised. Comes last, so that all that others do there has
    been done.
    """

    def __init__(
        self, mark: Callable[[], None], keep: Callable[[], None], *, every: int | None = None
    ) -> None:
        super().__init__()
        self._mark, self._keep, self._every = mark, keep, every
        self._due, self._due_step = time.monotonic(), 0
        self.wanted = self.ends = False

    @property
    def is_due(self) -> bool:
        """Whether another checkpoint is to be kept."""
        if self._every is None:
            return time.monotonic() >= self._due
        return self.model.num_timesteps >= self._due_step

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        self._mark()
        if self.wanted or self.ends:
            began = time.monotonic()
            self._keep()
            now = time.monotonic()
            self._due = now + (now - began) * (1.0 / MAX_SHARE - 1.0)
            self._due_step = self.model.num_timesteps + (self._every or 0)
        if self.ends:
            raise TrainingOver


Answer = Callable[[Mapping[str, Any]], dict[str, Any]]
"""What is asked to its answer."""


class LiveWeights:
    """The difficulty weights of a training: to be read and moved where a rollout begins.

    `others` answers requests of other kinds, by the `kind` that they bear; one without any is
    about weights.
    """

    def __init__(
        self,
        progress: CurriculumProgress,
        world: BatchWorld,
        others: Mapping[str, Answer] | None = None,
    ) -> None:
        self._progress = progress
        self._world = world
        self._others = others or {}
        self._again: list[tuple[int, Any]] = []  # what is to be done once more, and when

    def change(self, change: WeightChange) -> None:
        """Make `change`: each row draws its next block by it.

        The weights belong to the present lesson; the next one begins with its own. Raises
        ConfigurationError, with nothing changed, where the change is impossible.
        """
        self._progress.change_weights(change, self._world.set_scenario)

    def answer(
        self, requests: Requests | None, asked: Sequence[tuple[str, Any]] | None = None
    ) -> None:
        """Do what is asked, which is kept; what is impossible is refused with a reason.

        `asked` is what `requests` ask where that is known already; without any `requests` another
        process keeps and answers it.
        What was done at this very step before the run was broken off is done first, once more.
        """
        self._do_again()
        if asked is None:
            asked = () if requests is None else requests.requests()
        for key, document in asked:
            found = self._answered(document, requests)
            if requests is not None:
                requests.answer(key, found)

    def resume(self, changes: Sequence[tuple[int, Any]]) -> None:
        """Do again, each at its step, those of `changes` that came after the present one."""
        now = self._progress.step
        self._again = [change for change in changes if change[0] > now]

    def _do_again(self) -> None:
        while self._again and self._again[0][0] <= self._progress.step:
            with suppress(ConfigurationError):
                self.change(WeightChange.from_json(self._again.pop(0)[1]))

    def _answered(self, document: Any, requests: Requests | None) -> dict[str, Any]:
        kind = document.get("kind", "weights") if isinstance(document, Mapping) else "weights"
        if isinstance(kind, str) and (answer := self._others.get(kind)) is not None:
            return answer(document)
        try:
            change = WeightChange.from_json(document)
            if change.moves or change.lock or change.unlock:
                self.change(change)
                if requests is not None:
                    requests.keep_change(self._progress.step, change.as_json())
            weights = self._progress.mix.described(change.target)
        except ConfigurationError as error:
            return {"error": str(error)}
        place = {"step": self._progress.step, "lesson": self._progress.lesson + 1}
        return {**place, **{key: value for key, value in weights.items() if key != "kind"}}


Counted = Callable[[EpisodeBatch], None]
"""Called with the episodes of each step, once the curriculum has counted them."""


class LessonCallback(BaseCallback):
    """Feeds finished episodes to the curriculum and sets the scenario that it wants.

    Both where a rollout begins, for all steps of the last one in their order: within a rollout
    nothing is decided. What the curriculum wants to be kept goes to the record of `links`, and
    each step to those in `counted`; difficulty weights are changed as its requests ask,
    which may also ask it to stop, or to publish what it does. Where a game commands it, the agent
    is saved after the update that follows. `greedy` plays without exploration, where the learner
    explores.

    Ends the training, by TrainingOver, where the last lesson's criterion has passed, and where
    `should_stop` says so; `stopped` tells the second from the first. `should_stop` is also asked
    after every step of the environments, so a stop waits for one update at most:
    stable-baselines3 does not ask while it makes one. A rollout that is broken off counts nothing.
    """

    def __init__(
        self,
        env: WorldVecEnv,
        progress: CurriculumProgress,
        *,
        observer: Observer,
        should_stop: Callable[[], bool],
        links: RunLinks = UNLINKED,
        greedy: GreedyPlay | None = None,
        agreement: Agreement | None = None,
        counted: Sequence[Counted] = (),
        checkpoints: CheckpointCallback | None = None,
        rating: Callable[[], float] | None = None,
    ) -> None:
        super().__init__()
        self._agreement = agreement or Agreement(Alone(), 0, bytes)
        self._counted, self._checkpoints, self._rating = counted, checkpoints, rating
        self._ended: list[EpisodeBatch] = []  # of each step of the rollout in which episodes ended
        self._running: int | None = None  # rank of the oldest episode where the rollout began
        self._begun = False
        self._commands = 0  # of games, which have been carried out
        self._env = env
        self._progress = progress
        self._observer = observer
        self._links = links
        progress.greedy.play = greedy
        self._is_asked_to_stop = False
        self._weights = LiveWeights(progress, env.world, self._answers(links))
        self._should_stop = should_stop
        self.stopped = False
        self._set_scenario()

    def stop(self) -> None:
        """End the training in this step."""
        self.stopped = True

    def _answers(self, links: RunLinks) -> dict[str, Answer]:
        """What answers requests that are not about weights, by their kinds."""
        answers: dict[str, Answer] = {"stop": self._stop}
        if links.live is not None:
            answers["watch"] = links.live.watch
            answers["show_agent"] = self._of_agent(links.live.show_agent)
        if links.agents is not None:
            answers["keep_agent"] = self._of_agent(links.agents.keep_agent)
        return answers

    def _stop(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Note the request to stop."""
        del document
        self._is_asked_to_stop = True
        return {"stopping": True}

    def _of_agent(self, give: Callable[[Any, Mapping[str, Any]], dict[str, Any]]) -> Answer:
        """An answer that is given the present agent."""

        def answer(document: Mapping[str, Any]) -> dict[str, Any]:
            del document
            about = {"step": self.num_timesteps, "lesson": self._progress.lesson + 1}
            return give(self.model.policy, about)

        return answer

    def _set_scenario(self) -> None:
        if self._progress.wants_scenario:
            self._progress.begin_scenario(self._env.world.set_scenario(self._progress.scenario))

    def _on_step(self) -> bool:
        if self._env.episodes:
            self._ended.append(self._kept(self._env.episodes))
        if self._agreement.is_shared:  # which ends where all agree on it
            return True
        self.stopped = self._should_stop()
        return not self.stopped

    def _kept(self, episodes: EpisodeBatch) -> EpisodeBatch:
        """`episodes`, with what decisions about them need once the rollout is over."""
        first = self._progress.counts_from  # which stays during a rollout
        rating = None if self._rating is None else self._rating()
        alone = episodes.beside(episodes.oldest_running(first), first)
        return alone._replace(step=self.num_timesteps, rating=rating)

    def _on_rollout_start(self) -> None:
        report = self._report()
        self._count(report.ended)
        if self._progress.finished or self.stopped:
            raise TrainingOver
        self._set_scenario()
        self._answer(report)
        self.stopped |= not self._agreement.is_shared and self._should_stop()
        if self.stopped:
            raise TrainingOver
        self._prepare_end(report)
        if self._links.live is not None:
            policy = self.model.policy if self.num_timesteps else None
            self._links.live.publish(self._progress, step=self.num_timesteps, policy=policy)

    def _report(self) -> RolloutReport:
        """What all processes know by now; what ended is forgotten here."""
        requests, shared = self._links.requests, self._agreement.is_shared
        asked = () if requests is None else requests.requests()
        again = () if requests is None or self._begun else requests.changes()
        due = self._checkpoints is not None and self._checkpoints.is_due
        stop = shared and self._should_stop()
        own = RolloutReport(self._ended, stop, keep=due, asked=asked, again=again)
        self._ended = []
        first = self._progress.counts_from
        return self._agreement.of_all(
            own, step=self.num_timesteps, running=self._running, first=first
        )

    def _answer(self, report: RolloutReport) -> None:
        """Do what is asked for."""
        if self._begun:
            self._save_as_commanded()
        else:
            self._weights.resume(report.again)
            self._begun = True
        self._weights.answer(self._links.requests, report.asked)
        if self._agreement.is_shared:
            world: Any = self._env.world  # a worlds.kernel_world.PartWorld
            order, scenario = world.running()
            self._running = oldest(order, scenario, self._progress.counts_from)

    def _save_as_commanded(self) -> None:
        """Save the agent where a game has commanded it since this was last called."""
        commands, agents = save_commands(self._env.world), self._links.agents
        if commands > self._commands and agents is not None:
            kept = self._of_agent(agents.keep_agent)({})
            done = kept.get("error") or f"it is saved as {kept['name']}"
            self._observer.notice(f"the game asked to save the agent: {done}")
        self._commands = commands

    def _prepare_end(self, report: RolloutReport) -> None:
        """Have a checkpoint kept where one is due, and the training end with it where asked to."""
        self.stopped = report.stop or self._is_asked_to_stop
        if self._checkpoints is not None:
            self._checkpoints.wanted, self._checkpoints.ends = report.keep, self.stopped
        elif self.stopped:
            raise TrainingOver

    def _on_training_end(self) -> None:
        if not (self.stopped or self._progress.finished):
            self._count(self._report().ended)
        if not self.stopped:
            self._save_as_commanded()

    def _count(self, ended: Sequence[EpisodeBatch]) -> None:
        """Have the curriculum count what `ended` in the last rollout."""
        for episodes in ended:
            self._add(episodes, step=episodes.step)
            for count in self._counted:
                count(episodes)
        if self.num_timesteps > self._progress.step:  # a lesson may end by the steps alone
            self._add(None, step=self.num_timesteps)

    def _add(self, episodes: EpisodeBatch | None, *, step: int) -> None:
        regressions = len(self._progress.regressions)
        check = self._progress.add(episodes, step=step)
        for regression in self._progress.regressions[regressions:]:
            self._observer.notice(regression.line)
        for found in self._progress.greedy.take():
            self.stopped |= not found.played  # broken off: the rollout's episodes do not count
            if found.played:
                self._observer.notice(f"step {step:,}: {found.line}")
        if check is not None and check.decision in ("promote", "finish"):
            report = self._progress.lesson_reports[check.lesson]
            self._observer.promotion(report, step)
        if self._links.record is not None:
            for name, text, place in self._progress.record:
                self._links.record.grow(name, text, place=place)
