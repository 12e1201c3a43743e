"""A policy that remembers as sb3-contrib's and torch's do: its states are those of the rollout."""

from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib.common.recurrent.policies import RecurrentActorCriticPolicy
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.vec_env import VecEnv
from units_training import learned, units_plan, with_rollout

from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import (
    entropy_loss,
    evaluated,
    policy_loss,
    value_loss,
)
from aimbot_lab.training.networks.remembering_policy import (
    Chunks,
    Lstm,
    MemoryShape,
    RememberingPolicy,
)
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings

pytestmark = pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
STEPS = 32
VARIANTS: dict[str, dict[str, Any]] = {
    "L = 1": {"network": {"memory": MemorySettings(size=7, sequence_length=1)}},
    "L = 16, own critic": {
        "network": {"memory": MemorySettings(size=7, critic="own"), "layers": ()}
    },
    "L = n_steps": {"network": {"memory": MemorySettings(size=7, sequence_length=STEPS)}},
    "burn-in": {"network": {"memory": MemorySettings(size=7, sequence_length=8, burn_in=16)}},
    "everything": {
        "network": {
            **{"memory": MemorySettings(size=7, sequence_length=8), "scaling": "running"},
            **{"scalars": (9,), "units": UnitsSettings(layers=(6,))},
        },
        **{"target": "attention", "aim": "hybrid", "masks": True, "objective": "per_branch"},
        "dual_clip": 3.0,
    },
}


def memory_plan(variant: str, **more: Any) -> Any:
    given = dict(VARIANTS[variant])
    network = NetworkSettings(**{"layers": (8,), **given.pop("network")})
    # Episodes of 7 steps: they begin anywhere within a chunk.
    env = {"time_limit": 0.7, "num_envs": 8}
    return units_plan(env=env, network=network, n_steps=STEPS, batch_size=64, **given, **more)


@pytest.mark.parametrize("variant", VARIANTS)
def test_before_the_first_step_every_sample_is_as_likely_as_in_the_rollout(variant: str) -> None:
    """In the second of two rollouts, computed in double precision."""
    model = with_rollout(memory_plan(variant, total_steps=2 * 8 * STEPS), double=True)
    model.policy.set_training_mode(True)
    seen = []
    for data in model.rollout_buffer.get(64):
        values, log_prob, _ = evaluated(model, data)
        for now, then in ((log_prob, data.old_log_prob), (values.flatten(), data.old_values)):
            assert float((now.detach().double() - then.double()).abs().max()) <= 1e-6
        seen.append(data.returns)
    assert len(th.cat(seen)) == 8 * STEPS
    np.testing.assert_allclose(
        np.sort(th.cat(seen).numpy()), np.sort(model.rollout_buffer.returns.flatten())
    )
    policy: Any = model.policy
    assert policy.rollout.kept[0].any()  # from the first rollout
    assert policy.rollout.state.any()
    assert policy.state_drift(model.rollout_buffer, range(model.n_envs)) < 1e-5


class RecallVecEnv(VecEnv):
    """A world that asks for what it showed: step 0 a sign, then nothing, at last a question.

    Without memory half of the episodes are won, whatever the player is; with it all can be.
    `rows` episodes of `wait` + 2 steps; an observation is sign, whether it is asked for, 1.

    The action is 0 or 1; at the last step the one of the sign's side is rewarded by 1. With
    `cut_off` episodes are cut off, not ended. Rows begin apart, so that episodes begin anywhere in
    a chunk.
    """

    def __init__(self, rows: int, wait: int, *, seed: int = 0, cut_off: bool = False) -> None:
        space = spaces.Box(-1.0, 1.0, (3,), np.float32)
        super().__init__(rows, space, spaces.MultiDiscrete([2]))
        self._random, self._wait, self._cut_off = np.random.default_rng(seed), wait, cut_off
        self._step = np.arange(rows) % (wait + 2)
        self._sign = self._signs(rows)
        self.won: list[bool] = []

    def _signs(self, count: int) -> np.ndarray:
        return self._random.choice([-1.0, 1.0], count)

    def _shown(self) -> np.ndarray:
        shown = np.where(self._step == 0, self._sign, 0.0)
        asked = self._step == self._wait + 1
        return np.stack([shown, asked, np.ones(self.num_envs)], axis=1).astype(np.float32)

    def reset(self) -> np.ndarray:
        return self._shown()

    def step_async(self, actions: np.ndarray) -> None:
        self._given = np.asarray(actions).reshape(self.num_envs)

    def step_wait(self) -> Any:
        ends = self._step == self._wait + 1
        right = ends & (self._given == (self._sign > 0))
        self.won += right[ends].tolist()
        last = self._shown()
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for row in np.flatnonzero(ends):
            infos[row] = {"terminal_observation": last[row], "TimeLimit.truncated": self._cut_off}
        self._step = np.where(ends, 0, self._step + 1)
        self._sign = np.where(ends, self._signs(self.num_envs), self._sign)
        return self._shown(), right.astype(np.float32), ends, infos

    def close(self) -> None: ...

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **named: Any) -> Any:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


def recall(wait: int, memory: MemoryShape | None, *, rows: int = 32, **more: Any) -> HybridPPO:
    th.set_num_threads(1)
    env = RecallVecEnv(rows, wait, cut_off=more.pop("cut_off", False))
    given = {"n_steps": 16, "batch_size": 128, "n_epochs": 4, "learning_rate": 5e-3, **more}
    given |= {"policy_kwargs": {"net_arch": [16], "memory": memory}, "gamma": 0.9}
    return HybridPPO(RememberingPolicy, env, seed=1, device="cpu", **given)


def only_played(model: HybridPPO) -> HybridPPO:
    """After a rollout that nothing is learned from."""
    model.engine.update = lambda *_args, **_named: None  # type: ignore[method-assign]
    return model.learn(32 * 16)


def share_won(model: HybridPPO, steps: int) -> float:
    model.learn(steps)
    env: Any = model.env
    return float(np.mean(env.won[-400:]))


def test_with_a_memory_what_was_shown_is_recalled_and_without_it_guessed() -> None:
    rollout = 32 * 16
    assert share_won(recall(2, MemoryShape(16, 8)), 12 * rollout) > 0.95
    assert abs(share_won(recall(2, None), 4 * rollout) - 0.5) < 0.1


def test_a_cut_off_episode_is_worth_what_its_own_row_remembers() -> None:
    model = recall(3, MemoryShape(5, 16), rows=6, cut_off=True)
    policy: Any = model.policy
    asked: list[tuple[int, th.Tensor, th.Tensor]] = []
    plain = policy.predict_values

    def noting(obs: th.Tensor) -> th.Tensor:
        row = policy.rollout.cut_off[0] if policy.rollout.cut_off else -1
        state = policy.rollout.state.clone()
        value = plain(obs)
        if row >= 0:
            (_, critic), _ = policy._remembered(obs, state[[row]], th.zeros(1, 1))
            asked.append((row, value, policy.value_net(critic)))
        return value

    policy.predict_values = noting
    model.learn(6 * 16)
    assert {row for row, *_ in asked} == set(range(6))
    assert all(th.equal(value, wanted) for _, value, wanted in asked)
    assert not policy.rollout.cut_off


def test_burn_in_changes_nothing_before_a_step_and_comes_nearer_the_truth_after_one() -> None:
    def chunks(model: HybridPPO) -> list[th.Tensor]:
        np.random.seed(0)
        with th.no_grad():
            return [evaluated(model, data)[0].flatten() for data in model.rollout_buffer.get(128)]

    stale, warm = (only_played(recall(5, MemoryShape(8, 4, burn_in=burnt))) for burnt in (0, 4))
    for one, other in zip(chunks(stale), chunks(warm), strict=True):
        th.testing.assert_close(one, other, rtol=0, atol=1e-6)
    for model in (stale, warm):
        th.manual_seed(5)
        with th.no_grad():
            for weight in model.policy.parameters():
                weight.add_(0.05 * th.randn_like(weight))
    policy: Any = stale.policy
    seen, starts = stale.rollout_buffer.chunk_of(slice(0, 16))  # type: ignore[attr-defined]
    with th.no_grad():
        (_, critic), _ = policy._remembered(seen, policy.rollout.kept[0], starts)
        truth = policy.value_net(critic).reshape(32, 16)
    far = []
    for model in (stale, warm):
        np.random.seed(0)
        order = th.as_tensor(np.random.permutation(128))
        values = th.cat(chunks(model)).reshape(-1, 4)
        far.append(float((values - truth.reshape(-1, 4)[order]).abs().mean()))
    assert far[1] < 0.7 * far[0]


def test_steps_of_the_burn_in_get_no_gradient() -> None:
    model = only_played(recall(5, MemoryShape(8, 4, burn_in=8)))
    data = next(iter(model.rollout_buffer.get(512)))
    warm = tuple(
        (rows, observations.clone().requires_grad_(), starts)
        for rows, observations, starts in data.chunks.warm_up
    )
    data.chunks.state.requires_grad_()
    values, *_ = evaluated(model, data._replace(chunks=data.chunks._replace(warm_up=warm)))
    values.sum().backward()
    assert len(warm) == 2
    assert all(observations.grad is None for _, observations, _ in warm)


def test_an_agent_plays_from_memory_to_memory_as_the_rollout_did(tmp_path: Any) -> None:
    training = learned(memory_plan("everything"))
    training.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    assert agent.recurrent
    random = np.random.default_rng(0)
    low, high = agent.spec.observation_low, agent.spec.observation_high
    seen = random.uniform(low, high, (5, 3, len(low))).astype(np.float32)
    state, whole = None, []
    starts = np.array([True, True, True])
    for step in range(5):
        actions, state = agent.choose(seen[step], state=state, starts=starts, temperature=0.0)
        starts = np.array([False, step == 2, False])
        whole.append(actions)
    state, fresh = None, np.array([True])
    for step in range(3, 5):
        action, state = agent.choose(seen[step][[1]], state=state, starts=fresh, temperature=0.0)
        fresh = np.array([False])
        np.testing.assert_allclose(action[0], whole[step][1], atol=1e-5)


def test_no_gradient_crosses_the_beginning_of_a_chunk() -> None:
    """What a chunk comes to does not move with the steps before it, though they made its state."""
    model = with_rollout(memory_plan("everything"))
    np.random.seed(0)
    data = next(iter(model.rollout_buffer.get(8 * 32)))
    length = model.policy.memory_shape.length
    seen = data.observations.clone().requires_grad_()
    values, log_prob, _ = evaluated(model, data._replace(observations=seen))
    chunk = slice(length, 2 * length)
    (values[chunk].sum() + log_prob[chunk].sum()).backward()
    assert seen.grad is not None
    assert bool(seen.grad[chunk].any())
    assert not seen.grad[:length].any()
    assert not seen.grad[2 * length :].any()
    assert not data.chunks.state.requires_grad
    assert bool(data.chunks.state.any())  # it is not that nothing was remembered


EPISODES, LENGTH, SIZE = 5, 12, 8
ACTIONS = {"multi_discrete": spaces.MultiDiscrete([3, 4]), "box": spaces.Box(-1.0, 1.0, (2,))}


def policies(actions: spaces.Space[Any]) -> tuple[RememberingPolicy, RecurrentActorCriticPolicy]:
    """Both kinds of policy with the same weights."""
    seen = spaces.Box(-1.0, 1.0, (4,))
    th.manual_seed(0)
    net: dict[str, Any] = {"net_arch": [16]}
    theirs = RecurrentActorCriticPolicy(seen, actions, lambda _: 0.0, lstm_hidden_size=SIZE, **net)
    memory = MemoryShape(SIZE, LENGTH, own_critic=True)
    ours = RememberingPolicy(seen, actions, lambda _: 0.0, memory=memory, **net)
    state = ours.state_dict()
    for name, weight in theirs.state_dict().items():
        for lstm, own in (("lstm_actor", "memory"), ("lstm_critic", "critic_memory")):
            if name.startswith(lstm):
                state[f"{own}.cell.{name.split('.')[1].removesuffix('_l0')}"] = weight
        if name in state:
            state[name] = weight
    ours.load_state_dict(state)
    return ours, theirs


@pytest.mark.parametrize("kind", ACTIONS)
def test_values_probabilities_entropy_loss_and_gradient_equal_those_of_recurrent_ppo(
    kind: str,
) -> None:
    ours, theirs = policies(ACTIONS[kind])
    th.manual_seed(1)
    seen = th.randn(EPISODES * LENGTH, 4)
    actions = th.stack([th.as_tensor(ACTIONS[kind].sample()) for _ in seen]).float()
    starts = (th.rand(EPISODES, LENGTH) < 0.2).float()
    states = th.randn(EPISODES, 4, SIZE)
    pairs = [states[:, k].unsqueeze(0).contiguous() for k in range(4)]
    chunks = Chunks(states, starts.T)
    found = [
        ours.evaluate_chunks(seen, actions, chunks),
        theirs.evaluate_actions(
            seen, actions, RNNStates((pairs[0], pairs[1]), (pairs[2], pairs[3])), starts.flatten()
        ),
    ]
    advantages, returns, old = th.randn(3, EPISODES * LENGTH)
    losses, gradients = [], []
    for policy, (values, log_prob, entropy) in zip((ours, theirs), found, strict=True):
        loss, *_ = policy_loss(log_prob, log_prob.detach() + 0.1 * old, advantages, clip_range=0.2)
        loss = loss + value_loss(values.flatten(), old, returns, None)
        loss = loss + 0.01 * entropy_loss(entropy, log_prob)
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.detach())
        gradients.append(sum(float(w.grad.square().sum()) for w in policy.parameters()))
    for one, other in zip(*found, strict=True):
        th.testing.assert_close(one.flatten(), other.flatten(), rtol=0, atol=1e-5)
    th.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-5)
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-5)
    th.testing.assert_close(
        ours.memory.cell.weight_hh.grad, theirs.lstm_actor.weight_hh_l0.grad, rtol=0, atol=1e-5
    )


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    th.set_num_threads(1)


def test_forget_gates_have_bias_1_at_first() -> None:
    cell = Lstm(3, SIZE).cell
    bias = cell.bias_ih + cell.bias_hh
    assert bias[SIZE : 2 * SIZE].tolist() == [1.0] * SIZE
    assert not (bias[:SIZE] == 1.0).any()
