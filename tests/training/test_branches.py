"""The distribution of hybrid actions, with masks and at a temperature."""

from typing import Any

import numpy as np
import pytest
import torch as th
from scipy import special, stats

from aimbot_lab.evaluation.temperature import ADVISED, COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.onnx_export import sample
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.networks.hybrid_policy import (
    HybridDistribution,
    MaskedHead,
    SeparateBranches,
)
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.settings import TrainSettings as Train
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec

CHOICES, CONTINUOUS = (3, 3, 2), 1
CASES = 1000


def case(seed: int, rows: int) -> tuple[th.Tensor, th.Tensor]:
    """Random parameters: logits and mean [rows, 9], log standard deviation [1]."""
    rng = np.random.default_rng(seed)
    parameters = rng.normal(0.0, 3.0, (rows, sum(CHOICES) + CONTINUOUS))
    return th.as_tensor(parameters), th.as_tensor(rng.uniform(-2.0, 1.0, CONTINUOUS))


def split(parameters: th.Tensor) -> list[np.ndarray]:
    """The logits of each branch [rows, choices]."""
    return np.split(parameters[:, :8].numpy(), np.cumsum(CHOICES)[:-1], axis=1)


def test_log_probability_and_entropy_agree_with_scipy_in_a_thousand_cases() -> None:
    rng = np.random.default_rng(0)
    parameters, _ = case(1, CASES)
    log_std = rng.uniform(-2.0, 1.0, (CASES, 1))
    chosen = rng.integers(0, CHOICES, (CASES, 3))
    mouse = rng.normal(0.0, 3.0, (CASES, 1))
    gaussian = stats.norm(parameters[:, 8:].numpy(), np.exp(log_std))
    tables = [special.log_softmax(part, axis=1) for part in split(parameters)]
    every = [table[np.arange(CASES), chosen[:, k]] for k, table in enumerate(tables)]
    expected = np.stack([*every, gaussian.logpdf(mouse)[:, 0]], axis=1)
    actions = th.as_tensor(np.concatenate([chosen, mouse], axis=1))
    for per_branch in (False, True):
        hybrid = HybridDistribution(CHOICES, CONTINUOUS, per_branch=per_branch)
        hybrid.proba_distribution(parameters, th.as_tensor(log_std))
        wanted = expected if per_branch else expected.sum(axis=1)
        np.testing.assert_allclose(hybrid.log_prob(actions), wanted, rtol=1e-9, atol=1e-9)
        choices = sum(stats.entropy(np.exp(table), axis=1) for table in tables)
        entropy = choices + gaussian.entropy()[:, 0]
        np.testing.assert_allclose(hybrid.entropy(), entropy, rtol=1e-9, atol=1e-9)


def assert_drawn(samples: np.ndarray, tables: list[np.ndarray], gaussian: Any) -> None:
    """Columns [N, 4] are drawn by these chances of three branches, and a number by `gaussian`.

    Branches are independent, and a shifted mean would be seen.
    """
    rows, branches = len(samples), samples[:, :3].astype(int)
    for branch, table in zip(branches.T, tables, strict=True):
        seen = np.bincount(branch, minlength=len(table))
        assert stats.chisquare(seen, table * rows).pvalue > 0.001
    pairs = np.bincount(branches[:, 0] * 3 + branches[:, 1], minlength=9)
    assert stats.chisquare(pairs, np.outer(*tables[:2]).ravel() * rows).pvalue > 0.001
    assert stats.kstest(samples[:, 3], gaussian.cdf).pvalue > 0.001
    shifted = stats.norm(gaussian.mean() + 0.02 * gaussian.std(), gaussian.std())
    assert stats.kstest(samples[:, 3], shifted.cdf).pvalue < 0.001


def test_samples_match_their_distribution() -> None:
    parameters, log_std = case(2, 1)
    parameters *= 0.3
    th.manual_seed(3)
    hybrid = HybridDistribution(CHOICES, CONTINUOUS)
    hybrid.proba_distribution(parameters.expand(100_000, -1), log_std)
    tables = [special.softmax(part[0]) for part in split(parameters)]
    gaussian = stats.norm(float(parameters[0, 8]), np.exp(float(log_std[0])))
    assert_drawn(hybrid.sample().numpy(), tables, gaussian)


def test_the_mode_is_the_likeliest_choice_and_the_mean_and_branches_sum_to_the_whole() -> None:
    parameters, log_std = case(4, 50)
    hybrid = HybridDistribution(CHOICES, CONTINUOUS).proba_distribution(parameters, log_std)
    wanted = [part.argmax(1) for part in split(parameters)]
    np.testing.assert_array_equal(hybrid.mode(), np.stack([*wanted, parameters[:, 8]], axis=1))
    separate, whole = (kind([3, 4]) for kind in (SeparateBranches, SeparateBranches.__bases__[0]))
    logits, actions = th.randn(6, 7), th.tensor([[0, 3]] * 6)
    parts = separate.proba_distribution(logits).log_prob(actions)
    assert parts.shape == (6, 2)
    expected = whole.proba_distribution(logits).log_prob(actions)
    np.testing.assert_array_equal(parts.sum(1), expected)
    assert separate.entropy().shape == (6,)


def test_masks_leave_the_ratio_of_the_rest_as_it_was() -> None:
    out = MaskedHead(th.nn.Identity(), (3,))(th.tensor([[1.0, 2.0, 5.0, 1.0, 1.0, 0.0]]))
    assert out[0, 1] - out[0, 0] == pytest.approx(1.0)
    assert out[0, 2] == -1e8


ROWS = 20_000
NETWORK = NetworkSettings(layers=(8,))
OPTIONS = {"recurrent_ppo": {"lstm_hidden_size": 8}, "qrdqn": {"n_quantiles": 5}}


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
    moves = agent.act(seen, temperature=temperature)[:, 0].astype(int)
    return np.bincount(moves, minlength=3) / ROWS


@pytest.mark.parametrize("algo", ["maskable_ppo", "recurrent_ppo", "hybrid_ppo"])
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


def test_at_1_actions_are_those_of_the_training_to_the_bit() -> None:
    agent = new_agent("hybrid_ppo", aim="hybrid", masks=True)
    given = sample(agent.spec, 100)
    masks = given.action_masks.astype(np.float32)
    shown = np.concatenate([given.observation, masks], axis=1)
    th.manual_seed(4)
    plain, _ = agent.policy.predict(shown, deterministic=False)
    th.manual_seed(4)
    how = {"branch_masks": given.action_masks, "temperature": SAMPLED}
    actions, _ = agent.choose(given.observation, **how)
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
