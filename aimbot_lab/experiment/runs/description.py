"""What a run is called and marked with in the tracking store: few, flat, meaningful values."""

import hashlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.experiment.config.own_files import plain_settings
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.result import RunResult, outcome
from aimbot_lab.experiment.runs.run_record import InitialAgentRef
from aimbot_lab.tracking.opening import RunDescription
from aimbot_lab.tracking.run_summary import TRAINING_SECONDS_TAG, WORLD_TAG, RunSummary
from aimbot_lab.training.algorithms.registry import any_threads
from aimbot_lab.training.settings import TrainSettings

MISSING = "-"
FROM_TAGS = {"version": "lab.version", "code": "lab.code", "git commit": "lab.git_commit"}

ALWAYS = frozenset({"name", "env.threads"})
TORCH_THREADS = "train.torch_threads"  # harmless where the engine is the project's own

SECONDS = 5.0  # a question to git may take, on a slow disk

UNSET = str(None), ""
CALLBACKS = "train.callbacks"
MAX_PARAMS = 90  # a page shows a hundred; those of --init-from come on top
NOT_TRAINING_SETTINGS = frozenset({"seed", "tracking", "evaluation", CALLBACKS})
ENDED: Mapping[str, str] = MappingProxyType(
    {"FINISHED": "goal reached", "FAILED": "steps spent", "KILLED": "stopped"}
)
"""By status; a run that an error ended has the status FAILED too, and the tag `unfinished`."""
UNFINISHED = "unfinished"
CRITERIA = "measure", "threshold", "scope"


def flat_settings(values: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every setting under its whole key: lists of numbers in one, other lists by index."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from flat_settings(value, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(values, list | tuple) and not all(isinstance(v, int | float) for v in values):
        for index, value in enumerate(values):
            yield from flat_settings(value, f"{prefix}.{index}")
    elif isinstance(values, list | tuple):
        yield prefix, " ".join(f"{value:g}" for value in values)
    else:
        yield prefix, str(values)


def settings_that_differ(
    runs: Sequence[tuple[RunSummary, CurriculumFile]],
) -> dict[str, tuple[str, ...]]:
    """The value of each run for every key in which not all agree; "-" where one has no such key.

    Of version, code and commit only what all runs say.
    """
    said = [name for name, tag in FROM_TAGS.items() if all(tag in run.tags for run, _ in runs)]
    each = [
        {
            **{name: run.tags[FROM_TAGS[name]] for name in said},
            **dict(flat_settings(plain_settings(config))),
        }
        for run, config in runs
    ]
    keys = dict.fromkeys(key for settings in each for key in settings)
    rows = {key: tuple(settings.get(key, MISSING) for settings in each) for key in keys}
    return {key: values for key, values in rows.items() if len(set(values)) > 1}


def harmless_settings(train: TrainSettings) -> frozenset[str]:
    """Dotted keys of a curriculum whose values can't change the result of training by `train`."""
    return ALWAYS | {TORCH_THREADS} if any_threads(train) else ALWAYS


def without(values: Mapping[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    """`values`, mappings in mappings, less what lies under the dotted `keys`; a copy."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if name in keys:
            continue
        below = frozenset(key[len(name) + 1 :] for key in keys if key.startswith(f"{name}."))
        kept[name] = without(value, below) if below else value
    return kept


def git_tags(folder: Path) -> dict[str, str]:
    """Tags with the commit that `folder` is at and whether tracked files differ from it.

    Empty where it is no repository or there is no git.
    """
    commit = _ask(folder, "rev-parse", "HEAD")
    if not commit:
        return {}
    changed = _ask(folder, "status", "--porcelain", "--untracked-files=no")
    state = {} if changed is None else {"lab.git_dirty": str(bool(changed)).lower()}
    return {"mlflow.source.git.commit": commit, "lab.git_commit": commit[:12], **state}


def _ask(folder: Path, *question: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", str(folder), *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def describe_run(
    loaded: LoadedCurriculum,
    name: str | None,
    tags: Mapping[str, str] | None = None,
    *,
    start: InitialAgentRef | None = None,
) -> RunDescription:
    """Name, parameters and tags of a run of `loaded`, further `tags` among them.

    Parameters are the settings of learner and arena and what ends lessons, defaults too, by the
    keys that `--set` takes; the whole configuration is an artifact. Runs that differ in nothing but
    their seed have the same `lab.config`: grouped by it, the page shows means over seeds.
    """
    config = loaded.config
    return RunDescription(
        name=name or f"{loaded.name} seed {config.seed}",
        params={
            **(
                {f"init.{key}": str(value) for key, value in start._asdict().items()}
                if start
                else {}
            ),
            **_params(config),
        },
        tags={
            **(tags or {}),
            "lab.curriculum": loaded.name,
            "lab.ended": UNFINISHED,
            WORLD_TAG: config.env.world,
            "lab.seed": str(config.seed),
            "lab.config": config_hash(config, start),
            **({"lab.init_from": start.source} if start else {}),
            **git_tags(loaded.path.absolute().parent),
        },
    )


def outcome_tags(result: RunResult) -> dict[str, str]:
    """What became of a run, to be seen in a list."""
    passed = sum(lesson.ended_at_step is not None for lesson in result.lessons)
    current = min(passed, len(result.lessons) - 1)
    return {
        "lab.ended": ENDED[result.status],
        "lab.outcome": outcome(result),
        "lab.lesson": result.lessons[current].name,
        "lab.lessons_passed": f"{passed} of {len(result.lessons)}",
        TRAINING_SECONDS_TAG: f"{result.seconds:.1f}",
    }


def config_hash(config: CurriculumFile, start: InitialAgentRef | None = None) -> str:
    """Twelve letters that stand for all settings but the seed and what changes no training.

    And for the agent that a run began with. `harmless_settings` says what changes no training.
    """
    idle = harmless_settings(config.train) | NOT_TRAINING_SETTINGS
    values = without(plain_settings(config), idle)
    if start is not None:
        values["start"] = start.sha256
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _params(config: CurriculumFile) -> dict[str, str]:
    """At most `MAX_PARAMS`, without what is not set.

    What ends lessons comes last, and of it the first lessons.
    """
    parts = {"train": asdict(config.train), "env": plain_settings(config)["env"]}
    params = {"seed": str(config.seed), "lessons": str(len(config.lessons))}
    params |= flat_settings({**parts, "forgetting": asdict(config.forgetting)})
    for number, lesson in reversed([*enumerate(config.lessons)]):
        if lesson.completion_criteria is not None:
            criteria = asdict(lesson.completion_criteria)
            asked = {name: criteria[name] for name in CRITERIA}
            params |= flat_settings(asked, f"lessons.{number}.completion_criteria")
    given = [(name, value) for name, value in params.items() if value not in UNSET]
    return dict(given[:MAX_PARAMS])
