"""What is decided about a training takes effect where a rollout begins, not within one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_greedy_episodes import walking
from tiny_training import ROWS, Sink, plan

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.episodes import Outcome, StartOrder
from aimbot_lab.curriculum.records import EPISODES_NAME, EVENTS_NAME, KeptRecord, read_record
from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.checkpoint.packing import pack, unpack
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks, SilentObserver
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training

ROLLOUT = 32 * ROWS
EASY = CompletionCriteria(measure="progress", threshold=0.05, min_lesson_length=30)


class Record:
    """Keeps what grows, with the step of the training at which it did, and its checkpoints."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self.files: dict[str, bytes] = {}
        self.grew_at: set[int] = set()
        self.checkpoints: list[Checkpoint] = []

    def grow(self, name: str, text: str, *, place: int) -> bool:
        self.files[name] = self.files.get(name, b"")[:place] + text.encode()
        self.grew_at.add(self._training.model.num_timesteps)
        return True

    def sync(self) -> None:
        pass

    def keep(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.append(checkpoint)

    @property
    def kept(self) -> KeptRecord:
        texts = (self.files.get(name, b"").decode() for name in (EPISODES_NAME, EVENTS_NAME))
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

    def watched(scenario: Scenario) -> int:
        set_at.append(training.model.num_timesteps)
        return set_scenario(scenario)

    world.set_scenario = watched  # type: ignore[method-assign]
    training.learn(Sink(), SilentObserver(), lambda: False, links=RunLinks(record=record))
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
    whole = Training(plan("ppo"))
    whole.learn(Sink(), SilentObserver(), lambda: False)
    assert whole.progress.step == whole.model.num_timesteps == 3072
    ending = replace(two_lessons("ppo"), lessons=two_lessons("ppo").lessons[:1])
    for total_steps in (ROLLOUT, 8 * ROLLOUT):
        train, sink = replace(ending.train, total_steps=total_steps), Sink()
        training = Training(replace(ending, train=train))
        ended = training.learn(sink, SilentObserver(), lambda: False)
        assert training.progress.finished
        assert not ended.stopped
        passed = training.progress.lesson_reports[0].ended_at_step
        assert passed is not None
        assert passed < ended.steps == ROLLOUT
        assert training.model._n_updates == training.plan.train.n_epochs
        assert [step for step, metrics in sink.logged if "train/loss" in metrics] == [ROLLOUT]
        assert training._best.about["step"] == ROLLOUT


class AskedToStop:
    """A request to stop that is there at the third look."""

    def __init__(self) -> None:
        self.looks, self.answers = 0, []

    def requests(self) -> Sequence[tuple[str, Any]]:
        self.looks += 1
        return [("0", {"kind": "stop"})] if self.looks == 3 else []

    def answer(self, key: str, document: Mapping[str, Any]) -> None:
        self.answers.append(document)

    def keep_change(self, step: int, document: Mapping[str, Any]) -> None:
        pass

    def changes(self) -> Sequence[tuple[int, Any]]:
        return []


def test_a_request_to_stop_ends_a_training_where_a_rollout_begins_and_loses_nothing() -> None:
    asked, training = AskedToStop(), Training(plan("ppo"))
    unbroken = Training(plan("ppo"))
    unbroken.learn(Sink(), SilentObserver(), lambda: unbroken.model.num_timesteps > 2 * ROLLOUT)
    ended = training.learn(Sink(), SilentObserver(), lambda: False, links=RunLinks(requests=asked))
    assert asked.answers == [{"stopping": True}]
    assert ended.stopped
    assert ended.steps == training.progress.step == 2 * ROLLOUT
    # Where a rollout is broken off, the same is left: what came before it began.
    assert unbroken.progress.state() == training.progress.state()
    assert unbroken.model.num_timesteps == 2 * ROLLOUT


def test_a_stop_within_a_proof_forgets_the_rollout_that_led_to_it() -> None:
    training = Training(walking(finish=0.0))
    record, stop = Record(training), []
    links = RunLinks(record=record, checkpoints=record)

    def should_stop() -> bool:
        return bool(stop)

    play = None

    def broken_off(scenario: Scenario, episodes: int) -> Sequence[Outcome]:
        stop.append(True)
        assert play is not None
        return play(scenario, episodes)

    class Watcher(SilentObserver):
        """Lays hold of what plays before anything is learned."""

        def notice(self, text: str) -> None:
            raise AssertionError(text)

    def first_step() -> bool:
        nonlocal play
        if play is None:
            play = training.progress.greedy.play
            training.progress.greedy.play = broken_off
        return should_stop()

    ended = training.learn(Sink(), Watcher(), first_step, links=links)
    assert stop == [True]
    assert ended.stopped
    rollout = 16 * 16
    assert ended.steps % rollout == 0
    assert ended.steps == training.progress.step > 0
    assert training.progress.lesson_reports[0].ended_at_step is None
    assert not [one for one in record.kept.events if one["kind"] == "greedy"]
    assert max(one.step for one in record.kept.episodes) <= ended.steps
    again = Training(walking(finish=0.0))
    again.learn(Sink(), SilentObserver(), lambda: again.model.num_timesteps > ended.steps)
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


@pytest.mark.parametrize("first", [1, 2, 3])
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


def test_a_checkpoint_of_before_is_refused_in_a_line() -> None:
    training = Training(plan("ppo", total_steps=ROLLOUT))
    record = Record(training)
    training.learn(Sink(), SilentObserver(), lambda: False, links=RunLinks(checkpoints=record))
    old = pack({**unpack(record.checkpoints[0].state), "format": 2})
    with pytest.raises(LabError, match=r"it has format 2, this version reads 3$"):
        Training(plan("ppo", total_steps=ROLLOUT)).resume(old)
