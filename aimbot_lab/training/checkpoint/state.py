"""The state of a model, of its rows in several processes, of generators, and what identifies it.

`save` of stable-baselines3 keeps less (no generators, no observations) and pickles; here all is
plain values, arrays and tensors. The last episodes, which it only prints, are left out, and the
samples to learn from are parts of their own (`sample_parts`).
"""

import hashlib
import json
import platform
import random
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm

import aimbot_lab
from aimbot_lab.adapters.sb3 import WorldVecEnv, joined_states, part_of_state
from aimbot_lab.curriculum.progress import REPORTS
from aimbot_lab.version import code_hash

NUMBERS = (
    "num_timesteps",
    "_episode_num",
    "_n_updates",
    "_n_calls",
    "_current_progress_remaining",
    "exploration_rate",
    "ent_coef",
)
SEEN = ("_last_obs", "_last_episode_starts")
FIRST_FED = ("policy", "policy.optimizer")  # to the hash
MEMORY, REMEMBERED = "_last_lstm_states", "remembered"


def model_state(model: BaseAlgorithm) -> dict[str, Any]:
    """Weights, optimisers, counters, last observations and memory, and what was recorded."""
    numbers = {name: getattr(model, name) for name in NUMBERS if hasattr(model, name)}
    remembered = getattr(getattr(model.policy, "rollout", None), "state", None)
    return {
        "parameters": model.get_parameters(),
        "tensors": lone_tensors(model),
        "numbers": numbers,
        "seen": {name: getattr(model, name) for name in SEEN},
        "memory": tuple(getattr(model, MEMORY, ())),
        **({} if remembered is None else {REMEMBERED: remembered}),
        "recorded": {key: float(value) for key, value in model.logger.name_to_value.items()},
    }


def restore_model(model: BaseAlgorithm, state: Mapping[str, Any]) -> None:
    """Have `model`, made from the same settings, go on from what `model_state` gave."""
    model.set_parameters(state["parameters"], exact_match=True, device=model.device)
    for name, tensor in lone_tensors(model).items():  # an optimiser steps these very tensors
        tensor.copy_(state["tensors"][name])
    # The names are those of this file: a file may hold any.
    for name in NUMBERS:
        if hasattr(model, name):
            setattr(model, name, state["numbers"][name])
    for name in SEEN:
        setattr(model, name, state["seen"][name])
    if hasattr(model, MEMORY):
        kind = type(getattr(model, MEMORY))
        on_device = (tuple(t.to(model.device) for t in pair) for pair in state["memory"])
        setattr(model, MEMORY, kind(*on_device))
    if REMEMBERED in state:
        rollout: Any = getattr(model.policy, "rollout", None)
        rollout.state = state[REMEMBERED].to(model.device)
    model.logger.name_to_value.update(state["recorded"])


def lone_tensors(model: BaseAlgorithm) -> dict[str, th.Tensor]:
    """What `model` learns beside its networks, such as SAC's log_ent_coef."""
    return {name: getattr(model, name).detach() for name in model._get_torch_save_params()[1]}


def begin_episodes(model: BaseAlgorithm, observations: Any, begun: Any = None) -> None:
    """Have `model` go on from `observations` [B]; new episodes `begun` [B], if not in all."""
    model._last_obs, before = observations, model._last_episode_starts
    every = np.ones(model.n_envs, np.bool_)
    model._last_episode_starts = every if begun is None or before is None else before | begun


def of_rows(env: WorldVecEnv, model: Mapping[str, Any]) -> dict[str, Any]:
    """What of a process's rows a checkpoint needs; `model` is the state of its model."""
    return {
        "env": env.state(),
        "model": {name: model[name] for name in ("seen", REMEMBERED) if name in model},
    }


def joined(
    env: WorldVecEnv, parts: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(state of the environment, of the model's rows) of all rows, from what `of_rows` gave."""
    models = [part["model"] for part in parts]
    seen = {
        name: _together([model["seen"][name] for model in models]) for name in models[0]["seen"]
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
    model["seen"] = {name: _taken(whole, rows) for name, whole in model["seen"].items()}
    if REMEMBERED in model:
        model[REMEMBERED] = model[REMEMBERED][rows]
    return part_of_state(env, state["env"]), model


def _together(parts: Sequence[Any]) -> Any:
    """`parts` of all rows, arrays or dicts of arrays, as one."""
    if isinstance(parts[0], Mapping):
        return {name: _together([part[name] for part in parts]) for name in parts[0]}
    return np.concatenate(parts)


def _taken(whole: Any, rows: slice) -> Any:
    if isinstance(whole, Mapping):
        return {name: _taken(part, rows) for name, part in whole.items()}
    return whole[rows]


Space = spaces.Space[Any]


def random_state(drawn_from: Sequence[Space]) -> dict[str, Any]:
    """Where Python's, NumPy's and torch's generators stand, and those of the spaces."""
    state = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": th.get_rng_state(),
        "spaces": [space.np_random.bit_generator.state for space in drawn_from],
    }
    if th.cuda.is_initialized():  # type: ignore[no-untyped-call]
        state["cuda"] = th.cuda.get_rng_state_all()
    return state


def restore_random(state: Mapping[str, Any], drawn_from: Sequence[Space]) -> None:
    """Set all generators to what `random_state` gave."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    th.set_rng_state(state["torch"])
    for space, kept in zip(drawn_from, state["spaces"], strict=True):
        space.np_random.bit_generator.state = kept
    if "cuda" in state and th.cuda.is_available():
        th.cuda.set_rng_state_all(state["cuda"])


def state_sha256(model: BaseAlgorithm, curriculum_state: Mapping[str, Any]) -> str:
    """SHA-256 over weights, optimisers and curriculum state, equal only if all bits are.

    What the curriculum keeps for its reports alone is left out.
    """
    digest = hashlib.sha256()
    _feed(digest, model.policy.state_dict())
    optimizer = getattr(model.policy, "optimizer", None)
    if optimizer is not None:  # a table has none
        _feed(digest, optimizer.state_dict())
    others = {k: one for k, one in model.get_parameters().items() if k not in FIRST_FED}
    _feed(digest, others | lone_tensors(model))
    learned = {key: value for key, value in curriculum_state.items() if key != REPORTS}
    digest.update(json.dumps(learned, sort_keys=True).encode())
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Add `value` with its structure to `digest`."""
    if isinstance(value, th.Tensor):
        array = value.detach().cpu().contiguous().numpy()
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            digest.update(f"{key}:".encode())
            _feed(digest, value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            digest.update(b",")
            _feed(digest, item)
    else:
        digest.update(repr(value).encode())


CODE = "code of aimbot-lab"
LIBRARIES = ("numba", "numpy", "sb3-contrib", "stable-baselines3", "torch")


def versions() -> dict[str, str]:
    """Versions and the processor's instructions; the same ones give the same bits."""
    return {
        "aimbot-lab": aimbot_lab.__version__,
        CODE: code_hash(),
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "processor": th.backends.cpu.get_cpu_capability(),
    }
