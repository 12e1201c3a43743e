"""The library's own script, in the same environment with the same seeds, learns the same bits.

Within 240 steps, of every family of algorithms and every path through our code once;
`make equality` sets AIMBOT_LAB_EQUALITY_STEPS=2000 and goes through all algorithms and spaces.
"""

import json
import os
from functools import partial
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from sb3_contrib import ARS
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.her import HerReplayBuffer

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checkpoint import lone_tensors, state_sha256
from aimbot_lab.training.checks import WORDS, known_options, settings_faults, with_scaling
from aimbot_lab.training.plain_scripts import Seeded, episode_seeds
from aimbot_lab.training.run_hooks import UNLINKED, Checkpoint, RunLinks, SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from tests.training.small_environments import Goals, Masked, MaskedPictures, Reach, Shown
from tests.training.tiny_training import Keeper, Sink

SEED, STEPS = 7, int(os.environ.get("AIMBOT_LAB_EQUALITY_STEPS", "240"))


def all_of(*cases: Any, usual: tuple[Any, ...]) -> list[Any]:
    """`cases`, of which all but the `usual` ones are left to `make equality`."""
    assert all(one in cases for one in usual)
    return [one for one in cases if STEPS > 240 or one in usual]


def plain(
    model: type[BaseAlgorithm],
    name: str,
    rows: int,
    *,
    policy: str = "MlpPolicy",
    steps: int = STEPS,
    **arguments: Any,
) -> BaseAlgorithm:
    """The library's own script."""
    start = derive_seed(SEED, "learner")
    seeds = episode_seeds(start)
    th.set_num_threads(1)
    env = DummyVecEnv([lambda: Seeded(gymnasium.make(name), seeds)] * rows)
    made: Any = model
    return made(policy, env, seed=start, device="cpu", **arguments).learn(steps)


def learned(
    plan: TrainingPlan, links: RunLinks, after: tuple[Checkpoint, Keeper] | None
) -> Training:
    """A training that has ended; `after` resumes it from a checkpoint."""
    training = Training(plan)
    if after is not None:
        after[1].resumed(training, after[0])
    training.learn(Sink(), SilentObserver(), lambda: False, links=links)
    return training


def trained(
    path: Path, *, links: RunLinks = UNLINKED, after: tuple[Checkpoint, Keeper] | None = None
) -> Training:
    """The training of a file."""
    config = load_curriculum(path).config
    return learned(TrainingPlan(SEED, config.env, config.lessons, config.train), links, after)


def ours(
    name: str,
    rows: int,
    *,
    algo: str,
    total_steps: int = STEPS,
    links: RunLinks = UNLINKED,
    after: tuple[Checkpoint, Keeper] | None = None,
    **train: Any,
) -> Training:
    """The training of an environment that can't be won."""
    kind = ALGORITHMS[algo].settings
    settings = with_scaling(
        kind(algo=algo, total_steps=total_steps, **train), bounds_are_ranges=False
    )
    env = GymnasiumSettings(id=name, win=WinRule(return_above=1e9), num_envs=rows)
    lesson = Lesson(name="one", targets={"task": 1.0})
    return learned(TrainingPlan(SEED, env, (lesson,), settings), links, after)


def equal_bits(one: BaseAlgorithm, other: BaseAlgorithm) -> bool:
    """Whether the networks, and what is learned beside them, are the same to the bit."""
    mine, theirs = (
        [*model.policy.state_dict().values(), *lone_tensors(model).values()]
        for model in (one, other)
    )
    return all(th.equal(a, b) for a, b in zip(mine, theirs, strict=True))


def assert_equal_bits(one: BaseAlgorithm, other: BaseAlgorithm) -> None:
    assert type(one) is type(other)
    assert one.num_timesteps == other.num_timesteps
    assert equal_bits(one, other)


def registered(
    monkeypatch: pytest.MonkeyPatch,
    space: spaces.Space[Any],
    *,
    masked: bool = False,
    goals: bool = False,
) -> str:
    kind = Masked if masked else Goals if goals else Reach
    name = f"{kind.__name__}{crc32(str(space).encode())}-v0"  # by which its spec is kept
    spec = EnvSpec(name, lambda: kind(space), max_episode_steps=20, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    return name


ROLLOUTS: dict[str, Any] = {
    **{"n_steps": 30, "batch_size": 20, "n_epochs": 3, "learning_rate": 3e-3, "ent_coef": 0.01}
}
BOX = spaces.Box(-2.0, 2.0, (3,), np.float32)
PLAIN = NetworkSettings(layers=(64, 64), scaling="none")
SMALL = NetworkSettings(layers=(16, 16), activation="relu", scaling="none")
ARCH: dict[str, Any] = {"net_arch": [16, 16], "activation_fn": th.nn.ReLU}
# Than those of the classes, which a file of five lines trains.
SMALLER = {"recurrent_ppo": {"lstm_hidden_size": 16}, "qrdqn": {"n_quantiles": 9}}


@pytest.mark.parametrize("algo", all_of("ppo", "a2c", "sac", "tqc", usual=("sac",)))
def test_state_dependent_exploration_is_the_library_s_and_resumes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    name, algorithm = registered(monkeypatch, BOX), ALGORITHMS[algo]
    options: dict[str, Any] = {"use_sde": True, "sde_sample_freq": 4}
    if algo in BY_NUMBERS:
        options |= WARMED | {"train_freq": 6}
    given = {k: v for k, v in ROLLOUTS.items() if k in algorithm.shared}
    wanted = plain(algorithm.classes().model, name, 2, policy_kwargs=dict(ARCH), **given, **options)
    keeper = Keeper()
    train = {**given, "network": SMALL, "options": options}
    whole = ours(name, 2, algo=algo, links=keeper.links, **train)
    assert_equal_bits(whole.model, wanted)
    middle = keeper.checkpoints[len(keeper.checkpoints) // 2]
    assert_equal_bits(ours(name, 2, algo=algo, after=(middle, keeper), **train).model, wanted)
    whole.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    assert agent.act(np.zeros((5, 3), np.float32)).shape == (5, 3)


WARMED = {"learning_starts": 40, "train_freq": 3, "gradient_steps": 2}
BY_NUMBERS = ["sac", "td3", "ddpg", "tqc", "crossq"]
CHOICES, NARROW = spaces.Discrete(3), spaces.Box(-2.0, 0.5, (2,))
PPO_SPACES: list[spaces.Space[Any]] = [
    *(BOX, CHOICES, spaces.Box(-2.0, 2.0, (), np.float32)),
    *(spaces.Box(-2.0, 2.0, (2, 2), np.float32), spaces.Box(-0.7, 0.3, (2,), np.float64)),
    *(spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(3)),
]


def given_to(algo: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(What both are given, what the library's script is given, what our training is)."""
    smaller = SMALLER.get(algo, {})
    if algo in BY_NUMBERS:
        options: dict[str, Any] = {**WARMED, "train_freq": 15, "buffer_size": 80}  # it comes round
        if algo in ("sac", "tqc"):
            options |= {"ent_coef": "auto_0.2", "target_update_interval": 2}
        ours_alone = {"network": SMALL, "options": options, "total_steps": STEPS // 2}
        theirs = {"policy_kwargs": {"net_arch": [16, 16]}, "steps": STEPS // 2, **options}
        if algo in ("td3", "ddpg"):
            theirs["action_noise"] = OrnsteinUhlenbeckActionNoise(np.zeros(2), 0.2 * np.ones(2))
            options["action_noise"] = ("ornstein-uhlenbeck", 0.2)
        return {"batch_size": 32, "learning_rate": 3e-3}, theirs, ours_alone
    if algo in ("dqn", "qrdqn"):
        options = {"learning_starts": 40, "gradient_steps": 2, "target_update_interval": 50}
        theirs = {"policy_kwargs": ARCH | smaller, "train_freq": 4, **options}
        ours_alone = {"n_steps": 4, "network": SMALL, "options": options | smaller}
        return {"batch_size": 32, "learning_rate": 3e-3, "max_grad_norm": 1.0}, theirs, ours_alone
    theirs = {"policy": "MlpLstmPolicy", "policy_kwargs": dict(smaller)} if smaller else {}
    given = {k: v for k, v in ROLLOUTS.items() if k in ALGORITHMS[algo].shared}
    return given, theirs, {"network": PLAIN, "options": smaller}


@pytest.mark.parametrize(
    ("algo", "space", "rows"),
    all_of(
        *product(["ppo"], PPO_SPACES, [2]),
        *product(["a2c", "trpo", "recurrent_ppo"], [BOX, CHOICES], [2]),
        ("maskable_ppo", CHOICES, 2),
        *product(["dqn", "qrdqn"], [CHOICES], [1]),
        *product(BY_NUMBERS, [NARROW], [1, 2]),
        usual=(
            *(("ppo", space, 2) for space in PPO_SPACES[-3:-1]),
            *(("trpo", BOX, 2), ("maskable_ppo", CHOICES, 2), ("qrdqn", CHOICES, 1)),
            *(("ddpg", NARROW, 2), ("tqc", NARROW, 1), ("crossq", NARROW, 2)),
        ),
    ),
    ids=str,
)
def test_an_algorithm_learns_what_its_own_script_learns_and_resumes(
    monkeypatch: pytest.MonkeyPatch, algo: str, space: spaces.Space[Any], rows: int
) -> None:
    """Broken off while episodes run."""
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at every rollout
    masked, model = algo == "maskable_ppo", ALGORITHMS[algo].classes().model
    name = registered(monkeypatch, space, masked=masked)
    given, theirs, ours_alone = given_to(algo)
    wanted, keeper = plain(model, name, rows, **given, **theirs), Keeper()
    whole = ours(name, rows, algo=algo, links=keeper.links, **given, **ours_alone)
    assert_equal_bits(whole.model, wanted)
    assert whole.model.action_space == space
    middle = keeper.checkpoints[len(keeper.checkpoints) // 2]
    assert 0 < middle.step < wanted.num_timesteps
    again = ours(name, rows, algo=algo, after=(middle, keeper), **given, **ours_alone)
    hashes = {state_sha256(one.model, one.progress.state()) for one in (again, whole)}
    assert len(hashes) == 1
    if masked:
        assert not equal_bits(wanted, plain(PPO, name, rows, **given))


def test_whole_numbers_of_an_action_are_rounded_and_of_the_environment_s_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = spaces.Box(-3, 40, (1, 2), np.int16)
    taken: list[Any] = []
    step = Reach.step
    monkeypatch.setattr(Reach, "step", lambda self, one: (taken.append(one), step(self, one))[1])
    training = ours(registered(monkeypatch, space), 1, algo="td3", total_steps=110)
    assert training.model.num_timesteps == 110
    assert {one.dtype for one in taken} == {np.dtype(np.int16)}
    assert len({tuple(one.ravel()) for one in taken}) > 50


@pytest.mark.parametrize(
    "algo", all_of("dqn", "qrdqn", "sac", "td3", "ddpg", "tqc", usual=("dqn", "sac"))
)
def test_hindsight_experience_replay_is_the_library_s_and_resumes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str
) -> None:
    """With a buffer that comes round, and goals that are choices as its actions are."""
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    algorithm, by_values = ALGORITHMS[algo], algo in ("dqn", "qrdqn")
    name = registered(monkeypatch, CHOICES if by_values else BOX, goals=True)
    options: dict[str, Any] = {**WARMED, "train_freq": 15, "buffer_size": 120}
    strategy = {"n_sampled_goal": 3, "goal_selection_strategy": "episode"}
    given = {"batch_size": 16, "learning_rate": 3e-3}
    wanted = plain(
        algorithm.classes().model,
        name,
        2,
        policy="MultiInputPolicy",
        policy_kwargs=ARCH | SMALLER.get(algo, {}),
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs=dict(strategy),
        **given,
        **options,
    )
    options |= {"replay_buffer": "her", "replay_buffer_kwargs": strategy} | SMALLER.get(algo, {})
    train = {**given, "network": SMALL, "options": options}
    if by_values:
        train["max_grad_norm"] = algorithm.of_own_worlds["max_grad_norm"]
    keeper = Keeper()
    whole = ours(name, 2, algo=algo, links=keeper.links, **train)
    assert_equal_bits(whole.model, wanted)
    middle = keeper.checkpoints[len(keeper.checkpoints) * 2 // 3]
    again = ours(name, 2, algo=algo, after=(middle, keeper), **train)
    assert_equal_bits(again.model, wanted)
    whole.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    space: Any = wanted.observation_space
    seen = {key: np.zeros(one.shape, one.dtype) for key, one in space.items()}
    flat = np.tile(spaces.flatten(space, seen).astype(np.float32), (5, 1))
    shown = {key: np.stack([one] * 5) for key, one in seen.items()}
    acted = agent.act(flat, temperature=LIKELIEST)
    np.testing.assert_array_equal(acted, wanted.predict(shown, deterministic=True)[0])


class Candidates(DummyVecEnv):
    """Episodes begin from the seeds that they have in our world after each of its resets."""

    resets = -1

    def reset(self) -> Any:
        self.resets += 1
        world = derive_seed(SEED, "world")
        first = derive_seed(SEED, "learner")
        seed = derive_seed(world, "reset", self.resets) if self.resets > 0 else first
        seeds = episode_seeds(seed)
        for env in self.envs:
            env.set_wrapper_attr("seeds", seeds)
        return super().reset()


@pytest.mark.parametrize(
    ("space", "options"),
    all_of(
        (CHOICES, {"n_delta": 4}),
        (BOX, {"n_delta": 3, "n_top": 2, "n_eval_episodes": 2}),
        usual=((BOX, {"n_delta": 3, "n_top": 2, "n_eval_episodes": 2}),),
    ),
    ids=str,
)
def test_ars_learns_what_its_own_script_learns_and_resumes_between_updates(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    space: spaces.Space[Any],
    options: dict[str, Any],
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    name, start = registered(monkeypatch, space), derive_seed(SEED, "learner")
    th.set_num_threads(1)
    env = Candidates([lambda: Seeded(gymnasium.make(name), episode_seeds(start))])
    wanted = ARS("MlpPolicy", env, seed=start, **options).learn(STEPS)
    keeper = Keeper()
    whole = ours(name, 1, algo="ars", options=options, links=RunLinks(checkpoints=keeper))
    assert whole.model.num_timesteps == wanted.num_timesteps
    assert isinstance(whole.model, ARS)
    assert equal_bits(whole.model, wanted)
    middle = keeper.checkpoints[-2]
    assert 0 < middle.step < wanted.num_timesteps
    again = ours(name, 1, algo="ars", options=options, after=(middle, keeper))
    assert equal_bits(again.model, wanted)
    hashes = {state_sha256(one.model, one.progress.state()) for one in (again, whole)}
    assert len(hashes) == 1
    whole.save_agents(tmp_path)
    seen = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
    acted = load_agent(tmp_path / "last").agent.act(seen)
    np.testing.assert_array_equal(acted, wanted.predict(seen, deterministic=True)[0])


class Recording(BaseCallback):
    """Records what a logger takes, numbers and other things."""

    def _on_step(self) -> bool:
        for name, value in {
            "own/text": "x",
            "train/text": "x",
            "own/many": np.zeros(3),
            "own/#": 1,
        }.items():
            self.logger.record(name, value)
        self.logger.record("own/ends", float(self.locals["dones"][0]))
        return len(self.locals["infos"]) == len(self.locals["new_obs"]) == 1


def test_lessons_of_ars_judge_candidates_and_a_stop_stands_between_updates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    settings = ALGORITHMS["ars"].settings(
        algo="ars", total_steps=600, options={"n_delta": 2}, reward_scale=1.0
    )
    env = GymnasiumSettings(id=registered(monkeypatch, spaces.Discrete(3)), num_envs=1)
    passed_soon: Any = {"measure": "reward", "rule": "ml-agents", "threshold": -1e6}
    easy = CompletionCriteria(min_lesson_length=6, **passed_soon)
    task = {"task": 1.0}
    lessons = (
        Lesson(name="a", targets=task, completion_criteria=easy),
        Lesson(name="b", targets=task),
    )
    plan, keeper = TrainingPlan(SEED, env, lessons, settings), Keeper()
    whole = learned(plan, keeper.links, None)
    updates = [one.step for one in keeper.checkpoints]  # where each begins, and the end
    first, second = whole.progress.lesson_reports
    assert first.episodes == 6  # the first candidates' four episodes, and two of the next four
    assert updates[1] < (first.ended_at_step or 0) < updates[2]
    assert second.episodes == 4 * (len(updates) - 3)  # from there on all, and none broken off
    looks, stopped, sink = iter(range(10**6)), Training(plan, callbacks=[Recording()]), Sink()
    stopped.learn(sink, SilentObserver(), lambda: next(looks) > 300, links=(kept := Keeper()).links)
    assert stopped.model.num_timesteps in updates[3:-1]
    assert {step for step, numbers in sink.logged if "own/ends" in numbers} <= {*updates}
    again = learned(plan, UNLINKED, (kept.checkpoints[-1], kept))
    hashes = {state_sha256(one.model, one.progress.state()) for one in (again, whole)}
    assert len(hashes) == 1


FIVE_LINES = """
name: five
env: {world: gymnasium, id: NAME}
train: {algo: ALGO, total_steps: 130}
"""


@pytest.mark.parametrize(
    "algo",
    all_of(
        *("ppo", "a2c", "recurrent_ppo", "trpo", "dqn", "qrdqn", *BY_NUMBERS),
        usual=("a2c", "td3"),
    ),
)
def test_a_file_of_five_lines_trains_what_the_library_s_own_script_trains(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str
) -> None:
    """With what is left out, networks too, as the class has it."""
    space = BOX if algo in BY_NUMBERS else CHOICES
    name, model = registered(monkeypatch, space), ALGORITHMS[algo].classes().model
    path = tmp_path / "c.yaml"
    path.write_text(FIVE_LINES.replace("NAME", name).replace("ALGO", algo), encoding="utf-8")
    kinds: Any = {"policy": "MlpLstmPolicy"} if algo == "recurrent_ppo" else {}
    wanted, training = plain(model, name, 1, steps=130, **kinds), trained(path)
    assert_equal_bits(training.model, wanted)
    if algo in BY_NUMBERS:
        training.save_agents(tmp_path)
        agent = load_agent(tmp_path / "last").agent
        seen = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
        acted = agent.act(seen, temperature=LIKELIEST)
        np.testing.assert_array_equal(acted, wanted.predict(seen, deterministic=True)[0])
        assert all(BOX.contains(one) for one in agent.act(seen))
        assert agent.samples == (algo not in ("td3", "ddpg"))


@pytest.mark.parametrize("algo", [name for name, one in ALGORITHMS.items() if one.one_row])
def test_defaults_in_worlds_of_one_s_own_are_those_of_the_class(algo: str) -> None:
    algorithm = ALGORITHMS[algo]
    usual = signature(algorithm.classes().model).parameters
    settings, given = algorithm.settings(algo=algo), algorithm.of_own_worlds
    for key, name in algorithm.shared.items():
        value = given.get(key, getattr(settings, key))
        if not (key == "target_kl" and value is None):  # then the class's own is taken
            assert value == usual[name].default, key
    for key in given.keys() - algorithm.shared.keys() - {"network.activation"}:
        assert given[key] == usual[key.removeprefix("options.")].default


LIBRARY = [name for name, one in ALGORITHMS.items() if one.table is None]
OTHERS: dict[Any, Any] = {bool: "yes", int: True, float: False, str: True, tuple: True, dict: 1}


@pytest.mark.parametrize("algo", LIBRARY)
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


@pytest.mark.parametrize("algo", [name for name, one in ALGORITHMS.items() if one.one_row])
def test_every_argument_of_a_policy_is_checked_by_name_and_type(algo: str) -> None:
    algorithm = ALGORITHMS[algo]

    def faults(**given: Any) -> list[tuple[Any, str]]:
        settings = algorithm.settings(algo=algo, options={"policy_kwargs": given})
        return [(".".join(map(str, one.key[1:])), one.what) for one in settings_faults(settings)]

    (unknown,) = settings_faults(algorithm.settings(algo=algo, options={"policy_kwargs": {"a": 1}}))
    usual = {"net_arch", "activation_fn"}
    if algo != "ars":  # which follows no gradient
        usual |= {"optimizer", "features_extractor"}
        ((place, what),) = faults(optimizer="sgd", optimizer_kwargs={"momentun": 0.9})
        told = "policy_kwargs.optimizer_kwargs.momentun", "sgd has no such argument"
        assert (place, what) == told
    assert usual < {*unknown.known}
    for name in unknown.known:
        ((place, what),) = faults(**{f"{name}_": 1})
        assert (place, what) == (f"policy_kwargs.{name}_", "the policy has no such argument")
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


GIVEN_TO_POLICIES: dict[str, Any] = {
    "net_arch": {"pi": (8,), "vf": (16, 8)},
    "activation_fn": "elu",
    "ortho_init": False,
    "log_std_init": -0.5,
    "optimizer": "adamw",
    "optimizer_kwargs": {"weight_decay": 0.01},
}


@pytest.mark.parametrize("algo", ["ppo", "td3"])
def test_policy_kwargs_reach_the_policy_s_class_as_in_its_own_script(
    monkeypatch: pytest.MonkeyPatch, algo: str
) -> None:
    """By names in the place of classes."""
    name, given = registered(monkeypatch, BOX), dict(GIVEN_TO_POLICIES)
    layers: Any = {"pi": [8], "vf": [16, 8]}
    both, network = (ROLLOUTS, {"network": PLAIN}) if algo == "ppo" else ({}, {})
    options = {} if algo == "ppo" else WARMED
    if algo == "td3":
        del given["ortho_init"], given["log_std_init"]
        given["net_arch"], layers = (8, 6), [8, 6]
    theirs = {**given, "net_arch": layers, "activation_fn": th.nn.ELU}
    theirs["optimizer_class"] = {"adamw": th.optim.AdamW}[theirs.pop("optimizer")]
    model = ALGORITHMS[algo].classes().model
    wanted = plain(model, name, 2, policy_kwargs=theirs, steps=STEPS // 2, **both, **options)
    given_options = {"policy_kwargs": given, **options}
    found = ours(
        name, 2, algo=algo, total_steps=STEPS // 2, options=given_options, **both, **network
    )
    assert_equal_bits(found.model, wanted)


FILE = """
name: reach
env: {world: gymnasium, id: NAME, num_envs: 2, win: {return_above: 0}}
lessons: [{name: one}]
train: {algo: sac, total_steps: 100OPTIONS}
"""


@pytest.mark.parametrize(
    ("space", "options", "what"),
    [
        (BOX, ", options: {taw: 0.1}", "sac has no such option [^\\n]*tau"),
        (BOX, ", options: {action_noise: [pink, 1]}", "must be a standard deviation such as 0.1"),
        (BOX, ", options: {train_freq: [1, epsiode]}", r"or \[NUMBER, episode\] \(got a list"),
        (BOX, ", options: {optimize_memory_usage: true}", "each observation is kept once as it is"),
        (BOX, ", options: {gradient_steps: 0}", "must be at least 1, or -1 for one a step"),
        (
            BOX,
            ", options: {policy_kwargs: {net_arch: [4096, 4096, 4096, 4096]}}",
            "weights between",
        ),
        (BOX, ", options: {buffer_size: 1e12}", "must be smaller: the replay buffer would take"),
        (BOX, ", tau: 0.1", r"unknown key \(it is an option: train.options.tau\)"),
        (BOX, ", ent_coef: auto", r"ent_coef: is an option of sac: write train.options.ent_coef$"),
        (BOX, ", n_quantiles: 7", r"\(it is an option of qrdqn and tqc, and sac has no such"),
        (BOX, ", n_timesteps: 7", r"unknown key \(train.total_steps says it here\)"),
        (BOX, ", normalize: true", "reward_scale: running say it here"),
        (BOX, ", net_arch: [8]", "train.options.policy_kwargs.net_arch says it here"),
        (BOX, ", options: {policy_kwargs: {features_extractor: small}}", "shows pictures"),
        (
            BOX,
            ", options: {policy_kwargs: {activation_fn: LeakyReLU}}",
            r"must be one of 10 names, the nearest is leaky_relu \(got 'LeakyReLU'\)$",
        ),
        (BOX, ", options: {replay_buffer: her}", "her needs an environment of goals"),
        (BOX, ", options: {replay_buffer_kwargs: {}}", "has no effect without replay_buffer: her"),
        (spaces.Discrete(2), "", "sac needs continuous actions [^\\n]*use ppo or dqn"),
        (
            spaces.Box(np.float32([0, -np.inf]), np.float32([1, 5])),
            "",
            "sac needs two bounds [^\\n]*action_1 [^\\n]*ClipAction[^\\n]*RescaleAction",
        ),
        (
            spaces.Box(np.float32([0, 5]), np.float32([1, 5])),
            "",
            "sac scales [^\\n]*both of action_1 are the same[^\\n]*TransformAction",
        ),
    ],
)
def test_what_an_algorithm_does_not_take_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    space: spaces.Space[Any],
    options: str,
    what: str,
) -> None:
    text = FILE.replace("NAME", registered(monkeypatch, space)).replace("OPTIONS", options)
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"^[^\\n]*train[^\\n]*{what}[^\\n]*$"):
        load_curriculum(path)


@pytest.mark.parametrize(
    ("space", "algo", "what"),
    [
        (BOX, "crossq, options: {replay_buffer: her}", "crossq learns nothing by hindsight"),
        (spaces.MultiDiscrete([2, 3]), "ars", "ars needs [^\\n]* one choice [^\\n]*ppo"),
        (BOX, "PPO", r"must be one of 15 names, the nearest is ppo \(got 'PPO'\)"),
        (BOX, "ppo, train_freq: 4", "is an option of dqn, qrdqn and others, and ppo has no such"),
        (BOX, "maskable_ppo", "without choices to mask: use ppo"),
        (BOX, "hybrid_ppo, masks: true", "without choices to mask: leave this out"),
    ],
)
def test_what_an_algorithm_can_not_do_is_told_before_it_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, space: spaces.Space[Any], algo: str, what: str
) -> None:
    text = FIVE_LINES.replace("NAME", registered(monkeypatch, space)).replace("ALGO", algo)
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"^[^\\n]*{what}[^\\n]*$"):
        load_curriculum(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("algo", "alone", "layers"),
    [
        ("ppo", True, ()),
        ("ppo", False, (64, 64)),
        ("td3", False, (400, 300)),
    ],
)
def test_a_file_of_five_lines_has_the_layers_that_the_class_has_for_pictures(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    algo: str,
    alone: bool,
    layers: tuple[int, ...],
) -> None:
    made = partial(Shown, spaces.Box(0, 255, (36, 40, 3), np.uint8), BOX, alone=alone)
    name = f"Shown{alone}-v0"
    monkeypatch.setitem(gymnasium.registry, name, EnvSpec(name, made, disable_env_checker=True))
    path = tmp_path / "c.yaml"
    text = FIVE_LINES.replace("NAME", name).replace("ALGO", algo)
    path.write_text(text, encoding="utf-8")
    loaded = load_curriculum(path)
    assert loaded.config.train.network.layers == layers
    path.write_text(loaded.resolved_text, encoding="utf-8")
    assert load_curriculum(path).config == loaded.config
    named = text.replace("130}", "130, network: {layers: [8]}}")
    path.write_text(named, encoding="utf-8")
    assert load_curriculum(path).config.train.network.layers == (8,)


PICTURED = [name for name, one in ALGORITHMS.items() if one.one_row and one.sees_pictures]


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize(
    ("algo", "alone"),
    all_of(
        *product(PICTURED, (True, False)),
        usual=(("recurrent_ppo", True), ("dqn", True), ("sac", False)),
    ),
)
def test_pictures_are_learned_as_by_the_library_s_own_script_and_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str, alone: bool
) -> None:
    """Channels first or last."""
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)
    algorithm, chooses = ALGORITHMS[algo], algo in ("dqn", "qrdqn", "maskable_ppo")
    steps, shape = STEPS // 2, [(36, 40, 3), (3, 36, 36)][(PICTURED.index(algo) // 2 + alone) % 2]
    space, kind = spaces.Discrete(3) if chooses else BOX, MaskedPictures if chooses else Shown
    made = partial(kind, spaces.Box(0, 255, shape, np.uint8), space, alone=alone)
    name = f"Shown{int(chooses)}{int(alone)}{shape[0]}-v0"  # by which its spec is kept
    spec = EnvSpec(name, made, max_episode_steps=20, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    given = {
        k: v
        for k, v in (ROLLOUTS | {"batch_size": 15, "n_epochs": 1}).items()
        if k in algorithm.shared
    }
    options: dict[str, Any] = {}
    if algorithm.replay_buffer:
        given = {"batch_size": 16}
        options = {"learning_starts": 60, "train_freq": 30, "buffer_size": steps // 2}
    policy, smaller = "CnnPolicy" if alone else "MultiInputPolicy", SMALLER.get(algo, {})
    wanted = plain(
        *(algorithm.classes().model, name, 1),
        policy=policy.replace("Policy", "LstmPolicy") if algorithm.recurrent else policy,
        policy_kwargs=dict(smaller),
        steps=steps,
        **given,
        **options,
    )
    train = {"algo": algo, "total_steps": steps, **given, "options": {**options, **smaller}}
    path, keeper = tmp_path / "c.yaml", Keeper()
    env = f"{{world: gymnasium, id: {name}}}"
    path.write_text(f"name: p\nenv: {env}\ntrain: {json.dumps(train)}\n", encoding="utf-8")
    assert_equal_bits(trained(path, links=keeper.links).model, wanted)
    middle = keeper.checkpoints[len(keeper.checkpoints) * 2 // 3]
    assert_equal_bits(trained(path, after=(middle, keeper)).model, wanted)
