"""What a run is called and marked with in the tracking store: few, flat, meaningful values."""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from aimbot_lab.experiment.document import LoadedCurriculum
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


def describe_run(loaded: LoadedCurriculum, name: str | None) -> RunDescription:
    """Name, parameters and tags of a run of `loaded`.

    Parameters are the headline values and whatever differs from its default; the whole
    configuration is an artifact, and its hash a tag.
    """
    config = loaded.config
    given = dict(_flat("env", asdict(config.env))) | dict(_flat("train", asdict(config.train)))
    usual = dict(_flat("env", asdict(ArenaSettings()))) | dict(
        _flat("train", asdict(TrainSettings()))
    )
    params = {key: given[key] for key in given if key in HEADLINE or given[key] != usual.get(key)}
    return RunDescription(
        name=name or loaded.name,
        params={"seed": str(config.seed), "lessons": str(len(config.lessons)), **params},
        tags={
            "lab.curriculum": loaded.name,
            "lab.seed": str(config.seed),
            "lab.config_sha256": hashlib.sha256(loaded.resolved_text.encode()).hexdigest(),
        },
    )


def _flat(prefix: str, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{prefix}.{key}", value)
        elif isinstance(value, tuple):
            yield f"{prefix}.{key}", " ".join(f"{item:g}" for item in value)
        else:
            yield f"{prefix}.{key}", str(value)
