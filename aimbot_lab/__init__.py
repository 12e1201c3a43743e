"""aimbot-lab: train game agents by curriculum on a fast FPS arena.

The package is layered; `tests/test_layers.py` holds the rules. Import the part you need: nothing
heavy is imported here, so that the command line answers at once. Importing the package makes its
environments known to Gymnasium, now or as soon as that is imported.
"""

from aimbot_lab.api import compare, evaluate, load, train
from aimbot_lab.faces.gymnasium_ids import register_with_gymnasium

__all__ = ["__version__", "compare", "evaluate", "load", "train"]
__version__ = "0.1.0"

register_with_gymnasium()
