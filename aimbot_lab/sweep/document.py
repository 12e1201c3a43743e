"""Sweep files: found by name, read, checked against their curriculum; nothing is created."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aimbot_lab.experiment.config.diagnostics import Fault, Origins
from aimbot_lab.experiment.config.document import (
    LoadedCurriculum,
    load_curriculum,
    read_text,
    refuse_unless_mapping,
)
from aimbot_lab.experiment.config.key_path import starts_with
from aimbot_lab.experiment.config.pydantic_errors import section_faults
from aimbot_lab.experiment.config.yaml_reader import Tree, read_tree
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.shipped.named_files import SWEEP, find_file, is_path
from aimbot_lab.sweep.search.space import NEVER_SEARCHED, also_faults, override_text, search_faults
from aimbot_lab.sweep.settings import SweepFile, sweep_faults

_FORM = "must be a mapping with the keys name, base and search, and perhaps others"
_SEARCH = re.compile(r"^search[ \t]*:", re.MULTILINE)
ONE_THREAD = ("env.threads=1", "train.torch_threads=1")  # a worker has one core


@dataclass(frozen=True)
class LoadedSweep:
    """A sweep that is fit to run."""

    config: SweepFile
    base: LoadedCurriculum  # with the sweep's overrides
    source_text: str


def load_sweep(sweep: str | Path, given: Mapping[str, Any] | None = None) -> LoadedSweep:
    """The sweep in the file at that path, or of that name: one's own or a shipped one.

    `given` holds values of top-level keys that replace the file's, as options of the command
    line do. Raises ConfigurationError with every fault, one line each.
    """
    file = find_file(os.fspath(sweep), SWEEP)
    text = read_text(file)
    tree = read_tree(text)
    refuse_unless_mapping(tree, file, form=_FORM)
    config, faults = _checked(tree, given or {})
    options = [((key,), f"--{key} {value}") for key, value in (given or {}).items()]
    origins = Origins(file, tree.keys, tree.values, options)
    if config is None or faults:
        raise ConfigurationError(*_lines(origins, faults))
    base = _load_base(config, Path(file).parent, origins)
    faults = [*search_faults(config.search, base), *_rung_faults(config, base)]
    faults += [*_goal_faults(config, base), *also_faults(config, base)]
    if faults:
        raise ConfigurationError(*origins.lines(faults))
    return LoadedSweep(config, base, text)


def _rung_faults(config: SweepFile, base: LoadedCurriculum) -> Iterator[Fault]:
    """Halving that would never compare anything."""
    steps = config.seeds * base.config.train.total_steps
    is_late = config.pruner.first_steps >= steps and "train.total_steps" not in config.search
    if config.pruner.kind == "halving" and is_late:
        got = config.pruner.first_steps
        told = f"must be less than the steps of a trial's trainings, {steps} (got {got})"
        yield Fault(("pruner", "first_steps"), told)


def _goal_faults(config: SweepFile, base: LoadedCurriculum) -> Iterator[Fault]:
    """Steps to a goal that there is not: each training would take all its steps."""
    lesson = base.config.lessons[-1]
    if config.objective.measure == "steps_to_goal" and lesson.completion_criteria is None:
        yield Fault(
            ("objective", "measure"),
            f"must not be steps_to_goal: the last lesson of base, {lesson.name!r}, has no "
            "completion_criteria, so no training reaches a goal",
        )
    key = "train.total_steps"
    if config.objective.measure == "steps_to_goal" and key in config.search:
        yield Fault(
            ("search", key),
            "must not be searched where objective.measure is steps_to_goal: a training that never "
            "passes counts with these steps, so that fewer would look better",
            about_key=True,
        )


def _lines(origins: Origins, faults: list[Fault]) -> list[str]:
    """One line for each fault; what an option of the command line gave is told by its name."""
    return [
        line.removeprefix("--set ") if line.startswith("--set --") else line
        for line in origins.lines(faults)
    ]


def is_sweep_file(path: str) -> bool:
    """Whether the file at `path` has a sweep's top-level key `search`, be it right or wrong."""
    with suppress(ConfigurationError):
        return is_path(path) and _SEARCH.search(read_text(path)) is not None
    return False


def file_faults(path: str) -> list[str]:
    """Every fault of the sweep file at `path`, one line each."""
    try:
        load_sweep(path)
    except ConfigurationError as error:
        return list(error.faults)
    return []


def _checked(tree: Tree, given: Mapping[str, Any]) -> tuple[SweepFile | None, list[Fault]]:
    config, faults = None, list(tree.faults)
    try:
        config = TypeAdapter(SweepFile).validate_python({**tree.data, **given})
    except ValidationError as error:
        found = section_faults(error, SweepFile)
        faults += (fault for fault in found if not _below(fault, tree))
    if config is not None:
        faults += (Fault(path, what) for path, what in sweep_faults(config))
    return config, faults


def _below(fault: Fault, tree: Tree) -> bool:
    """Whether `fault` only says again that a text in the file is broken."""
    return any(starts_with(fault.path, place) for place in tree.broken)


def _load_base(config: SweepFile, folder: Path, origins: Origins) -> LoadedCurriculum:
    path = os.path.normpath(folder / config.base)
    if not os.path.exists(path):
        fault = Fault(("base",), f"there is no file {path}")
        raise ConfigurationError(*origins.lines([fault]))
    load_curriculum(path)  # its own faults, at their places
    idle = [key for key in config.overrides if key.startswith(NEVER_SEARCHED)]
    if idle:
        told = "has no effect here: each trial has its own"
        faults = [Fault(("overrides", key), told, about_key=True) for key in idle]
        raise ConfigurationError(*origins.lines(faults))
    try:
        overrides = [override_text(key, value) for key, value in config.overrides.items()]
        return load_curriculum(path, [*overrides, *ONE_THREAD])
    except ConfigurationError as error:
        faults = [Fault(("overrides",), what.removeprefix("--set ")) for what in error.faults]
        raise ConfigurationError(*origins.lines(faults)) from error
