"""Learners that explore are judged by what they do without it; evaluation changes nothing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tiny_training import Keeper, Listener, Sink, learn, plan

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.callbacks import evaluation_callback, lesson_callback
from aimbot_lab.training.callbacks.evaluation_callback import greedy_play
from aimbot_lab.training.settings import EvaluationSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.gorge.settings import GorgeRewardWeights, GorgeSettings

NEAR = {"walk": (1.0, 0.0, 0.0, 0.0, 0.0)}


def walking(*, finish: float = 1.0, total_steps: int = 64_000, **criteria: object) -> TrainingPlan:
    """A table that mostly takes any action, near the end of the map; `finish` is all it earns."""
    ends = CompletionCriteria(**{"threshold": 0.1, "min_lesson_length": 20, **criteria})
    lesson = Lesson(name="near", targets={"walk": 1.0}, difficulty=NEAR, completion_criteria=ends)
    env = GorgeSettings(
        num_envs=16,
        max_steps=400,
        features=("position", "list_treasure"),
        rewards=GorgeRewardWeights(finish=finish, step_score=0.0),
    )
    explores = {"exploration_initial_eps": 0.9, "exploration_final_eps": 0.9}
    train = TrainSettings(algo="q_learning", total_steps=total_steps, n_steps=16, options=explores)
    return TrainingPlan(1, env, (lesson,), train)


def learned(plan: TrainingPlan) -> tuple[Training, Listener, str]:
    training, watcher = Training(plan), Listener()
    return training, watcher, learn(training, observer=watcher).state_sha256


def play_of(training: Training, should_stop: Callable[[], bool] = lambda: False) -> Any:
    """What plays greedy episodes of a training that explores."""
    play = greedy_play(training.plan, training.model, should_stop=should_stop)
    assert play is not None
    return play


def test_a_lesson_that_exploration_wins_is_not_passed_by_an_agent_that_learned_nothing() -> None:
    training, watcher, _ = learned(walking(finish=0.0, total_steps=16_000))
    assert not training.progress.finished
    assert "without exploration it won" in watcher.notices[0]
    trusting, watcher, _ = learned(walking(finish=0.0, total_steps=16_000, greedy_proof=False))
    assert trusting.progress.finished
    assert watcher.notices == []


def test_the_agent_of_a_passed_lesson_wins_without_exploration() -> None:
    training, watcher, sha = learned(walking(threshold=0.3))
    assert training.progress.finished
    assert watcher.notices[-1].endswith("which proves the lesson as well")
    won = [outcome.won for outcome in play_of(training)(Scenario({"walk": 1.0}, NEAR), 300)]
    assert sum(won) / len(won) > 0.3
    assert learned(walking(threshold=0.3))[2] == sha


def test_greedy_episodes_draw_from_no_generator_of_the_training() -> None:
    short = walking(total_steps=4096, threshold=0.99)
    training = Training(short)
    play = play_of(training)

    def plays() -> bool:
        if training.model.num_timesteps == 1024:
            assert len(play(training.progress.scenario, 20)) == 20
        return False

    assert learn(training, should_stop=plays).state_sha256 == learned(short)[2]


def test_agents_that_play_as_they_learn_prove_nothing_twice() -> None:
    model = Training(walking()).model  # which is not looked at
    assert greedy_play(plan("ppo"), model, should_stop=lambda: False) is None
    assert greedy_play(plan("dqn"), model, should_stop=lambda: False) is not None


def test_a_stop_ends_the_greedy_episodes_at_once_and_proves_nothing() -> None:
    asked: list[bool] = []
    play = play_of(Training(walking()), lambda: asked.append(True) or len(asked) == 3)
    assert play(Scenario({"walk": 1.0}, NEAR), 100) == []
    assert len(asked) == 3


def test_episodes_that_never_end_are_lost_by_their_reward_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(*_: object, **__: object) -> None:
        raise RunFailedError("episodes did not end")

    monkeypatch.setattr(evaluation_callback, "play_scenario", endless)
    by_reward = {"measure": "reward", "reward_range": (0.0, 200.0), "threshold": 1.0}
    training, watcher, _ = learned(walking(**by_reward, total_steps=16_000))
    assert not training.progress.finished
    assert "without exploration it won 0 of" in watcher.notices[0]


EVERY = 1024


def evaluated(algo: str, steps: int, *, every: int = EVERY) -> TrainingPlan:
    settings = EvaluationSettings(every=every, episodes=30)
    return replace(plan(algo, total_steps=steps), evaluation=settings)


def evaluations(sink: Sink) -> dict[int, dict[str, float]]:
    return {step: metrics for step, metrics in sink.logged if "eval/win_rate" in metrics}


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_the_training_is_the_same_to_the_bit(algo: str) -> None:
    without = learn(Training(plan(algo, total_steps=1024)))
    with_it = learn(Training(evaluated(algo, 1024, every=512)), sink := Sink())
    assert with_it.state_sha256 == without.state_sha256
    assert len(evaluations(sink)) >= 3


def test_points_come_before_training_every_so_many_steps_and_at_the_end_also_when_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at every rollout
    kept, whole, after = Keeper(), Sink(), Sink()
    learn(Training(evaluated("ppo", 2560)), whole, links=kept.links)
    found = evaluations(whole)
    assert list(found) == [0, EVERY, 2 * EVERY, 2560]
    for metrics in found.values():
        assert set(metrics) == {
            *("eval/win_rate", "eval/win_rate_lower", "eval/win_rate_upper"),
            *(f"eval/win_rate/goto/{level}" for level in (1, 2, 3, 4, 5)),
        }
        lower, upper = (metrics[f"eval/win_rate_{end}"] for end in ("lower", "upper"))
        assert lower <= metrics["eval/win_rate"] <= upper
    last = kept.checkpoints[2]
    assert last.step == EVERY
    learn(kept.resumed(Training(evaluated("ppo", 2560)), last), after)
    rest = {step: metrics for step, metrics in found.items() if step > last.step}
    assert list(rest) == list(evaluations(after))
    assert rest == evaluations(after)


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
        learn(Training(evaluated("ppo", 512)))
