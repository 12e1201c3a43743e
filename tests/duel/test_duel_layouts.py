"""Halls of the duel: those that are shipped, their rules, and a user's own."""

import json
from collections import Counter
from pathlib import Path

import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.layouts import (
    FORM,
    Hall,
    chosen_layouts,
    kept_layouts,
    layout_faults,
    load_layouts,
    shipped_layouts,
    twin,
)
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.world_type import DUEL


def hall(*boxes: tuple[float, float, float, float], level: int = 1, start=(15.0, 3.0)) -> Hall:
    return Hall("hall", level, boxes, start)


def test_at_least_four_layouts_of_each_difficulty_are_shipped() -> None:
    count = Counter(layout.difficulty for layout in shipped_layouts())
    assert set(count) == {1, 2, 3, 4, 5}
    assert min(count.values()) >= 4


def test_a_layout_is_the_same_list_of_boxes_seen_from_the_other_side() -> None:
    for layout in shipped_layouts():
        assert sorted(twin(box) for box in layout.all_boxes) == list(layout.all_boxes)


def test_coordinates_are_rounded_so_that_both_frames_are_exact() -> None:
    (box, other) = hall((4.1, 5.3, 6.7, 7.9)).all_boxes
    assert twin(twin(box)) == box
    assert twin(box) == other
    assert all(side * 64 == int(side * 64) for side in (*box, *other))


FAULTY = {
    "has no positive size": hall((5, 5, 5, 6)),
    "reaches beyond the floor": hall((25, 5, 31, 6)),
    "30 boxes with their twins; at most 24": hall(
        *((1.0 + 2 * k, 1.0, 1.5 + 2 * k, 1.5) for k in range(14)), (1.0, 4.0, 1.5, 4.5)
    ),
    "0.5 m apart: close the gap": hall((4, 5, 5, 6), (5.5, 5, 7, 6)),
    "and the left wall are 0.75 m apart": hall((0.75, 5, 2, 6)),
    "is not free of": hall((14, 3, 16, 4)),
    "must have x from": hall(start=(15, 12)),
    "see each other": hall(level=2),
    "cannot be reached": hall((5, 5, 12, 6), (5, 11, 12, 12), (5, 6, 6, 11), (11, 6, 12, 11)),
    "difficulty 6 is not 1 to 5": hall(level=6),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_layout_that_breaks_a_rule_is_refused_with_the_reason(fault: str) -> None:
    faults = layout_faults(FAULTY[fault])
    assert any(fault in line for line in faults), faults
    assert all(line.startswith("layout hall: ") for line in faults)


@pytest.mark.parametrize("corner", [-1e308, 1e17])
def test_a_box_as_far_as_floats_reach_is_refused_as_one_beyond_the_floor(corner: float) -> None:
    (fault,) = layout_faults(hall((min(corner, 8), 6, max(corner, 9), 24)))
    assert "reaches beyond the floor" in fault


def test_a_gap_of_a_metre_lets_a_disc_pass() -> None:
    assert layout_faults(hall((0, 10, 14, 11), (15, 10, 30, 11))) == []


def test_every_fault_of_a_file_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "halls.yaml"
    path.write_text(
        "1:\n"
        "  - {name: a, start: [15, 3], boxes: [[5, 5, 5, 6]]}\n"
        "  - {name: b, start: [15], walls: 3}\n"
        "6: []\n"
        "2:\n"
        "  - {name: c, start: [15, 3], boxes: [[14, 14, 16, 16]]}\n"
        "  - {name: c, start: [15, 3], boxes: [[13, 14, 17, 16]]}\n"
    )
    with pytest.raises(ConfigurationError) as raised:
        load_layouts([path])
    found = [line.removeprefix(str(path)) for line in str(raised.value).splitlines()]
    assert [line.partition(": ")[0] for line in found] == [":4:1", ":2:5", ":3:28", ":3:22", ":7:5"]
    told = "\n".join(found)
    for part in ("unknown key '6'", "no positive size", "'walls'", "2 numbers", "has this name"):
        assert part in told


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
