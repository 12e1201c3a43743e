"""`bench self-play`: the trainings that it compares, in pieces, and the league that rates them."""

from dataclasses import asdict
from pathlib import Path

import pytest

from aimbot_lab.bench import self_play
from aimbot_lab.bench.self_play import SAMPLINGS, planned_trainings, requested
from aimbot_lab.experiment.runs.run import run_curriculum
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from aimbot_lab.training.run_hooks import SilentObserver
from tests.cli.tiny_runs import invoke

TINY = (
    "env.num_envs=8",
    "env.time_limit=1.0",
    "env.health=1",
    "self_play.save_steps=200",
    "train.n_steps=16",
    "train.batch_size=64",
    "train.n_epochs=1",
    "train.network.layers=[8]",
    "train.torch_threads=1",
)
STEPS = 384


def test_trainings_differ_in_whom_they_meet_and_in_their_seeds_alone() -> None:
    planned = list(planned_trainings(1_000_000, 2))
    assert [(one.seed, one.sampling) for one in planned] == [
        (seed, sampling) for seed in (1, 2) for sampling in SAMPLINGS
    ]
    assert len({one.key for one in planned}) == 10
    first = asdict(planned[0].curriculum.config)
    for one in planned:
        config = asdict(one.curriculum.config)
        assert config["train"]["total_steps"] == 1_000_000
        assert config["seed"] == one.seed
        for key in config.keys() - {"seed", "self_play"}:
            assert config[key] == first[key]
    ratios = [one.curriculum.config.self_play.play_against_latest_model_ratio for one in planned]
    assert ratios == 2 * [1.0, 0.5, 0.5, 0.5, 0.5]
    samplings = [one.curriculum.config.self_play.sampling for one in planned[1:5]]
    assert samplings[0] == "uniform"
    assert [next(iter(asdict(one))) for one in samplings[1:]] == ["newest", "pfsp", "rating"]


def test_what_is_done_is_not_trained_again_and_what_was_broken_off_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = {name: SAMPLINGS[name] for name in ("latest only", "pfsp")}
    monkeypatch.setattr(self_play, "SAMPLINGS", two)
    first = next(planned_trainings(STEPS, 1, TINY))
    data = DataFolder(tmp_path)
    stopped = run_curriculum(requested(first, data), SilentObserver(), should_stop=lambda: True)
    assert stopped.status == "KILLED"
    settings = [word for one in TINY for word in ("--set", one)]
    words = ("bench", "self-play", "--steps", STEPS, "--seeds", 1, "--games", 2, *settings)
    found = invoke(tmp_path, *words, "--json").document
    assert [one["sampling"] for one in found["samplings"]] == list(two)
    (rated,) = found["samplings"][0]["seeds"]
    assert rated["run"] == stopped.run_id
    assert rated["step"] >= STEPS
    assert rated["lower"] <= rated["rating"] <= rated["upper"]
    assert len(found["league"]["players"]) == 2 + 4
    again = invoke(tmp_path, *words)
    assert again.said.count("done before") == 2
    assert f"{found['samplings'][1]['mean']:,.0f}" in again.output
    assert len(list_runs(data)) == 2
