"""Settings at the far ends: told before the start, stopped between minibatches, never silent."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tiny_training import Sink, plan

from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.training.callbacks.report_callback import EpisodeTally, ReportCallback
from aimbot_lab.training.callbacks.training_end import stoppable_updates
from aimbot_lab.training.checks import update_cost
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks, SilentObserver, TrainingOutcome
from aimbot_lab.training.settings import NetworkSettings
from aimbot_lab.training.settings import TrainSettings as Train
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec

ROLLOUT = 16 * 32  # of a tiny training: environments, steps
ALGORITHMS = ["ppo", "maskable_ppo", "recurrent_ppo", "trpo", "dqn", "qrdqn", "hybrid_ppo"]


class Keeper:
    def __init__(self) -> None:
        self.checkpoints: list[Checkpoint] = []
        self.parts: dict[str, bytes] = {}

    def keep(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)
        self.parts |= {name: part() for name, part in checkpoint.parts.items()}


class Listener(SilentObserver):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


def learn(
    training: Training, should_stop: Callable[[], bool], keeper: Keeper | None = None
) -> TrainingOutcome:
    links = RunLinks(checkpoints=keeper)
    return training.learn(Sink(), SilentObserver(), should_stop, links=links)


@pytest.mark.parametrize("algo", [k for k, one in ALGORITHMS.items() if not one.numbers_only])
def test_a_stop_in_the_middle_of_an_update_is_heeded_and_resumed_to_the_bit(algo: str) -> None:
    given = plan(algo, n_epochs=2, total_steps=4 * ROLLOUT)
    whole = Training(given)
    expected = learn(whole, lambda: False)
    broken, keeper = Training(given), Keeper()
    steps_in_updates = 0

    def in_the_second_update() -> bool:
        nonlocal steps_in_updates
        # Between two steps of the environments the counter stands still.
        steps_in_updates += broken.model.num_timesteps == seen[0]
        seen[0] = broken.model.num_timesteps
        return steps_in_updates >= 6

    seen = [-1]
    ended = learn(broken, in_the_second_update, keeper)
    assert ended.stopped
    assert ended.steps < 4 * ROLLOUT
    resumed = Training(given)
    last = keeper.checkpoints[-1]
    resumed.resume(last.state, keeper.parts.__getitem__)
    assert learn(resumed, lambda: False).state_sha256 == expected.state_sha256


def test_nothing_is_asked_after_the_block() -> None:
    training = Training(plan("hybrid_ppo", total_steps=ROLLOUT))
    with stoppable_updates(training.model, lambda: True):
        pass
    assert not learn(training, lambda: False).stopped
    assert training.model.engine.before_step is None


@pytest.mark.parametrize("algo", ["dqn", "hybrid_ppo", "ppo"])
def test_a_learning_rate_without_bounds_fails_in_a_line(algo: str) -> None:
    training = Training(plan(algo, learning_rate=1e308))
    with pytest.raises(RunFailedError, match=r"lower train\.learning_rate") as caught:
        learn(training, lambda: False)
    assert "\n" not in str(caught.value)


def test_losses_that_are_no_numbers_are_told_once() -> None:
    training, listener = Training(plan("hybrid_ppo")), Listener()
    report = ReportCallback(
        training.env, training.progress, sink=Sink(), observer=listener,
        tally=EpisodeTally((), ()), every_steps=1, stopped=lambda: False,
    )  # fmt: skip
    for loss in (0.5, float("nan"), float("inf"), 0.5, float("nan")):
        report._tell_lost({"train/loss": loss, "train/entropy": float("nan")})
    (notice,) = listener.notices
    assert notice.startswith("train/loss: not finite at step 0")
    assert "train.reward_scale" in notice


def test_the_shortest_episode_leaves_observations_finite() -> None:
    given = plan("hybrid_ppo", total_steps=2 * ROLLOUT)
    shortest = replace(given, env=replace(given.env, time_limit=0.0001))
    training = Training(shortest)
    learn(training, lambda: False)
    observations = training.model.rollout_buffer.observations
    assert np.isfinite(observations).all()


def test_the_cost_of_an_update_counts_its_products() -> None:
    train = Train(n_steps=10, batch_size=40, n_epochs=3, network=NetworkSettings(layers=(100, 50)))
    env = ArenaSettings(num_envs=8)
    cost = update_cost(train, env)
    inputs = len(arena_spec(env).observation_names)
    assert cost.weights == inputs * 100 + 100 * 50
    assert cost.multiply_adds == 3 * 2 * cost.weights * 80 * 3
    assert cost.of_minibatch == 3 * 2 * cost.weights * 40
    assert not cost.costly


def test_more_steps_for_a_run_still_fit_a_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aimbot_lab.training.callbacks.assembly.MAX_POINTS", 20)
    monkeypatch.setattr("aimbot_lab.training.callbacks.report_callback.MAX_POINTS", 24)
    monkeypatch.setattr(
        "aimbot_lab.training.callbacks.lesson_callback.MAX_SHARE", 1.0
    )  # each rollout
    keeper, sink = Keeper(), Sink()
    steps = 16 * 2 * 20
    small = {"n_steps": 2, "batch_size": 32}
    first = plan("hybrid_ppo", total_steps=steps, **small)
    Training(first).learn(sink, SilentObserver(), lambda: False, links=RunLinks(checkpoints=keeper))
    for factor in (3, 9):
        more = Training(plan("hybrid_ppo", total_steps=factor * steps, **small))
        more.resume(keeper.checkpoints[-1].state)
        more.learn(sink, SilentObserver(), lambda: False, links=RunLinks(checkpoints=keeper))
    assert len({step for step, _ in sink.logged}) <= 25
    assert sink.logged[-1][0] == 9 * steps
