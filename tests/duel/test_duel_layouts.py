"""Layouts: those that are shipped, and what is refused, each fault with its line and column."""

from collections import Counter
from pathlib import Path

import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.duel.layouts import (
    Hall,
    layout_faults,
    load_layouts,
    shipped_layouts,
    twin,
)


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


@pytest.mark.parametrize("corner", [-1e308, 1e308, -(2.0**53), 1e17])
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
