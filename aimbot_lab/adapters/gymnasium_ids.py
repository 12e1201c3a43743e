"""The ids under which `gymnasium.make` and `gymnasium.make_vec` know the worlds."""

import gymnasium

from aimbot_lab.worlds.registry import world_types

PLACE = "aimbot_lab.adapters.registered_envs"


def register_ids() -> None:
    """Register every id of every world that gymnasium does not know yet."""
    for world in world_types().values():
        for name, targets in world.gymnasium_ids.items():
            if name not in gymnasium.registry:
                gymnasium.register(
                    name,
                    entry_point=f"{PLACE}:RegisteredEnv",
                    vector_entry_point=f"{PLACE}:RegisteredVectorEnv",
                    kwargs={"world": world.name, "scenario": {"targets": dict(targets)}},
                )
