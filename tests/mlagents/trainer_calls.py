"""What ML-Agents' own trainer makes of our files, told as plain data.

Run as a program by the Python of the real packages: `trainer_calls.py clone DEMO` reads a
demonstration and clones it; `trainer_calls.py wins FOLDER` tells the statistic Result/Win that
`mlagents-learn` logged of a behavior.
"""

import json
import sys

import numpy as np

UPDATES = 30


def cloned(path):
    """What is in the demonstration, and the losses of a policy that clones it."""
    from mlagents.torch_utils import torch
    from mlagents.trainers.demo_loader import load_demonstration
    from mlagents.trainers.policy.torch_policy import TorchPolicy
    from mlagents.trainers.settings import BehavioralCloningSettings, NetworkSettings
    from mlagents.trainers.torch_entities.components.bc.module import BCModule
    from mlagents.trainers.torch_entities.networks import SimpleActor

    torch.manual_seed(1)
    np.random.seed(1)
    spec, pairs, _ = load_demonstration(path)
    actor = {"conditional_sigma": False, "tanh_squash": False}
    policy = TorchPolicy(1, spec, NetworkSettings(), SimpleActor, actor)
    module = BCModule(policy, BehavioralCloningSettings(demo_path=path), 1e-3, 64, 3)
    losses = [module.update()["Losses/Pretraining Loss"] for _ in range(UPDATES)]
    return {
        "actions": str(spec.action_spec),
        "shapes": [list(sensor.shape) for sensor in spec.observation_specs],
        "ends": sum(pair.agent_info.done for pair in pairs),
        "pairs": len(pairs),
        "losses": [float(loss) for loss in losses],
    }


def wins(folder):
    """[steps, share of wins] of each summary."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(folder)
    events.Reload()
    return [[event.step, event.value] for event in events.Scalars("Result/Win")]


if __name__ == "__main__":
    kind, path = sys.argv[1:]
    found = cloned(path) if kind == "clone" else wins(path)
    sys.stdout.write("\n" + json.dumps(found))
