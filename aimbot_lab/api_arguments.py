"""Checks of what a Python caller gives, as the command line checks its options."""

from collections.abc import Mapping, Sequence
from os import PathLike

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.tracking.runs.run_summary import ALLOWED, is_agent_name

MAX_EPISODES = 65_536
GROUPS = ("run", "config")


def check_training(file: object, overrides: object, tags: object) -> None:
    """Raise ConfigurationError for what `train` can't be given."""
    _require(isinstance(file, str | PathLike), "file", "a path or a name", file)
    _require(_is_list(overrides), "overrides", "a list of KEY=VALUE", overrides)
    usable = tags is None or isinstance(tags, Mapping)
    _require(usable, "tags", "a mapping of names to texts", tags)


def check_playing(episodes: object, agent: object) -> None:
    """Raise ConfigurationError for what neither `evaluate` nor `compare` can be given."""
    whole = isinstance(episodes, int) and 1 <= episodes <= MAX_EPISODES
    _require(whole, "episodes", f"a whole number from 1 to {MAX_EPISODES}", episodes)
    _require(is_agent_name(agent), "agent", ALLOWED, agent)


def check_runs(runs: object, by: object) -> None:
    """Raise ConfigurationError for runs or groups that `compare` can't be given."""
    _require(_is_list(runs), "runs", "a list of runs", runs)
    assert isinstance(runs, Sequence)
    if len(runs) < 2:
        raise ConfigurationError(f"runs: must be two at least (got {len(runs)})")
    _require(by in GROUPS, "by", " or ".join(map(repr, GROUPS)), by)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _require(holds: bool, name: str, allowed: str, got: object) -> None:
    if not holds:
        raise ConfigurationError(f"{name}: must be {allowed} (got {shortened(repr(got), 80)})")
