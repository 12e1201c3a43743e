"""A policy is made and learns without an import of torch's compiler, which takes seconds."""

import subprocess
import sys

POLICY = """
import sys
import torch
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import default_type, settings_with
policy = new_policy(TrainSettings(algo="hybrid_ppo"), default_type().spec(settings_with()))
optimizer = policy.optimizer
optimizer.zero_grad()
optimizer.load_state_dict(optimizer.state_dict())
optimizer.param_groups[0]["lr"] = 0.1
for parameter in policy.parameters():
    parameter.grad = torch.ones_like(parameter)
before = [parameter.detach().clone() for parameter in policy.parameters()]
optimizer.step()
assert all((now != then).any() for now, then in zip(policy.parameters(), before))
print(type(optimizer).__name__, "torch._dynamo" in sys.modules)
"""


def test_a_policy_and_a_step_of_its_optimizer_leave_the_compiler_unloaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", POLICY], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["Adam", "False"]


def test_a_spared_step_is_torchs_to_the_bit() -> None:
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    spared, usual = done.stdout.split()
    assert spared == usual


STEPS = """
import torch
from aimbot_lab.training.algorithms.models import spare_compiler_import

def walked():
    torch.manual_seed(0)
    said = ""
    for kind in torch.optim.Adam, torch.optim.RMSprop:
        weights = torch.nn.Parameter(torch.randn(5, 3))
        optimizer = kind([weights], lr=0.1)
        for _ in range(5):
            optimizer.zero_grad()
            (weights**3).sum().backward()
            optimizer.step()
        said += weights.detach().numpy().tobytes().hex() + str(weights.requires_grad)
    return said

spare_compiler_import()
print(walked())
import torch._dynamo
print(walked())
"""
