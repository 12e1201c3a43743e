"""The first win rate that a run shows is its agent's, not that of the episodes that end first."""

from typing import Any

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.intervals import WinRate, wilson
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.run_hooks import SilentObserver, TrainingSnapshot
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import make_world

ROWS, STEPS = 256, 110
LONGEST = 100  # steps of an episode
SETTINGS = ArenaSettings(num_envs=ROWS, time_limit=LONGEST / 10, goto_win_radius=14.0)
TRAIN = TrainSettings(
    total_steps=ROWS * STEPS,
    n_steps=10,
    batch_size=2560,
    n_epochs=1,
    learning_rate=1e-12,  # changes no action: all that is counted is of one agent
    network=NetworkSettings(layers=(8,)),
)


class Nowhere:
    def log_metrics(self, step: int, metrics: dict[str, float]) -> None:
        pass


class Watcher(SilentObserver):
    """Keeps the first win rate that is shown over a hundred episodes or more."""

    def __init__(self) -> None:
        self.first: TrainingSnapshot | None = None

    def progress(self, snapshot: TrainingSnapshot) -> None:
        if self.first is None and snapshot.view.window >= 100:
            self.first = snapshot


def evaluation(model: Any) -> tuple[WinRate, WinRate]:
    """The win rate of the first episode of each of many rows, each played to its end.

    And that of all episodes that end in the first half of the longest.
    """
    world = make_world(SETTINGS)
    env = WorldVecEnv(world, TRAIN.aim_bins, seed=99)
    world.set_scenario(Scenario({"goto": 1.0}))
    wins: list[bool] = []
    early: list[bool] = []
    for _ in range(3):
        observations = env.reset()
        won: dict[int, bool] = {}
        for step in range(LONGEST):
            actions, _ = model.predict(observations, deterministic=False)
            observations, _, _, infos = env.step(actions)
            assert env.episodes is not None
            for row in env.episodes.row.tolist():
                won.setdefault(row, bool(infos[row]["is_success"]))
                early += [bool(infos[row]["is_success"])] * (step < LONGEST / 2)
        assert len(won) == ROWS
        wins += won.values()
    return wilson(sum(wins), len(wins)), wilson(sum(early), len(early))


def test_the_first_win_rate_that_is_shown_is_that_of_the_agent() -> None:
    lesson = Lesson(name="one", targets={"goto": 1.0})
    training = Training(TrainingPlan(seed=3, env=SETTINGS, lessons=(lesson,), train=TRAIN))
    watcher = Watcher()
    training.learn(Nowhere(), watcher, lambda: False)
    assert watcher.first is not None
    assert watcher.first.step == ROWS * LONGEST  # as soon as the first losses are known
    shown = watcher.first.view.win_rate
    true, early = evaluation(training.model)
    assert shown.lower <= true.upper
    assert true.lower <= shown.upper
    assert early.lower > true.upper
    assert early.win_rate == 1.0
