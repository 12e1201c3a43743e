"""Hyper-parameters that an algorithm does not take are faults with their place in the file."""

from pathlib import Path

import pytest
from broken_curriculum import GOOD, faults

from aimbot_lab.experiment.config.document import load_curriculum


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained_by(text: str) -> str:
    return GOOD + text


@pytest.mark.parametrize(
    ("train", "expected"),
    [
        (
            "  algo: qrdqn\n  options: {n_quantile: 20}\n",
            "c.yaml:16:13: train.options.n_quantile: qrdqn has no such option "
            "(nearest valid key: n_quantiles)",
        ),
        (
            "  algo: dqn\n  options: {tau: big}\n",
            "c.yaml:16:18: train.options.tau: must be a number (got 'big')",
        ),
        (
            "  algo: dqn\n  options: {learning_starts: 1.5}\n",
            "c.yaml:16:30: train.options.learning_starts: must be a whole number (got 1.5)",
        ),
        (
            "  algo: dqn\n  options: {tau: true}\n",
            "c.yaml:16:18: train.options.tau: must be a number (got true)",
        ),
        (
            "  algo: recurrent_ppo\n  options: {n_lstm_layers: 0}\n",
            "c.yaml:16:28: train.options.n_lstm_layers: must be at least 1 (got 0)",
        ),
        (
            "  options: {gamma: 0.9}\n",
            "c.yaml:15:20: train.options.gamma: is a setting of its own: train.gamma",
        ),
        (
            "  options: {clip_range_vf: [1]}\n",
            "c.yaml:15:28: train.options.clip_range_vf: "
            "must be a number, true, false or null (got a list)",
        ),
        (
            "  algo: trpo\n  clip_range: 0.1\n",
            "c.yaml:16:15: train.clip_range: does nothing with trpo: leave it out",
        ),
        (
            "  masks: true\n",
            "c.yaml:15:10: train.masks: does nothing with ppo: leave it out",
        ),
        (
            "  algo: hybrid_ppo\n  dual_clip: 1\n",
            "c.yaml:16:14: train.dual_clip: must be greater than 1 (got 1)",
        ),
        (
            "  algo: hybrid_ppo\n  options: {clip_range_vff: 1}\n",
            "c.yaml:16:13: train.options.clip_range_vff: hybrid_ppo has no such option "
            "(nearest valid key: clip_range_vf)",
        ),
    ],
)
def test_a_wrong_hyper_parameter_is_named_with_its_place(train: str, expected: str) -> None:
    assert faults(trained_by(train)) == [expected]


def test_options_of_an_unknown_algorithm_are_not_judged() -> None:
    (line,) = faults(trained_by("  algo: ppoo\n  options: {n_quantiles: 3}\n"))
    assert line.startswith("c.yaml:15:9: train.algo: must be 'ppo', 'maskable_ppo'")


def test_a_batch_from_a_replay_buffer_need_not_divide_the_rollout() -> None:
    text = GOOD.replace("1024", "1000") + "  algo: dqn\n"
    Path("c.yaml").write_text(text)
    assert load_curriculum("c.yaml").config.train.batch_size == 1000
    assert "batch_size" in faults(GOOD.replace("1024", "1000"))[0]


def test_options_survive_being_resolved() -> None:
    Path("c.yaml").write_text(trained_by("  algo: dqn\n  options: {tau: 0.5, buffer_size: 1e4}\n"))
    loaded = load_curriculum("c.yaml", ["train.options.target_update_interval=500"])
    assert loaded.config.train.options == {
        "tau": 0.5,
        "buffer_size": 10_000,
        "target_update_interval": 500,
    }
    Path("r.yaml").write_text(loaded.resolved_text)
    assert load_curriculum("r.yaml").config == loaded.config
