"""Import this module to make the worlds known to Gymnasium, before or after gymnasium itself.

`gymnasium.make("aimbot_lab/Goto-v0")` works from then on. With the module's name in front, the id
alone is enough: `gymnasium.make("aimbot_lab.envs:aimbot_lab/Goto-v0")`.
"""

from aimbot_lab.adapters.registered_envs import register_ids

register_ids()
