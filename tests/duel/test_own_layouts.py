"""Halls of one's own: found beside the curriculum, kept with the run, refused with their place."""

import json
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.layouts import (
    FORM,
    chosen_layouts,
    kept_layouts,
    shipped_layouts,
)
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.world_type import DUEL

CURRICULUM = """\
name: halls
env: {world: duel, learner: home, num_envs: 8, layouts: [halls/]}
lessons:
  - name: only
    targets: {greedy: 1}
train: {total_steps: 64, n_steps: 8, batch_size: 64}
"""
PILLAR = "[[13, 13, 17, 17]]"
HALLS = "1:\n  - {name: plain ä, start: [10, 3.25], boxes: []}\n" + "".join(
    f"{level}:\n  - {{name: own {level}, start: [15, 3], boxes: {PILLAR}}}\n"
    for level in (2, 3, 4, 5)
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A curriculum with halls of its own, seen from another working directory."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "halls").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "halls" / "own.yaml").write_text(HALLS, encoding="utf-8")
    (project / "halls.yaml").write_text(CURRICULUM, encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    return project


def refusal(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path, overrides)
    return list(caught.value.faults)


def test_own_halls_are_drawn_beside_the_shipped_ones_or_alone(project: Path) -> None:
    loaded = load_curriculum(project / "halls.yaml")
    beside = Duel(loaded.config.env).layouts
    assert len(beside) == len(shipped_layouts()) + 5
    alone = load_curriculum(project / "halls.yaml", ["env.shipped_layouts=false"]).config.env
    found = Duel(alone).layouts
    assert [one.name for one in found] == ["plain ä", "own 2", "own 3", "own 4", "own 5"]
    assert found[0].start == (10.0, 3.25)
    assert found[1].boxes == ((13.0, 13.0, 17.0, 17.0),)


def test_the_run_keeps_their_text_and_reads_it_again(project: Path) -> None:
    loaded = load_curriculum(project / "halls.yaml")
    ((name, text),) = loaded.files.items()
    assert name.startswith("layouts-")
    assert FORM.is_kept_name(name)
    assert kept_layouts([text]) == text
    for kept, content in {"resolved.yaml": loaded.resolved_text, name: text}.items():
        Path(kept).write_text(content, encoding="utf-8")
    (project / "halls" / "own.yaml").unlink()
    again = load_curriculum(Path("resolved.yaml"), find=Path)
    assert again.config == loaded.config
    assert chosen_layouts(again.config.env) == chosen_layouts(loaded.config.env)
    Path(name).write_text(text.replace("10.0", "11.0"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="altered since a run kept it"):
        load_curriculum(Path("resolved.yaml"), find=Path)


def test_every_fault_of_a_hall_is_a_line_with_its_place_before_anything_is_created(
    project: Path,
) -> None:
    file = project / "halls" / "own.yaml"
    file.write_text(
        "1:\n"
        "  - {name: empty, start: [15, 3], boxes: []}\n"  # the name of a shipped one
        "2:\n"
        "  - {name: seen, start: [15, 3], boxes: []}\n"
        "  - {name: narrow, start: [15, 3], boxes: [[13, 13, 17, 17], [17.5, 13, 19, 14]]}\n"
    )
    lines = refusal(project / "halls.yaml")
    assert [line.partition(": ")[0] for line in sorted(lines)] == sorted(
        f"{file}:{place}" for place in ("4:5", "5:5", "5:5", "2:5")
    )
    told = "\n".join(lines)
    for what in ("has this name", "see each other", "close the gap"):
        assert what in told


def test_without_the_shipped_halls_each_difficulty_needs_one(project: Path) -> None:
    (project / "halls" / "own.yaml").write_text(HALLS.partition("4:")[0], encoding="utf-8")
    (line,) = refusal(project / "halls.yaml", "env.shipped_layouts=false")
    assert line.endswith(
        "lessons.0.difficulty.greedy: no layout of difficulty 4, 5 is there: env.shipped_layouts "
        "is false, and env.layouts holds none"
    )
    with pytest.raises(ConfigurationError, match="no layout of difficulty 1, 2, 3, 4, 5"):
        Duel(DuelSettings(num_envs=1, shipped_layouts=False))
    (line,) = refusal(project / "halls.yaml", "env.layouts=[nowhere.yaml]")
    assert "env.layouts.0: there is no file or folder" in line


def test_halls_can_be_listed_counted_and_drawn(project: Path) -> None:
    own = [project / "halls"]
    assert DUEL.files.count(own) == 5
    assert DUEL.files.count([]) == len(shipped_layouts())
    table = DUEL.files.listed(own)
    assert table.rows[1] == ("own 2", 2, 1)  # its own twin
    assert json.dumps(table.documents[0], ensure_ascii=False).startswith('{"name": "plain ä"')
    sheet = DUEL.files.draw(own)
    assert sheet.size == (160 + 16, 5 * (160 + 28) + 8)
