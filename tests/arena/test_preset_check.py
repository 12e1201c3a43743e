"""The rules of a target block: each one broken by a crafted preset, and reach against a flood."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.worlds.arena import presets as files
from aimbot_lab.worlds.arena.presets import (
    Preset,
    Walls,
    closed_chains,
    gaps,
    leave_grown,
    preset_faults,
    reachable,
)

Floats = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]

OPEN = Preset("crafted", "goto", 3, (5.0, 5.0, 4.0), ())
GUARDED = Preset("crafted", "attack", 3, (5.0, 5.0, 4.0), (), ((5.0, 5.0),))
WIDE = Preset("crafted", "attack", 3, (6.5, 4.0, 7.0), (), ((6.0, 6.0),))


def room(low: float, high: float, *, door: float = 0.0, wall: float = 0.5) -> tuple[Box, ...]:
    """Four walls around the square from `low` to `high`, with a door in the middle below."""
    left, right = (low + high - door) / 2, (low + high + door) / 2
    below = ((low, low - wall, left, low), (right, low - wall, high, low))
    return (
        *(below if door else ((low, low - wall, high, low),)),
        (low - wall, low - wall, low, high),
        (high, low - wall, high + wall, high),
        (low - wall, high, high + wall, high + wall),
    )


def cell_around(x: float, z: float, *, slit: float = 0.0, wall: float = 0.25) -> tuple[Box, ...]:
    """Walls that shut in an enemy at (x, z), with a slit on the left."""
    low, high = x - 0.75, x + 0.75
    left = ((low - wall, z - 0.75, low, z - slit / 2), (low - wall, z + slit / 2, low, z + 0.75))
    return (
        *(left if slit else ((low - wall, z - 0.75, low, z + 0.75),)),
        (high, z - 0.75, high + wall, z + 0.75),
        (low - wall, z - 0.75 - wall, high + wall, z - 0.75),
        (low - wall, z + 0.75, high + wall, z + 0.75 + wall),
    )


BROKEN = {
    "no such target": (replace(OPEN, target="stay"), "target 'stay' is not one of"),
    "no such difficulty": (replace(OPEN, difficulty=6), "difficulty 6 is not 1 to 5"),
    "not finite": (
        replace(OPEN, fire_base=(5.0, float("nan"), 4.0)),
        "fire_base: every number must be finite",
    ),
    "base too small": (
        replace(OPEN, fire_base=(5.0, 5.0, 0.99)),
        "the FireBase's diameter is 0.99 m, allowed are 1 to 10 m",
    ),
    "base beyond the block": (
        replace(OPEN, fire_base=(1.9, 5.0, 4.0)),
        "the FireBase at (1.9, 5) with diameter 4 m reaches beyond the block",
    ),
    "obstacle beyond the block": (
        replace(OPEN, obstacles=((9.0, 9.0, 10.01, 9.5),)),
        "obstacle 1 (9, 9, 10.01, 9.5) reaches beyond the block",
    ),
    "obstacle without size": (
        replace(OPEN, obstacles=((1.0, 1.0, 2.0, 1.0),)),
        "obstacle 1 (1, 1, 2, 1) has no positive size",
    ),
    "obstacle inside out": (
        replace(OPEN, obstacles=((2.0, 1.0, 1.0, 2.0),)),
        "obstacle 1 (2, 1, 1, 2) has no positive size",
    ),
    "too many obstacles": (
        replace(OPEN, obstacles=((1.0, 1.0, 2.0, 2.0),) * 13),
        "13 obstacles, at most 12 are allowed",
    ),
    "too many enemies": (
        replace(GUARDED, enemies=((5.0, 5.0),) * 7),
        "7 enemies, at most 6 are allowed",
    ),
    "centre covered": (
        replace(OPEN, obstacles=((5.49, 4.0, 6.0, 6.0),)),
        "the agent's disc does not fit on the FireBase centre: obstacle 1",
    ),
    "centre shut in": (
        replace(OPEN, obstacles=room(3, 7)),
        "the FireBase centre cannot be reached from outside",
    ),
    "door too narrow": (
        replace(OPEN, obstacles=room(3, 7, door=0.99)),
        "the FireBase centre cannot be reached from outside",
    ),
    "attack without enemies": (
        replace(GUARDED, enemies=()),
        "an attack block needs at least one enemy",
    ),
    "goto with enemies": (replace(GUARDED, target="goto"), "a goto block has no enemies"),
    "enemy outside the base": (
        replace(GUARDED, enemies=((7.01, 5.0),)),
        "enemy 1 (7.01, 5) is outside the FireBase circle",
    ),
    "enemy in an obstacle": (
        replace(GUARDED, obstacles=((6.0, 3.5, 7.0, 4.5),), enemies=((6.5, 4.99),)),
        "enemy 1 (6.5, 4.99) overlaps obstacle 1 (6, 3.5, 7, 4.5)",
    ),
    "enemies in each other": (
        replace(GUARDED, enemies=((5.0, 5.0), (5.0, 5.99))),
        "enemy 2 (5, 5.99) overlaps enemy 1",
    ),
    "enemy never hit": (
        replace(WIDE, obstacles=cell_around(6.0, 6.0), enemies=((5.0, 4.0), (6.0, 6.0))),
        "enemy 2 (6, 6) cannot be hit from any place the agent can reach",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_refused_by_name_and_reason(case: str) -> None:
    preset, reason = BROKEN[case]
    (fault,) = preset_faults(preset)
    assert fault.startswith(f"preset crafted: {reason}")


ALLOWED = {
    "base as big as the block": replace(OPEN, fire_base=(5.0, 5.0, 10.0)),
    "smallest base in the corner": replace(OPEN, fire_base=(0.5, 0.5, 1.0)),
    "twelve obstacles": replace(OPEN, obstacles=((1.0, 1.0, 2.0, 2.0),) * 12),
    "obstacles at the edge": replace(OPEN, obstacles=((0.0, 0.0, 10.0, 0.5),)),
    "centre touches an obstacle": replace(OPEN, obstacles=((5.5, 4.0, 6.0, 6.0),)),
    "gap of exactly 1 m": replace(OPEN, obstacles=room(3, 7, door=1.0)),
    "gap of 1 m but for rounding": replace(
        OPEN, obstacles=(*room(3, 7)[1:], (3.0, 2.5, 3.3, 3.0), (4.3, 2.5, 7.0, 3.0))
    ),
    "gap of 1 m between two corners": replace(
        OPEN, obstacles=((3.0, 2.4, 6.4, 3.0), (7.0, 3.8, 7.5, 7.0), *room(3, 7)[1::2])
    ),
    "walls along the whole edge but a door": replace(OPEN, obstacles=room(0.5, 9.5, door=1.0)),
    "enemy touches an obstacle": replace(
        GUARDED, obstacles=((6.0, 3.5, 7.0, 4.5),), enemies=((6.5, 5.0),)
    ),
    "enemies touch": replace(GUARDED, enemies=((5.0, 5.0), (5.0, 6.0))),
    "enemy on the rim of the base": replace(GUARDED, enemies=((7.0, 5.0),)),
    "hit through a slit from outside": replace(WIDE, obstacles=cell_around(6.0, 6.0, slit=0.1)),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_a_preset_at_the_limit_is_allowed(case: str) -> None:
    assert preset_faults(ALLOWED[case]) == []


def test_a_gap_is_measured_between_corners_as_the_disc_passes() -> None:
    walls = ALLOWED["gap of 1 m between two corners"].obstacles
    closer = replace(OPEN, obstacles=((3.0, 2.4, 6.41, 3.0), *walls[1:]))
    assert len(preset_faults(closer)) == 1


def test_all_broken_rules_are_told_at_once() -> None:
    preset = replace(
        GUARDED,
        fire_base=(5.0, 5.0, 11.0),
        obstacles=((1.0, 1.0, 1.0, 2.0), (9.0, 1.0, 11.0, 2.0)),
        enemies=((11.0, 5.0), (5.0, 5.0), (5.0, 5.0)),
    )
    assert [fault.split(": ", 1)[1] for fault in preset_faults(preset)] == [
        "the FireBase's diameter is 11 m, allowed are 1 to 10 m",
        "the FireBase at (5, 5) with diameter 11 m reaches beyond the block, (0, 0) to (10, 10)",
        "obstacle 1 (1, 1, 1, 2) has no positive size: give min x, min z, max x, max z",
        "obstacle 2 (9, 1, 11, 2) reaches beyond the block, (0, 0) to (10, 10)",
        "enemy 1 (11, 5) is outside the block",
        "enemy 1 (11, 5) is outside the FireBase circle",
        "enemy 3 (5, 5) overlaps enemy 2",
    ]


# An enemy in a cell of its own


def test_a_slit_helps_only_where_the_agent_can_stand_behind_it() -> None:
    """The slit looks left; the wall that covers it leaves the agent room to stand, or none."""
    slit = replace(WIDE, obstacles=cell_around(6.0, 6.0, slit=0.2))
    roomy = replace(slit, obstacles=(*slit.obstacles, (3.0, 4.0, 3.9, 8.0)))
    tight = replace(slit, obstacles=(*slit.obstacles, (3.5, 4.0, 4.5, 8.0)))
    assert preset_faults(roomy) == []
    assert len(preset_faults(tight)) == 1


def test_other_enemies_shield_nothing() -> None:
    enemies = ((6.0, 6.0), (4.5, 6.0))
    slit = replace(WIDE, obstacles=cell_around(6.0, 6.0, slit=0.2), enemies=enemies)
    assert preset_faults(slit) == []


def test_a_line_leaves_a_grown_box_at_the_radius() -> None:
    """Lines and boxes at random: at the place of leaving the box is 0.5 m away, then farther."""
    rng = np.random.default_rng(5)
    start, angle = rng.uniform(0, 10, (200, 2)), rng.uniform(0, 2 * np.pi, 200)
    heading = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for low in rng.uniform(2, 6, (20, 2)):
        box = np.array([[*low, *(low + rng.uniform(0.1, 3, 2))]])
        leave = leave_grown(start, heading, boxes=box)[:, 0]
        met = np.isfinite(leave)
        assert met.any()
        at_leave = start[met] + leave[met, None] * heading[met]
        np.testing.assert_allclose(gaps(at_leave, box)[:, 0], 0.5, atol=1e-9)
        assert (gaps(at_leave + 0.01 * heading[met], box) > 0.5).all()
        for step in np.arange(-15, 15, 0.1):
            assert (gaps(start[~met] + step * heading[~met], box) >= 0.5).all()


# Reach against a flood over a grid


def flooded(points: Floats, side: int, boxes: Floats) -> npt.NDArray[np.bool_]:
    """Which of the points [side * side, 2] of a grid a flood from its corner wets."""
    nearest = np.clip(points[:, None], boxes[:, :2], boxes[:, 2:])
    free = (np.linalg.norm(points[:, None] - nearest, axis=2) >= 0.5).all(axis=1)
    free = free.reshape(side, side)
    wet, waiting = np.zeros_like(free), [(0, 0)]
    while waiting:
        row, column = waiting.pop()
        if 0 <= row < side and 0 <= column < side and free[row, column] and not wet[row, column]:
            wet[row, column] = True
            waiting += [(row + a, column + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
    return wet.ravel()


def random_boxes(rng: np.random.Generator) -> Floats:
    """Twelve random walls of which no two stand nearly 1 m apart."""
    while True:
        size = np.stack([rng.uniform(2, 6, 12), np.full(12, 0.5)], axis=1)
        size = np.where(rng.random((12, 1)) < 0.5, size, size[:, ::-1])
        low = rng.uniform(0, 10 - size)
        boxes: Floats = np.concatenate([low, low + size], axis=1)
        apart = np.maximum(low[:, None] - boxes[:, 2:], 0) + np.maximum(low - boxes[:, None, 2:], 0)
        gap = np.linalg.norm(apart, axis=2)
        if not ((gap > 0.9) & (gap < 1.1)).any():
            return boxes


def test_reach_agrees_with_a_flood() -> None:
    rng = np.random.default_rng(3)
    line = np.linspace(-1, 11, 121)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    cut_off = 0
    for _ in range(8):
        boxes = random_boxes(rng)
        wet = flooded(points, line.size, boxes)
        found = reachable(points, Walls(boxes, closed_chains(boxes)))
        np.testing.assert_array_equal(found, wet)
        cut_off += int((~wet).any())
    assert cut_off >= 2


def test_the_example_of_the_page_on_presets_is_fit_to_use(tmp_path: Path) -> None:
    page = files.FOLDER / "README.md"
    _, _, rest = page.read_text(encoding="utf-8").partition("```yaml\n")
    file = tmp_path / "mine.yaml"
    file.write_text(rest.partition("```")[0], encoding="utf-8")
    found = CliRunner().invoke(cli, ["presets", "check", str(file)])
    assert (found.exit_code, found.output) == (0, "2 presets are valid\n")
