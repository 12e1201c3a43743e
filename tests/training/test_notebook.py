"""A notebook trains, and shows how far it has come."""

import asyncio
from pathlib import Path

import pytest

import aimbot_lab

CURRICULUM = """
name: short
env: {num_envs: 16, goto_win_radius: 12, time_limit: 3}
lessons: [{name: one, targets: {goto: 1}}]
train: {total_steps: 1024, n_steps: 32, batch_size: 128, n_epochs: 1, network: {layers: [16]}}
"""


def test_where_it_stands_is_shown_while_it_trains_in_a_loop_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a cell of a notebook does, whose streams are replaced, too."""
    path = tmp_path / "short.yaml"
    path.write_text(CURRICULUM, encoding="utf-8")

    async def cell() -> tuple[str, int]:
        result = aimbot_lab.train(path, progress=True, data_dir=tmp_path / "data")
        return result.status, result.steps

    assert asyncio.run(cell()) == ("FINISHED", 1024)
    assert "step 512 of 1,024  lesson 1/1 'one' win rate" in capsys.readouterr().err
