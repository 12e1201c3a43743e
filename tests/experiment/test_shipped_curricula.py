"""What the shipped curricula ask of an agent before they let it go."""

from pathlib import Path

import pytest

from aimbot_lab.curriculum.settings import lesson_cells
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec
from aimbot_lab.worlds.duel.spec import duel_spec

FOLDER = Path(__file__).parents[2] / "curricula"


@pytest.mark.parametrize("name", ["goto", "attack", "free", "mix"])
def test_the_last_lesson_asks_for_a_win_rate_of_over_95_percent_in_every_cell(name: str) -> None:
    config = load_curriculum(FOLDER / f"{name}.yaml", ()).config
    lesson = config.lessons[-1]
    criteria = lesson.completion_criteria
    assert criteria is not None
    assert criteria.threshold >= 0.95
    cells = lesson_cells(lesson, arena_spec(config.env).difficulties)
    assert criteria.every_cell or len(cells) == 1
    assert not lesson.parameters  # the arena as it is


def test_the_duel_asks_for_scores_in_every_hall_and_then_for_200_points_over_the_own_past() -> None:
    config = load_curriculum(FOLDER / "duel.yaml", ()).config
    criteria = [lesson.completion_criteria for lesson in config.lessons]
    asked = {
        (each.measure, each.against, each.threshold, each.every_cell) for each in criteria if each
    }
    assert {("score", "greedy", 0.85, True), ("score", "aimbot", 0.6, True)} <= asked
    last = criteria[-1]
    assert last is not None
    assert (last.measure, last.against, last.threshold) == ("elo", "reference", 200)
    for lesson in config.lessons:
        played = lesson_cells(lesson, duel_spec(config.env).difficulties)
        assert {cell.difficulty for cell in played} == {1, 2, 3, 4, 5}
        assert not lesson.parameters


def test_the_agent_of_the_camera_sees_pictures_alone_and_is_asked_for_goto_as_it_is() -> None:
    config = load_curriculum(FOLDER / "camera.yaml", ()).config
    network = config.train.network
    assert isinstance(network, NetworkSettings)
    picture = network.picture
    assert picture is not None
    assert picture.alone
    assert network.memory is None
    lesson = config.lessons[-1]
    assert (lesson.targets, lesson.difficulty) == (
        {"goto": 1.0},
        {"goto": (1.0, 0.0, 0.0, 0.0, 0.0)},
    )
    assert not lesson.parameters
    assert lesson.completion_criteria is not None
    assert lesson.completion_criteria.threshold >= 0.9
    assert isinstance(config.env, ArenaSettings)
    usual = ArenaSettings(
        num_envs=config.env.num_envs, observation=config.env.observation, rewards=config.env.rewards
    )
    assert config.env == usual  # but for what is seen and earned
