"""A hash of everything a training has learned, to compare runs with."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm

from aimbot_lab.curriculum.progress import REPORTS


def state_sha256(model: BaseAlgorithm, curriculum_state: Mapping[str, Any]) -> str:
    """SHA-256 over weights, optimiser and curriculum state, equal only if all bits are.

    What the curriculum keeps for its reports alone is left out.
    """
    digest = hashlib.sha256()
    _feed(digest, model.policy.state_dict())
    optimizer = getattr(model.policy, "optimizer", None)
    if optimizer is not None:  # a table has none
        _feed(digest, optimizer.state_dict())
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
