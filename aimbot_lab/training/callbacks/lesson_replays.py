"""A few episodes of every lesson, kept as replays."""

from collections.abc import Sequence
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import DRAW, LOSS, WIN
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.replay.episode import (
    About,
    RecordedEpisode,
    RowRecorder,
    as_replay,
    replays_of,
)
from aimbot_lab.replay.files import replay_text
from aimbot_lab.training.run_hooks import TextSink

FOLDER = "replays"
KINDS = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


class KeptEpisodesCallback(BaseCallback):
    """Gives `sink` replays of one environment when a lesson ends, or the training.

    Of each lesson the first episode and the last that was won, drawn and lost, as
    replays/lesson-01-first.json and so on. Until then it costs a copy of a row's actions a step.
    """

    def __init__(
        self,
        env: WorldVecEnv,
        progress: CurriculumProgress,
        *,
        lessons: Sequence[Lesson],
        sink: TextSink,
    ) -> None:
        super().__init__()
        self._env, self._progress, self._sink = env, progress, sink
        self._lessons = lessons
        self._recorder: RowRecorder | None = None
        self._lesson = progress.lesson
        self._begun_in = progress.lesson  # the lesson in which the running episode began
        self._kept: dict[str, tuple[RecordedEpisode, int]] = {}  # with the step of its end
        self._sees_first = False

    def _on_training_start(self) -> None:
        world: Any = self._env.world
        if world.spec.can("replay"):
            row = replays_of(world.settings).kept_row(world)
            self._recorder = RowRecorder(world, row)
        self._lesson = self._begun_in = self._progress.lesson
        # Of a lesson that is gone on with, the first episode was kept before.
        self._sees_first = self.num_timesteps == 0

    def _on_step(self) -> bool:
        if self._recorder is None or self._env.episodes is None:
            return True
        episode = self._recorder.add(self._env.world_actions, self._env.episodes)
        if episode is not None:
            if self._begun_in == self._lesson:
                self._keep(episode)
            self._begun_in = self._lesson  # of the next: a lesson ends between two rollouts
        return True

    def _on_rollout_start(self) -> None:
        if self._progress.lesson != self._lesson:
            self._hand_over()
            self._lesson, self._sees_first = self._progress.lesson, True

    def _on_training_end(self) -> None:
        self._hand_over()

    def _keep(self, episode: RecordedEpisode) -> None:
        if self._sees_first:
            self._kept["first"] = episode, self.num_timesteps
            self._sees_first = False
        self._kept[KINDS[episode.result.outcome]] = episode, self.num_timesteps

    def _hand_over(self) -> None:
        for which, (episode, step) in self._kept.items():
            name = f"{FOLDER}/lesson-{self._lesson + 1:02}-{which}.json"
            about: About = {
                "lesson": self._lesson + 1,
                "lesson_name": self._lessons[self._lesson].name,
                "step": step,
                "player": "as in training",
            }
            try:
                self._sink.log_text(replay_text(as_replay(episode, about)), name)
            except LabError:
                continue  # a picture that is missing must not end a training
        self._kept.clear()
