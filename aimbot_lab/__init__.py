"""aimbot-lab: train game agents by curriculum on fast vectorised worlds.

The package is layered; `tests/test_layers.py` holds the rules. Import the part you need: nothing
heavy is imported here, so that the command line answers at once. Importing `aimbot_lab.envs` makes
its environments known to Gymnasium.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aimbot_lab.api import compare, evaluate, load, train

__all__ = ["__version__", "compare", "evaluate", "load", "train"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """`train`, `evaluate`, `compare` and `load`, imported when first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from aimbot_lab import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
