"""The page on ML-Agents tells the truth: its code runs as it stands."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "aimbot_lab" / "mlagents" / "README.md"


def test_the_code_of_the_page_runs(capsys) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    episodes = int(capsys.readouterr().out.split()[0])
    assert episodes >= 64
