"""A model for a scene, played by onnxruntime on our player; run by the Python of the real packages.

`model_calls.py MODEL PLAYER PORT EPISODES KIND ...`: every agent of the player, which has the
further arguments, plays EPISODES by the model's actions, KIND likeliest or drawn. How many were won
goes to the last line of standard output.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from llapi_calls import channels, interface

sys.path.insert(0, str(Path(__file__).parent))
PREFIXES = {"likeliest": "deterministic_", "drawn": ""}


class Model:
    """Acts for agents by their ids, each with a memory of its own."""

    def __init__(self, path, prefix):
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        self.inputs = {one.name: one.shape for one in self.session.get_inputs()}
        outputs = [one.name for one in self.session.get_outputs()]
        wanted = ["continuous_actions", "discrete_actions"]
        self.actions = [prefix + name if prefix + name in outputs else None for name in wanted]
        self.names = [name for name in [*self.actions, "recurrent_out"] if name in outputs]
        self.memory = {}

    def forget(self, ids):
        for ident in ids:
            self.memory.pop(int(ident), None)

    def act(self, decisions):
        """Numbers and choices for all agents that decide."""
        given = {f"obs_{place}": seen for place, seen in enumerate(decisions.obs)}
        if decisions.action_mask is not None:
            given["action_masks"] = 1.0 - np.concatenate(decisions.action_mask, axis=1)
        nothing = np.zeros(self.inputs.get("recurrent_in", [0, 1, 0])[1:])
        memory = [self.memory.get(int(one), nothing) for one in decisions.agent_id]
        given["recurrent_in"] = np.array(memory)
        taken = {name: given[name].astype(np.float32) for name in self.inputs}
        told = dict(zip(self.names, self.session.run(self.names, taken), strict=True))
        for ident, kept in zip(decisions.agent_id, told.get("recurrent_out", ()), strict=False):
            self.memory[int(ident)] = kept
        return [told.get(name) for name in self.actions]


def main(path, player, port, episodes, kind, *arguments):
    from mlagents_envs.environment import UnityEnvironment

    api = interface("mlagents_envs", "mlagents_envs.base_env")
    lines = channels(api).lines
    env = UnityEnvironment(
        file_name=player,
        base_port=int(port),
        seed=7,
        no_graphics=True,
        side_channels=[lines],
        additional_args=list(arguments),
        timeout_wait=300,
    )
    env.reset()
    (name,) = env.behavior_specs
    onnxruntime.set_seed(1)
    model, ended, won = Model(path, PREFIXES[kind]), {}, 0
    while True:
        decisions, terminals = env.get_steps(name)
        # Lines come in the order in which the agents of one message ended.
        results, lines.lines = lines.lines, []
        for ident, line in zip(terminals.agent_id, results, strict=True):
            ended[int(ident)] = ended.get(int(ident), 0) + 1
            won += ended[int(ident)] <= int(episodes) and line.startswith("Warning|Result|Win")
        model.forget(terminals.agent_id)
        if len(ended) == len(decisions) and min(ended.values()) >= int(episodes):
            break
        numbers, choices = model.act(decisions)
        env.set_actions(name, api.ActionTuple(numbers, choices))
        env.step()
    env.close()
    return {"episodes": len(ended) * int(episodes), "won": int(won)}


if __name__ == "__main__":
    told = main(*sys.argv[1:])
    sys.stdout.write("\n" + json.dumps(told))
