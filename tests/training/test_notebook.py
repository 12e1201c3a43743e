"""A notebook trains, and shows how far it has come."""

from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

CURRICULUM = """
name: short
env: {num_envs: 16, goto_win_radius: 12, time_limit: 3}
lessons: [{name: one, targets: {goto: 1}}]
train: {total_steps: 1024, n_steps: 32, batch_size: 128, n_epochs: 1, network: {layers: [16]}}
"""
CELL = """
import aimbot_lab

result = aimbot_lab.train("short.yaml", progress=True, data_dir="data")
print(result.status, result.steps)
"""


@pytest.mark.filterwarnings("default")  # of what runs a notebook
def test_a_notebook_shows_where_it_stands_while_it_trains(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text(CURRICULUM, encoding="utf-8")
    notebook = new_notebook(cells=[new_code_cell(CELL)])
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, resources=place).execute()
    said = "".join(one.get("text", "") for one in notebook.cells[0].outputs)
    assert "step 512 of 1,024  lesson 1/1 'one' win rate" in said
    assert said.endswith("FINISHED 1024\n")
