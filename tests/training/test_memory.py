"""A policy that remembers: states, resets and order are those of the rollout, and it learns to."""

from typing import Any

import numpy as np
import pytest
import torch as th
from recall_world import RecallVecEnv
from units_training import learned, units_plan, with_rollout

from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.ppo_update import evaluated
from aimbot_lab.training.networks.remembering_policy import MemoryShape, RememberingPolicy
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
            "memory": MemorySettings(size=7, sequence_length=8),
            "scaling": "running",
            "scalars": (9,),
            "units": UnitsSettings(layers=(6,)),
        },
        "target": "attention",
        "aim": "hybrid",
        "masks": True,
        "objective": "per_branch",
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
    assert policy.rollout.state.any()
    assert policy.state_drift(model.rollout_buffer, range(model.n_envs)) < 1e-5


def recall(
    wait: int, memory: MemoryShape | None, *, rows: int = 32, units: int = 16, **more: Any
) -> HybridPPO:
    th.set_num_threads(1)
    env = RecallVecEnv(rows, wait, cut_off=more.pop("cut_off", False))
    arguments = {"n_steps": 16, "batch_size": 128, "n_epochs": 4, "learning_rate": 5e-3, **more}
    return HybridPPO(
        RememberingPolicy,
        env,
        policy_kwargs={"net_arch": [units], "memory": memory},
        seed=1,
        device="cpu",
        gamma=0.9,
        **arguments,
    )


def share_won(model: HybridPPO, steps: int) -> float:
    model.learn(steps)
    env: Any = model.env
    return float(np.mean(env.won[-400:]))


def test_with_a_memory_what_was_shown_is_recalled_and_without_it_guessed() -> None:
    rollout = 32 * 16
    assert share_won(recall(2, MemoryShape(16, 8)), 12 * rollout) > 0.95
    assert abs(share_won(recall(2, None), 4 * rollout) - 0.5) < 0.1


def test_a_state_is_forgotten_where_an_episode_begins_and_kept_over_rollouts() -> None:
    model = recall(6, MemoryShape(5, 16), rows=4)
    policy: Any = model.policy
    model.learn(4 * 16 * 3)
    states = policy.rollout.kept[0]
    assert states.any()  # of the third rollout's beginning: kept from the second
    observations = th.zeros(4, 3)
    nothing = th.zeros(4, 2, 5)
    starts = th.tensor([[1.0, 0.0, 1.0, 0.0]])
    fresh, _ = policy._remembered(observations, nothing, th.zeros(1, 4))
    found, _ = policy._remembered(observations, states, starts)
    assert th.equal(found[0][[0, 2]], fresh[0][[0, 2]])
    assert not th.equal(found[0][[1, 3]], fresh[0][[1, 3]])


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
    def models() -> list[HybridPPO]:
        made = [
            recall(5, MemoryShape(8, 4, burn_in=b), n_steps=16, learning_rate=3e-2) for b in (0, 4)
        ]
        for model in made:
            model.engine.update = lambda *_args, **_named: None  # type: ignore[method-assign]
            model.learn(32 * 16)
        return made

    def chunks(model: HybridPPO) -> list[th.Tensor]:
        np.random.seed(0)
        with th.no_grad():
            return [evaluated(model, data)[0].flatten() for data in model.rollout_buffer.get(128)]

    stale, warm = models()
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
    model = recall(5, MemoryShape(8, 4, burn_in=8))
    model.engine.update = lambda *_args, **_named: None  # type: ignore[method-assign]
    model.learn(32 * 16)
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
    from aimbot_lab.training.agents.agent_files import load_agent

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
