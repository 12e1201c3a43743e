"""Where networks are."""

from pathlib import Path

import pytest
import torch as th
from tiny_training import Sink, plan

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.models import chosen_device
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.training import Training


@pytest.mark.parametrize(
    ("wanted", "is_there", "chosen"),
    [
        ("cpu", True, "cpu"),
        ("cpu", False, "cpu"),
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cuda", True, "cuda"),
    ],
)
def test_auto_takes_cuda_where_it_is_there(
    wanted: str, is_there: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(th.cuda, "is_available", lambda: is_there)
    assert chosen_device(wanted) == chosen


def test_a_device_that_is_not_there_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(th.cuda, "is_available", lambda: False)
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


def test_a_training_sets_torchs_threads() -> None:
    before = th.get_num_threads()
    try:
        for threads in (2, 1):
            Training(plan("ppo", torch_threads=threads))
            assert th.get_num_threads() == threads
    finally:
        th.set_num_threads(before)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_training_repeats_itself_with_one_thread_and_with_two(threads: int) -> None:
    """With layers and batches so large that torch does share their work out."""
    before = th.get_num_threads()
    wide = plan(
        "ppo",
        total_steps=2048,
        n_steps=64,
        batch_size=1024,
        network=NetworkSettings(layers=(256, 256)),
        torch_threads=threads,
    )
    try:
        first, second = (
            Training(wide).learn(Sink(), SilentObserver(), lambda: False).state_sha256
            for _ in range(2)
        )
    finally:
        th.set_num_threads(before)
    assert first == second


def test_an_agent_plays_with_one_thread_however_it_was_trained(tmp_path: Path) -> None:
    before = th.get_num_threads()
    try:
        training = Training(plan("ppo", torch_threads=2))
        folder = training.save_agents(tmp_path)["last"][0].parent
        assert load_agent(folder).train.torch_threads == 2
        assert th.get_num_threads() == 1
    finally:
        th.set_num_threads(before)
