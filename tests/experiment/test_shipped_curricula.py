"""Shipped curricula and the page about them: fit to run, and named."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from aimbot_lab.curriculum.settings import lesson_cells
from aimbot_lab.experiment.analysis.configurations import NamedRun, configuration_names
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec
from aimbot_lab.worlds.duel.spec import duel_spec

FOLDER = Path(__file__).parents[2] / "curricula"


@pytest.mark.parametrize("name", ["goto", "attack", "free", "mix"])
def test_the_last_lesson_asks_for_a_win_rate_of_over_95_percent_in_every_cell(name: str) -> None:
    config = load_curriculum(FOLDER / f"{name}.yaml", ()).config
    lesson = config.lessons[-1]
    criteria = lesson.completion_criteria
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
    assert (last.measure, last.against, last.threshold) == ("elo", "reference", 200)
    for lesson in config.lessons:
        played = lesson_cells(lesson, duel_spec(config.env).difficulties)
        assert {cell.difficulty for cell in played} == {1, 2, 3, 4, 5}
        assert not lesson.parameters


ROOT = Path(__file__).parents[2]
OWN_BLOCKS = ROOT / "aimbot_lab" / "worlds" / "arena" / "data"  # in test_own_presets.py
BLOCKS = [
    block
    for page in (
        ROOT / "README.md",
        *sorted((ROOT / "aimbot_lab").rglob("*.md")),
        *sorted((ROOT / "curricula").glob("*.md")),
    )
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if page.parent != OWN_BLOCKS
]
LESSON = "lessons:\n  - name: only\n    targets: {goto: 1}\n"
WORLDS = {  # that an algorithm needs, where the page shows `train` alone
    "sac": "env: {world: gymnasium, id: Pendulum-v1}\n",
    "q_learning": "env: {world: gymnasium, id: FrozenLake-v1}\n",
}


def test_the_agent_of_the_camera_sees_pictures_alone_and_is_asked_for_goto_as_it_is() -> None:
    config = load_curriculum(FOLDER / "camera.yaml", ()).config
    network, lesson = config.train.network, config.lessons[-1]
    assert network.picture.alone
    assert network.memory is None
    assert lesson_cells(lesson, arena_spec(config.env).difficulties) == (Cell("goto", 1),)
    assert not lesson.parameters
    assert lesson.completion_criteria.threshold >= 0.9
    usual = replace(ArenaSettings(), num_envs=config.env.num_envs, rewards=config.env.rewards)
    assert config.env == replace(usual, observation=config.env.observation)


def test_the_pages_show_curricula_and_parts_of_them() -> None:
    beginnings = {re.match(r"[\s#]*(\w+)", block).group(1) for block in BLOCKS}
    assert beginnings >= {"name", "evaluation", "forgetting", "parameters", "train", "reach"}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split(":")[0].strip())
def test_the_yaml_of_the_pages_is_fit_to_run(block: str, tmp_path: Path) -> None:
    text = block if re.search("^name:", block, re.MULTILINE) else f"name: page\n{block}"
    algo = re.match(r"train:\n  algo: (\w+)", block)
    if algo and algo.group(1) in WORLDS:
        text = WORLDS[algo.group(1)] + text.replace("    replay_buffer", "    # replay_buffer")
    elif not re.search("^lessons:|world:", block, re.MULTILINE):
        text = f"name: page\n{LESSON}{block}"
    file = tmp_path / "page.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_curriculum(file).name


def test_the_sweep_of_the_page_is_the_shipped_one() -> None:
    page = (ROOT / "sweeps" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    shipped = yaml.safe_load((ROOT / "sweeps" / "cartpole.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(block).items() <= shipped.items()


def runs(name: str, curriculum: str = "goto") -> list[NamedRun]:
    return [NamedRun(f"{name} seed {seed}", seed, curriculum) for seed in (1, 2)]


def test_a_configuration_has_the_name_of_its_runs_or_curriculum_with_its_tag_where_shared() -> None:
    for groups, names in (
        (
            {"aaaaaaaa": runs("usual"), "bbbbbbbb": [NamedRun("slower", 1, "goto")]},
            ["usual", "slower"],
        ),
        ({"a": [*runs("one"), *runs("other")]}, ["goto"]),
        (
            {"12345678": runs("goto"), "abcdefgh": runs("goto"), "c": runs("x")},
            ["goto (123456)", "goto (abcdef)", "x"],
        ),
    ):
        assert configuration_names(groups) == dict(zip(groups, names, strict=True))
