"""A network of one's own learns under every kind of algorithm, and is refused in one line."""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pytest
import torch as th
from tiny_training import learn, plan
from torch import nn

from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.experiment.config.checks import network_diagnostics
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.settings import STRICT, Int, dataclass
from aimbot_lab.training.agents import agent_files
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.networks.encoders import ScaledFeatures
from aimbot_lab.training.networks.network import NETWORKS, NetworkType
from aimbot_lab.training.training import Training


@dataclass(frozen=True, kw_only=True, config=STRICT)
class OwnSettings:
    kind: Literal["own"] = "own"
    units: Int = 12
    wrong: str = ""


class Own(NetworkType):
    name, settings = "own", OwnSettings

    def __init__(self) -> None:
        self.shown: list[tuple[int, int]] = []

    def features(self, settings: Any, observations: Any, *, spec: Any) -> nn.Module:
        if settings.wrong == "raises":
            raise KeyError("ray_999")
        if settings.wrong == "shape":
            return nn.Unflatten(1, (1, -1))
        columns = observations.shape[0]
        self.shown.append((columns, len(spec.observation_names)))
        scaled = ScaledFeatures(observations, scaling="running")
        return nn.Sequential(scaled, nn.Linear(columns, settings.units), nn.ReLU())

    def layers(self, settings: Any) -> tuple[int, ...]:
        return (8,)

    def fault(self, settings: Any, spec: Any, *, algo: str) -> str | None:
        return f"is not for {algo}" if settings.wrong == "fault" else None


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    """The network, as if an installed package brought it."""
    network = Own()
    there = NETWORKS.own
    monkeypatch.setitem(NETWORKS.__dict__, "own", MappingProxyType({**there, "own": network}))
    return network


MASKED = {"aim": "hybrid", "masks": True, "objective": "per_branch"}


@pytest.mark.parametrize(
    ("algo", "switches"), [("dqn", {}), ("recurrent_ppo", {}), ("hybrid_ppo", MASKED)], ids=str
)
def test_it_learns_and_its_saved_agent_acts_the_same(
    algo: str, switches: dict[str, Any], own: Own, tmp_path: Path
) -> None:
    training = Training(plan(algo, network=OwnSettings(), total_steps=1024, **switches))
    first = {name: weight.clone() for name, weight in training.model.policy.state_dict().items()}
    learn(training)
    last = training.model.policy.state_dict()
    moved = [name for name, weight in last.items() if not th.equal(weight, first[name])]
    assert any(".module.1.weight" in name for name in moved)
    assert any("statistics" in name for name in moved)  # kept up to date, as those of mlp
    assert {columns == names for columns, names in own.shown} == {True}  # masks are not shown
    training.save_agents(tmp_path)
    loaded = load_agent(tmp_path / "last")
    assert loaded.train.network == OwnSettings()
    weights = loaded.agent.policy.state_dict()
    assert all(th.equal(weights[name], last[name]) for name in last)
    spec = loaded.agent.spec
    seen = np.stack([spec.observation_low, spec.observation_high])
    assert loaded.agent.act(seen, temperature=LIKELIEST).shape == (2, 4)


def test_what_can_not_be_made_is_refused_in_one_line_and_by_a_check() -> None:
    for wrong, why in (
        ("raises", "KeyError: 'ray_999'"),
        ("shape", "ValueError: features of 2 observations must be [2, F] (got [2, 1, "),
    ):
        with pytest.raises(ConfigurationError) as refused:
            Training(plan("ppo", network=OwnSettings(wrong=wrong)))
        line = f"train.network: the network own can't be made: {why}"
        assert str(refused.value).startswith(line)
        assert "\n" not in str(refused.value)
    given = plan("ppo", network=OwnSettings(wrong="fault"))
    (fault,) = network_diagnostics(given.env, given.train)
    assert (fault.path, fault.what) == (("train", "network"), "is not for ppo")
    assert list(network_diagnostics(given.env, plan("ppo").train)) == []


def test_an_agent_names_what_is_not_installed(tmp_path: Path) -> None:
    Training(plan("ppo")).save_agents(tmp_path)
    description = tmp_path / "last" / agent_files.DESCRIPTION
    text = description.read_text(encoding="utf-8")
    for old, new, line in (
        ('"algo": "ppo"', '"algo": "gone"', "the agent needs the algorithm gone"),
        ('"kind": "mlp"', '"kind": "gru"', "the agent needs the network gru"),
        ('"world": "arena"', '"world": "maze"', "the agent needs the world maze"),
    ):
        assert old in text
        description.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(LabError, match=f"last: {line}, which no installed package brings$"):
            load_agent(tmp_path / "last")
