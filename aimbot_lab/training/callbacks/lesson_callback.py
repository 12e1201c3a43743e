"""Lessons beside learning: episodes go to the curriculum, its scenario to the world."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.greedy_proof import GreedyPlay
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import save_commands
from aimbot_lab.training.callbacks.agreement import Agreement, Told
from aimbot_lab.training.callbacks.checkpoint_callback import CheckpointCallback
from aimbot_lab.training.callbacks.live_weights import Answer, LiveWeights, StopRequest
from aimbot_lab.training.callbacks.taken_steps import (
    TakenStep,
    TakenSteps,
    TrainingOver,
    oldest,
)
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.processes.exchange import Alone
from aimbot_lab.training.run_hooks import UNLINKED, RunLinks

Counted = Callable[[TakenStep], None]
"""Who is told of each step in which episodes ended, once the curriculum has counted them."""


class Others(NamedTuple):
    """Who else has to do with where rollouts begin."""

    agreement: Agreement  # with other processes
    counted: Sequence[Counted] = ()
    checkpoints: CheckpointCallback | None = None
    rating: Callable[[], float] | None = None  # the learner's running one, under self-play


NO_OTHERS = Others(Agreement(Alone(), 0, bytes))


class LessonCallback(BaseCallback):
    """Feeds finished episodes to the curriculum and sets the scenario that it wants.

    Both where a rollout begins, for all steps of the last one in their order: within a rollout
    nothing is decided. What the curriculum wants to be kept goes to the record of `links`, and
    each step to the counting ones of `others`; difficulty weights are changed as its requests ask,
    which may also ask it to stop, or to publish what it does. Where a game commands it, the agent
    is saved after the update that follows. `greedy` plays without exploration, where the learner
    explores.

    Ends the training, by TrainingOver, where the last lesson's criterion has passed, and where
    `should_stop` says so; `stopped` tells the second from the first. `should_stop` is also asked
    after every step of the environments, so a stop waits for one update at most:
    stable-baselines3 asks nobody while it makes one. A rollout that is broken off counts nothing.
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
        others: Others = NO_OTHERS,
    ) -> None:
        super().__init__()
        self._agreement, self._counted, self._checkpoints, rating = others
        self._taken = TakenSteps(lambda: progress.counts_from, rating)
        self._running: int | None = None  # rank of the oldest episode where the rollout began
        self._begun = False
        self._commands = 0  # of games, which have been carried out
        self._env = env
        self._progress = progress
        self._observer = observer
        self._links = links
        progress.greedy.play = greedy
        self._stop = StopRequest()
        self._weights = LiveWeights(progress, env.world, self._answers(links))
        self._should_stop = should_stop
        self.stopped = False
        self._set_scenario()

    def _answers(self, links: RunLinks) -> dict[str, Answer]:
        """What answers requests that are not about weights, by their kinds."""
        answers: dict[str, Answer] = {"stop": self._stop.answer}
        if links.live is not None:
            answers["watch"] = links.live.watch
            answers["show_agent"] = self._of_agent(links.live.show_agent)
        if links.agents is not None:
            answers["keep_agent"] = self._of_agent(links.agents.keep_agent)
        return answers

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
        self._taken.add(self.num_timesteps, self._env.episodes)
        if self._agreement.is_shared:  # which ends where all agree on it
            return True
        self.stopped = self._should_stop()
        return not self.stopped

    def _on_rollout_start(self) -> None:
        told = self._told()
        self._count(told.steps)
        if self._progress.finished or self.stopped:
            raise TrainingOver
        self._set_scenario()
        self._answer(told)
        self.stopped |= not self._agreement.is_shared and self._should_stop()
        if self.stopped:
            raise TrainingOver
        self._prepare_end(told)
        if self._links.live is not None:
            policy = self.model.policy if self.num_timesteps else None
            self._links.live.publish(self._progress, step=self.num_timesteps, policy=policy)

    def _told(self) -> Told:
        """What all processes know by now."""
        requests, shared = self._links.requests, self._agreement.is_shared
        asked = () if requests is None else requests.requests()
        again = () if requests is None or self._begun else requests.changes()
        due = self._checkpoints is not None and self._checkpoints.is_due
        stop = shared and self._should_stop()
        own = Told(self._taken.take(), stop, keep=due, asked=asked, again=again)
        first = self._progress.counts_from
        return self._agreement.of_all(
            own, step=self.num_timesteps, running=self._running, first=first
        )

    def _answer(self, told: Told) -> None:
        """Do what is asked for."""
        if self._begun:
            self._save_as_commanded()
        else:
            self._weights.resume(told.again)
            self._begun = True
        self._weights.answer(self._links.requests, told.asked)
        if self._agreement.is_shared:
            world: Any = self._env.world  # a worlds.row_parts.PartWorld
            order, scenario = world.running()
            self._running = oldest(order, scenario, self._progress.counts_from)

    def _save_as_commanded(self) -> None:
        """Save the agent where a game has commanded it since this was last called."""
        commands, agents = save_commands(self._env.world), self._links.agents
        if commands > self._commands and agents is not None:
            kept = self._of_agent(agents.keep_agent)({})
            done = kept.get("error") or f"it is saved as {kept['name']}"
            self._observer.notice(f"the game commands to save the agent: {done}")
        self._commands = commands

    def _prepare_end(self, told: Told) -> None:
        """Have a checkpoint kept where one is due, and the training end with it where asked to."""
        self.stopped = told.stop or self._stop.made
        if self._checkpoints is not None:
            self._checkpoints.wanted, self._checkpoints.ends = told.keep, self.stopped
        elif self.stopped:
            raise TrainingOver

    def _on_training_end(self) -> None:
        if not (self.stopped or self._progress.finished):
            self._count(self._told().steps)
        if not self.stopped:
            self._save_as_commanded()

    def _count(self, steps: Sequence[TakenStep]) -> None:
        """Have the curriculum count `steps`, those of the last rollout."""
        for taken in steps:
            self._add(taken.episodes, step=taken.step, rating=taken.rating)
            for told in self._counted:
                told(taken)
        if self.num_timesteps > self._progress.step:  # a lesson may end by the steps alone
            self._add(None, step=self.num_timesteps)

    def _add(
        self, episodes: EpisodeBatch | None, *, step: int, rating: float | None = None
    ) -> None:
        regressions = len(self._progress.regressions)
        check = self._progress.add(episodes, step=step, rating=rating)
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
