"""What is decided takes effect where a rollout begins; settings at the far ends."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th
from test_evaluating_callback import walking
from tiny_training import ROWS, Asked, Keeper, Listener, Sink, learn, plan

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.evidence import Outcome, StartOrder
from aimbot_lab.curriculum.progress import EPISODES_NAME, EVENTS_NAME, KeptRecord, read_record
from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.callbacks import assembly, lesson_callback, report_callback
from aimbot_lab.training.callbacks.lesson_callback import stoppable_updates
from aimbot_lab.training.callbacks.report_callback import EpisodeTally, ReportCallback
from aimbot_lab.training.checks import update_cost
from aimbot_lab.training.processes.cores import denormals_as_zero
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan
from aimbot_lab.training.settings import TrainSettings as Train
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.spec import arena_spec

ROLLOUT = 32 * ROWS
EASY = CompletionCriteria(measure="progress", threshold=0.05, min_lesson_length=30)


class Record(Sink):
    """Notes the step of the training at which it grew, and keeps its checkpoints."""

    def __init__(self, training: Training) -> None:
        super().__init__()
        self._training = training
        self.grew_at: set[int] = set()
        self.checkpoints: list[Checkpoint] = []

    def grow(self, name: str, text: str, *, place: int) -> bool:
        self.grew_at.add(self._training.model.num_timesteps)
        return super().grow(name, text, place=place)

    def keep(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)

    @property
    def kept(self) -> KeptRecord:
        texts = (self.files.get(name, "") for name in (EPISODES_NAME, EVENTS_NAME))
        return read_record(*texts)


def two_lessons(algo: str) -> TrainingPlan:
    made = plan(algo)
    env = replace(made.env, time_limit=1.0)
    first = replace(made.lessons[0], completion_criteria=EASY)
    return replace(made, env=env, lessons=(first, replace(made.lessons[0], name="two")))


@pytest.mark.parametrize("algo", ["ppo", "dqn"])
def test_a_lesson_passed_within_a_rollout_gives_way_where_the_next_begins(algo: str) -> None:
    training = Training(two_lessons(algo))
    record, world, set_at = Record(training), training.env.world, []
    set_scenario = world.set_scenario
    world.set_scenario = lambda scenario: (  # type: ignore[method-assign]
        set_at.append(training.model.num_timesteps) or set_scenario(scenario)
    )
    learn(training, links=RunLinks(record=record))
    rollout = ROLLOUT if algo == "ppo" else training.model.train_freq.frequency * ROWS
    passed = training.progress.lesson_reports[0].ended_at_step
    assert passed is not None
    began = -(-passed // rollout) * rollout
    assert set_at == [0, began]
    assert {step % rollout for step in record.grew_at} == {0}
    episodes = record.kept.episodes
    assert max(one.step for one in episodes if one.lesson == 0) == passed
    # What ended from there to the next rollout, and what was still running, counts for neither.
    assert min(one.step for one in episodes if one.lesson == 1) > began
    if algo == "ppo":
        assert passed < began


def test_the_last_rollout_counts_and_one_that_passes_the_last_lesson_is_learned_from() -> None:
    whole = Training(plan("ppo", total_steps=1024))
    learn(whole)
    assert whole.progress.step == whole.model.num_timesteps == 1024
    ending = replace(two_lessons("ppo"), lessons=two_lessons("ppo").lessons[:1])
    for total_steps in (ROLLOUT, 8 * ROLLOUT):
        train, sink = replace(ending.train, total_steps=total_steps), Sink()
        training = Training(replace(ending, train=train))
        ended = learn(training, sink)
        assert training.progress.finished
        assert not ended.stopped
        passed = training.progress.lesson_reports[0].ended_at_step
        assert passed is not None
        assert passed < ended.steps == ROLLOUT
        assert training.model._n_updates == training.plan.train.n_epochs
        assert [step for step, metrics in sink.logged if "train/loss" in metrics] == [ROLLOUT]
        assert training._best.about["step"] == ROLLOUT


def test_a_request_to_stop_ends_a_training_where_a_rollout_begins_and_loses_nothing() -> None:
    asked, training = Asked({"kind": "stop"}, call=3), Training(plan("ppo"))
    unbroken = Training(plan("ppo"))
    learn(unbroken, should_stop=lambda: unbroken.model.num_timesteps > 2 * ROLLOUT)
    ended = learn(training, links=RunLinks(requests=asked))
    assert asked.answers == {"0": {"stopping": True}}
    assert ended.stopped
    assert ended.steps == training.progress.step == 2 * ROLLOUT
    # Where a rollout is broken off, the same is left: what came before it began.
    assert unbroken.progress.state() == training.progress.state()
    assert unbroken.model.num_timesteps == 2 * ROLLOUT


def test_a_stop_within_a_proof_forgets_the_rollout_that_led_to_it() -> None:
    training, listener = Training(walking(finish=0.0)), Listener()
    record, stop = Record(training), []

    def should_stop() -> bool:
        greedy = training.progress.greedy
        if greedy.play not in played:  # at the first step
            played.append(play := greedy.play)
            greedy.play = lambda *given: stop.append(True) or play(*given)
            played.append(greedy.play)
        return bool(stop)

    played: list[Any] = []
    links = RunLinks(record=record, checkpoints=record)
    ended = learn(training, observer=listener, should_stop=should_stop, links=links)
    assert (stop, listener.notices) == ([True], [])
    assert ended.stopped
    assert ended.steps % (16 * 16) == 0
    assert ended.steps == training.progress.step > 0
    assert training.progress.lesson_reports[0].ended_at_step is None
    assert not [one for one in record.kept.events if one["kind"] == "greedy"]
    assert max(one.step for one in record.kept.episodes) <= ended.steps
    again = Training(walking(finish=0.0))
    learn(again, should_stop=lambda: again.model.num_timesteps > ended.steps)
    assert again.progress.state() == training.progress.state()


def test_episodes_are_kept_as_they_were_when_their_step_was_over() -> None:
    training = Training(two_lessons("ppo"))
    env = training.env
    first = env.world.set_scenario(training.progress.scenario)
    env.reset()
    seen, kept, actions = [], [], np.zeros((ROWS, *env.action_space.shape), np.int64)
    for step in range(40):
        env.step(actions)
        ended = env.episodes
        assert ended is not None
        if ended:
            seen.append((step, len(ended.cell), int(ended.running_order.min())))
            kept.append(ended.beside(ended.oldest_running(first), first)._replace(step=step))
    assert len(seen) > 1
    assert seen == [(one.step, len(one.cell), int(one.running_order.min())) for one in kept]


@pytest.mark.parametrize("first", [1, 3])
def test_a_kept_batch_releases_what_the_batch_itself_does(first: int) -> None:
    env = WorldVecEnv(Training(two_lessons("ppo")).env.world, seed=3)
    env.world.set_scenario(Scenario({"goto": 1.0}))
    env.reset()
    random, orders = np.random.default_rng(1), [StartOrder(first) for _ in range(2)]
    released: list[int] = []
    for step in range(60):
        if step in (20, 40):
            env.world.set_scenario(Scenario({"goto": 1.0}))
        env.step(np.array([env.action_space.sample() for _ in range(ROWS)]))
        batch = env.episodes
        assert batch is not None
        outcomes = [Outcome(bool(random.integers(2)), cell, None) for cell in batch.cell]
        kept = batch.beside(batch.oldest_running(first), first)
        one, other = orders[0].add(batch, outcomes), orders[1].add(kept, outcomes)
        assert one == other
        released.append(len(one))
    assert sum(released) > 0


@pytest.mark.parametrize("algo", ["dqn", "hybrid_ppo"])
def test_a_stop_in_the_middle_of_an_update_is_heeded_and_resumed_to_the_bit(algo: str) -> None:
    given = plan(algo, n_epochs=2, total_steps=3 * ROLLOUT)
    broken, keeper, seen = Training(given), Keeper(), list[int]()

    def in_the_second_update() -> bool:
        # Between two steps of the environments the counter stands still.
        seen.append(broken.model.num_timesteps)
        return len(seen) - len({*seen}) >= 6

    ended = learn(broken, should_stop=in_the_second_update, links=keeper.links)
    assert ended.stopped
    assert ended.steps < 3 * ROLLOUT
    resumed = keeper.resumed(Training(given), keeper.checkpoints[-1])
    assert learn(resumed).state_sha256 == learn(Training(given)).state_sha256


def test_nothing_is_asked_after_the_block() -> None:
    training = Training(plan("hybrid_ppo", total_steps=ROLLOUT))
    with stoppable_updates(training.model, lambda: True):
        pass
    assert not learn(training).stopped
    assert training.model.engine.before_step is None


@pytest.mark.parametrize(
    "given",
    [
        {"algo": "dqn"},
        {"algo": "ppo", "vf_coef": 0.0},  # what only values are made of has no gradient
        {"algo": "hybrid_ppo", "vf_coef": 0.0, "engine": "fused"},
        {"algo": "hybrid_ppo", "vf_coef": 0.0, "engine": "torch"},
    ],
)
def test_an_optimizer_keeps_no_denormal_numbers(given: dict[str, Any]) -> None:
    training = Training(plan(**given, total_steps=ROLLOUT))
    optimizer, moments = training.model.policy.optimizer, ("exp_avg", "exp_avg_sq")
    for weights in (one for group in optimizer.param_groups for one in group["params"]):
        tiny = {name: th.full_like(weights, 1e-39) for name in moments}
        optimizer.state[weights] = {"step": th.tensor(9.0), **tiny}
    assert not learn(training).stopped
    for state in optimizer.state.values():
        assert state["step"] > 9
        for sizes in (state[name].abs() for name in moments):
            assert not ((sizes > 0) & (sizes < th.finfo(th.float32).tiny)).any()
    assert th.tensor(1e-40) > 0  # elsewhere all goes on as before


def test_denormal_numbers_stay_where_little_else_divides_and_where_the_mode_is_anothers() -> None:
    weights = [th.zeros(1)]
    for epsilon, is_zero in ((1e-8, True), (1e-12, False)):
        optimizer = th.optim.Adam(weights, eps=epsilon)
        with denormals_as_zero(optimizer):
            assert (th.tensor(1e-40, dtype=th.float32) == 0) == is_zero
        assert th.tensor(1e-40) > 0
    with denormals_as_zero(th.optim.Adam(weights)):
        with denormals_as_zero(th.optim.Adam(weights)):
            pass
        assert th.tensor(1e-40) == 0


@pytest.mark.parametrize(("algo", "rate"), [("ppo", 1e30), ("dqn", 1e308), ("hybrid_ppo", 1e308)])
def test_a_learning_rate_without_bounds_fails_in_a_line(algo: str, rate: float) -> None:
    training = Training(plan(algo, learning_rate=rate))
    with pytest.raises(
        RunFailedError, match=r"diverged at step [\d,]+.*lower train\.learning_rate"
    ) as caught:
        learn(training)
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
    training = Training(replace(given, env=replace(given.env, time_limit=0.0001)))
    learn(training)
    assert np.isfinite(training.model.rollout_buffer.observations).all()


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
    monkeypatch.setattr(assembly, "PLANNED_POINTS", 20)
    monkeypatch.setattr(report_callback, "MAX_POINTS", 24)
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at each rollout
    keeper, sink, steps = Keeper(), Sink(), 16 * 2 * 20
    for factor in (1, 3, 9):
        made = plan("hybrid_ppo", total_steps=factor * steps, n_steps=2, batch_size=32)
        training = Training(made)
        if keeper.checkpoints:
            training.resume(keeper.checkpoints[-1].state)
        learn(training, sink, links=keeper.links)
    assert len({step for step, _ in sink.logged}) <= 25
    assert sink.logged[-1][0] == 9 * steps
