"""Maps: what the shipped one is, distances, hashes, and what is read is what was written."""

from dataclasses import replace

import numpy as np
import pytest
from gorge_match import ground_of
from gorge_oracle import steps_to

from aimbot_lab.worlds.gorge.generated_maps import generated_maps
from aimbot_lab.worlds.gorge.maps import SIZE, GorgeMap, distances, load_map, map_text, rows_of

GORGE = load_map("gorge")
MAPS = (GORGE, *generated_maps(6, seed=4, obstacle_share=0.5, sites=6))
HASH = "95ba8ac8ca8001599f615ba67a949914f5e1aa6d9dc81cadbca1b088a502c5f4"


def test_the_shipped_map_has_the_places_and_points_of_the_game_it_follows() -> None:
    assert (GORGE.name, GORGE.start, GORGE.end) == ("gorge", (29, 9), (11, 55))
    assert GORGE.sites.tolist() == [
        *([19, 14], [9, 28], [9, 44], [42, 45], [32, 23]),
        *([49, 56], [35, 58], [23, 55], [41, 33], [54, 41]),
    ]
    assert GORGE.points.tolist() == [50, 100, 100, 100, 50, 200, 100, 50, 100, 150]


@pytest.mark.parametrize("grid", MAPS, ids=lambda grid: grid.name)
def test_distances_are_those_of_a_plain_search(grid: GorgeMap) -> None:
    ground = ground_of(grid)
    for target in (ground.start, *ground.sites, ground.end):
        for closed in (None, ground.end)[: 1 + (target != ground.end)]:
            plain, whole = steps_to(ground, target, closed=closed), np.full((SIZE, SIZE), -1)
            whole[tuple(np.array(list(plain)).T)] = list(plain.values())
            assert (distances(grid, target, through_end=closed is None) == whole).all()


@pytest.mark.parametrize("grid", MAPS, ids=lambda grid: grid.name)
def test_what_is_written_is_read_back(grid: GorgeMap) -> None:
    assert (read := load_map(map_text(grid))) == grid
    assert map_text(read) == map_text(grid)


def test_the_first_line_is_the_top_and_the_first_character_the_left() -> None:
    rows = rows_of(GORGE)
    assert (rows[63 - 9][29], rows[63 - 55][11], rows[63 - 44][9]) == ("S", "E", "2")
    assert [len(rows), *map(len, rows)] == [SIZE] * (SIZE + 1)


def test_a_hash_tells_contents_apart_and_not_names() -> None:
    walls = GORGE.walls.copy()
    walls[30, 30] ^= True
    others = [
        replace(GORGE, walls=walls),
        replace(GORGE, start=(30, 9)),
        replace(GORGE, end=(12, 55)),
        replace(GORGE, sites=GORGE.sites[::-1].copy()),
        replace(GORGE, points=GORGE.points + 1.0),
        replace(GORGE, sites=GORGE.sites[:9].copy(), points=GORGE.points[:9].copy()),
    ]
    assert GORGE.content_hash == HASH
    hashes = {HASH, *(other.content_hash for other in others)}
    assert len(hashes) == 7
    assert all(len(one) == 64 and int(one, 16) for one in hashes)
    assert replace(GORGE, name="canyon").content_hash == GORGE.content_hash
    assert replace(GORGE, name="canyon") != GORGE


def test_nobody_writes_to_a_map() -> None:
    for array in (GORGE.walls, GORGE.sites, GORGE.points):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
