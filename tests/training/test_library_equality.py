"""The library's own script, in the same environment with the same seeds, learns the same bits."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from stable_baselines3 import PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv

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
from aimbot_lab.training.networks.settings import PictureSettings
from aimbot_lab.training.run_hooks import UNLINKED, Checkpoint, RunLinks, SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from tests.training.tiny_training import Sink

SEED, STEPS = 7, 300


class Reach(gymnasium.Env[Any, Any]):
    """A reward for actions that fit what is seen; episodes end by chance or after 20 steps."""

    observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.action_space = space

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen, {}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(np.asarray(action)), action
        reward = -float(np.square(np.asarray(action, np.float64) - self._seen[0]).sum())
        self._seen = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return self._seen, reward, bool(self.np_random.random() < 0.05), False, {}


class Shown(Reach):
    """The same where a picture shows something else, alone or beside two numbers."""

    def __init__(self, picture: spaces.Box, *, alone: bool) -> None:
        super().__init__(BOX)
        beside = spaces.Dict({"image": picture, "place": spaces.Box(-1.0, 1.0, (2,))})
        self.picture, self.alone = picture, alone
        self.observation_space = picture if alone else beside

    def shown(self) -> Any:
        image = self.np_random.integers(0, 256, self.picture.shape, np.uint8)
        return image if self.alone else {"image": image, "place": self._seen[:2]}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self.shown(), {}

    def step(self, action: Any) -> Any:
        _, *others = super().step(action)
        return self.shown(), *others


class Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Each episode of all rows begins from a seed of its own, as in our worlds."""

    def __init__(self, env: Any, next_seed: Callable[[], int]) -> None:
        super().__init__(env)
        self._next_seed = next_seed

    def reset(self, **_: Any) -> Any:
        return self.env.reset(seed=self._next_seed())


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
    seeds = iter(derive_seed(start, "episode", number) % 2**31 for number in range(10**6))
    th.set_num_threads(1)
    env = DummyVecEnv([lambda: Seeded(gymnasium.make(name), lambda: next(seeds))] * rows)
    made: Any = model
    return made(policy, env, seed=start, device="cpu", **arguments).learn(steps)


class Keeper:
    """Keeps every checkpoint, and parts once."""

    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.parts: dict[str, bytes] = {}

    def keep(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)
        for name in checkpoint.parts.keys() - self.parts.keys():
            self.parts[name] = checkpoint.parts[name]()


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
    """A training that has ended; `after` resumes it from a checkpoint."""
    kind = ALGORITHMS[algo].settings
    settings = with_scaling(
        kind(algo=algo, total_steps=total_steps, **train), bounds_are_ranges=False
    )
    env = GymnasiumSettings(id=name, win=WinRule(return_above=1e9), num_envs=rows)
    lesson = Lesson(name="one", targets={"task": 1.0})
    training = Training(TrainingPlan(SEED, env, (lesson,), settings))
    if after is not None:
        training.resume(after[0].state, after[1].parts.__getitem__)
    training.learn(Sink(), SilentObserver(), lambda: False, links=links)
    return training


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


class Masked(Reach):
    """One of its choices is forbidden."""

    def action_masks(self) -> Any:
        return np.arange(3) != int(3 * abs(self._seen[1])) % 3


def registered(
    monkeypatch: pytest.MonkeyPatch, space: spaces.Space[Any], *, masked: bool = False
) -> str:
    kind = Masked if masked else Reach
    name = f"Reach{crc32(str(space).encode())}-v0"  # by which its spec is kept
    spec = EnvSpec(name, lambda: kind(space), max_episode_steps=20, disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    return name


ROLLOUTS: dict[str, Any] = {
    **{"n_steps": 30, "batch_size": 20, "n_epochs": 3, "learning_rate": 3e-3, "ent_coef": 0.01}
}
BOX = spaces.Box(-2.0, 2.0, (3,), np.float32)
PLAIN = NetworkSettings(layers=(64, 64), scaling="none")
SMALL = NetworkSettings(layers=(16, 16), activation="relu", scaling="none")
ARCH = {"net_arch": [16, 16], "activation_fn": th.nn.ReLU}


@pytest.mark.parametrize(
    "space",
    [
        None,
        BOX,
        spaces.Box(-2.0, 2.0, (), np.float32),
        spaces.Box(-2.0, 2.0, (2, 2), np.float32),
        spaces.Box(-0.7, 0.3, (2,), np.float64),
        spaces.Discrete(3),
        spaces.MultiDiscrete([3, 2]),
        spaces.MultiBinary(3),
    ],
    ids=str,
)
def test_ppo_learns_what_its_own_script_learns(
    monkeypatch: pytest.MonkeyPatch, space: spaces.Space[Any] | None
) -> None:
    name = "Pendulum-v1" if space is None else registered(monkeypatch, space)
    wanted = plain(PPO, name, 2, **ROLLOUTS)
    training = ours(name, 2, algo="ppo", network=PLAIN, **ROLLOUTS)
    assert_equal_bits(training.model, wanted)
    assert training.model.action_space == (space or wanted.action_space)


@pytest.mark.parametrize("algo", ["ppo", "a2c", "sac", "tqc"])
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
    whole = ours(name, 2, algo=algo, links=RunLinks(checkpoints=keeper), **train)
    assert_equal_bits(whole.model, wanted)
    middle = keeper.checkpoints[len(keeper.checkpoints) // 2]
    assert_equal_bits(ours(name, 2, algo=algo, after=(middle, keeper), **train).model, wanted)
    whole.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    assert agent.act(np.zeros((5, 3), np.float32)).shape == (5, 3)


WARMED = {"learning_starts": 40, "train_freq": 3, "gradient_steps": 2}
ON_POLICY = ["a2c", "trpo", "recurrent_ppo"]
BY_NUMBERS = ["sac", "td3", "ddpg", "tqc", "crossq"]


@pytest.mark.parametrize("algo", ON_POLICY)
@pytest.mark.parametrize("space", [BOX, spaces.Discrete(3)], ids=str)
def test_on_policy_algorithms_learn_what_their_own_scripts_learn(
    monkeypatch: pytest.MonkeyPatch, algo: str, space: spaces.Space[Any]
) -> None:
    name, algorithm = registered(monkeypatch, space), ALGORITHMS[algo]
    given = {k: v for k, v in ROLLOUTS.items() if k in algorithm.shared}
    kinds: Any = {"policy": "MlpLstmPolicy"} if algo == "recurrent_ppo" else {}
    wanted = plain(algorithm.classes().model, name, 2, **given, **kinds)
    assert_equal_bits(ours(name, 2, algo=algo, network=PLAIN, **given).model, wanted)


def test_maskable_ppo_learns_what_its_own_script_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    name = registered(monkeypatch, spaces.Discrete(3), masked=True)
    algorithm = ALGORITHMS["maskable_ppo"]
    wanted = plain(algorithm.classes().model, name, 2, **ROLLOUTS)
    model = ours(name, 2, algo="maskable_ppo", network=PLAIN, **ROLLOUTS).model
    assert_equal_bits(model, wanted)
    unmasked = plain(PPO, name, 2, **ROLLOUTS)
    assert not equal_bits(wanted, unmasked)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("algo", BY_NUMBERS)
def test_algorithms_of_numbers_learn_what_their_own_scripts_learn(
    monkeypatch: pytest.MonkeyPatch, algo: str, rows: int
) -> None:
    name, algorithm = registered(monkeypatch, spaces.Box(-2.0, 0.5, (2,))), ALGORITHMS[algo]
    given = {"batch_size": 32, "learning_rate": 3e-3}
    options: dict[str, Any] = dict(WARMED)
    if algo in ("sac", "tqc"):
        options |= {"ent_coef": "auto_0.2", "target_update_interval": 2}
    arch = {"net_arch": [16, 16]}
    wanted = plain(algorithm.classes().model, name, rows, policy_kwargs=arch, **given, **options)
    training = ours(name, rows, algo=algo, network=SMALL, options=options, **given)
    assert_equal_bits(training.model, wanted)


@pytest.mark.parametrize("algo", ["dqn", "qrdqn"])
def test_algorithms_of_values_learn_what_their_own_scripts_learn(
    monkeypatch: pytest.MonkeyPatch, algo: str
) -> None:
    name, algorithm = registered(monkeypatch, spaces.Discrete(3)), ALGORITHMS[algo]
    options = {"learning_starts": 40, "gradient_steps": 2, "target_update_interval": 50}
    given = {"batch_size": 32, "learning_rate": 3e-3, "max_grad_norm": 1.0}
    wanted = plain(
        algorithm.classes().model,
        name,
        1,
        policy_kwargs=dict(ARCH),
        train_freq=4,
        **given,
        **options,
    )
    train = {"n_steps": 4, "network": SMALL, "options": options}
    assert_equal_bits(ours(name, 1, algo=algo, **train, **given).model, wanted)


@pytest.mark.parametrize("algo", ["a2c", "trpo", "dqn", *BY_NUMBERS])
def test_a_resumed_training_ends_in_the_bits_of_an_unbroken_one(
    monkeypatch: pytest.MonkeyPatch, algo: str
) -> None:
    """Broken off while episodes run, with a replay buffer that has come round."""
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at every rollout
    space = spaces.Discrete(3) if algo == "dqn" else BOX
    given: dict[str, Any] = {"network": SMALL, "learning_rate": 3e-3}
    if "n_steps" in ALGORITHMS[algo].takes:
        given |= {"n_steps": 10}
    if "batch_size" in ALGORITHMS[algo].takes:
        given |= {"batch_size": 20}
    if algo in BY_NUMBERS:
        noise = ("ornstein-uhlenbeck", 0.2)
        given["options"] = {**WARMED, "train_freq": 15, "buffer_size": 120, "action_noise": noise}
    keeper, name = Keeper(), registered(monkeypatch, space)
    wanted = ours(name, 2, algo=algo, links=RunLinks(checkpoints=keeper), **given)
    middle = keeper.checkpoints[len(keeper.checkpoints) // 2]
    assert 100 < middle.step < 250
    again = ours(name, 2, algo=algo, after=(middle, keeper), **given)
    assert_equal_bits(again.model, wanted.model)
    hashes = [state_sha256(one.model, one.progress.state()) for one in (again, wanted)]
    assert hashes[0] == hashes[1]
    other = ours(name, 2, algo=algo, total_steps=middle.step, **given)
    assert state_sha256(other.model, other.progress.state()) != hashes[0]


@pytest.mark.parametrize("algo", ["a2c", *BY_NUMBERS])
def test_left_out_settings_are_those_of_the_class(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str
) -> None:
    """Warmed up for 100 steps, then a few updates with networks as they are usual."""
    name = registered(monkeypatch, BOX)
    wanted = plain(ALGORITHMS[algo].classes().model, name, 1, steps=110)
    training = ours(name, 1, algo=algo, total_steps=110)
    assert_equal_bits(training.model, wanted)
    training.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    seen = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
    acted = agent.act(seen, temperature=LIKELIEST)
    np.testing.assert_array_equal(acted, wanted.predict(seen, deterministic=True)[0])
    assert all(BOX.contains(one) for one in agent.act(seen))
    assert agent.samples == (algo not in ("td3", "ddpg"))


LIBRARY = [name for name, one in ALGORITHMS.items() if one.table is None]
OTHERS: dict[Any, Any] = {bool: "yes", int: True, float: False, str: True, tuple: True}


@pytest.mark.parametrize("algo", LIBRARY)
def test_every_argument_of_a_class_is_checked_by_name_and_type(algo: str) -> None:
    algorithm = ALGORITHMS[algo]
    known = known_options(algorithm)
    assert known
    for name, kinds in known.items():
        (wrong,) = settings_faults(algorithm.settings(algo=algo, options={f"{name}_": 1}))
        assert (wrong.option, wrong.what) == (f"{name}_", f"{algo} has no such option")
        assert name in wrong.known
        value = OTHERS[kinds[0]]
        (wrong,) = settings_faults(algorithm.settings(algo=algo, options={name: value}))
        assert wrong.what == f"must be {' or '.join(WORDS[kind] for kind in kinds)}"


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
        (BOX, ", options: {tau: much}", r"must be a number \(got 'much'\)"),
        (BOX, ", options: {action_noise: [pink, 1]}", None),
        (BOX, ", options: {buffer_size: 1e12}", None),
        (BOX, ", ent_coef: 0.3", "is an option of sac: write train.options.ent_coef"),
        (BOX, ", n_epochs: 7", "does nothing with sac: leave it out"),
        (spaces.Discrete(2), "", "sac acts by numbers alone [^\\n]*use ppo or dqn"),
        (
            spaces.Box(np.float32([0, -np.inf]), np.float32([1, 5])),
            "",
            "sac needs two bounds [^\\n]*action_1 [^\\n]*ClipAction[^\\n]*RescaleAction",
        ),
    ],
)
def test_what_an_algorithm_does_not_take_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    space: spaces.Space[Any],
    options: str,
    what: str | None,
) -> None:
    text = FILE.replace("NAME", registered(monkeypatch, space)).replace("OPTIONS", options)
    path = tmp_path / "c.yaml"
    path.write_text(text, encoding="utf-8")
    if what is not None:
        with pytest.raises(ConfigurationError, match=f"^[^\\n]*train[^\\n]*{what}[^\\n]*$"):
            load_curriculum(path)
        return
    config = load_curriculum(path).config
    refused = r"^train.options.(action_noise: must be|buffer_size: a replay buffer of) [^\n]*$"
    with pytest.raises(ConfigurationError, match=refused):
        Training(TrainingPlan(1, config.env, config.lessons, config.train))


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize("shape", [(36, 40, 3), (3, 36, 36)], ids=["last", "first"])
@pytest.mark.parametrize("alone", [True, False], ids=["CnnPolicy", "MultiInputPolicy"])
def test_ppo_learns_from_pictures_what_its_own_script_learns(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], alone: bool
) -> None:
    picture = spaces.Box(0, 255, shape, np.uint8)
    made, limit = partial(Shown, picture, alone=alone), {"max_episode_steps": 20}
    spec = EnvSpec("Shown-v0", made, disable_env_checker=True, **limit)
    monkeypatch.setitem(gymnasium.registry, "Shown-v0", spec)
    policy = "CnnPolicy" if alone else "MultiInputPolicy"
    fast = {**ROLLOUTS, "n_epochs": 1}
    wanted = plain(PPO, "Shown-v0", 2, policy=policy, **fast)
    layers = () if alone else (64, 64)
    network = NetworkSettings(layers=layers, scaling="none", picture=PictureSettings())
    training = ours("Shown-v0", 2, algo="ppo", network=network, **fast)
    assert_equal_bits(training.model, wanted)
