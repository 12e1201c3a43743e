"""Faults of a beginner, told in the words that help."""

from pathlib import Path

from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import check_files
from aimbot_lab.training.agents.best_agent import BestAgent
from aimbot_lab.worlds.arena.presets.files import SHIPPED_FILES


def test_reward_terms_that_are_nested_are_told_by_their_keys(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\nlessons:\n"
        "  - {name: a, targets: {goto: 1}, parameters: {rewards: {win: 3, lose: 1}}}\n"
    )
    (line,) = check_files([file])
    assert line.endswith(
        "lessons.0.parameters.rewards: each term is a parameter of its own: "
        "rewards.win, rewards.lose"
    )


def test_a_file_of_target_blocks_is_sent_to_its_own_command() -> None:
    for path in SHIPPED_FILES:
        told = CliRunner().invoke(cli, ["check", str(path)]).stderr
        assert told.count("\n") == 1
        assert "presets check" in told


def test_the_best_agent_of_a_training_that_passed_all_was_in_its_last_lesson() -> None:
    best = BestAgent()
    best.consider((6, 0.9), {}, step=10, lesson=6)
    assert best.about == {"step": 10, "lesson": 6, "win_rate_lower": 0.9}
