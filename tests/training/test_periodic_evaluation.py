"""Evaluation while an agent trains changes nothing in it, and its points come once."""

from dataclasses import replace

import pytest
from tiny_training import Keeper, Sink, plan

from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.training.callbacks import evaluation_callback, lesson_callback
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import EvaluationSettings, TrainingPlan
from aimbot_lab.training.training import Training

EVERY = 1024
WITH = EvaluationSettings(every=EVERY, episodes=30)


def learned(plan: TrainingPlan) -> tuple[str, Sink]:
    sink = Sink()
    ended = Training(plan).learn(sink, SilentObserver(), lambda: False)
    return ended.state_sha256, sink


def evaluations(sink: Sink) -> dict[int, dict[str, float]]:
    return {step: metrics for step, metrics in sink.logged if "eval/win_rate" in metrics}


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_the_training_is_the_same_to_the_bit(algo: str) -> None:
    short = plan(algo, total_steps=1024)
    without, _ = learned(short)
    with_it, sink = learned(replace(short, evaluation=replace(WITH, every=512)))
    assert with_it == without
    assert len(evaluations(sink)) >= 3


def test_points_come_before_training_every_so_many_steps_and_at_the_end() -> None:
    _, sink = learned(replace(plan("ppo", total_steps=2560), evaluation=WITH))
    found = evaluations(sink)
    assert list(found) == [0, EVERY, 2 * EVERY, 2560]
    for metrics in found.values():
        assert set(metrics) == {
            "eval/win_rate",
            "eval/win_rate_lower",
            "eval/win_rate_upper",
            *(f"eval/win_rate/goto/{level}" for level in (1, 2, 3, 4, 5)),
        }
        assert metrics["eval/win_rate_lower"] <= metrics["eval/win_rate"]
        assert metrics["eval/win_rate"] <= metrics["eval/win_rate_upper"]


def test_a_resumed_training_goes_on_with_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at every rollout
    evaluated = replace(plan("ppo", total_steps=1536), evaluation=replace(WITH, every=512))
    kept, whole, after = Keeper(), Sink(), Sink()
    Training(evaluated).learn(whole, SilentObserver(), lambda: False, links=kept.links)
    last = kept.checkpoints[len(kept.checkpoints) // 2]
    assert 0 < last.step < 1536
    resumed = Training(evaluated)
    resumed.resume(last.state)
    resumed.learn(after, SilentObserver(), lambda: False)
    first = {step: found for step, found in evaluations(whole).items() if step <= last.step}
    assert [*first, *evaluations(after)] == [*evaluations(whole)]
    assert {**first, **evaluations(after)} == evaluations(whole)


@pytest.mark.parametrize("episodes", [1, 29])
def test_fewer_episodes_than_make_a_rate_are_refused(episodes: int) -> None:
    with pytest.raises(ValueError, match="greater than or equal to 30"):
        EvaluationSettings(every=1, episodes=episodes)


def test_a_world_that_can_not_be_made_beside_the_training_s_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one line and the exit code 1: the file itself is right."""

    def refuse(*_: object, **__: object) -> None:
        raise ConfigurationError("one licence alone")

    monkeypatch.setattr(evaluation_callback, "make_world", refuse)
    with pytest.raises(RunFailedError, match=r"in 30 copies beside .*: one licence alone"):
        learned(replace(plan("ppo", total_steps=512), evaluation=WITH))
