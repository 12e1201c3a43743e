"""Every seat of a world with several agents is learned from."""

import numpy as np

from aimbot_lab.adapters.sb3 import RunningRewardScale, WorldVecEnv
from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.episodes import play
from aimbot_lab.foundation.episodes import Cell
from tests.worlds.race import RIGHT, Race

ROWS = 8


def to_the_right(observations: np.ndarray, _starts: np.ndarray) -> np.ndarray:
    """The first agent runs, the other stands."""
    moves = np.ones((len(observations), 1), np.float32)
    moves[: len(observations) // 2] = 2.0
    return moves


def test_each_seat_is_an_environment_agent_by_agent() -> None:
    world = Race(ROWS, agents=2)
    env = WorldVecEnv(world)
    world.set_scenario(RIGHT)
    assert env.num_envs == 2 * ROWS
    env.reset()
    for _ in range(3):
        _, rewards, done, infos = env.step(to_the_right(np.zeros((2 * ROWS, 3)), np.zeros(0)))
    assert done.all()
    assert rewards.tolist() == [1.0] * ROWS + [-1.0] * ROWS
    assert [info["is_success"] for info in infos] == [True] * ROWS + [False] * ROWS
    assert [info["episode"]["r"] for info in infos] == [1.0] * ROWS + [-1.0] * ROWS


def test_a_lesson_counts_an_episode_once_by_its_first_agent() -> None:
    world = Race(ROWS, agents=2)
    progress = CurriculumProgress([Lesson(name="a", targets={"right": 1.0})], {"right": 0})
    progress.begin_scenario(world.set_scenario(progress.scenario))
    env = WorldVecEnv(world)
    env.reset()
    for step in range(1, 31):
        env.step(to_the_right(np.zeros((2 * ROWS, 3)), np.zeros(0)))
        progress.add(env.episodes, step=step)
    assert progress.lesson_reports[0].episodes == ROWS * 10
    assert progress.lesson_reports[0].win_rate == 1.0
    assert progress.unparsed == {}


def test_an_evaluation_is_of_the_first_agent() -> None:
    played = play(Race(ROWS, agents=2), to_the_right, Cell("right", 0), seed=1)
    assert played.won.all()
    assert played.returns.tolist() == [1.0] * ROWS
    assert played.seconds.tolist() == [3.0] * ROWS


def test_episodes_that_begin_where_none_can_be_resumed_have_no_return_yet() -> None:
    world = Race(ROWS, agents=2)
    scale = RunningRewardScale(2 * ROWS, gamma=0.9)
    env = WorldVecEnv(world, reward_scale=scale)
    world.set_scenario(RIGHT)
    env.reset()
    kept = env.state()
    kept["rewards"] |= {"returns": np.ones(2 * ROWS), "variance": 4.0}
    first = env.resume(kept)
    assert first is not None
    assert not scale.state()["returns"].any()
    assert scale.state()["variance"] == 4.0
