"""When a training by self-play takes snapshots and changes whom it meets."""

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.training.callbacks.report_callback import MetricSink
from aimbot_lab.training.self_play.session import SelfPlay


def self_play_callbacks(
    self_play: SelfPlay | None,
    model: BaseAlgorithm,
    progress: CurriculumProgress,
    *,
    sink: MetricSink,
) -> list[BaseCallback]:
    """The callback of `self_play`, which begins with the untrained `model`; none without it."""
    if self_play is None:
        return []
    engine = getattr(model, "engine", None)
    weights = model.policy.state_dict()
    self_play.begin(weights, engine="torch" if engine is None else engine.name)
    return [SelfPlayCallback(self_play, progress, sink=sink)]


class SelfPlayCallback(BaseCallback):
    """Tells `self_play` where rollouts and lessons begin; ratings go to `sink`.

    Comes after the lessons, so that a lesson's matches meet the agent that it began with.
    """

    def __init__(
        self, self_play: SelfPlay, progress: CurriculumProgress, *, sink: MetricSink
    ) -> None:
        super().__init__()
        self._self_play, self._progress, self._sink = self_play, progress, sink
        self._lesson = progress.lesson

    def state(self) -> int:
        """The lesson that the last rollout was of."""
        return self._lesson

    def resume(self, state: int) -> None:
        """Go on from what `state()` gave."""
        self._lesson = state

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        weights, step = self.model.policy.state_dict(), self.num_timesteps
        lesson, self._lesson = self._lesson, self._progress.lesson
        metrics = self._self_play.begin_rollout(
            weights, step=step, lesson_begins=self._lesson != lesson
        )
        if metrics is not None:
            self._sink.log_metrics(step, metrics)
