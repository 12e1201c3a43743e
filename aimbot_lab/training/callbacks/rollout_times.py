"""How long the rollouts of a training take that keep replays by turns, for a benchmark."""

import time

from stable_baselines3.common.callbacks import BaseCallback, CallbackList

from aimbot_lab.training.callbacks.assembly import KeptEpisodesCallback
from aimbot_lab.training.callbacks.lesson_callback import LessonCallback
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training


def rollout_times(plan: TrainingPlan) -> tuple[list[float], float]:
    """Seconds of the processor that each rollout but the last took with its update.

    Every other one keeps replays, the second first; the number beside is what that took of one, on
    average.
    """
    training = Training(plan)
    env, progress = training.env, training.progress
    lessons = LessonCallback(env, progress, observer=SilentObserver(), should_stop=lambda: False)
    kept = KeptEpisodesCallback(
        env, progress, lessons=plan.lessons, sink=_DiscardedReplays(), train=plan.train
    )
    by_turns = _ByTurns(kept)
    training.model.learn(plan.train.total_steps, callback=CallbackList([lessons, by_turns]))
    return by_turns.seconds, by_turns.keeping / max(by_turns.kept_rollouts, 1)


class _DiscardedReplays:
    """A sink that takes replays and does not keep them."""

    def log_text(self, text: str, name: str) -> bool:
        return bool(text and name)


class _ByTurns(BaseCallback):
    """Hands every other rollout's steps to `kept`, and times all rollouts."""

    def __init__(self, kept: KeptEpisodesCallback) -> None:
        super().__init__()
        self._kept = kept
        self._keeps = True
        self._began: float | None = None
        self.seconds: list[float] = []
        self.keeping, self.kept_rollouts = 0.0, 0

    def _on_training_start(self) -> None:
        self._kept.init_callback(self.model)
        self._kept.on_training_start(self.locals, self.globals)

    def _on_rollout_start(self) -> None:
        now = time.process_time()
        if self._began is not None:
            self.seconds.append(now - self._began)
        self._began = now
        self._keeps = not self._keeps
        self.kept_rollouts += self._keeps

    def _on_step(self) -> bool:
        if not self._keeps:
            return True
        began = time.thread_time()
        goes_on = self._kept.on_step()
        self.keeping += time.thread_time() - began
        return goes_on
