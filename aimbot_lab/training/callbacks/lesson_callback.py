"""Lessons beside learning: episodes go to the curriculum, its scenario to the world."""

from collections.abc import Callable, Mapping
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.greedy_proof import GreedyPlay
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.training.callbacks.live_weights import Answer, LiveWeights, StopRequest
from aimbot_lab.training.observer import Observer
from aimbot_lab.training.run_hooks import UNLINKED, RunLinks


class LessonCallback(BaseCallback):
    """Feeds finished episodes to the curriculum and sets the scenario that it wants.

    What the curriculum wants to be kept goes to the record of `links`; difficulty weights are
    changed as its requests ask, which may also ask it to stop, or to publish what it does.
    `greedy` plays without exploration, where the learner explores.

    Ends the training where the last lesson's criterion passes, and where `should_stop` says
    so; `stopped` tells the second from the first. `should_stop` is asked after every step of the
    environments, so a stop waits for one update at most: stable-baselines3 asks nobody while it
    makes one, nor between an update and the next step.
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
    ) -> None:
        super().__init__()
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
        """An answer that is given the present agent. Between two steps no weight changes."""

        def answer(document: Mapping[str, Any]) -> dict[str, Any]:
            del document
            about = {"step": self.num_timesteps, "lesson": self._progress.lesson + 1}
            return give(self.model.policy, about)

        return answer

    def _set_scenario(self) -> None:
        if self._progress.wants_scenario:
            self._progress.begin_scenario(self._env.world.set_scenario(self._progress.scenario))

    def _on_training_start(self) -> None:
        if self._links.requests is not None:
            self._weights.resume(self._links.requests)

    def _on_step(self) -> bool:
        regressions = len(self._progress.regressions)
        check = self._progress.add(self._env.episodes, step=self.num_timesteps)
        for regression in self._progress.regressions[regressions:]:
            self._observer.notice(regression.line)
        for found in self._progress.greedy.take():
            if found.played:  # and not broken off by a stop
                self._observer.notice(f"step {self.num_timesteps:,}: {found.line}")
        if check is not None and check.decision in ("promote", "finish"):
            report = self._progress.lesson_reports[check.lesson]
            self._observer.promotion(report, self.num_timesteps)
        if self._links.record is not None:
            for name, text, place in self._progress.record:
                self._links.record.grow(name, text, place=place)
        if self._progress.finished:
            return False
        self._set_scenario()
        if self._links.requests is not None:
            self._weights.answer(self._links.requests)
        self.stopped = self._should_stop() or self._stop.made
        return not self.stopped

    def _on_rollout_start(self) -> None:
        if self._links.live is not None:
            policy = self.model.policy if self.num_timesteps else None
            self._links.live.publish(self._progress, step=self.num_timesteps, policy=policy)
