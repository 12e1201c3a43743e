"""A client of Aimbot-ParallelEnv by mlagents_envs 0.30.0, told as plain data.

Run as a program by the Python of that package: `original_calls.py PLAYER PORT`. It gives the build
no arguments, and registers the one side channel that is described.
"""

import json
import math
import sys
import uuid

import numpy as np
from mlagents_envs.base_env import ActionTuple
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.side_channel.side_channel import SideChannel

EPISODES = 4


class Lines(SideChannel):
    """Lines of the build's log."""

    def __init__(self):
        super().__init__(uuid.UUID("621f0a70-4f87-11ea-a6bf-784f4387d1f7"))
        self.lines = []

    def on_message_received(self, msg):
        self.lines.append(msg.read_string())


def played(player, port):
    lines = Lines()
    env = UnityEnvironment(file_name=player, base_port=port, side_channels=[lines])
    env.reset()
    (name,) = env.behavior_specs
    spec = env.behavior_specs[name]

    def step(vertical, mouse):
        """Act; the observation, and the last reward where the episode ended."""
        choices = np.array([[vertical, 0, 0]], np.int32)
        env.set_actions(name, ActionTuple(np.array([[mouse]], np.float32), choices))
        env.step()
        decisions, terminals = env.get_steps(name)
        last = float(terminals.reward[0]) if len(terminals) else None
        return decisions.obs[0][0], last

    turns, rewards = [], []
    now, _ = step(0, 0.0)
    for mouse in (1.0, 10.0):
        before, (now, _) = now, step(0, mouse)
        angles = [math.atan2(one[12], one[11]) for one in (before, now)]
        turns.append((angles[1] - angles[0]) % (2 * math.pi))
    while len(rewards) < EPISODES:
        wanted = math.atan2(now[1] - now[8], now[3] - now[10])
        turn = (wanted - math.atan2(now[12], now[11]) + math.pi) % (2 * math.pi) - math.pi
        now, last = step(1, turn / 0.08)
        rewards += [] if last is None else [last]
    env.close()
    return {
        "name": name,
        "shapes": [list(one.shape) for one in spec.observation_specs],
        "actions": str(spec.action_spec),
        "turns": turns,
        "rewards": rewards,
        "lines": lines.lines,
    }


if __name__ == "__main__":
    found = played(sys.argv[1], int(sys.argv[2]))
    sys.stdout.write("\n" + json.dumps(found))
