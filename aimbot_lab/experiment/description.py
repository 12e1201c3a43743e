"""What a run is called and marked with in the tracking store: few, flat, meaningful values."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace

from aimbot_lab.experiment.differing import flat_settings
from aimbot_lab.experiment.document import LoadedCurriculum
from aimbot_lab.experiment.git_state import git_tags
from aimbot_lab.experiment.own_presets import plain_settings
from aimbot_lab.experiment.result import RunResult, outcome
from aimbot_lab.experiment.run_record import StartMark
from aimbot_lab.experiment.settings import CurriculumFile
from aimbot_lab.sim.preset_source import named_entries
from aimbot_lab.sim.settings import ArenaSettings
from aimbot_lab.tracking.opening import RunDescription
from aimbot_lab.training.settings import TrainSettings

HEADLINE = (
    "env.num_envs",
    "train.algo",
    "train.total_steps",
    "train.n_steps",
    "train.batch_size",
    "train.n_epochs",
    "train.learning_rate",
    "train.gamma",
    "train.ent_coef",
    "train.network.layers",
    "env.rewards.spin_penalty",
    "env.rewards.facing",
    "env.rewards.in_area",
)


def describe_run(
    loaded: LoadedCurriculum,
    name: str | None,
    tags: Mapping[str, str] | None = None,
    *,
    start: StartMark | None = None,
) -> RunDescription:
    """Name, parameters and tags of a run of `loaded`, further `tags` among them.

    Parameters are the headline values and whatever differs from its default; the whole
    configuration is an artifact. Runs that differ in nothing but their seed have the same
    `lab.config`: grouped by it, the page shows means over seeds.
    """
    config = loaded.config
    env = replace(config.env, presets=named_entries(config.env.presets))
    given, usual = _settings(env, config.train), _settings(ArenaSettings(), TrainSettings())
    params = {key: given[key] for key in given if key in HEADLINE or given[key] != usual.get(key)}
    return RunDescription(
        name=name or f"{loaded.name} seed {config.seed}",
        params={
            "seed": str(config.seed),
            "lessons": str(len(config.lessons)),
            **(
                {f"init.{key}": str(value) for key, value in start._asdict().items()}
                if start
                else {}
            ),
            **params,
        },
        tags={
            **(tags or {}),
            "lab.curriculum": loaded.name,
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
        "lab.outcome": outcome(result),
        "lab.lesson": result.lessons[current].name,
        "lab.lessons_passed": f"{passed} of {len(result.lessons)}",
    }


def config_hash(config: CurriculumFile, start: StartMark | None = None) -> str:
    """Twelve letters that stand for all settings but the seed and where runs are tracked.

    And for the agent that a run began with.
    """
    values = {k: v for k, v in plain_settings(config).items() if k not in ("seed", "tracking")}
    if start is not None:
        values["start"] = start.sha256
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _settings(env: ArenaSettings, train: TrainSettings) -> dict[str, str]:
    return dict(flat_settings({"env": asdict(env), "train": asdict(train)}))
