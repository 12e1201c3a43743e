"""The distribution of hybrid actions, and masks."""

import numpy as np
import pytest
import torch as th
from scipy import special, stats

from aimbot_lab.training.networks.branches import HybridDistribution, MaskedHead, SeparateBranches

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
        entropy = sum(stats.entropy(np.exp(table), axis=1) for table in tables)
        entropy = entropy + gaussian.entropy()[:, 0]
        np.testing.assert_allclose(hybrid.entropy(), entropy, rtol=1e-9, atol=1e-9)


def test_samples_match_their_distribution() -> None:
    parameters, log_std = case(2, 1)
    rows = 100_000
    th.manual_seed(3)
    hybrid = HybridDistribution(CHOICES, CONTINUOUS)
    hybrid.proba_distribution((parameters * 0.3).expand(rows, -1), log_std)
    samples = hybrid.sample().numpy()
    tables = [special.softmax(part[0]) for part in split(parameters * 0.3)]
    for branch, table in enumerate(tables):
        seen = np.bincount(samples[:, branch].astype(int), minlength=len(table))
        assert stats.chisquare(seen, table * rows).pvalue > 0.001
    gaussian = stats.norm(float(parameters[0, 8]) * 0.3, np.exp(float(log_std[0])))
    assert stats.kstest(samples[:, 3], gaussian.cdf).pvalue > 0.001
    # A shifted mean is seen, and branches are independent.
    shifted = stats.norm(gaussian.mean() + 0.02 * gaussian.std(), gaussian.std())
    assert stats.kstest(samples[:, 3], shifted.cdf).pvalue < 0.001
    pairs = np.bincount((samples[:, 0] * 3 + samples[:, 1]).astype(int), minlength=9)
    joint = np.outer(tables[0], tables[1]).ravel()
    assert stats.chisquare(pairs, joint * rows).pvalue > 0.001


def test_the_mode_is_the_likeliest_choice_and_the_mean() -> None:
    parameters, log_std = case(4, 50)
    hybrid = HybridDistribution(CHOICES, CONTINUOUS).proba_distribution(parameters, log_std)
    mode = hybrid.mode().numpy()
    np.testing.assert_array_equal(mode[:, 0], parameters[:, :3].argmax(1))
    np.testing.assert_array_equal(mode[:, 2], parameters[:, 6:8].argmax(1))
    np.testing.assert_array_equal(mode[:, 3], parameters[:, 8])


def test_separate_branches_sum_to_the_whole() -> None:
    separate = SeparateBranches([3, 4])
    whole = SeparateBranches.__bases__[0]([3, 4])
    logits, actions = th.randn(6, 7), th.tensor([[0, 3]] * 6)
    parts = separate.proba_distribution(logits).log_prob(actions)
    assert parts.shape == (6, 2)
    expected = whole.proba_distribution(logits).log_prob(actions)
    np.testing.assert_array_equal(parts.sum(1), expected)
    assert separate.entropy().shape == (6,)


def test_a_masked_choice_is_never_taken_in_a_million_samples() -> None:
    th.manual_seed(5)
    rows = 1_000_000
    masks = (th.rand(rows, 8) > 0.5).float()
    masks[:, [0, 3, 6]] = 1.0  # doing nothing is always possible
    head = MaskedHead(th.nn.Linear(2, 9), CHOICES)
    with th.no_grad():
        # Logits so far apart that a masked choice would else be near certain.
        head.layer.weight.mul_(20.0)
        parameters = head(th.cat([th.randn(rows, 2), masks], dim=1))
        hybrid = HybridDistribution(CHOICES, CONTINUOUS)
        actions = hybrid.proba_distribution(parameters, th.zeros(1)).sample().long()
        log_prob = hybrid.log_prob(hybrid.sample())
        mode = hybrid.mode().long()
    everyone = th.arange(rows)
    for taken in (actions, mode):
        for branch, first in enumerate((0, 3, 6)):
            assert bool((masks[everyone, first + taken[:, branch]] == 1.0).all())
    assert bool(th.isfinite(log_prob).all())
    assert bool(th.isfinite(hybrid.entropy()).all())
    for branch, first in enumerate((0, 3, 6)):
        size = CHOICES[branch]
        forbidden = masks[:, first : first + size] == 0.0
        assert hybrid.branches[branch].probs[forbidden].max() == 0.0


def test_masks_leave_the_ratio_of_the_rest_as_it_was() -> None:
    head = MaskedHead(th.nn.Identity(), (3,))
    logits = th.tensor([[1.0, 2.0, 5.0, 1.0, 1.0, 0.0]])
    out = head(logits)
    assert out[0, 1] - out[0, 0] == pytest.approx(1.0)
    assert out[0, 2] == -1e8
