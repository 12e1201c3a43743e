"""The YAML of README.md and of the page on curricula is fit to run."""

import re
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "curricula" / "README.md")
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if not block.startswith("#")
]
LESSON = "name: page\nlessons:\n  - name: only\n    targets: {goto: 1}\n"


def test_the_pages_show_curricula_and_parts_of_them() -> None:
    beginnings = {re.match(r"\s*(\w+)", block).group(1) for block in BLOCKS}
    assert beginnings == {
        "name",
        "evaluation",
        "forgetting",
        "parameters",
        "environment_parameters",
    }


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split(":")[0].strip())
def test_the_yaml_of_the_pages_is_fit_to_run(block: str, tmp_path: Path) -> None:
    text = block if block.startswith("name:") else LESSON + block
    file = tmp_path / "page.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_curriculum(file).config.lessons
