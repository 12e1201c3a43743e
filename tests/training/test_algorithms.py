"""Every algorithm that a curriculum can name, known through the registries alone."""

import ast
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib import QRDQN, TRPO, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from test_library_equality import BOX, CHOICES, FIVE_LINES, ONE_ROW, registered, written
from tiny_training import ROWS, Sink, learn, plan

from aimbot_lab.evaluation.temperature import LIKELIEST, SAMPLED
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BatchWorld, Scenario, StepBuffers, new_step_buffers
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.hybrid_ppo import HybridPPO
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.checks import HYPER_PARAMETERS, WORDS, known_options, settings_faults
from aimbot_lab.training.networks.network import NETWORKS
from aimbot_lab.training.settings import AIM_BINS, ALGOS, FEW_AIM_BINS, NetworkSettings
from aimbot_lab.training.settings import TrainSettings as Train
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import make_world

CLASSES = {
    **{"ppo": PPO, "maskable_ppo": MaskablePPO, "recurrent_ppo": RecurrentPPO, "trpo": TRPO},
    **{"dqn": DQN, "a2c": A2C, "qrdqn": QRDQN, "hybrid_ppo": HybridPPO},
}
SWITCHES = {
    **{"aim": "hybrid", "masks": True, "objective": "per_branch", "dual_clip": 3.0},
    "network": NetworkSettings(layers=(16,), scaling="running"),
}


@pytest.mark.parametrize(
    ("algo", "train"), [*((algo, {}) for algo in CLASSES), ("hybrid_ppo", SWITCHES)]
)
def test_an_algorithm_trains_reports_and_its_saved_agent_acts_the_same(
    algo: str, train: dict[str, Any], tmp_path: Path
) -> None:
    training, sink = Training(plan(algo, total_steps=1024, **train)), Sink()
    learn(training, sink)
    assert type(training.model) is CLASSES[algo]
    assert training.model.num_timesteps == 1024
    step, metrics = sink.logged[-1]
    assert step == 1024
    assert any(name.startswith("train/") for name in metrics), sorted(metrics)
    assert set(training.save_agents(tmp_path)) == {"last", "best"}
    loaded = load_agent(tmp_path / "last")
    assert loaded.train == training.plan.train
    shown = training.env.reset()
    expected, _ = training.model.predict(shown, deterministic=True)
    training.env.step_async(expected)
    seen, masks = np.split(shown, [len(loaded.agent.spec.observation_names)], axis=1)
    given = {"branch_masks": masks > 0.5} if masks.size else {}
    actions, _ = loaded.agent.choose(seen, temperature=LIKELIEST, **given)
    np.testing.assert_array_equal(actions, training.env._actions)
    assert loaded.agent.act(seen).shape == (ROWS, 4)
    kept = loaded.agent.policy.state_dict()
    for name, value in training.model.policy.state_dict().items():
        assert th.equal(kept[name], value)


def test_every_hyper_parameter_means_something_to_some_algorithm() -> None:
    taken = {key for one in ALGORITHMS.values() for key in {*one.shared, *one.derived}}
    assert taken == HYPER_PARAMETERS


def test_a_replay_buffer_holds_the_training_if_that_fits() -> None:
    space = Training(plan("dqn")).env.observation_space

    def arguments(**train: Any) -> dict[str, Any]:
        return ALGORITHMS["dqn"].model_arguments(plan("dqn", **train).train, space, ROWS)

    wanted = {"buffer_size": 3072, "train_freq": 32, "gradient_steps": 32 * ROWS // 128}
    assert wanted.items() <= arguments().items()
    size = arguments(total_steps=10**9)["buffer_size"]
    assert size * 2 * space.shape[0] * 4 <= 256 * 2**20
    assert arguments(options={"buffer_size": 77})["buffer_size"] == 77


def test_one_choice_of_all_gets_fewer_aim_bins_unless_told() -> None:
    assert Train(algo="dqn").aim_bins == FEW_AIM_BINS
    assert Train(algo="dqn", aim_bins=list(AIM_BINS)).aim_bins == AIM_BINS
    assert Train(algo="ppo").aim_bins == AIM_BINS


def test_what_a_class_refuses_is_a_fault_of_configuration() -> None:
    broken = plan("recurrent_ppo", options={"shared_lstm": True})
    with pytest.raises(ConfigurationError, match="recurrent_ppo refuses this: You must choose"):
        Training(broken)


def playing(
    algo: str, target: str, rows: int, temperature: Any
) -> tuple[Agent, Any, BatchWorld, StepBuffers]:
    """An agent that learned nothing, and its player in a world that has begun."""
    training = Training(plan(algo))
    world = make_world(replace(training.plan.env, num_envs=rows))
    world.set_scenario(Scenario({target: 1.0}))
    agent = Agent(training.model.policy, world.spec, training.plan.train)
    buffers = new_step_buffers(rows, len(world.spec.observation_names))
    world.reset(3, buffers.observations)
    buffers.finished[:] = True  # where episodes begin
    return agent, agent.player(world, temperature=temperature), world, buffers


def test_a_masked_player_never_takes_what_the_world_masks() -> None:
    _, player, world, buffers = playing("maskable_ppo", "attack", 64, SAMPLED)
    masks, masked = np.ones((64, 8), np.bool_), 0
    for _ in range(60):
        actions = player(buffers.observations, buffers.finished.copy())
        world.action_masks(masks)
        masked += int((~masks).sum())
        for branch, first in enumerate((0, 3, 6)):
            assert masks[np.arange(64), first + actions[:, branch].astype(int)].all()
        world.step(actions, buffers)
    assert masked > 100


def test_a_player_forgets_where_an_episode_begins() -> None:
    agent, player, world, buffers = playing("recurrent_ppo", "goto", ROWS, LIKELIEST)
    while True:
        world.step(player(buffers.observations, buffers.finished.copy()), buffers)
        if buffers.finished.any():
            break
    seen, began = buffers.observations.copy(), buffers.finished.copy()
    player(seen, began)
    state, fresh = player._state[0], agent.choose(seen, temperature=LIKELIEST)[1][0]
    np.testing.assert_array_equal(state[:, began], fresh[:, began])
    assert not np.allclose(state[:, ~began], fresh[:, ~began])


def test_masks_shown_are_the_worlds() -> None:
    adapter = Training(plan("hybrid_ppo", masks=True)).env
    adapter.world.set_scenario(Scenario({"attack": 1.0}))
    masks = np.ones((ROWS, 8), np.bool_)
    shown, masked = adapter.reset(), 0
    for _ in range(40):
        adapter.world.action_masks(masks)
        np.testing.assert_array_equal(shown[:, -8:], masks)
        shown, _, finished, infos = adapter.step(np.tile([1, 0, 1, 5], (ROWS, 1)))
        masked += int((shown[:, -1] == 0.0).sum())
        for row in np.flatnonzero(finished):
            assert infos[row]["terminal_observation"].shape == shown[row].shape
    assert masked > ROWS


def test_hybrid_ppo_with_nothing_switched_on_is_ppo() -> None:
    given = (("ppo", {}), ("hybrid_ppo", {"engine": "torch"}))
    plans = [plan(algo, total_steps=1024, **more) for algo, more in given]
    assert len({learn(Training(one)).state_sha256 for one in plans}) == 1


def test_every_number_of_ppo_reaches_its_class() -> None:
    names = "n_steps batch_size n_epochs learning_rate gamma gae_lambda clip_range ent_coef vf_coef"
    train = plan("ppo").train
    wanted = [*names.split(), "max_grad_norm", "normalize_advantage"]
    given = ALGORITHMS["ppo"].model_arguments(train, None, ROWS)
    assert given == {name: getattr(train, name) for name in wanted}


PACKAGE = Path(__file__).parents[2] / "aimbot_lab"
HOMES = (
    *("training/algorithms/", "training/networks/", "training/settings.py", "bench/"),
    "training/agents/library_zip.py",  # which knows the libraries' own files
    "experiment/conversion/",  # which turns trainer files into these
    "experiment/config/schema.py",  # which names what was renamed
)


def test_no_module_but_their_own_names_an_algorithm_or_a_network() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(HOMES):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
            assert constants & {*ALGORITHMS, *NETWORKS} == set(), path


def test_the_registries_hold_what_the_settings_name_by_default() -> None:
    assert set(ALGORITHMS.own) == set(ALGOS)
    assert Train().algo in ALGORITHMS
    assert NetworkSettings().kind in NETWORKS
    assert all(one.name == name for name, one in {**ALGORITHMS.own, **NETWORKS.own}.items())


OTHERS: dict[Any, Any] = {bool: "yes", int: True, float: False, str: True, tuple: True, dict: 1}


@pytest.mark.parametrize("algo", [k for k, one in ALGORITHMS.items() if one.table is None])
def test_every_argument_of_a_class_is_checked_by_name_and_type(algo: str) -> None:
    algorithm = ALGORITHMS[algo]
    known = known_options(algorithm)
    assert known
    for name, kinds in known.items():
        (wrong,) = settings_faults(algorithm.settings(algo=algo, options={f"{name}_": 1}))
        assert wrong[:2] == (("options", f"{name}_"), f"{algo} has no such option")
        assert name in wrong.known
        value = OTHERS[kinds[0]]
        (wrong,) = settings_faults(algorithm.settings(algo=algo, options={name: value}))
        assert wrong.what == f"must be {' or '.join(WORDS[kind] for kind in kinds)}"
    for name in signature(algorithm.classes().model).parameters:
        if algorithm.one_row and name not in {*known, "_init_setup_model"}:
            (wrong,) = settings_faults(algorithm.settings(algo=algo, options={name: 1}))
            way = ("is a setting of its own: train.", " it here)", ": leave it out)")
            assert any(one in wrong.what for one in way), name


@pytest.mark.parametrize("algo", ONE_ROW)
def test_every_argument_of_a_policy_is_checked_by_name_and_type(algo: str) -> None:
    algorithm = ALGORITHMS[algo]

    def faults(**given: Any) -> list[tuple[Any, str]]:
        settings = algorithm.settings(algo=algo, options={"policy_kwargs": given})
        return [(".".join(map(str, one.key[1:])), one.what) for one in settings_faults(settings)]

    (unknown,) = settings_faults(algorithm.settings(algo=algo, options={"policy_kwargs": {"a": 1}}))
    usual = {"net_arch", "activation_fn"}
    if algo != "ars":  # which follows no gradient
        usual |= {"optimizer", "features_extractor"}
        told = "policy_kwargs.optimizer_kwargs.momentun", "sgd has no such argument"
        assert faults(optimizer="sgd", optimizer_kwargs={"momentun": 0.9}) == [told]
    assert usual < {*unknown.known}
    for name in unknown.known:
        told = f"policy_kwargs.{name}_", "the policy has no such argument"
        assert faults(**{f"{name}_": 1}) == [told]
        ((place, what),) = faults(**{name: {"a": "b"} if name != "optimizer_kwargs" else 3.5})
        assert place.startswith(f"policy_kwargs.{name}")
        assert what.startswith("must be") or name == "net_arch"
    ((_, what),) = faults(activation_fn="step")
    assert what.startswith("must be tanh or relu")
    ((_, what),) = faults(net_arch=(0, 16))
    assert what == "must hold whole numbers from 1 to 4096"


def test_arguments_of_hindsight_experience_replay_are_checked_by_name_and_value() -> None:
    given = {"n_sample_goal": 4, "n_sampled_goal": 0, "goal_selection_strategy": "last"}
    options = {"replay_buffer": "her", "replay_buffer_kwargs": given}
    settings = ALGORITHMS["sac"].settings(algo="sac", options=options)
    found = [(one.key[-1], one.what) for one in settings_faults(settings)]
    assert found == [
        ("n_sample_goal", "her has no such argument"),
        ("n_sampled_goal", "must be a whole number from 1 on"),
        ("goal_selection_strategy", "must be future or final or episode"),
    ]


@pytest.mark.parametrize(
    ("space", "train", "what"),
    [
        *(
            (BOX, f"sac, {given}", f"train[^\\n]*{what}")
            for given, what in (
                ("options: {taw: 0.1}", "sac has no such option [^\\n]*tau"),
                ("options: {action_noise: [pink, 1]}", "must be a standard deviation such as 0.1"),
                ("options: {train_freq: [1, epsiode]}", r"or \[NUMBER, episode\] \(got a list"),
                ("options: {optimize_memory_usage: true}", "each observation is kept once as it"),
                ("options: {gradient_steps: 0}", "must be at least 1, or -1 for one a step"),
                (f"options: {{policy_kwargs: {{net_arch: {[4096] * 4}}}}}", "weights between"),
                ("options: {buffer_size: 1e12}", "must be smaller: the replay buffer would take"),
                ("tau: 0.1", r"unknown key \(it is an option: train.options.tau\)"),
                ("ent_coef: auto", "ent_coef: is an option of sac: write train.options.ent_coef$"),
                ("n_quantiles: 7", r"\(it is an option of qrdqn and tqc, and sac has no such"),
                ("n_timesteps: 7", r"unknown key \(train.total_steps says it here\)"),
                ("normalize: true", "reward_scale: running say it here"),
                ("net_arch: [8]", "train.options.policy_kwargs.net_arch says it here"),
                ("options: {policy_kwargs: {features_extractor: small}}", "shows pictures"),
                (
                    "options: {policy_kwargs: {activation_fn: LeakyReLU}}",
                    r"must be one of 10 names, the nearest is leaky_relu \(got 'LeakyReLU'\)$",
                ),
                ("options: {replay_buffer: her}", "her needs an environment of goals"),
                ("options: {replay_buffer_kwargs: {}}", "has no effect without replay_buffer: her"),
            )
        ),
        (CHOICES, "sac", "train[^\\n]*sac needs continuous actions [^\\n]*use ppo or dqn"),
        (
            spaces.Box(np.float32([0, -np.inf]), np.float32([1, 5])),
            "sac",
            "train[^\\n]*sac needs two bounds[^\\n]*action_1 [^\\n]*ClipAction[^\\n]*RescaleAction",
        ),
        (
            spaces.Box(np.float32([0, 5]), np.float32([1, 5])),
            "sac",
            "train[^\\n]*sac scales [^\\n]*both of action_1 are the same[^\\n]*TransformAction",
        ),
        (BOX, "crossq, options: {replay_buffer: her}", "crossq learns nothing by hindsight"),
        (spaces.MultiDiscrete([2, 3]), "ars", "ars needs [^\\n]* one choice [^\\n]*ppo"),
        (BOX, "PPO", r"must be one of 15 names, the nearest is ppo \(got 'PPO'\)"),
        (BOX, "ppo, train_freq: 4", "is an option of dqn, qrdqn and others, and ppo has no such"),
        (BOX, "trpo, options: {train_freq: [1, episode]}", "train_freq: trpo has no such option"),
        (BOX, "maskable_ppo", "without choices to mask: use ppo"),
        (BOX, "hybrid_ppo, masks: true", "without choices to mask: leave this out"),
    ],
)
def test_what_an_algorithm_does_not_take_or_can_not_do_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, space: spaces.Space[Any], train: str, what: str
) -> None:
    path = written(tmp_path, FIVE_LINES, NAME=registered(monkeypatch, space), ALGO=train)
    with pytest.raises(ConfigurationError, match=f"^[^\\n]*{what}[^\\n]*$"):
        load_curriculum(path)
