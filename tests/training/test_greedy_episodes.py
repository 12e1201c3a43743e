"""Learners that explore are judged by what they do without it."""

import pytest
from tiny_training import Listener, Sink, plan

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.callbacks import evaluation_callback
from aimbot_lab.training.callbacks.evaluation_callback import greedy_play
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import TrainingPlan, TrainSettings
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
    ended = training.learn(Sink(), watcher, lambda: False)
    return training, watcher, ended.state_sha256


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
    play = greedy_play(training.plan, training.model, should_stop=lambda: False)
    assert play is not None
    won = [outcome.won for outcome in play(Scenario({"walk": 1.0}, NEAR), 300)]
    assert sum(won) / len(won) > 0.3
    assert learned(walking(threshold=0.3))[2] == sha


def test_greedy_episodes_draw_from_no_generator_of_the_training() -> None:
    short = walking(total_steps=4096, threshold=0.99)
    _, _, without = learned(short)
    training = Training(short)
    play = greedy_play(training.plan, training.model, should_stop=lambda: False)
    assert play is not None

    def plays() -> bool:
        if training.model.num_timesteps == 1024:
            assert len(play(training.progress.scenario, 20)) == 20
        return False

    assert training.learn(Sink(), SilentObserver(), plays).state_sha256 == without


def test_agents_that_play_as_they_learn_prove_nothing_twice() -> None:
    model = Training(walking()).model  # which is not looked at
    assert greedy_play(plan("ppo"), model, should_stop=lambda: False) is None
    assert greedy_play(plan("dqn"), model, should_stop=lambda: False) is not None


def test_a_stop_ends_the_greedy_episodes_at_once_and_proves_nothing() -> None:
    training, asked = Training(walking()), []

    def should_stop() -> bool:
        asked.append(True)
        return len(asked) == 3

    play = greedy_play(training.plan, training.model, should_stop=should_stop)
    assert play is not None
    assert play(Scenario({"walk": 1.0}, NEAR), 100) == []
    assert len(asked) == 3


def test_episodes_that_never_end_are_lost_by_their_reward_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(*_: object, **__: object) -> None:
        raise RunFailedError("episodes did not end")

    monkeypatch.setattr(evaluation_callback, "play_scenario", endless)
    training = Training(
        walking(measure="reward", reward_range=(0.0, 200.0), threshold=1.0, total_steps=16_000)
    )
    training.learn(Sink(), watcher := Listener(), lambda: False)
    assert not training.progress.finished
    assert "without exploration it won 0 of" in watcher.notices[0]
