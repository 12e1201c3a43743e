"""What a checkpoint keeps of every row, whichever process has it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch as th

from aimbot_lab.adapters.sb3 import WorldVecEnv, joined_states, part_of_state
from aimbot_lab.training.checkpoint.model_state import REMEMBERED


def of_rows(env: WorldVecEnv, model: Mapping[str, Any]) -> dict[str, Any]:
    """What of a process's rows a checkpoint needs; `model` is the state of its model."""
    return {"env": env.state(), "model": {name: model[name] for name in _by_row(model)}}


def _by_row(model: Mapping[str, Any]) -> list[str]:
    return [name for name in ("seen", REMEMBERED) if name in model]


def joined(
    env: WorldVecEnv, parts: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the environment, of the model's rows) of all rows, from what `of_rows` gave."""
    models = [part["model"] for part in parts]
    seen = {
        name: np.concatenate([model["seen"][name] for model in models])
        for name in models[0]["seen"]
    }
    rows: dict[str, Any] = {"seen": seen}
    if REMEMBERED in models[0]:
        rows[REMEMBERED] = th.cat([model[REMEMBERED] for model in models])
    return joined_states(env, [part["env"] for part in parts]), rows


def own_part(
    env: WorldVecEnv, state: Mapping[str, Any], first: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the environment, of the model) of the rows of `env`, the first of them `first`."""
    model, rows = dict(state["model"]), slice(first, first + env.num_envs)
    model["seen"] = {name: whole[rows] for name, whole in model["seen"].items()}
    if REMEMBERED in model:
        model[REMEMBERED] = model[REMEMBERED][rows]
    return part_of_state(env, state["env"]), model
