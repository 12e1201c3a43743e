"""Generated maps: they obey the rules, the same numbers make the same maps, others make others."""

from pathlib import Path

import numpy as np
import pytest
from gorge_match import ground_of
from gorge_oracle import steps_to

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.gorge.generated_maps import generated_maps
from aimbot_lab.worlds.gorge.maps import SIZE, broken_rules
from tests.installed import said_by

SHARES = (0.0, 0.2, 0.4, 0.55, 0.65)
PRINT_HASHES = """
from aimbot_lab.worlds.gorge.generated_maps import generated_maps
for grid in generated_maps(4, seed=11, obstacle_share=0.45, sites=7):
    print(grid.content_hash)
"""
HASHES_OF_SEED_11 = (
    "dcff972d6851fc8f57d97ef6411f675cd50988915f23cf3c29268371607b83ad",
    "565f343e5422c8cccc2efb22246ff5401917b81e1dea2f51174166a0524d304a",
    "dc5a86bb74d6f3a53f014974b77d15e124558cce542a4c3dd590e115775f7c05",
    "95ac2b039e477c20f193d9eda11d89d3935ab47d4cf244f52cafe6c7a4ead5cc",
)


@pytest.mark.parametrize("sites", [1, 10])
@pytest.mark.parametrize("share", SHARES)
def test_generated_maps_obey_the_rules_and_have_their_share_and_half_of_the_road_is_reached(
    share: float, sites: int
) -> None:
    for grid in generated_maps(20, seed=3, obstacle_share=share, sites=sites):
        assert broken_rules(grid) == []
        ground = ground_of(grid)
        reached = steps_to(ground, ground.start)
        assert reached[ground.end] >= 8
        assert len({ground.start, ground.end, *ground.sites}) == sites + 2
        assert steps_to(ground, ground.start, closed=ground.end).keys() >= {*ground.sites}
        assert int(grid.walls.sum()) == round(share * SIZE**2)
        assert len(reached) >= len(ground.road) / 2


def test_starts_ends_and_sites_lie_anywhere_and_points_are_drawn_from_four() -> None:
    maps = generated_maps(200, seed=1, obstacle_share=0.4, sites=10)
    for cells in (
        np.array([grid.start for grid in maps]),
        np.array([grid.end for grid in maps]),
        np.concatenate([grid.sites for grid in maps]),
    ):
        assert cells.min() < 4
        assert cells.max() > SIZE - 5
        assert abs(cells.mean() - 31.5) < 4
    points, counts = np.unique([grid.points for grid in maps], return_counts=True)
    assert points.tolist() == [50, 100, 150, 200]
    assert counts.min() > 400


def test_a_map_depends_on_its_number_and_not_on_how_many_are_made() -> None:
    few, many = (generated_maps(n, seed=7, obstacle_share=0.4, sites=10) for n in (3, 8))
    assert many[:3] == few
    assert len({grid.content_hash for grid in many}) == 8


def test_other_seeds_make_other_maps() -> None:
    given = {"obstacle_share": 0.4, "sites": 10}
    maps = [grid for seed in (0, 1, 2**32, -1) for grid in generated_maps(2, seed=seed, **given)]
    assert len({grid.content_hash for grid in maps}) == 8


@pytest.mark.parametrize(
    "variable", ["NUMBA_DISABLE_JIT", pytest.param("NUMBA_BOUNDSCHECK", marks=pytest.mark.campaign)]
)
def test_the_maps_of_a_seed_are_the_same_on_every_machine_and_in_every_version(
    variable: str, tmp_path: Path
) -> None:
    """Also where kernels are not compiled, or check bounds."""
    maps = generated_maps(4, seed=11, obstacle_share=0.45, sites=7)
    assert tuple(grid.content_hash for grid in maps) == HASHES_OF_SEED_11
    given = {"XDG_CACHE_HOME": str(tmp_path), variable: "1"}
    there = said_by("-W", "ignore", "-c", PRINT_HASHES, **given)
    assert tuple(there.split()) == HASHES_OF_SEED_11


@pytest.mark.parametrize("share", [0.95, 0.999, 1.0])
def test_a_share_that_leaves_no_way_is_refused_in_one_line(share: float) -> None:
    with pytest.raises(ConfigurationError) as caught:
        generated_maps(2, seed=1, obstacle_share=share, sites=10)
    line = f"no solvable map with obstacle_share {share:g} in 1,000 tries"
    assert list(caught.value.faults) == [line]
