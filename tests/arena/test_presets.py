"""Preset files: what ships, how a user's own are read, and how broken ones are refused."""

from collections.abc import Callable
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.core.state import BLOCK_SIZE, DIFFICULTY_COUNT
from aimbot_lab.worlds.arena.presets import (
    BLOCK_TARGETS,
    FORM,
    Preset,
    kept_presets,
    load_presets,
    preset_faults,
)

Floats = npt.NDArray[np.float64]
SHIPPED = load_presets()
DIFFICULTIES = range(1, DIFFICULTY_COUNT + 1)
BEARINGS = np.deg2rad(np.arange(360))
OUTWARD = np.stack([np.sin(BEARINGS), np.cos(BEARINGS)], axis=1)
GOOD = """\
goto:
  1:
    - name: mine
      fire_base: {center: [5, 6.5], diameter: 3}
      obstacles:
        - [1, 1, 2, 2]
attack:
  5:
    - name: mine
      fire_base: {center: [5, 5], diameter: 1e0}
      enemies: [[5, 5]]
"""


def cell(target: str, difficulty: int) -> list[Preset]:
    return [p for p in SHIPPED if (p.target, p.difficulty) == (target, difficulty)]


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def faults_of(*files: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_presets(files)
    return list(caught.value.faults)


def test_every_difficulty_has_at_least_four_presets_that_obey_the_rules() -> None:
    counts = [len(cell(target, k)) for target in BLOCK_TARGETS for k in DIFFICULTIES]
    assert min(counts) >= 4
    assert {one.name: faults for one in SHIPPED if (faults := preset_faults(one))} == {}


def symmetries(preset: Preset) -> list[tuple[object, ...]]:
    """The preset turned and mirrored in all eight ways, in a form that compares."""
    forms = []
    for turns, mirror in product(range(4), (False, True)):

        def moved(x: float, z: float, turns: int = turns, m: bool = mirror) -> tuple[float, ...]:
            x = BLOCK_SIZE - x if m else x
            for _ in range(turns):
                x, z = z, BLOCK_SIZE - x
            return x, z

        corners = [(*moved(*box[:2]), *moved(*box[2:])) for box in preset.obstacles]
        boxes = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners]
        rest = (moved(*preset.fire_base[:2]), sorted(moved(*e) for e in preset.enemies))
        forms.append((sorted(boxes), *(() if boxes else rest)))
    return forms


def test_no_shipped_preset_is_a_turned_or_mirrored_copy() -> None:
    for one, other in combinations(SHIPPED, 2):
        if one.obstacles or (one.target == other.target and one.fire_base == other.fire_base):
            assert symmetries(one)[0] not in symmetries(other), (one.name, other.name)


def depth(points: Floats, boxes: Floats) -> Floats:
    """Distance from points [..., 2] to the nearest of boxes [K, 4], infinite without boxes."""
    distances = [np.full(points.shape[:-1], np.inf)]
    for x0, z0, x1, z1 in boxes:
        x, z = points[..., 0], points[..., 1]
        distances.append(np.hypot(x - np.clip(x, x0, x1), z - np.clip(z, z0, z1)))
    return np.min(distances, axis=0)


def along(place: Floats, start: float, end: float) -> Floats:
    """Points [360, S, 2] on lines from `place` in all directions, 0.05 m apart."""
    steps = np.arange(start, end, 0.05)
    return place + steps[:, None] * OUTWARD[:, None]


def straight_share(preset: Preset) -> float:
    """Share of bearings from which a disc walks straight to within 1 m of the centre."""
    walk = along(np.array(preset.fire_base[:2]), 1.0, 12.0)
    return float((depth(walk, np.array(preset.obstacles)) >= 0.5).all(axis=1).mean())


def sight_share(preset: Preset) -> float:
    """Share of (bearing, enemy) lines from an enemy's centre to outside the block that are free."""
    lines = np.stack([along(np.array(enemy), 0.0, 14.2) for enemy in preset.enemies])
    return float((depth(lines, np.array(preset.obstacles)) > 0).all(axis=2).mean())


@pytest.mark.parametrize(
    ("share", "target"),
    [*((straight_share, target) for target in BLOCK_TARGETS), (sight_share, "attack")],
)
def test_straight_ways_in_and_lines_of_sight_grow_rarer_with_difficulty(
    share: Callable[[Preset], float], target: str
) -> None:
    shares = [np.mean([share(p) for p in cell(target, d)]) for d in DIFFICULTIES]
    assert all(harder < easier - 0.05 for easier, harder in pairwise(shares)), shares


def test_a_file_is_read_as_written(tmp_path: Path) -> None:
    assert load_presets([write(tmp_path, GOOD)]) == (
        Preset("mine", "goto", 1, (5.0, 6.5, 3.0), ((1.0, 1.0, 2.0, 2.0),)),
        Preset("mine", "attack", 5, (5.0, 5.0, 1.0), (), ((5.0, 5.0),)),
    )


def test_a_name_is_taken_once_per_target_over_all_files(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert faults_of(path, path) == [
        f"{path}:3:7: preset mine: another goto preset has this name, at {path}:3:7",
        f"{path}:9:7: preset mine: another attack preset has this name, at {path}:9:7",
    ]


def test_all_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    path, missing = write(tmp_path, GOOD.replace("6.5", ".nan").replace("1e0", "11")), Path("none")
    assert faults_of(missing, path) == [
        "none:1:1: cannot be read: No such file or directory",
        f"{path}:4:31: preset mine: fire_base: center: must be a finite number (got '.nan')",
        f"{path}:10:18: preset mine: the FireBase's diameter is 11 m, allowed are 1 to 10 m",
        f"{path}:10:18: preset mine: the FireBase at (5, 5) with diameter 11 m "
        "reaches beyond the block, (0, 0) to (10, 10)",
    ]


def test_a_kept_text_is_read_once_and_a_file_that_may_change_each_time(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    first, again = (load_presets([FORM.source(kept_presets([path]))]) for _ in range(2))
    assert all(one is other for one, other in zip(first, again, strict=True))
    write(tmp_path, GOOD.replace("mine", "ours"))
    assert {preset.name for preset in load_presets([path])} == {"ours"}


BASE = "fire_base: {center: [5, 5], diameter: 2}"
DOUBLED = ", ".join(f"&l{level} [*l{level - 1}, *l{level - 1}]" for level in range(1, 50))
MALFORMED = {
    f"? [&l0 [x], {DOUBLED}]\n: 1": "1:3: the file: unknown key a list (valid keys: goto, attack",
    "": "1:1: the file holds no preset",
    "goto:\n\t1: []": "2:1: not valid YAML: while scanning for the next token, found a tab",
    "[" * 1000: "1:21: is nested deeper than 20 levels",
    "just text": "1:1: the file: must be a mapping of goto, attack, scene (got text)",
    "gotoo: {}": "1:1: the file: unknown key 'gotoo' (nearest valid key: goto)",
    "goto: {6: []}": "1:8: goto: unknown key '6' (valid keys: 1, 2, 3, 4, 5)",
    "goto: {1: [], 1: []}": "1:15: goto: 1 is given twice",
    "goto: {1: 5}": "1:11: goto: 1: must be a list (got '5')",
    "goto: {1: [5]}": "1:12: preset without a name: must be a mapping of name, fire_base,",
    f"attack: {{1: [{{name: x, {BASE}}}]}}": "1:14: preset x: an attack block needs at least one",
}
MALFORMED_PRESETS = {
    "name: x": "12: preset x: fire_base is missing",
    BASE: "12: preset without a name: name is missing",
    f"name: '', {BASE}": "19: preset without a name: name: must be text",
    f'name: "\\ud800", {BASE}': "19: preset '\\ud800': name: must be text",
    "name: x, fire_base: {center: [5], diameter: 2}": (
        "42: preset x: fire_base: center: must be 2 numbers (got 1)"
    ),
    "name: x, fire_base: {centre: [5, 5], diameter: 2}": (
        "34: preset x: fire_base: unknown key 'centre' (nearest valid key: center)"
    ),
    f"name: x, {BASE}, obstacles: 3": "75: preset x: obstacles: must be a list (got '3')",
    f"name: x, {BASE}, obstacles: [[1, 2, 3, yes]]": (
        "86: preset x: obstacles: number 1: must be a finite number (got 'yes')"
    ),
}
MALFORMED |= {f"goto: {{1: [{{{text}}}]}}": f"1:{line}" for text, line in MALFORMED_PRESETS.items()}


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_file_is_refused_at_its_place(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    assert faults_of(path)[0].startswith(f"{path}:{MALFORMED[text]}")
