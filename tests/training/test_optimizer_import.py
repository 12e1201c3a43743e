"""Making a policy with its optimizer does not import torch's compiler, which takes a second."""

import subprocess
import sys

POLICY = """
import sys
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import default_type, settings_with
policy = new_policy(TrainSettings(algo="hybrid_ppo"), default_type().spec(settings_with()))
optimizer = policy.optimizer
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
print(type(optimizer).__name__, "torch._dynamo" in sys.modules)
"""


def test_a_policy_and_its_optimizer_leave_the_compiler_unloaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", POLICY], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["Adam", "False"]
