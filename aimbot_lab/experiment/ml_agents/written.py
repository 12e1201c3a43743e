"""What a person would write of a converted curriculum."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.ml_agents.counterparts import PPO, SELF_PLAY, SHARED
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import DEFAULT

USUAL = TrainSettings()


def written(config: CurriculumFile) -> dict[str, Any]:
    """What a person would write of `config`: nothing that is only a default."""
    train = asdict(config.train)
    kept = ("algo", *SHARED, *PPO, "n_steps", "batch_size")
    return {
        "name": config.name,
        "seed": config.seed,
        "env": _env(config),
        **_self_play(config),
        "lessons": [_lesson(lesson) for lesson in config.lessons],
        "train": {
            **{key: _without(train[key], "end_fraction") for key in kept},
            **({} if config.train.device == USUAL.device else {"device": config.train.device}),
            "network": _network(train["network"]),
        },
        "tracking": {"experiment": config.tracking.experiment},
    }


def _env(config: CurriculumFile) -> dict[str, Any]:
    """The number of rows, and the world where it is not the one that is meant without a name."""
    named = {} if config.env.world == DEFAULT else {"world": config.env.world}
    return {**named, "num_envs": config.env.num_envs}


def _self_play(config: CurriculumFile) -> dict[str, Any]:
    if config.self_play is None:
        return {}
    given = asdict(config.self_play)
    return {"self_play": {key: given[key] for key in SELF_PLAY}}


def _network(network: Mapping[str, Any]) -> dict[str, Any]:
    written = {key: network[key] for key in ("layers", "scaling")}
    memory = network["memory"]
    if memory is not None:
        written["memory"] = {key: memory[key] for key in ("size", "sequence_length")}
    return written


def _lesson(lesson: Lesson) -> dict[str, Any]:
    """The lesson without what it leaves open."""
    document = _without_none(asdict(lesson))
    criteria = document.get("completion_criteria")
    if criteria is not None:
        kept = ("measure", "rule", "threshold", "min_lesson_length", "signal_smoothing")
        document["completion_criteria"] = {key: criteria[key] for key in kept}
    return {key: value for key, value in document.items() if value != {}}


def _without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key != name}
    return value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return value
