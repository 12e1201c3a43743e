"""Entries of rl-zoo3's files become curricula; texts of Python in them are never evaluated."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.conversion.rl_zoo import convert_entry, is_zoo_file
from aimbot_lab.foundation.errors import ConfigurationError

SHARED = """
default: &usual
  n_timesteps: !!float 2e4
  policy: 'MlpPolicy'
"""


def converted(
    tmp_path: Path, entry: str, *, file: str = "ppo.yml", env: str = "CartPole-v1"
) -> tuple[Any, list[str]]:
    """The curriculum of an entry with the keys of `entry`, and its notes without their place."""
    path = tmp_path / file
    path.write_text(f"{SHARED}{env}:\n  <<: *usual\n{entry}", encoding="utf-8")
    assert is_zoo_file(path)
    text, notes = convert_entry(path, env=env, algo=None)
    return yaml.safe_load(text), [note.split(": ", 1)[1] for note in notes]


def test_a_rollout_s_keys_schedules_and_policy_become_ours(tmp_path: Path) -> None:
    entry = """
  n_envs: 4
  n_steps: 32
  batch_size: 64
  learning_rate: lin_3e-4
  clip_range: !!float 0.1
  clip_range_vf: 0.2
  policy_kwargs: "dict(net_arch=dict(pi=[16], vf=[8]), activation_fn=nn.ReLU, ortho_init=False)"
"""
    data, notes = converted(tmp_path, entry)
    assert data["env"] == {"world": "gymnasium", "id": "CartPole-v1", "num_envs": 4}
    layers = {"net_arch": {"pi": [16], "vf": [8]}}
    policy = {**layers, "activation_fn": "relu", "ortho_init": False}
    assert data["train"] == {
        **{"algo": "ppo", "total_steps": 20_000, "n_steps": 32, "batch_size": 64},
        "learning_rate": {"schedule": "linear", "start": 3e-4, "end": 0.0},
        "clip_range": 0.1,
        "options": {"clip_range_vf": 0.2, "policy_kwargs": policy},
    }
    assert notes == []
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert load_curriculum(path).config.train.total_steps == 20_000


@pytest.mark.parametrize(
    ("file", "entry", "options"),
    [
        ("td3.yml", "noise_type: normal\n  noise_std: 0.2", {"action_noise": ["normal", 0.2]}),
        ("sac.yml", "ent_coef: auto_0.1\n  tau: 0.02", {"ent_coef": "auto_0.1", "tau": 0.02}),
        (
            "her.yml",
            "model_class: tqc\n  n_sampled_goal: 4\n  online_sampling: True\n"
            "  policy_kwargs: dict(n_critics=2, net_arch=[8])",
            {
                **{"replay_buffer": "her", "replay_buffer_kwargs": {"n_sampled_goal": 4}},
                **{"n_critics": 2, "policy_kwargs": {"net_arch": [8]}},
            },
        ),
        (
            "ppo_lstm.yml",
            "policy_kwargs: dict(lstm_hidden_size=8, optimizer_class=RMSpropTFLike)",
            {"lstm_hidden_size": 8, "policy_kwargs": {"optimizer": "rmsprop_tf"}},
        ),
        (
            "ars.yml",
            "policy: LinearPolicy\n  n_delta: 2",
            {"policy_kwargs": {"net_arch": [], "with_bias": False}, "n_delta": 2},
        ),
    ],
)
def test_what_only_a_class_knows_becomes_an_option(
    tmp_path: Path, file: str, entry: str, options: dict[str, Any]
) -> None:
    data, _ = converted(tmp_path, f"  {entry}\n", file=file)
    assert data["train"]["options"] == options


def test_environments_have_today_s_ids_and_wrappers_of_ours(tmp_path: Path) -> None:
    entry = """
  frame_stack: 2
  env_kwargs: dict(render_mode=None, continuous=True)
  env_wrapper:
    - rl_zoo3.wrappers.FrameSkip: {skip: 2}
    - gymnasium.wrappers.resize_observation.ResizeObservation: {shape: [64, 64]}
"""
    data, notes = converted(tmp_path, entry, env="CarRacing-v2")
    assert data["env"] == {
        **{"world": "gymnasium", "id": "CarRacing-v3", "frame_stack": 2},
        "kwargs": {"render_mode": None, "continuous": True},
        "wrappers": [
            {"wrapper": "rl_zoo3.wrappers:FrameSkip", "kwargs": {"skip": 2}},
            {"wrapper": "ResizeObservation", "kwargs": {"shape": [64, 64]}},
        ],
    }
    assert [note for note in notes if "CarRacing-v2 is taken as CarRacing-v3" in note]
    atari = "\n  env_wrapper: [stable_baselines3.common.atari_wrappers.AtariWrapper]\n"
    data, _ = converted(tmp_path, atari, env="PongNoFrameskip-v4")
    pong = {"world": "gymnasium", "id": "ALE/Pong-v5", "module": "ale_py", "atari": True}
    assert data["env"] == pong


def test_scaling_that_learns_otherwise_and_sizes_that_do_not_fit_are_told(tmp_path: Path) -> None:
    entry = "  normalize: \"{'norm_obs': True, 'norm_reward': False}\"\n  batch_size: 500\n"
    data, notes = converted(tmp_path, f"{entry}  n_steps: 128\n  surprise: 1\n")
    train = data["train"]
    assert (train["network"], train["batch_size"]) == ({"scaling": "running"}, 128)
    assert "reward_scale" not in train
    assert train["options"] == {"surprise": 1}  # which `check` refuses, with its nearest
    assert len(notes) == 2
    data, _ = converted(tmp_path, "  n_envs: 1000000000000\n  n_steps: 999983\n  batch_size: 7\n")
    assert data["train"]["batch_size"] == 7  # and sizes without end are no hang


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch MARK')",
        "dict(net_arch=open('MARK', 'w'))",
        "[x for x in (1,)]",
        "dict(a={[1]})",
        "(" * 300,
        "-" * 9000 + "1",
        "dict(net_arch=[8], net_arch=[9])",
    ],
)
def test_a_text_of_python_is_never_evaluated(here: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"policy_kwargs: can't be read") as caught:
        converted(here, f'  policy_kwargs: "{text}"\n')
    assert len(str(caught.value).splitlines()) == 1
    assert not (here / "MARK").exists()


def test_the_entry_and_the_algorithm_must_be_known(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(f"{SHARED}Pendulum-v1: *usual\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="--env says which entry is meant: default, Pend"):
        convert_entry(path, env=None, algo="sac")
    with pytest.raises(ConfigurationError, match="--algo is one of ppo, "):
        convert_entry(path, env="Pendulum-v1", algo=None)
    text, _ = convert_entry(path, env="Pendulum-v0", algo="sac")
    assert "id: Pendulum-v1" in text
    path.write_text("behaviors: {Walker: {trainer_type: ppo}}\n", encoding="utf-8")
    assert not is_zoo_file(path)
    path.write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"has no entry X-v0 \(valid names: none\)"):
        convert_entry(path, env="X-v0", algo="ppo")


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("n_timesteps: abc", "n_timesteps: must be a whole number (got 'abc')"),
        ("env_wrapper: {a.B: 3}", "env_wrapper: must be a class with arguments"),
        ("env_wrapper: {a.B: {}, a.C: {}}", "several are a list (got a mapping)"),
        ("env_wrapper: TimeLimit", "must be a class with arguments, as module.Class;"),
        ("n_envs: 2.5", "n_envs: must be a whole number (got 2.5)"),
        ("n_envs: true", "n_envs: must be a whole number (got true)"),
        ("normalize: 5", "normalize: must be true, false or a mapping (got 5)"),
        ("policy_kwargs: 'dict(net_arch=[64] * 2)'", "must be plain values (got [64] * 2)"),
        ("env_kwargs: 5", "env_kwargs: must be a mapping (got 5)"),
        ("tau: '${seed}'", "holds ${, which refers to a key"),
    ],
)
def test_a_value_of_another_form_is_a_fault_in_a_line(
    tmp_path: Path, entry: str, what: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        converted(tmp_path, f"  {entry}\n")
    (line,) = str(caught.value).splitlines()
    assert what in line
