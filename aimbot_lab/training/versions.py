"""What computes a training's numbers, beside its settings."""

import platform
from importlib.metadata import version

import torch as th

import aimbot_lab
from aimbot_lab.version import code_hash

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
