"""Where a training's networks are."""

import torch as th

from aimbot_lab.foundation.errors import ConfigurationError


def chosen_device(wanted: str) -> str:
    """The torch device that `auto`, `cpu` or `cuda` means on this machine.

    Raises ConfigurationError where it is not there.
    """
    is_there = th.cuda.is_available()
    if wanted == "cuda" and not is_there:
        raise ConfigurationError(
            "train.device: cuda is asked for, and torch finds no CUDA device: use auto or cpu"
        )
    return "cuda" if is_there and wanted != "cpu" else "cpu"
