"""What a run is called and marked with in the tracking store: few, flat, meaningful values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType

from aimbot_lab.experiment.config.document import LoadedCurriculum
from aimbot_lab.experiment.config.own_files import plain_settings
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.differing import flat_settings
from aimbot_lab.experiment.runs.git_state import git_tags
from aimbot_lab.experiment.runs.harmless_settings import harmless_settings, without
from aimbot_lab.experiment.runs.result import RunResult, outcome
from aimbot_lab.experiment.runs.run_record import InitialAgentRef
from aimbot_lab.tracking.runs.opening import RunDescription
from aimbot_lab.tracking.runs.run_summary import TRAINING_SECONDS_TAG, WORLD_TAG

UNSET = str(None)
MAX_PARAMS = 90  # a page shows a hundred; those of --init-from come on top
NOT_TRAINING_SETTINGS = frozenset({"seed", "tracking", "evaluation"})
ENDED: Mapping[str, str] = MappingProxyType(
    {"FINISHED": "goal reached", "FAILED": "steps spent", "KILLED": "stopped"}
)
"""By status; a run that an error ended has the status FAILED too, and the tag `unfinished`."""
UNFINISHED = "unfinished"
CRITERIA = "measure", "threshold", "scope"


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
    given = [(name, value) for name, value in params.items() if value != UNSET]
    return dict(given[:MAX_PARAMS])
