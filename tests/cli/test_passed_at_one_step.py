"""A lesson was passed at one step and by one proof, wherever that is told."""

from pathlib import Path

import pytest
from tiny_runs import invoke, write

from aimbot_lab.experiment.analysis.learning_curve import read_curves
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import find_run
from aimbot_lab.tracking.tracker import NOTE_TAG


def test_view_result_explain_note_and_compare_tell_one_step_and_proof(tmp_path: Path) -> None:
    file = write(tmp_path)
    easy = ("train.n_steps=128", "train.total_steps=4096", "env.goto_win_radius=25")
    words = [word for one in easy for word in ("--set", one)]
    trained = invoke(tmp_path, "run", file, "--json", *words, wanted=(0, 1))
    result, folder = trained.document, DataFolder(tmp_path)
    first = result["lessons"][0]
    step = first["ended_at_step"]
    assert (first["measure"], first["threshold"]) == ("win_rate", 0.02)
    assert first["evidence"] >= first["evidence_needed"] == pytest.approx(20)
    assert first["threshold"] <= first["lower"] < first["win_rate"] < first["upper"] == 1.0
    assert step % (16 * 128) != 0  # within a rollout, else nothing is told apart
    rate = f"win rate {first['win_rate']:.3f} [{first['lower']:.3f}, 1.000] > 0.02"
    proof = (
        f"passed 'first' at step {step:,} after {first['episodes']:,} episodes: {rate}, evidence "
    )
    assert proof in trained.said
    told = invoke(tmp_path, "explain", result["run_id"]).output
    assert proof.replace("passed 'first'", "lesson 1 'first': passed") in told
    explained = invoke(tmp_path, "explain", result["run_id"], "--json").document
    assert explained["lessons"][0]["end"]["step"] == step
    run = find_run(folder, result["run_id"])
    note = run.tags[NOTE_TAG].replace("&emsp;", "")
    assert f"| {step:,} | {first['episodes']:,} | win rate > 0.02 | " in note
    assert explained["lessons"][0]["report"] == first
    (curve,) = read_curves([(run, load_curriculum(file).config)], data_folder=folder)
    assert curve.lessons[0].step == step
