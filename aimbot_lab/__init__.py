"""aimbot-lab: train game agents by curriculum on a fast FPS arena.

The package is layered; `tests/test_layers.py` holds the rules. Import the part you need:
nothing is imported here, so that the command line answers at once.
"""

__version__ = "0.1.0"
