"""The step at which a lesson was passed is one number, wherever it is told."""

from pathlib import Path

from tiny_runs import invoke, write

from aimbot_lab.experiment.analysis.learning_curve import read_curves
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.runs.history import find_run
from aimbot_lab.tracking.tracker import NOTE_TAG


def test_view_result_explain_note_and_compare_tell_one_step(tmp_path: Path) -> None:
    file = write(tmp_path)
    easy = ("train.n_steps=128", "train.total_steps=4096", "env.goto_win_radius=25")
    words = [word for one in easy for word in ("--set", one)]
    trained = invoke(tmp_path, "run", file, "--json", *words, wanted=(0, 1))
    result, folder = trained.document, DataFolder(tmp_path)
    step = result["lessons"][0]["ended_at_step"]
    assert step % (16 * 128) != 0  # within a rollout, else nothing is told apart
    assert f"passed 'first' at step {step:,}" in trained.said
    explained = invoke(tmp_path, "explain", result["run_id"], "--json").document
    assert explained["lessons"][0]["end"]["step"] == step
    run = find_run(folder, result["run_id"])
    assert f"{step:,}" in run.tags[NOTE_TAG]
    (curve,) = read_curves([(run, load_curriculum(file).config)], data_folder=folder)
    assert curve.lessons[0].step == step
