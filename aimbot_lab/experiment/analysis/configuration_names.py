"""What trainings that differ in their seed alone are called together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

TAG_LETTERS = 6


class NamedRun(NamedTuple):
    """What a run of a configuration is called."""

    name: str  # its own, as `--name` gave it
    seed: int
    curriculum: str  # the name in its curriculum


def configuration_names(groups: Mapping[str, Sequence[NamedRun]]) -> dict[str, str]:
    """The name of each configuration by its tag: the one that all its runs were given.

    Without their seeds, which `--seeds` and runs without `--name` append. Runs of different names
    have that of their curriculum. Where several configurations have the same name, the beginning
    of the tag follows.
    """
    names = {tag: _common_name(runs) for tag, runs in groups.items()}
    several = {name for name in names.values() if [*names.values()].count(name) > 1}
    return {
        tag: f"{name} ({tag[:TAG_LETTERS]})" if name in several else name
        for tag, name in names.items()
    }


def _common_name(runs: Sequence[NamedRun]) -> str:
    given = {run.name.removesuffix(f" seed {run.seed}") for run in runs}
    return given.pop() if len(given) == 1 else runs[0].curriculum
