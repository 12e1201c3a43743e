"""Actors that nobody waits for: what the learner takes, drops, counts and begins anew."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from time import sleep
from typing import Any

import numpy as np
import pytest
from actor_groups import OwnActors, ScriptedActors, block, ended
from test_shared_training import ROLLOUT, Record, plan
from tiny_training import learn

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.errors import RunFailedError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.actors.block import (
    ActorCounts,
    ActorPlan,
    Block,
    BlockRequest,
    GlobalNumbers,
    RunningEpisodes,
    SettledEpisodes,
    first_rank,
)
from aimbot_lab.training.actors.rollouts import actor_plans
from aimbot_lab.training.actors.supply import BlockPool, FreeRunning, Patience
from aimbot_lab.training.callbacks import lesson_callback
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.training.training import Training

FREE = ActorSettings(number=4, lag=2, correction="vtrace")


def at_once(plan: ActorPlan, order: BlockRequest) -> Block:
    return block(plan.number, order.version)


class Free:
    """A learner's supply by actors that answer as `play` says."""

    def __init__(self, play: Callable[[ActorPlan, BlockRequest], Block | str | None]) -> None:
        self.group, self.counts = ScriptedActors(play), ActorCounts()
        plans = actor_plans(plan(actors=FREE))
        for one in plans:
            self.group.start(one)
        self.running = FreeRunning(self.group, plans, FREE, self.counts, Patience())

    def take(self, version: int, *, stop: bool = False) -> Any:
        scenarios = ((1, Scenario(targets={"goto": 1.0})),) if version == 0 else ()
        order = BlockRequest(version, b"weights", 0, scenarios, 1)
        return self.running.take(order, lambda: stop)

    def orders(self, actor: int) -> list[BlockRequest]:
        return [given for number, given in self.group.orders if number == actor]


New = Callable[..., Free]


@pytest.fixture
def free() -> Iterator[New]:
    made: list[Free] = []
    yield lambda play=at_once: made.append(Free(play)) or made[-1]
    for one in made:
        one.running.close()


def pool_of(*blocks: tuple[int, int], settings: ActorSettings = FREE) -> BlockPool:
    """With blocks of (actor, version)."""
    pool = BlockPool(settings, ActorCounts())
    for one in blocks:
        pool.put(block(*one))
    return pool


def test_a_pool_gives_the_oldest_blocks_first_drops_too_old_ones_and_takes_no_more_when_full() -> (
    None
):
    pool = pool_of((3, 3), (0, 0), (2, 2), (1, 1), (3, 3))
    taken = pool.take(3, 3)
    assert taken is not None
    assert [one.version for one in taken] == [1, 2, 3]
    assert pool._counts.dropped == 1
    assert pool.take(3, 3) is None
    full = pool_of(*[(0, 0)] * FREE.room)
    with pytest.raises(ValueError, match="full: 8 blocks"):
        full.put(block(0, 0))


def test_room_shrinks_where_the_learner_finds_all_and_grows_where_it_waits() -> None:
    pool, rooms = pool_of(), []
    for version in range(6):
        for actor in range(4):
            pool.put(block(actor, version))
        assert pool.take(4, version) is not None
        rooms.append(pool.room)
    assert rooms == [7, 6, 5, 4, 4, 4]
    for _ in range(2):
        assert pool.take(4, 6) is None
        assert pool.room == FREE.room  # others may play on while one hangs
    for actor in range(4):
        pool.put(block(actor, 6))
    assert pool.take(4, 6) is not None
    assert pool.room == FREE.room


def test_blocks_of_actors_that_are_faster_than_the_learner_come_to_be_one_update_old(
    free: New,
) -> None:
    one, ages = free(), []
    for version in range(12):
        for _ in range(10_000):  # until no actor has anything to play
            if not version or not one.running._pool.room:
                break
            sleep(0.001)
        ages.append(max(version - taken.version for taken in one.take(version)))
    assert max(ages) == 2
    assert ages[-4:] == [1] * 4


def test_what_programs_log_and_command_is_summed_over_actors_also_lost_ones() -> None:
    counts, said = ActorCounts(), {"lost_episodes": 1, "save_commands": 1}
    told = [block(actor, 0)._replace(logged_errors=2 + actor, **said) for actor in (0, 1)]
    counts.learn(told)
    counts.learn([told[0]._replace(logged_errors=7)])  # so far, in the same world
    assert (counts.so_far("logged_errors"), counts.so_far("save_commands")) == (7 + 3, 2)
    counts.lose(0, 4)
    counts.learn([told[0]])  # of another life
    assert (counts.so_far("logged_errors"), counts.so_far("save_commands")) == (7 + 2 + 3, 3)
    assert counts.episodes_dropped == 4 + 3
    resumed = ActorCounts()
    resumed.resume(counts.state())
    assert (resumed.so_far("logged_errors"), resumed.so_far("save_commands")) == (12, 0)
    assert resumed.episodes_dropped == 7


def test_the_first_update_waits_for_the_preload() -> None:
    pool = pool_of((0, 0), (0, 0), settings=ActorSettings(number=2, lag=1, preload=3))
    assert pool.take(2, 0) is None
    pool.put(block(0, 0))
    assert len(pool.take(2, 0) or ()) == 2
    pool.put(block(0, 1))
    assert len(pool.take(2, 1) or ()) == 2


def test_a_full_pool_makes_actors_wait_each_block_is_taken_once_and_orders_say_what_is_new(
    free: New,
) -> None:
    one, taken = free(), []
    for version in range(6):
        taken += one.take(version)
        assert one.counts.made - len(taken) - one.counts.dropped <= FREE.room
    assert len(taken) == 24
    assert all(0 <= at // 4 - each.version <= FREE.lag for at, each in enumerate(taken))
    steps = [given.step for _, given in one.group.orders]
    assert len(set(steps)) == len(steps)  # no two blocks are played by the same random numbers
    for own in map(one.orders, range(4)):
        assert [len(each.scenarios) for each in own] == [1] + [0] * (len(own) - 1)
        for before, after in pairwise(own):
            assert (after.weights is None) == (after.version == before.version)


def test_an_actor_that_is_lost_begins_a_life_that_none_had(free: New) -> None:
    lost = [5]

    def play(plan: ActorPlan, order: BlockRequest) -> Block | None:
        lost[0] -= plan.number == 1
        return None if plan.number == 1 and lost[0] in (3, 1) else at_once(plan, order)

    one = free(play)
    for version in range(8):
        one.take(version)
    assert [life for number, life in one.group.lives if number == 1] == [0, 1, 2]
    assert one.counts.restarts == 2
    assert one.counts.episodes_dropped == 2 + 2  # those unsettled with its last block
    # Each life is told the scenario.
    assert sum(len(each.scenarios) for each in one.orders(1)) == 3


@pytest.mark.parametrize(
    ("play", "told"),
    [
        (
            lambda plan, order: None if plan.number else at_once(plan, order),
            "is lost each time before it has played a rollout",
        ),
        (lambda plan, order: "no such file: game.x86", r"actor 0: no such file: game\.x86"),
    ],
    ids=["never plays", "fault"],
)
def test_an_actor_that_never_plays_or_can_not_ends_the_run_with_the_reason(
    free: New, play: Any, told: str
) -> None:
    with pytest.raises(RunFailedError, match=told):
        free(play).take(0)


def test_a_learner_that_is_to_stop_waits_no_longer(free: New) -> None:
    assert free(lambda plan, order: block(plan.number, -9)).take(0, stop=True) is None


def test_an_episode_is_settled_once_no_older_one_of_its_actor_runs() -> None:
    numbers = GlobalNumbers(1, 4)
    settled = SettledEpisodes(numbers, 3)
    settled.begin(0, 1)
    assert len(settled.add(ended([2], [0, 1, 3])).cell) == 0
    settled.begin(5, 1)
    assert len(settled.add(ended([1], [0, 3, 4])).cell) == 0
    assert settled.unsettled == 3 + 2
    told = settled.add(ended([0], [3, 4, 5]))
    base = first_rank(0, 1, 4)
    assert told.order.tolist() == [base, base + 1, base + 2]
    assert told.running_order.tolist() == [base + 3]
    assert settled.unsettled == 3
    late = settled.add(ended([3, 4], [5, 6, 7]))
    assert late.order.tolist() == [base + 3, first_rank(5, 1, 4)]  # 4 began by version 5


def lived(random: np.random.Generator, steps: int) -> tuple[list[bool], list[bool]]:
    """What ended in the life of an actor with 16 rows, and what of that was settled; won or not.

    Half of the episodes are won after 3 steps, the others lost after 25.
    """
    settled = SettledEpisodes(GlobalNumbers(0, 1), rows := 16)
    settled.begin(0, 1)
    wins = random.random(rows * steps) < 0.5
    lengths, ranks, begun = np.where(wins, 3, 25), np.arange(rows), rows
    left, all_ended, all_settled = lengths[:rows].copy(), [], []
    for _ in range(steps):
        left -= 1
        over = np.flatnonzero(left == 0)
        own, later = ranks[over], np.arange(begun, begun := begun + len(over))
        ranks[over], left[over] = later, lengths[later]
        if len(over):
            outcome = np.where(wins[own], 1, -1).astype(np.int8)
            told = settled.add(ended(own, ranks)._replace(outcome=outcome))
            all_ended += wins[own].tolist()
            all_settled += told.won.tolist()
    return all_ended, all_settled


def test_the_win_rate_of_settled_episodes_favours_no_short_ones_where_actors_die_often() -> None:
    random = np.random.default_rng(0)
    lives = [lived(random, 120) for _ in range(60)]
    of_ended, of_settled = (np.concatenate([life[k] for life in lives]).mean() for k in range(2))
    assert of_ended > 0.53
    assert abs(of_settled - 0.5) < 0.015


def test_no_episode_overtakes_an_older_one_of_an_actor_that_is_still_to_be_heard() -> None:
    running, (base, other) = RunningEpisodes(2, 0), (first_rank(1, actor, 2) for actor in (0, 1))
    (step,) = running.ended([block(0, 1, [ended([base], [base + 1])], base)], first=1, since=0)
    assert step.running_order.tolist() == [first_rank(0, 1, 2)]
    late = ended([other], [other + 1])
    (step,) = running.ended([block(1, 1, [late], other)], first=1, since=0)
    assert step.running_order.tolist() == [base + 1]


def test_what_runs_of_an_older_scenario_or_ran_before_a_block_holds_nothing_back() -> None:
    base, other = (first_rank(3, actor, 2) for actor in (0, 1))
    mine = block(0, 3, [ended([base], [base + 1], scenario=2)._replace(step=4)], base)
    theirs = block(1, 3, [ended([other], [other + 1], scenario=2)._replace(step=2)], other)
    (step,) = RunningEpisodes(2, 0).ended([mine], first=2, since=3)
    assert step.running_order.tolist() == [base + 1]  # actor 1 has what began later
    first, _ = RunningEpisodes(2, 0).ended([mine, theirs], first=2, since=3)
    assert first.running_order.tolist() == [base]


def test_free_actors_learn_pass_lessons_are_counted_and_resumed_with_lives_that_none_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # a checkpoint at each rollout
    made, record = plan(actors=FREE, total_steps=8 * ROLLOUT), Record()
    ended = learn(Training(made, group=OwnActors()), record, links=record.both)
    assert ended.steps == 8 * ROLLOUT
    _, metrics = record.logged[-1]
    assert metrics[names.BLOCK_AGE] <= FREE.lag
    assert metrics[names.BLOCKS_MADE_TO_TAKEN] >= 1.0
    assert metrics[names.ACTOR_RESTARTS] == metrics[names.BLOCKS_DROPPED] == 0.0
    assert '"kind": "lesson"' in record.files["events.jsonl"]
    training = Training(made, group=OwnActors())
    assert any("not kept in checkpoints" in remark for remark in training.remarks)
    training.resume(record.checkpoints[3].state)
    assert learn(training, record).steps == 8 * ROLLOUT
    counts = training.env.world.counts  # type: ignore[attr-defined]
    assert (counts.version, counts.taken, counts.lives) == (8, 32, 2)
    assert all(weight.isfinite().all() for weight in training.model.policy.parameters())
