"""The rules of a target block: each one broken by a crafted preset, and reach against a flood."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

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
from tests.cli.tiny_runs import invoke_plainly

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


FAR = "reaches beyond the block"
SHUT = "the FireBase centre cannot be reached from outside"
BROKEN = (
    (OPEN, {"target": "stay"}, "target 'stay' is not one of"),
    (OPEN, {"difficulty": 6}, "difficulty 6 is not 1 to 5"),
    (OPEN, {"fire_base": (5.0, np.nan, 4.0)}, "fire_base: every number must be finite"),
    (
        OPEN,
        {"fire_base": (5.0, 5.0, 0.99)},
        "the FireBase's diameter is 0.99 m, allowed are 1 to 10 m",
    ),
    (OPEN, {"fire_base": (1.9, 5.0, 4.0)}, f"the FireBase at (1.9, 5) with diameter 4 m {FAR}"),
    (OPEN, {"obstacles": ((9.0, 9.0, 10.01, 9.5),)}, f"obstacle 1 (9, 9, 10.01, 9.5) {FAR}"),
    (OPEN, {"obstacles": ((1.0, 1.0, 2.0, 1.0),)}, "obstacle 1 (1, 1, 2, 1) has no positive size"),
    (OPEN, {"obstacles": ((2.0, 1.0, 1.0, 2.0),)}, "obstacle 1 (2, 1, 1, 2) has no positive size"),
    (OPEN, {"obstacles": ((1.0, 1.0, 2.0, 2.0),) * 13}, "13 obstacles, at most 12 are allowed"),
    (GUARDED, {"enemies": ((5.0, 5.0),) * 7}, "7 enemies, at most 6 are allowed"),
    (
        OPEN,
        {"obstacles": ((5.49, 4.0, 6.0, 6.0),)},
        "the agent's disc does not fit on the FireBase centre: obstacle 1",
    ),
    (OPEN, {"obstacles": room(3, 7)}, SHUT),
    (OPEN, {"obstacles": room(3, 7, door=0.99)}, SHUT),
    (GUARDED, {"enemies": ()}, "an attack block needs at least one enemy"),
    (GUARDED, {"target": "goto"}, "a goto block has no enemies"),
    (GUARDED, {"enemies": ((7.01, 5.0),)}, "enemy 1 (7.01, 5) is outside the FireBase circle"),
    (
        GUARDED,
        {"obstacles": ((6.0, 3.5, 7.0, 4.5),), "enemies": ((6.5, 4.99),)},
        "enemy 1 (6.5, 4.99) overlaps obstacle 1 (6, 3.5, 7, 4.5)",
    ),
    (GUARDED, {"enemies": ((5.0, 5.0), (5.0, 5.99))}, "enemy 2 (5, 5.99) overlaps enemy 1"),
    (
        WIDE,
        {"obstacles": cell_around(6.0, 6.0), "enemies": ((5.0, 4.0), (6.0, 6.0))},
        "enemy 2 (6, 6) cannot be hit from any place the agent can reach",
    ),
)


@pytest.mark.parametrize(("sound", "change", "reason"), BROKEN)
def test_a_broken_rule_is_refused_by_name_and_reason(
    sound: Preset, change: dict[str, Any], reason: str
) -> None:
    (fault,) = preset_faults(replace(sound, **change))
    assert fault.startswith(f"preset crafted: {reason}")


# From corner to corner, and 1 m but for rounding.
CORNERS = ((3.0, 2.4, 6.4, 3.0), (7.0, 3.8, 7.5, 7.0), *room(3, 7)[1::2])
ROUNDED = (*room(3, 7)[1:], (3.0, 2.5, 3.3, 3.0), (4.3, 2.5, 7.0, 3.0))
ALLOWED = (
    replace(OPEN, fire_base=(5.0, 5.0, 10.0)),  # as big as the block
    replace(OPEN, fire_base=(0.5, 0.5, 1.0)),
    replace(OPEN, obstacles=((1.0, 1.0, 2.0, 2.0),) * 12),
    replace(OPEN, obstacles=((0.0, 0.0, 10.0, 0.5),)),
    replace(OPEN, obstacles=((5.5, 4.0, 6.0, 6.0),)),  # which the centre's disc touches
    *(replace(OPEN, obstacles=boxes) for boxes in (room(3, 7, door=1.0), ROUNDED, CORNERS)),
    replace(OPEN, obstacles=room(0.5, 9.5, door=1.0)),
    replace(GUARDED, obstacles=((6.0, 3.5, 7.0, 4.5),), enemies=((6.5, 5.0),)),  # which touch
    replace(GUARDED, enemies=((5.0, 5.0), (5.0, 6.0))),
    replace(GUARDED, enemies=((7.0, 5.0),)),  # on the rim of the base
    replace(WIDE, obstacles=cell_around(6.0, 6.0, slit=0.1)),  # hit through it from outside
)


@pytest.mark.parametrize("preset", ALLOWED, ids=range(len(ALLOWED)))
def test_a_preset_at_the_limit_is_allowed(preset: Preset) -> None:
    assert preset_faults(preset) == []


def test_a_gap_is_measured_between_corners_as_the_disc_passes() -> None:
    closer = replace(OPEN, obstacles=((3.0, 2.4, 6.41, 3.0), *CORNERS[1:]))
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


def test_a_slit_helps_only_where_the_agent_can_stand_behind_it() -> None:
    """The slit looks left; the wall that covers it leaves the agent room to stand, or none."""
    slit = replace(WIDE, obstacles=cell_around(6.0, 6.0, slit=0.2))
    roomy = replace(slit, obstacles=(*slit.obstacles, (3.0, 4.0, 3.9, 8.0)))
    tight = replace(slit, obstacles=(*slit.obstacles, (3.5, 4.0, 4.5, 8.0)))
    shielded = replace(slit, enemies=((6.0, 6.0), (4.5, 6.0)))  # by another enemy, which counts not
    assert preset_faults(roomy) == preset_faults(shielded) == []
    assert len(preset_faults(tight)) == 1


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
    assert invoke_plainly("presets", "check", file).output == "2 presets are valid\n"
