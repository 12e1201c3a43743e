"""An agent at a temperature: how often it takes which action."""

import numpy as np
import pytest
import torch as th

from aimbot_lab.evaluation.temperature import ADVISED, COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.onnx_export import sample
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.settings import TrainSettings as Train
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec

ROWS = 20_000
NETWORK = NetworkSettings(layers=(8,))
OPTIONS = {"recurrent_ppo": {"lstm_hidden_size": 8}, "qrdqn": {"n_quantiles": 5}}
DRAWING = ["ppo", "maskable_ppo", "recurrent_ppo", "trpo", "hybrid_ppo"]


def new_agent(algo: str, **train: object) -> Agent:
    """Untrained, with weights shaken so that its probabilities differ."""
    settings = Train(algo=algo, network=NETWORK, options=OPTIONS.get(algo, {}), **train)
    spec = arena_spec(ArenaSettings())
    th.manual_seed(1)
    policy = new_policy(settings, spec)
    with th.no_grad():
        for weight in policy.parameters():
            weight.add_(th.randn_like(weight))
    return Agent(policy, spec, settings)


def shares(agent: Agent, temperature: Temperature) -> np.ndarray:
    """How often [3] each vertical move is taken for one observation, nothing masked."""
    seen = sample(agent.spec, 1, seed=2).observation.repeat(ROWS, axis=0)
    th.manual_seed(2)
    return (
        np.bincount(agent.act(seen, temperature=temperature)[:, 0].astype(int), minlength=3) / ROWS
    )


@pytest.mark.parametrize("algo", DRAWING)
def test_choices_at_a_temperature_are_as_likely_as_their_logits_divided_by_it(algo: str) -> None:
    agent, logits = new_agent(algo), np.array([0.0, 1.0, -1.0])
    with th.no_grad():
        agent.policy.action_net.weight.fill_(0.0)
        agent.policy.action_net.bias[:3] = th.from_numpy(logits)
    for temperature in (SAMPLED, Temperature(0.5), Temperature(2)):
        likely = np.exp(logits / temperature)
        near = 4 * np.sqrt(0.25 / ROWS)
        np.testing.assert_allclose(shares(agent, temperature), likely / likely.sum(), atol=near)
    assert shares(agent, LIKELIEST)[1] == 1


def test_a_continuous_mouse_strays_from_its_mean_by_as_much_as_the_temperature_says() -> None:
    agent = new_agent("hybrid_ppo", aim="hybrid")
    with th.no_grad():
        agent.policy.log_std.fill_(-3.0)
        agent.policy.action_net.bias[-1] = 0.0
        agent.policy.action_net.weight[-1] = 0.0
    seen = sample(agent.spec, 1).observation.repeat(ROWS, axis=0)
    for temperature in (SAMPLED, COOLER, Temperature(3)):
        th.manual_seed(3)
        mouse = agent.act(seen, temperature=temperature)[:, -1]
        np.testing.assert_allclose(mouse.std(), temperature * np.exp(-3), rtol=0.03)
    assert not agent.act(seen, temperature=LIKELIEST)[:, -1].any()


@pytest.mark.parametrize("train", [{}, {"aim": "hybrid", "masks": True}], ids=str)
def test_at_1_actions_are_those_of_the_training_to_the_bit(train: dict[str, object]) -> None:
    agent = new_agent("hybrid_ppo", **train)
    given = sample(agent.spec, 100)
    masks = given.action_masks.astype(np.float32)
    shown = np.concatenate([given.observation, masks], axis=1) if train else given.observation
    th.manual_seed(4)
    plain, _ = agent.policy.predict(shown, deterministic=False)
    th.manual_seed(4)
    actions, _ = agent.choose(
        given.observation, branch_masks=given.action_masks, temperature=SAMPLED
    )
    np.testing.assert_array_equal(actions[:, :3], plain[:, :3])


def test_a_policy_is_as_before_once_it_has_played_at_a_temperature() -> None:
    agent = new_agent("ppo")
    before = shares(agent, SAMPLED)
    shares(agent, Temperature(5))
    np.testing.assert_array_equal(shares(agent, SAMPLED), before)


def test_an_agent_plays_as_advised_and_one_that_ranks_actions_its_likeliest() -> None:
    assert new_agent("ppo").temperature() == ADVISED
    for algo in ("dqn", "qrdqn"):
        ranker = new_agent(algo)
        assert ranker.temperature() == ranker.temperature(LIKELIEST) == LIKELIEST
        with pytest.raises(ConfigurationError, match=f"an agent of {algo} ranks actions") as told:
            ranker.act(sample(ranker.spec, 1).observation, temperature=SAMPLED)
        assert "\n" not in str(told.value)
