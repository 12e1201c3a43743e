"""The maps that settings name, and what settings and maps must say of each other."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.worlds.gorge.core.state import BLOCKS
from aimbot_lab.worlds.gorge.maps import GorgeMap
from aimbot_lab.worlds.gorge.settings import DEFAULT_TREASURES, GeneratedMaps, GorgeSettings

Maps = tuple[GorgeMap, ...]


def chosen_maps(settings: GorgeSettings) -> Maps:
    """The maps of `settings`.

    Raises ConfigurationError with every fault of a map, and of `settings` with it, each at a key
    that begins with `env`.
    """
    maps = _maps(settings)
    faults = [*feature_faults(settings.features), *_faults(settings, maps)]
    if faults:
        raise ConfigurationError(*(f"env.{fault}" for fault in faults))
    return maps


def _maps(settings: GorgeSettings) -> Maps:
    chosen = settings.map
    if isinstance(chosen, GeneratedMaps):
        one = chosen.generate
        try:
            return _generated(one.count, one.seed, one.obstacle_share, one.sites)
        except ConfigurationError as error:
            lines = (f"env.map.generate: {fault}" for fault in error.faults)
            raise ConfigurationError(*lines) from error
    try:
        return (_loaded(chosen, _written(chosen)),)
    except ConfigurationError as error:
        raise ConfigurationError(*(f"env.map: {fault}" for fault in error.faults)) from error


def _written(entry: str) -> int:
    """When the file `entry` was last written, so that a changed one is read again."""
    try:
        return Path(entry).stat().st_mtime_ns
    except (OSError, ValueError):  # no file
        return 0


@lru_cache(maxsize=16)
def _loaded(entry: str, written: int) -> GorgeMap:
    from aimbot_lab.worlds.gorge.maps import load_map

    del written
    return load_map(entry)


@lru_cache(maxsize=4)
def _generated(count: int, seed: int, obstacle_share: float, sites: int) -> Maps:
    from aimbot_lab.worlds.gorge.generated_maps import generated_maps

    return generated_maps(count, seed=seed, obstacle_share=obstacle_share, sites=sites)


def feature_faults(features: Sequence[str]) -> Iterator[str]:
    """What is wrong with the blocks of an observation."""
    for index, name in enumerate(features):
        if name not in BLOCKS:
            known = nearest_name(name, BLOCKS, "name")
            yield f"features.{index}: unknown feature {name!r} ({known})"
        elif name in features[:index]:
            yield f"features.{index}: {name} is given twice"


def _faults(settings: GorgeSettings, maps: Maps) -> Iterator[str]:
    sites = min(len(one.sites) for one in maps)
    named = f"map {maps[0].name}" if len(maps) == 1 else "every map"
    for index, site in enumerate(settings.treasure_pool or ()):
        if site >= sites:
            yield f"treasure_pool.{index}: {named} has sites 0 to {sites - 1} (got {site})"
        elif site in (settings.treasure_pool or ())[:index]:
            yield f"treasure_pool.{index}: {site} is given twice"
    most = len(settings.treasure_pool or range(sites))
    if settings.treasure_num is not None and settings.treasure_num > most:
        what = f"must be at most {most}, the sites in the pool"
        yield f"treasure_num: {what} (got {settings.treasure_num})"
    longest, map_name = longest_way(maps)
    if settings.max_steps < longest:
        what = too_short(longest, map_name)
        yield f"max_steps: {what} (got {settings.max_steps})"


def too_short(steps: int, map_name: str) -> str:
    """What is wrong with a limit below `steps`."""
    return f"must be at least {steps}, the shortest way from start to end of map {map_name}"


@lru_cache(maxsize=16)
def longest_way(maps: Maps) -> tuple[int, str]:
    """The most steps that the shortest way from start to end takes, and the map's name."""
    from aimbot_lab.worlds.gorge.maps import shortest_way

    return max((shortest_way(one), one.name) for one in maps)


def pool_of(settings: GorgeSettings, maps: Maps) -> tuple[int, ...]:
    """The sites at which treasures may be."""
    return settings.treasure_pool or tuple(range(min(len(one.sites) for one in maps)))


def treasure_count(settings: GorgeSettings, pool: Sequence[int]) -> int:
    """Treasures of an episode of `score`, unless a lesson says otherwise."""
    if settings.treasure_num is None:
        return min(DEFAULT_TREASURES, len(pool))
    return settings.treasure_num
