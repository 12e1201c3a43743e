"""Actors that nobody waits for."""

from test_shared_training import ROLLOUT, Record, plan

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.training.actors.group import OwnActors
from aimbot_lab.training.actors.settings import ActorSettings
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.training import Training


def test_free_actors_learn_and_count_what_they_do() -> None:
    actors = ActorSettings(number=4, lag=2, correction="vtrace")
    made, record = plan(actors=actors, total_steps=8 * ROLLOUT), Record()
    training = Training(made, group=OwnActors())
    links = RunLinks(record=record, checkpoints=record)
    ended = training.learn(record, SilentObserver(), lambda: False, links=links)
    assert ended.steps == 8 * ROLLOUT
    _, metrics = record.logged[-1]
    print(metrics)
    assert metrics[names.BLOCK_AGE] <= 2.0
    assert '"kind": "lesson"' in record.files["events.jsonl"]
