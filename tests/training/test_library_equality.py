"""The library's own script, in the same environment with the same seeds, learns the same bits.

Within 240 steps, of every family of algorithms and every path through our code once;
`make equality` sets AIMBOT_LAB_EQUALITY_STEPS=2000 and goes through all algorithms and spaces.
"""

import json
import os
from collections.abc import Callable
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
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.her import HerReplayBuffer

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.training.agents.agent_files import load_agent
from aimbot_lab.training.algorithms.candidates import CandidateSearch
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.checkpoint import lone_tensors, state_sha256
from aimbot_lab.training.checks import with_scaling
from aimbot_lab.training.plain_scripts import Seeded, episode_seeds
from aimbot_lab.training.run_hooks import UNLINKED, Checkpoint, RunLinks
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from tests.training.small_environments import Goals, Masked, MaskedPictures, Reach, Shown
from tests.training.tiny_training import Keeper, Sink, learn

SEED, STEPS = 7, int(os.environ.get("AIMBOT_LAB_EQUALITY_STEPS", "240"))


After = tuple[Checkpoint, Keeper] | None


@pytest.fixture(autouse=True)
def _checkpoints_at_every_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)


def all_of(*cases: Any, usual: tuple[Any, ...]) -> list[Any]:
    """`cases`, of which all but the `usual` ones are left to `make equality`."""
    assert all(one in cases for one in usual)
    return [one for one in cases if STEPS > 240 or one in usual]


def plain(
    algo: str, name: str, rows: int, *, policy: str = "MlpPolicy", steps: int = STEPS, **given: Any
) -> BaseAlgorithm:
    """The library's own script."""
    start = derive_seed(SEED, "learner")
    seeds = episode_seeds(start)
    th.set_num_threads(1)
    env = DummyVecEnv([lambda: Seeded(gymnasium.make(name), seeds)] * rows)
    made: Any = ALGORITHMS[algo].classes().model
    return made(policy, env, seed=start, device="cpu", **given).learn(steps)


def learned(plan: TrainingPlan, links: RunLinks = UNLINKED, after: After = None) -> Training:
    """A training that has ended; `after` resumes it from a checkpoint."""
    training = Training(plan)
    if after is not None:
        after[1].resumed(training, after[0])
    learn(training, links=links)
    return training


def trained(path: Path, **how: Any) -> Training:
    """The training of a file."""
    config = load_curriculum(path).config
    return learned(TrainingPlan(SEED, config.env, config.lessons, config.train), **how)


def ours(
    name: str,
    rows: int,
    *,
    algo: str,
    total_steps: int = STEPS,
    links: RunLinks = UNLINKED,
    after: After = None,
    **train: Any,
) -> Training:
    """The training of an environment that can't be won."""
    settings = ALGORITHMS[algo].settings(algo=algo, total_steps=total_steps, **train)
    settings = with_scaling(settings, bounds_are_ranges=False)
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
    assert type(one) is (CandidateSearch if type(other) is ARS else type(other))
    assert one.num_timesteps == other.num_timesteps
    assert equal_bits(one, other)


def state_of(training: Training) -> str:
    return state_sha256(training.model, training.progress.state())


def learns_and_resumes(train: Callable[..., Training], wanted: BaseAlgorithm) -> Training:
    """What `train` comes to: `wanted` to the bit, also if it was broken off while episodes ran."""
    whole = train(links=(keeper := Keeper()).links)
    assert_equal_bits(whole.model, wanted)
    middle = keeper.checkpoints[(len(keeper.checkpoints) - 1) * 2 // 3]
    assert 0 < middle.step < wanted.num_timesteps
    again = train(after=(middle, keeper))
    assert_equal_bits(again.model, wanted)
    assert state_of(again) == state_of(whole)
    return whole


def registered(
    monkeypatch: pytest.MonkeyPatch, space: spaces.Space[Any], kind: type[Reach] = Reach
) -> str:
    name = f"{kind.__name__}{crc32(str(space).encode())}-v0"  # by which its spec is kept
    return kept_spec(monkeypatch, name, partial(kind, space), max_episode_steps=20)


def kept_spec(monkeypatch: pytest.MonkeyPatch, name: str, made: Any, **given: Any) -> str:
    spec = EnvSpec(name, made, disable_env_checker=True, **given)
    monkeypatch.setitem(gymnasium.registry, name, spec)
    return name


def written(folder: Path, text: str, **words: str) -> Path:
    """A file of `text` with these `words` for the large ones in it."""
    for word, value in words.items():
        text = text.replace(word, value)
    (folder / "c.yaml").write_text(text, encoding="utf-8")
    return folder / "c.yaml"


ROLLOUTS: dict[str, Any] = {
    **{"n_steps": 30, "batch_size": 20, "n_epochs": 3, "learning_rate": 3e-3, "ent_coef": 0.01}
}
BOX = spaces.Box(-2.0, 2.0, (3,), np.float32)
PLAIN = NetworkSettings(layers=(64, 64), scaling="none")
SMALL = NetworkSettings(layers=(16, 16), activation="relu", scaling="none")
ARCH: dict[str, Any] = {"net_arch": [16, 16], "activation_fn": th.nn.ReLU}
# Than those of the classes, which a file of five lines trains.
SMALLER = {"recurrent_ppo": {"lstm_hidden_size": 16}, "qrdqn": {"n_quantiles": 9}}


WARMED = {"learning_starts": 40, "train_freq": 3, "gradient_steps": 2}
BY_NUMBERS = ["sac", "td3", "ddpg", "tqc", "crossq"]
CHOICES, NARROW = spaces.Discrete(3), spaces.Box(-2.0, 0.5, (2,))
PPO_SPACES: list[spaces.Space[Any]] = [
    *(BOX, CHOICES, spaces.Box(-2.0, 2.0, (), np.float32)),
    *(spaces.Box(-2.0, 2.0, (2, 2), np.float32), spaces.Box(-0.7, 0.3, (2,), np.float64)),
    *(spaces.MultiDiscrete([3, 2]), spaces.MultiBinary(3)),
]


def shared(algo: str, numbers: dict[str, Any]) -> dict[str, Any]:
    """Those of `numbers` that our settings and the algorithm's class have under one name."""
    return {key: value for key, value in numbers.items() if key in ALGORITHMS[algo].shared}


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
    return shared(algo, ROLLOUTS), theirs, {"network": PLAIN, "options": smaller}


SDE = {"use_sde": True, "sde_sample_freq": 4}  # state-dependent exploration


@pytest.mark.parametrize(
    ("algo", "space", "rows", "more"),
    all_of(
        *product(["ppo"], PPO_SPACES, [2], [{}]),
        *product(["a2c", "trpo", "recurrent_ppo"], [BOX, CHOICES], [2], [{}]),
        ("maskable_ppo", CHOICES, 2, {}),
        *product(["dqn", "qrdqn"], [CHOICES], [1], [{}]),
        *product(BY_NUMBERS, [NARROW], [1, 2], [{}]),
        *product(["ppo", "a2c", "sac", "tqc"], [BOX], [2], [SDE]),
        usual=(
            *(("ppo", space, 2, {}) for space in PPO_SPACES[-3:-1]),
            *(("trpo", BOX, 2, {}), ("maskable_ppo", CHOICES, 2, {}), ("qrdqn", CHOICES, 1, {})),
            *(("ddpg", NARROW, 2, {}), ("tqc", NARROW, 1, {}), ("crossq", NARROW, 2, {})),
            ("sac", BOX, 2, SDE),
        ),
    ),
    ids=str,
)
def test_an_algorithm_learns_what_its_own_script_learns_and_resumes(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    algo: str,
    space: spaces.Space[Any],
    rows: int,
    more: dict[str, Any],
) -> None:
    masked = algo == "maskable_ppo"
    name = registered(monkeypatch, space, Masked if masked else Reach)
    given, theirs, ours_alone = given_to(algo)
    ours_alone["options"] = {**ours_alone["options"], **more}
    wanted = plain(algo, name, rows, **given, **theirs, **more)
    whole = learns_and_resumes(partial(ours, name, rows, algo=algo, **given, **ours_alone), wanted)
    assert whole.model.action_space == space
    whole.save_agents(tmp_path)
    agent = load_agent(tmp_path / "last").agent
    assert agent.act(np.zeros((5, 3), np.float32)).shape == (5, *space.shape)
    if masked:
        assert not equal_bits(wanted, plain("ppo", name, rows, **given))


def test_whole_numbers_of_an_action_are_rounded_and_of_the_environment_s_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    space = spaces.Box(-3, 40, (1, 2), np.int16)
    taken, step = list[Any](), Reach.step
    monkeypatch.setattr(Reach, "step", lambda self, one: taken.append(one) or step(self, one))
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
    algorithm, by_values = ALGORITHMS[algo], algo in ("dqn", "qrdqn")
    name = registered(monkeypatch, CHOICES if by_values else BOX, Goals)
    options: dict[str, Any] = {**WARMED, "train_freq": 15, "buffer_size": 120}
    strategy = {"n_sampled_goal": 3, "goal_selection_strategy": "episode"}
    given, smaller = {"batch_size": 16, "learning_rate": 3e-3}, SMALLER.get(algo, {})
    hindsight = {"replay_buffer_class": HerReplayBuffer, "replay_buffer_kwargs": dict(strategy)}
    theirs = {"policy": "MultiInputPolicy", "policy_kwargs": ARCH | smaller, **hindsight}
    wanted: Any = plain(algo, name, 2, **theirs, **given, **options)
    options |= {"replay_buffer": "her", "replay_buffer_kwargs": strategy} | smaller
    if by_values:
        given["max_grad_norm"] = algorithm.of_own_worlds["max_grad_norm"]
    train = partial(ours, name, 2, algo=algo, network=SMALL, options=options, **given)
    learns_and_resumes(train, wanted).save_agents(tmp_path)
    agent, space = load_agent(tmp_path / "last").agent, wanted.observation_space
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
        seed = derive_seed(SEED, "learner")
        if self.resets > 0:
            seed = derive_seed(derive_seed(SEED, "world"), "reset", self.resets)
        for env in self.envs:
            env.set_wrapper_attr("seeds", episode_seeds(seed))
        return super().reset()


SMALL_ARS = (BOX, {"n_delta": 3, "n_top": 2, "n_eval_episodes": 2})


@pytest.mark.parametrize(
    ("space", "options"), all_of((CHOICES, {"n_delta": 4}), SMALL_ARS, usual=(SMALL_ARS,)), ids=str
)
def test_ars_learns_what_its_own_script_learns_and_resumes_between_updates(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    space: spaces.Space[Any],
    options: dict[str, Any],
) -> None:
    name, start = registered(monkeypatch, space), derive_seed(SEED, "learner")
    th.set_num_threads(1)
    env = Candidates([lambda: Seeded(gymnasium.make(name), episode_seeds(start))])
    wanted = ARS("MlpPolicy", env, seed=start, **options).learn(STEPS)
    whole = learns_and_resumes(partial(ours, name, 1, algo="ars", options=options), wanted)
    whole.save_agents(tmp_path)
    seen = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
    acted = load_agent(tmp_path / "last").agent.act(seen)
    np.testing.assert_array_equal(acted, wanted.predict(seen, deterministic=True)[0])


class Recording(BaseCallback):
    """Records what a logger takes, numbers and other things."""

    def _on_step(self) -> bool:
        others = {"own/text": "x", "train/text": "x", "own/many": np.zeros(3), "own/#": 1}
        for name, value in {**others, "own/ends": float(self.locals["dones"][0])}.items():
            self.logger.record(name, value)
        return len(self.locals["infos"]) == len(self.locals["new_obs"]) == 1


def test_lessons_of_ars_judge_candidates_and_a_stop_stands_between_updates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"total_steps": 600, "options": {"n_delta": 2}, "reward_scale": 1.0}
    settings = ALGORITHMS["ars"].settings(algo="ars", **given)
    env = GymnasiumSettings(id=registered(monkeypatch, CHOICES), num_envs=1)
    passed_soon: Any = {"measure": "reward", "rule": "ml-agents", "threshold": -1e6}
    easy = CompletionCriteria(min_lesson_length=6, **passed_soon)
    easy_lesson = Lesson(name="a", targets={"task": 1.0}, completion_criteria=easy)
    lessons = (easy_lesson, Lesson(name="b", targets={"task": 1.0}))
    plan, keeper = TrainingPlan(SEED, env, lessons, settings), Keeper()
    whole = learned(plan, keeper.links)
    updates = [one.step for one in keeper.checkpoints]  # where each begins, and the end
    first, second = whole.progress.lesson_reports
    assert first.episodes == 6  # the first candidates' four episodes, and two of the next four
    assert updates[1] < (first.ended_at_step or 0) < updates[2]
    assert second.episodes == 4 * (len(updates) - 3)  # from there on all, and none broken off
    looks, stopped, sink = iter(range(10**6)), Training(plan, callbacks=[Recording()]), Sink()
    stop = {"should_stop": lambda: next(looks) > 300, "links": (kept := Keeper()).links}
    learn(stopped, sink, **stop)
    assert stopped.model.num_timesteps in updates[3:-1]
    assert {step for step, numbers in sink.logged if "own/ends" in numbers} <= {*updates}
    assert state_of(learned(plan, after=(kept.checkpoints[-1], kept))) == state_of(whole)


ONE_ROW = [name for name, one in ALGORITHMS.items() if one.one_row]
FIVE_LINES = """
name: five
env: {world: gymnasium, id: NAME}
train: {algo: ALGO, total_steps: 130}
"""


@pytest.mark.parametrize(
    "algo",
    all_of(
        *("ppo", "a2c", "recurrent_ppo", "trpo", "dqn", "qrdqn", *BY_NUMBERS), usual=("a2c", "td3")
    ),
)
def test_a_file_of_five_lines_trains_what_the_library_s_own_script_trains(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str
) -> None:
    """With what is left out, networks too, as the class has it."""
    name = registered(monkeypatch, BOX if algo in BY_NUMBERS else CHOICES)
    kinds: Any = {"policy": "MlpLstmPolicy"} if algo == "recurrent_ppo" else {}
    wanted = plain(algo, name, 1, steps=130, **kinds)
    training = trained(written(tmp_path, FIVE_LINES, NAME=name, ALGO=algo))
    assert_equal_bits(training.model, wanted)
    if algo in BY_NUMBERS:
        training.save_agents(tmp_path)
        agent = load_agent(tmp_path / "last").agent
        seen = np.random.default_rng(0).uniform(-1, 1, (50, 3)).astype(np.float32)
        acted = agent.act(seen, temperature=LIKELIEST)
        np.testing.assert_array_equal(acted, wanted.predict(seen, deterministic=True)[0])
        assert all(BOX.contains(one) for one in agent.act(seen))
        assert agent.samples == (algo not in ("td3", "ddpg"))


@pytest.mark.parametrize("algo", ONE_ROW)
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


@pytest.mark.parametrize("algo", ["ppo", "td3"])
def test_policy_kwargs_reach_the_policy_s_class_as_in_its_own_script(
    monkeypatch: pytest.MonkeyPatch, algo: str
) -> None:
    """By names in the place of classes."""
    name, layers = registered(monkeypatch, BOX), {"pi": (8,), "vf": (16, 8)}
    given = {
        "activation_fn": "elu",
        "optimizer": "adamw",
        "optimizer_kwargs": {"weight_decay": 0.01},
    }
    if algo == "ppo":
        given |= {"net_arch": layers, "ortho_init": False, "log_std_init": -0.5}
        both, alone, options = ROLLOUTS, {"network": PLAIN}, {}
        theirs = {"net_arch": {key: [*sizes] for key, sizes in layers.items()}}
    else:
        given["net_arch"], theirs = (8, 6), {"net_arch": [8, 6]}
        both, alone, options = {}, {}, WARMED
    theirs = {**given, **theirs, "activation_fn": th.nn.ELU, "optimizer_class": th.optim.AdamW}
    del theirs["optimizer"]
    half = STEPS // 2
    wanted = plain(algo, name, 2, policy_kwargs=theirs, steps=half, **both, **options)
    alone["options"] = {"policy_kwargs": given, **options}
    assert_equal_bits(ours(name, 2, algo=algo, total_steps=half, **both, **alone).model, wanted)


@pytest.mark.parametrize(
    ("algo", "alone", "layers"),
    [("ppo", True, ()), ("ppo", False, (64, 64)), ("td3", False, (400, 300))],
)
def test_a_file_of_five_lines_has_the_layers_that_the_class_has_for_pictures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, algo: str, alone: bool, layers: tuple[int, ...]
) -> None:
    made = partial(Shown, spaces.Box(0, 255, (36, 40, 3), np.uint8), BOX, alone=alone)
    words = {"NAME": kept_spec(monkeypatch, f"Shown{alone}-v0", made), "ALGO": algo}
    loaded = load_curriculum(written(tmp_path, FIVE_LINES, **words))
    assert loaded.config.train.network.layers == layers
    assert load_curriculum(written(tmp_path, loaded.resolved_text)).config == loaded.config
    named = FIVE_LINES.replace("130}", "130, network: {layers: [8]}}")
    assert load_curriculum(written(tmp_path, named, **words)).config.train.network.layers == (8,)


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
    algorithm, chooses = ALGORITHMS[algo], algo in ("dqn", "qrdqn", "maskable_ppo")
    steps, shape = STEPS // 2, [(36, 40, 3), (3, 36, 36)][(PICTURED.index(algo) // 2 + alone) % 2]
    space, kind = CHOICES if chooses else BOX, MaskedPictures if chooses else Shown
    made = partial(kind, spaces.Box(0, 255, shape, np.uint8), space, alone=alone)
    name = f"Shown{int(chooses)}{int(alone)}{shape[0]}-v0"  # by which its spec is kept
    kept_spec(monkeypatch, name, made, max_episode_steps=20)
    given, options = shared(algo, ROLLOUTS | {"batch_size": 15, "n_epochs": 1}), {}
    if algorithm.replay_buffer:
        given = {"batch_size": 16}
        options = {"learning_starts": 60, "train_freq": 30, "buffer_size": steps // 2}
    policy, smaller = "CnnPolicy" if alone else "MultiInputPolicy", SMALLER.get(algo, {})
    if algorithm.recurrent:
        policy = policy.replace("Policy", "LstmPolicy")
    theirs = {"policy": policy, "policy_kwargs": dict(smaller), "steps": steps}
    wanted = plain(algo, name, 1, **theirs, **given, **options)
    train = {"algo": algo, "total_steps": steps, **given, "options": {**options, **smaller}}
    file = "name: p\nenv: {world: gymnasium, id: NAME}\ntrain: TRAIN\n"
    path = written(tmp_path, file, NAME=name, TRAIN=json.dumps(train))
    learns_and_resumes(partial(trained, path), wanted)
