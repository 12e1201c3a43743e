"""Which settings surely change nothing that a run learns: resuming and grouping ask the same."""

from collections.abc import Mapping
from typing import Any

from aimbot_lab.training.algorithms.registry import any_threads
from aimbot_lab.training.settings import TrainSettings

ALWAYS = frozenset({"name", "env.threads"})
TORCH_THREADS = "train.torch_threads"  # harmless where the engine is the project's own


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
