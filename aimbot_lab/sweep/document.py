"""Sweep files: found by name, read, checked against their curriculum; nothing is created."""

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from aimbot_lab.curriculum.settings import lesson_cells
from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.config.schema import section_diagnostics
from aimbot_lab.experiment.config.yaml_reader import (
    Diagnostic,
    Origins,
    YamlDocument,
    read_mapping,
    read_text,
    starts_with,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import MayRun, never
from aimbot_lab.shipped.named_files import SWEEP, find_file, is_path
from aimbot_lab.sweep.schedules import MIN_PAIRS
from aimbot_lab.sweep.settings import WIN_RATE, SweepFile, sweep_diagnostics
from aimbot_lab.sweep.space import (
    NEVER_SEARCHED,
    also_diagnostics,
    override_text,
    search_diagnostics,
)
from aimbot_lab.worlds.registry import knows_spec, spec_of

_FORM = "must be a mapping with the keys name, base and search, and perhaps others"
_OWN_KEYS = re.compile(r"^(search|base|objective|trials)[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class LoadedSweep:
    """A sweep that is fit to run."""

    config: SweepFile
    base: LoadedCurriculum  # with the sweep's overrides
    source_text: str


def load_sweep(
    sweep: str | Path, given: Mapping[str, Any] | None = None, *, may_run: MayRun = never
) -> LoadedSweep:
    """The sweep in the file at that path, or of that name: one's own or a shipped one.

    `given` holds values of top-level keys that replace the file's, as options of the command
    line do. Code that its base names runs where `may_run` says so. Raises ConfigurationError with
    every fault, one line each.
    """
    file = find_file(os.fspath(sweep), SWEEP)
    text = read_text(file)
    document = read_mapping(text, file, form=_FORM)
    config, faults = _checked(document, given or {})
    options = [((key,), f"--{key} {value}") for key, value in (given or {}).items()]
    origins = document.origins(file, options)
    if config is None or faults:
        raise ConfigurationError(*_lines(origins, faults))
    base = _load_base(config, Path(file).parent, origins, may_run)
    faults = [*search_diagnostics(config.search, base), *_rung_diagnostics(config, base)]
    faults += [*_pair_diagnostics(config, base), *_goal_diagnostics(config, base)]
    faults += also_diagnostics(config, base)
    if faults:
        raise ConfigurationError(*origins.lines(faults))
    return LoadedSweep(config, base, text)


def _rung_diagnostics(config: SweepFile, base: LoadedCurriculum) -> Iterator[Diagnostic]:
    """Halving that would never compare anything."""
    steps = config.seeds * base.config.train.total_steps
    is_late = config.pruner.first_steps >= steps and "train.total_steps" not in config.search
    if config.pruner.kind == "halving" and is_late:
        got = config.pruner.first_steps
        what = f"must be less than the steps of a trial's trainings, {steps} (got {got})"
        yield Diagnostic(("pruner", "first_steps"), what)


def _pair_diagnostics(config: SweepFile, base: LoadedCurriculum) -> Iterator[Diagnostic]:
    """A test of pairs that never has enough of them before a trial's last training."""
    env, cells = base.config.env, 1
    if config.pruner.kind != "wilcoxon":
        return
    if config.measure.trains:
        lesson = base.config.lessons[-1]
        known = knows_spec(env)
        cells = len(lesson_cells(lesson, spec_of(env).difficulties)) if known else MIN_PAIRS
    needed = 1 + math.ceil(MIN_PAIRS / cells)
    if config.seeds < needed:
        yield Diagnostic(
            ("pruner", "kind"),
            f"must not be wilcoxon where seeds is less than {needed} (got {config.seeds}): it "
            f"compares {MIN_PAIRS} results or more, of all trainings but the last, with {cells} "
            f"result{'s' * (cells > 1)} each",
        )


def _goal_diagnostics(config: SweepFile, base: LoadedCurriculum) -> Iterator[Diagnostic]:
    """A goal that there is not: steps of which each training would take all, wins that none has."""
    lesson, env = base.config.lessons[-1], base.config.env
    if config.measure is WIN_RATE and knows_spec(env) and not spec_of(env).has_wins:
        yield Diagnostic(
            ("objective", "measure"),
            "must not be win_rate: base has no rule for what counts as won; make it return, or "
            "add env.win to base",
        )
    if config.measure.counts_steps and lesson.completion_criteria is None:
        yield Diagnostic(
            ("objective", "measure"),
            f"must not be steps_to_goal: the last lesson of base, {lesson.name!r}, has no "
            "completion_criteria, so no training reaches a goal",
        )
    key = "train.total_steps"
    if config.measure.counts_steps and key in config.search:
        yield Diagnostic(
            ("search", key),
            "must not be searched where objective.measure is steps_to_goal: a training that never "
            "passes counts with these steps, so that fewer would look better",
            about_key=True,
        )


def _lines(origins: Origins, faults: list[Diagnostic]) -> list[str]:
    """One line for each fault; a command-line option is named as such."""
    return [
        line.removeprefix("--set ") if line.startswith("--set --") else line
        for line in origins.lines(faults)
    ]


def is_sweep_file(path: str) -> bool:
    """Whether the file at `path` has a top-level key that only sweeps have."""
    with suppress(ConfigurationError):
        return is_path(path) and _OWN_KEYS.search(read_text(path)) is not None
    return False


def _checked(
    document: YamlDocument, given: Mapping[str, Any]
) -> tuple[SweepFile | None, list[Diagnostic]]:
    config, faults = None, list(document.faults)
    try:
        config = TypeAdapter(SweepFile).validate_python({**document.data, **given})
    except ValidationError as error:
        found = section_diagnostics(error, SweepFile)
        faults += (  # those below a broken text only say so again
            fault
            for fault in found
            if not any(starts_with(fault.path, place) for place in document.broken)
        )
    if config is not None:
        faults += (Diagnostic(path, what) for path, what in sweep_diagnostics(config))
    return config, faults


def _load_base(
    config: SweepFile, folder: Path, origins: Origins, may_run: MayRun
) -> LoadedCurriculum:
    path = os.path.normpath(folder / config.base)
    if not os.path.exists(path):
        fault = Diagnostic(("base",), f"there is no file {path}")
        raise ConfigurationError(*origins.lines([fault]))
    base = load_curriculum(path, may_run=may_run)  # its own faults, at their places
    idle = [key for key in config.overrides if key.startswith(NEVER_SEARCHED)]
    if idle:
        what = "has no effect here: each trial has its own"
        faults = [Diagnostic(("overrides", key), what, about_key=True) for key in idle]
        raise ConfigurationError(*origins.lines(faults))
    try:
        overrides = [override_text(key, value) for key, value in config.overrides.items()]
        if overrides:
            base = load_curriculum(path, overrides, may_run=may_run)
        base = load_curriculum(path, [*overrides, *base.config.one_core], may_run=may_run)
    except ConfigurationError as error:
        faults = [Diagnostic(("overrides",), what.removeprefix("--set ")) for what in error.faults]
        raise ConfigurationError(*origins.lines(faults)) from error
    if base.config.train.actors is not None:
        what = "has train.actors, but trials play alone: set it to null in overrides"
        raise ConfigurationError(*origins.lines([Diagnostic(("base",), what)]))
    return base
