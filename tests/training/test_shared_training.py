"""A training by several processes learns, counts and keeps what one does.

Here the processes are threads, which exchange what they have in memory; `test_exchange.py` and
`tests/cli/test_shared_trainings.py` have real ones.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from threading import Barrier, BrokenBarrierError, Lock, Thread
from typing import Any, NamedTuple

import numpy as np
import pytest
from actor_groups import OwnActors
from tiny_training import Keeper, Sink, learn

from aimbot_lab.curriculum.settings import CompletionCriteria, Lesson
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.callbacks.evaluation_callback import EvaluationCallback
from aimbot_lab.training.checkpoint import unpack
from aimbot_lab.training.checks import check_sharing
from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings
from aimbot_lab.training.processes.exchange import Exchange, Rank, Summed, sum_of_leaves
from aimbot_lab.training.run_hooks import Checkpoint, RunLinks, SilentObserver
from aimbot_lab.training.settings import (
    ActorSettings,
    EvaluationSettings,
    TrainingPlan,
    TrainSettings,
)
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings

ROWS, STEPS = 16, 32
ROLLOUT = ROWS * STEPS


class Table:
    """Where threads lay down what the others take up."""

    def __init__(self, count: int) -> None:
        self.barrier, self.laid = Barrier(count, timeout=300), [None] * count


class Together:
    """The exchange of one thread of several."""

    def __init__(self, rank: int, table: Table) -> None:
        self.place, self._table = Rank(rank, len(table.laid)), table

    def _all(self, own: Any) -> list[Any]:
        table: Any = self._table
        table.laid[self.place.rank] = own
        table.barrier.wait()
        found = list(table.laid)
        table.barrier.wait()
        return found

    def gather(self, data: bytes) -> list[bytes]:
        return self._all(data)

    def gather_arrays(self, array: np.ndarray) -> np.ndarray:
        return np.stack(self._all(array.copy()))

    def sum_up(self, gradients: np.ndarray, terms: np.ndarray, *, shards: int) -> Summed:
        every = self._all((gradients.copy(), terms.copy()))
        both = [np.concatenate([one[k] for one in every]) for k in range(2)]
        assert len(both[0]) == shards
        return Summed(*map(sum_of_leaves, both))

    def close(self) -> None:
        pass


class Record(Sink, Keeper):
    """Keeps what a run would."""

    def __init__(self) -> None:
        Sink.__init__(self)
        Keeper.__init__(self)
        self.both = RunLinks(record=self, checkpoints=self)


class Ended(NamedTuple):
    sha256: set[str]  # of all processes
    steps: int
    files: Mapping[str, str]
    logged: list[tuple[int, str]]


@pytest.fixture(autouse=True)
def _checkpoints_at_every_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)


def plan(**given: Any) -> TrainingPlan:
    easy = CompletionCriteria(threshold=0.002, min_lesson_length=8)
    lessons = (
        Lesson(name="one", targets={"goto": 1.0}, completion_criteria=easy),
        Lesson(name="two", targets={"goto": 2.0, "attack": 1.0}),
    )
    env = ArenaSettings(num_envs=ROWS, goto_win_radius=12.0, time_limit=2.0)
    train = {
        **{"algo": "hybrid_ppo", "engine": "fused", "total_steps": 3 * ROLLOUT, "n_steps": STEPS},
        **{"batch_size": 128, "n_epochs": 2, "shards": 8, "network": network(), **given},
    }
    return TrainingPlan(seed=1, env=env, lessons=lessons, train=TrainSettings(**train))


def network(**given: Any) -> NetworkSettings:
    return NetworkSettings(layers=(16,), **given)


RUNNING = {"aim": "hybrid", "masks": True, "objective": "per_branch"}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hybrid, masks, running statistics": {**RUNNING, "network": network(scaling="running")},
    "memory": {"network": network(memory=MemorySettings(size=8, sequence_length=8))},
}


def learned(
    made: TrainingPlan,
    processes: int,
    *,
    state: bytes | None = None,
    should_stop: Callable[[int], bool] = lambda rank: False,
    spoil: Callable[[Training], None] = lambda training: None,
) -> tuple[Ended, Record]:
    """What so many processes come to; from the checkpoint `state` if given."""
    table, record = Table(processes), Record()
    exchanges: list[Exchange] = [Together(rank, table) for rank in range(processes)]
    trainings = [Training(made, exchange=exchange) for exchange in exchanges]
    outcomes: list[Any] = [None] * processes
    for training in trainings:
        if state is not None:
            training.resume(state)
    spoil(trainings[-1])

    def work(rank: int) -> None:
        how = {"links": record.both} if rank == 0 else {}
        sink = record if rank == 0 else Sink()
        try:
            outcomes[rank] = learn(
                trainings[rank], sink, should_stop=lambda: should_stop(rank), **how
            )
        except Exception as error:  # noqa: BLE001 raised again below
            outcomes[rank] = error
            table.barrier.abort()

    threads = [Thread(target=work, args=(rank,)) for rank in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = [one for one in outcomes if isinstance(one, Exception)]
    for one in sorted(failed, key=lambda one: isinstance(one, BrokenBarrierError)):
        raise one  # the cause, before what it broke for the others
    timeless = [
        (step, repr({key: v for key, v in metrics.items() if key != names.STEPS_PER_SECOND}))
        for step, metrics in record.logged
    ]
    hashes = {one.state_sha256 for one in outcomes}
    return Ended(hashes, outcomes[0].steps, record.files, timeless), record


@cache
def alone(variant: str) -> tuple[Ended, Record]:
    """What one process comes to."""
    return learned(plan(**VARIANTS[variant]), 1)


def without_times(checkpoint: Checkpoint) -> str:
    state = unpack(checkpoint.state)
    for name in ("seconds", "seconds_since_report"):
        del state["report"][name]
    np.set_printoptions(threshold=10**6)
    return repr(state)


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_number_of_processes_learns_and_keeps_what_one_does(variant: str) -> None:
    one, kept = alone(variant)
    assert len(one.sha256) == 1
    assert '"kind": "lesson"' in one.files["events.jsonl"]  # a lesson was passed
    assert [checkpoint.step for checkpoint in kept.checkpoints] == [0, 512, 1024, 1536]
    states = [*map(without_times, kept.checkpoints)]
    several, others = learned(plan(**VARIANTS[variant]), 8 if variant == "plain" else 3)
    assert several == one
    assert [*map(without_times, others.checkpoints)] == states


def test_any_number_of_processes_goes_on_from_what_others_kept() -> None:
    made = plan(**VARIANTS["memory"])
    unbroken, _ = alone("memory")
    _, record = learned(made, 2)
    resumed, _ = learned(made, 3, state=record.checkpoints[1].state)
    assert resumed.sha256 == unbroken.sha256
    assert resumed.logged == [line for line in unbroken.logged if line[0] > 512]


def test_where_one_is_asked_to_stop_all_do_and_the_training_goes_on_from_there() -> None:
    made, calls = plan(), [0]
    unbroken, _ = alone("plain")

    def third(rank: int) -> bool:
        calls[0] += rank == 1
        return rank == 1 and calls[0] >= 2

    stopped, record = learned(made, 2, should_stop=third)
    assert stopped.steps == record.checkpoints[-1].step == ROLLOUT
    resumed, _ = learned(made, 3, state=record.checkpoints[-1].state)
    assert resumed.sha256 == unbroken.sha256


def test_every_process_evaluates_so_that_none_waits_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[tuple[int, str]] = []
    evaluate, alone = EvaluationCallback._metrics, Lock()  # threads share torch's generator

    def noted(self: EvaluationCallback, settings: EvaluationSettings) -> dict[str, float]:
        with alone:
            metrics = evaluate(self, settings)
        found.append((self.num_timesteps, repr(metrics)))
        return metrics

    monkeypatch.setattr(EvaluationCallback, "_metrics", noted)
    settings = EvaluationSettings(every=ROLLOUT, episodes=30)
    evaluated = replace(plan(total_steps=ROLLOUT), evaluation=settings)
    one, _ = learned(evaluated, 1)
    once = sorted(found)
    assert [step for step, _ in once] == [0, ROLLOUT]
    found.clear()
    assert learned(evaluated, 2)[0] == one
    assert sorted(found) == sorted(once * 2)


def test_a_process_that_learned_something_else_ends_the_training() -> None:
    def spoil(training: Training) -> None:
        training.model.policy.value_net.bias.data += 1e-6

    with pytest.raises(RunFailedError, match="process 1 has other weights than process 0"):
        learned(plan(), 2, spoil=spoil)


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (plan(), "there are only 8 shards"),
        (plan(engine="torch", shards="auto"), "only hybrid_ppo with its fused engine"),
        (plan(reward_scale="running"), "running is learned in one process"),
    ],
    ids=["shards", "engine", "rewards"],
)
def test_what_can_not_be_shared_is_refused_in_a_line(made: TrainingPlan, fault: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--processes 9: .*{fault}"):
        check_sharing(made, 9)
    with pytest.raises(ConfigurationError, match=fault):
        Training(made, exchange=Together(0, Table(9)))


def played(number: int, *, state: bytes | None = None, **given: Any) -> tuple[Any, Record]:
    made, record = plan(actors=ActorSettings(number=number), **given), Record()
    training = Training(made, group=OwnActors())
    if state is not None:
        training.resume(state)
    return learn(training, record, links=record.both), record


@pytest.mark.parametrize(
    ("variant", "number"), [("plain", 1), ("hybrid, masks, running statistics", 4)]
)
def test_any_number_of_actors_in_step_ends_in_the_bits_of_one_process(
    variant: str, number: int
) -> None:
    one, kept = alone(variant)
    ended, record = played(number, **VARIANTS[variant])
    assert {ended.state_sha256} == one.sha256
    assert record.files == one.files
    assert '"kind": "lesson"' in one.files["events.jsonl"]  # a lesson was passed
    for checkpoint, other in zip(kept.checkpoints, record.checkpoints, strict=True):
        assert without_times(other) == without_times(checkpoint)


def test_actors_go_on_from_what_one_process_kept_and_it_from_theirs() -> None:
    one, kept = alone("plain")
    _, record = played(2)
    ended, _ = played(4, state=kept.checkpoints[2].state)
    assert {ended.state_sha256} == one.sha256
    resumed, _ = learned(plan(), 1, state=record.checkpoints[1].state)
    assert resumed.sha256 == one.sha256


def test_a_stop_while_the_learner_waits_counts_nothing_of_the_rollout() -> None:
    asked = iter(range(10**6))
    training = Training(plan(actors=ActorSettings(number=2)), group=OwnActors())
    ended = learn(training, should_stop=lambda: next(asked) >= 80)
    assert ended.stopped
    assert ended.steps in (0, 512, 1024)


@pytest.mark.campaign
def test_processes_of_this_machine_end_in_the_bits_of_one_process() -> None:
    made = plan(actors=ActorSettings(number=2))
    ended = Training(made).learn(Record(), SilentObserver(), lambda: False)
    assert {ended.state_sha256} == alone("plain")[0].sha256
