"""Where networks are, what their import leaves unloaded, and the same state with two threads."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch as th
from tiny_training import learn, plan

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.models import chosen_device
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings
from aimbot_lab.worlds.registry import spec_of


def test_auto_takes_cuda_where_it_is_there_and_what_is_not_there_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for is_there, auto in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(th.cuda, "is_available", lambda is_there=is_there: is_there)
        assert (chosen_device("cpu"), chosen_device("auto")) == ("cpu", auto)
    with pytest.raises(ConfigurationError, match=r"^train\.device: .* use auto or cpu$") as caught:
        Training(plan("ppo", device="cuda"))
    assert caught.value.exit_code == 2


def test_an_agent_from_another_device_is_loaded_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(th.cuda, "is_available", lambda: False)
    training = Training(plan("ppo", device="auto"))
    assert {str(weight.device) for weight in training.model.policy.parameters()} == {"cpu"}
    folder = training.save_agents(tmp_path)["last"][0].parent
    description = folder / "agent.json"
    description.write_text(description.read_text().replace('"device": "auto"', '"device": "cuda"'))
    loaded = load_agent(folder)
    assert loaded.train.device == "cuda"
    assert {str(weight.device) for weight in loaded.agent.policy.parameters()} == {"cpu"}


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_an_agent_acts_on_the_cpu_wherever_its_policy_learns(algo: str) -> None:
    """A policy that says of itself that it is elsewhere stands in for one on a GPU."""
    train = ALGORITHMS[algo].settings(algo=algo, batch_size=128)
    env = GymnasiumSettings(id="Pendulum-v1", num_envs=1)
    lesson = Lesson(name="one", targets={"task": 1.0})
    training = Training(TrainingPlan(1, env, (lesson,), train))
    policy, spec = training.model.policy, spec_of(env)
    drawn, seen = th.get_rng_state(), np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    live = Agent(policy, spec, train)
    assert live.policy is policy
    likely = live.probabilities(seen)
    policy.__class__ = type("Elsewhere", (type(policy),), {"device": th.device("cuda")})
    copy = Agent(policy, spec, train)
    assert type(copy.policy) is type(policy).__base__
    assert th.equal(th.get_rng_state(), drawn)
    for ours, theirs in zip(likely, copy.probabilities(seen), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_an_agent_plays_with_one_thread_however_it_was_trained(tmp_path: Path) -> None:
    before = th.get_num_threads()
    try:
        training = Training(plan("ppo", torch_threads=2))
        assert th.get_num_threads() == 2
        folder = training.save_agents(tmp_path)["last"][0].parent
        assert load_agent(folder).train.torch_threads == 2
        assert th.get_num_threads() == 1
    finally:
        th.set_num_threads(before)


def test_a_training_with_two_threads_ends_in_the_same_state_again() -> None:
    """Its layers and batches are so large that two threads share them."""
    sizes = {"total_steps": 512, "n_steps": 32, "batch_size": 512, "torch_threads": 2}
    before, network = th.get_num_threads(), NetworkSettings(layers=(256, 256))
    first, again = (learn(Training(plan("ppo", network=network, **sizes))) for _ in range(2))
    th.set_num_threads(before)
    assert (len(first.state_sha256), again.state_sha256) == (64, first.state_sha256)


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

print(walked())
import torch._dynamo
print(walked())
"""


def test_steps_of_optimizers_leave_the_compiler_unloaded_and_are_torchs_to_the_bit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", POLICY], capture_output=True, text=True, check=True
    )
    *told, spared, usual = done.stdout.split()
    assert told == ["Adam", "False"]
    assert spared == usual
