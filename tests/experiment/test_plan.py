"""What a curriculum would do: mixes, forecasts and warnings."""

import json
from pathlib import Path

import pytest
from broken_curriculum import GOOD

from aimbot_lab.curriculum.settings import cell_shares, lesson_scenario
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.plan import CurriculumPlan, plan_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import spec_of

SHIPPED = sorted((Path(__file__).parents[2] / "curricula").glob("*.yaml"))


pytestmark = pytest.mark.usefixtures("here")


def planned(text: str, *overrides: str) -> CurriculumPlan:
    Path("c.yaml").write_text(text, encoding="utf-8")
    return plan_curriculum(load_curriculum("c.yaml", overrides))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_shipped_curriculum_is_not_doubtful_its_shares_sum_to_one_and_it_can_begin(
    path: Path,
) -> None:
    loaded = load_curriculum(path, may_run=always)
    assert plan_curriculum(loaded).warnings == ()
    config = loaded.config
    for lesson in config.lessons:
        shares = cell_shares(lesson_scenario(lesson, spec_of(config.env).difficulties))
        assert sum(shares.values()) == pytest.approx(1)
    Training(config.training_plan).close()


def test_a_share_is_that_of_the_target_times_that_of_the_difficulty() -> None:
    mix = "{goto: 3, attack: 1, free: 0}\n    difficulty: {goto: [1, 0, 3, 0, 0]}"
    text = GOOD.replace("{goto: 1.0}\n    difficulty: {goto: [1, 0, 0, 0, 0]}", mix, 1)
    cells = planned(text).lessons[0].cells
    assert [(cell.target, cell.difficulty, cell.share) for cell in cells] == [
        ("goto", 1, 0.75 * 0.25),
        ("goto", 3, 0.75 * 0.75),
        *(("attack", level, pytest.approx(0.05)) for level in (1, 2, 3, 4, 5)),
    ]


@pytest.mark.parametrize("given", [(), ("train.reward_scale=0.01",)], ids=["left out", "set"])
def test_a_plan_says_how_observations_and_rewards_are_scaled_and_why(
    given: tuple[str, ...],
) -> None:
    default = " (the default of ppo in world arena)"
    rewards = f"rewards times 0.01{'' if given else default}"
    wanted = f"observations by their declared bounds{default}, {rewards}"
    assert planned(GOOD, "train.algo=ppo", *given).scaling == wanted


# What is changed, and what is said.
DOUBTFUL = [
    ("lessons.0.completion_criteria.threshold=0.9999", "threshold 0.9999 can hardly be met"),
    ("train.total_steps=1000", "less than one rollout, env.num_envs * train.n_steps = 8,192"),
    ("train.total_steps=20000", "may not be enough: the lessons take some"),
    (
        "lessons.0.completion_criteria.scope=every_cell|lessons.0.difficulty.goto=[99, 1, 0, 0, 0]",
        "lessons.0 'first': goto 2 must pass by itself and gets 1.00 % of the episodes",
    ),
    (
        "lessons.0.completion_criteria.scope=every_cell"
        "|lessons.0.difficulty.goto=[1, 1e-300, 0, 0, 0]",
        "can hardly be met: at a true win rate of",
    ),
]


@pytest.mark.parametrize(("overrides", "said"), DOUBTFUL)
def test_what_is_doubtful_is_said(overrides: str, said: str) -> None:
    assert planned(GOOD).warnings == ()
    assert any(said in warning for warning in planned(GOOD, *overrides.split("|")).warnings)


def test_the_document_holds_plan_and_configuration() -> None:
    found = planned(GOOD, "seed=7")
    document = json.loads(json.dumps(found.as_json()))
    assert document["schema"] == 1
    assert document["resolved"]["seed"] == 7
    assert document["longest_episode_steps"] == 300
    assert document["lessons"][0]["cells"] == [{"target": "goto", "difficulty": 1, "share": 1.0}]
    assert document["lessons"][0]["expected"][-1] == {"win_rate": 1.0, "episodes": 100}
    assert document["lessons"][1]["completion_criteria"] is None
    assert document["lessons"][1]["expected"] == []


def test_presets_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="no_such_file"):
        planned(GOOD, "env.presets=[no_such_file.yaml]")
