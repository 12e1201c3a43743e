"""`bench zoo`: rows of rl-zoo3's numbers, our side and a plain script by turns, kept in a file."""

from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.bench import zoo
from aimbot_lab.experiment.config.checks import validate
from aimbot_lab.experiment.conversion.rl_zoo import curriculum_of
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.training import plain_scripts

TINY = {"n_envs": 2, "n_steps": 64, "batch_size": 32, "n_epochs": 1, "learning_rate": "lin_0.001"}


def test_both_sides_are_trained_once_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = zoo.Row("tiny", "CartPole-v1", "ppo", 256, TINY)
    monkeypatch.setattr(zoo, "known_rows", lambda: {"tiny": row})
    kept, lines = tmp_path / "data" / "zoo.jsonl", list[str]()
    found: Any = zoo.bench_zoo([], seeds=2, kept_in=kept, say=lines.append).document["rows"][0]
    assert lines[:3] == [f"tiny, seed 1: {side}" for side in ("script", "ours", "hybrid_ppo")]
    for side in row.sides:
        assert 8 < found[side]["mean"] < 60
    assert found["ours"] == pytest.approx(found["script"], abs=1e-5)  # the same episodes
    assert 0 < found["time_of_ours"]["mean"] < 20
    kept.write_text(f'{kept.read_text(encoding="utf-8")}{{"key": "brok', encoding="utf-8")
    monkeypatch.setattr(zoo, "_learned", None)  # nothing is trained again
    monkeypatch.setattr(zoo, "learn_entry", None)
    assert zoo.bench_zoo(["tiny"], seeds=2, kept_in=kept, say=lines.append).document["rows"] == [
        found
    ]
    with pytest.raises(ConfigurationError, match="--row big: there is no such row; there are tiny"):
        zoo.bench_zoo(["big"], seeds=1, kept_in=kept, say=lines.append)


def test_a_script_s_rollouts_keep_scaled_observations_as_floats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Looking(plain_scripts.EpisodeReturns):
        def _on_rollout_end(self) -> None:
            kept.append(self.locals["rollout_buffer"].observations)

    kept = list[Any]()
    monkeypatch.setattr(plain_scripts, "EpisodeReturns", Looking)
    entry = {**TINY, "normalize": True, "env_wrapper": "minigrid.wrappers.FlatObsWrapper"}
    plain_scripts.learn_entry("MiniGrid-Empty-5x5-v0", "ppo", entry, steps=128, seed=1)
    assert (kept[0] % 1 != 0).mean() > 0.01
    assert kept[0].min() < 0


def test_every_shipped_row_is_a_curriculum_of_its_algorithm() -> None:
    rows = zoo.known_rows()
    assert len(rows) == 13
    for row in rows.values():
        data = curriculum_of(row.env, row.algo, {**row.entry, "n_timesteps": row.steps})
        assert data["train"]["algo"] == row.algo
        if row.env in ("CartPole-v1", "MountainCarContinuous-v0", "Pendulum-v1"):
            assert validate(data, may_run=always)[1] == []


def test_what_a_row_leaves_out_is_the_librarys_and_hybrid_ppo_scales_what_it_sees() -> None:
    given = {name: value for name, value in TINY.items() if name != "learning_rate"}
    row = zoo.Row("tiny", "CartPole-v1", "ppo", 256, given)
    ours, hybrid = (zoo.training_plan(row, side, 1).train for side in row.sides[1:])
    assert (ours.algo, ours.network.scaling, ours.reward_scale) == ("ppo", "none", 1.0)
    assert (hybrid.algo, hybrid.network.scaling) == ("hybrid_ppo", "running")
    assert hybrid.reward_scale == "running"
    assert (ours.learning_rate, hybrid.learning_rate) == (3e-4, 3e-4)
    assert (ours.ent_coef, hybrid.ent_coef) == (0.0, 0.0)
    pong = zoo.training_plan(zoo.known_rows()["pong ppo"], "ours", 1).train
    assert pong.network.layers == ()  # as the library's class has them behind a picture alone
