"""Actors in step learn, count and keep what one process does."""

from typing import Any

import pytest
from own_actors import OwnActors
from test_shared_training import VARIANTS, Record, learned, plan, without_times

from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.training.training import Training


@pytest.fixture(autouse=True)
def _checkpoints_at_every_rollout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)


def played(number: int, *, state: bytes | None = None, **given: Any) -> tuple[Any, Record]:
    made, record = plan(actors=ActorSettings(number=number), **given), Record()
    training = Training(made, group=OwnActors())
    if state is not None:
        training.resume(state)
    links = RunLinks(record=record, checkpoints=record)
    ended = training.learn(record, SilentObserver(), lambda: False, links=links)
    return ended, record


@pytest.mark.parametrize(
    ("variant", "number"), [("plain", 1), ("hybrid, masks, running statistics", 4)]
)
def test_any_number_of_actors_in_step_ends_in_the_bits_of_one_process(
    variant: str, number: int
) -> None:
    one, kept = learned(plan(**VARIANTS[variant]), 1)
    ended, record = played(number, **VARIANTS[variant])
    assert {ended.state_sha256} == one.sha256
    assert record.files == one.files
    assert '"kind": "lesson"' in one.files["events.jsonl"]  # a lesson was passed
    for checkpoint, other in zip(kept.checkpoints, record.checkpoints, strict=True):
        assert without_times(other) == without_times(checkpoint)


def test_actors_go_on_from_what_one_process_kept_and_it_from_theirs() -> None:
    one, kept = learned(plan(), 1)
    _, record = played(2)
    ended, _ = played(4, state=kept.checkpoints[2].state)
    assert {ended.state_sha256} == one.sha256
    resumed, _ = learned(plan(), 1, state=record.checkpoints[1].state)
    assert resumed.sha256 == one.sha256


def test_a_stop_while_the_learner_waits_counts_nothing_of_the_rollout() -> None:
    asked = [0]

    def should_stop() -> bool:
        asked[0] += 1
        return asked[0] > 80

    made, record = plan(actors=ActorSettings(number=2)), Record()
    ended = Training(made, group=OwnActors()).learn(record, SilentObserver(), should_stop)
    assert ended.stopped
    assert ended.steps in (0, 512, 1024)


@pytest.mark.campaign
def test_processes_of_this_machine_end_in_the_bits_of_one_process() -> None:
    made = plan(actors=ActorSettings(number=2))
    ended = Training(made).learn(Record(), SilentObserver(), lambda: False)
    assert {ended.state_sha256} == learned(plan(), 1)[0].sha256
