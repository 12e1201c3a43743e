"""The arena's page tells the truth: its code runs as it stands."""

import re
from pathlib import Path

import numpy as np

from aimbot_lab.worlds.arena.core.state import ArenaState

PAGE = Path(__file__).parents[2] / "aimbot_lab" / "worlds" / "arena" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_code_of_the_page_runs_from_top_to_bottom(capsys) -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    blocks = [block for block in blocks if "stable_baselines3" not in block]  # test_sb3_envs
    assert len(blocks) == 6
    for block in blocks:
        exec(block, names)
    said = capsys.readouterr().out.splitlines()
    assert [said.pop(), said.pop()] == ["(2, 16, 32, 1) (2, 51)", "camera (16, 32, 1)"]
    assert float(said[-1].split()[-1]) > 0.0
    assert names["weights"].weights[0] == 0.2
    np.testing.assert_equal(names["picture"].shape, (480, 480, 3))


def test_the_arrays_that_the_page_names_exist() -> None:
    part = TEXT.split("## What can be read")[1].split("```")[0]
    named = set(re.findall(r"`([a-z_]+)`", part)) - {"y"}
    assert {"position", "yaw", "terms"} <= named
    assert named <= set(ArenaState._fields), named - set(ArenaState._fields)
