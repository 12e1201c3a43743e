"""The ids under which `gymnasium.make` and `gymnasium.make_vec` know the arena.

Gymnasium has no plugins any more: an id exists once the package that registers it is imported,
or with the package's name in front, `gymnasium.make("aimbot_lab:aimbot_lab/Goto-v0")`.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

TARGETS = {
    "aimbot_lab/Goto-v0": {"goto": 1.0},
    "aimbot_lab/Attack-v0": {"attack": 1.0},
    "aimbot_lab/Free-v0": {"free": 1.0},
    "aimbot_lab/Mix-v0": {"goto": 1.0, "attack": 1.0, "free": 1.0},
}


def register_with_gymnasium() -> None:
    """Register the ids now, or as soon as gymnasium is imported.

    So that `import aimbot_lab` is enough, in any order, and costs nobody the time to load
    gymnasium.
    """
    if "gymnasium" in sys.modules:
        register_ids()
    elif not any(isinstance(finder, _GymnasiumFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _GymnasiumFinder())


def register_ids() -> None:
    """Register each id that gymnasium does not know yet."""
    import gymnasium

    for name, targets in TARGETS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="aimbot_lab.adapters.arena_envs:ArenaEnv",
                vector_entry_point="aimbot_lab.adapters.arena_envs:ArenaVectorEnv",
                kwargs={"scenario": {"targets": targets}},
            )


class _GymnasiumFinder:
    """Finds gymnasium as the other finders do, and registers the ids once it is loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of gymnasium; None for every other module."""
        if name != "gymnasium":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                register_ids()

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
