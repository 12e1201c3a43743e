"""Actors that nobody waits for: what the learner takes, drops, counts and begins anew."""

from collections.abc import Callable
from itertools import pairwise
from time import sleep

import numpy as np
import pytest
from blocks import ScriptedActors, block, ended
from own_actors import OwnActors
from test_shared_training import ROLLOUT, Record, plan

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
from aimbot_lab.training.run_hooks import RunLinks, SilentObserver
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.training.training import Training

FREE = ActorSettings(number=4, lag=2, correction="vtrace")


def order(version: int, first: int | None = 1) -> BlockRequest:
    scenarios = ((1, Scenario(targets={"goto": 1.0})),) if version == 0 else ()
    return BlockRequest(version, b"weights", 0, scenarios, first)


def free(
    play: Callable[[ActorPlan, BlockRequest], Block | str | None],
) -> tuple[FreeRunning, ScriptedActors, ActorCounts]:
    group, counts = ScriptedActors(play), ActorCounts()
    plans = actor_plans(plan(actors=FREE))
    for one in plans:
        group.start(one)
    return FreeRunning(group, plans, FREE, counts, Patience()), group, counts


def test_the_oldest_blocks_are_learned_from_first_and_what_is_too_old_is_dropped() -> None:
    counts = ActorCounts()
    pool = BlockPool(FREE, counts)
    for version in (3, 0, 2, 1, 3):
        pool.put(block(version, version))
    taken = pool.take(3, 3)
    assert taken is not None
    assert [one.version for one in taken] == [1, 2, 3]
    assert counts.dropped == 1
    assert pool.take(3, 3) is None


def test_room_shrinks_where_the_learner_finds_all_and_grows_where_it_waits() -> None:
    pool, rooms = BlockPool(FREE, ActorCounts()), []
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


def test_blocks_of_actors_that_are_faster_than_the_learner_come_to_be_one_update_old() -> None:
    running, _, _ = free(lambda plan, order: block(plan.number, order.version))
    ages = []
    for version in range(12):
        for _ in range(10_000):  # until no actor has anything to play
            if not version or not running._pool.room:
                break
            sleep(0.001)
        taken = running.take(order(version), lambda: False) or []
        ages.append(max(version - one.version for one in taken))
    running.close()
    assert max(ages) == 2
    assert ages[-4:] == [1] * 4


def test_a_pool_that_is_full_takes_no_more() -> None:
    pool = BlockPool(FREE, ActorCounts())
    for _ in range(FREE.room):
        pool.put(block(0, 0))
    with pytest.raises(ValueError, match="full: 8 blocks"):
        pool.put(block(0, 0))


def test_what_programs_log_and_command_is_summed_over_actors_also_lost_ones() -> None:
    counts = ActorCounts()
    told = [
        block(actor, 0)._replace(lost_episodes=1, logged_errors=2 + actor, save_commands=1)
        for actor in (0, 1)
    ]
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
    settings = ActorSettings(number=2, lag=1, preload=3)
    pool = BlockPool(settings, ActorCounts())
    for _ in range(2):
        pool.put(block(0, 0))
    assert pool.take(2, 0) is None
    pool.put(block(0, 0))
    assert len(pool.take(2, 0) or ()) == 2
    pool.put(block(0, 1))
    assert len(pool.take(2, 1) or ()) == 2


def test_a_full_pool_makes_actors_wait_and_each_block_is_taken_once() -> None:
    running, group, counts = free(lambda plan, order: block(plan.number, order.version))
    taken = []
    for version in range(6):
        taken += running.take(order(version), lambda: False) or []
        assert counts.made - len(taken) - counts.dropped <= FREE.room
    running.close()
    assert len(taken) == 24
    assert all(one.version <= at // 4 for at, one in enumerate(taken))
    assert all(at // 4 - one.version <= FREE.lag for at, one in enumerate(taken))
    steps = [given.step for _, given in group.orders]
    assert len(set(steps)) == len(steps)  # no two blocks are played by the same random numbers


def test_an_actor_is_sent_weights_and_scenarios_that_are_new_to_it() -> None:
    running, group, _ = free(lambda plan, order: block(plan.number, order.version))
    for version in range(4):
        running.take(order(version), lambda: False)
    running.close()
    for actor in range(4):
        own = [given for number, given in group.orders if number == actor]
        assert [len(one.scenarios) for one in own] == [1] + [0] * (len(own) - 1)
        for before, after in pairwise(own):
            assert (after.weights is None) == (after.version == before.version)


def test_an_actor_that_is_lost_begins_a_life_that_none_had() -> None:
    lost = [5]

    def play(plan: ActorPlan, order: BlockRequest) -> Block | None:
        lost[0] -= plan.number == 1
        return None if plan.number == 1 and lost[0] in (3, 1) else block(plan.number, order.version)

    running, group, counts = free(play)
    for version in range(8):
        running.take(order(version), lambda: False)
    running.close()
    lives = [life for number, life in group.lives if number == 1]
    assert lives == [0, 1, 2]
    assert counts.restarts == 2
    assert counts.episodes_dropped == 2 + 2  # those unsettled with its last block
    again = [given for number, given in group.orders if number == 1]
    assert sum(len(one.scenarios) for one in again) == 3  # each life is told the scenario


def test_an_actor_that_never_plays_ends_the_run() -> None:
    running, _, _ = free(lambda plan, order: None if plan.number else block(0, order.version))
    with pytest.raises(RunFailedError, match="is lost each time before it has played a rollout"):
        running.take(order(0), lambda: False)
    running.close()


def test_what_an_actor_can_not_do_ends_the_run_with_its_reason() -> None:
    running, _, _ = free(lambda plan, order: "no such file: game.x86_64")
    with pytest.raises(RunFailedError, match=r"actor 0: no such file: game\.x86_64"):
        running.take(order(0), lambda: False)
    running.close()


def test_a_learner_that_is_to_stop_waits_no_longer() -> None:
    running, _, _ = free(lambda plan, order: block(plan.number, order.version - 9))
    assert running.take(order(0), lambda: True) is None
    running.close()


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
    rows = 16
    settled = SettledEpisodes(GlobalNumbers(0, 1), rows)
    settled.begin(0, 1)
    wins = random.random(rows * steps) < 0.5
    ranks, begun, left = list(range(rows)), rows, [3 if won else 25 for won in wins[:rows]]
    all_ended, all_settled = [], []
    for _ in range(steps):
        left = [one - 1 for one in left]
        over = [row for row in range(rows) if left[row] == 0]
        own = [ranks[row] for row in over]
        for row in over:
            ranks[row], left[row] = begun, 3 if wins[begun] else 25
            begun += 1
        if over:
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
    running = RunningEpisodes(2, 0)
    base = first_rank(1, 0, 2)
    one = ended([base], [base + 1])._replace(step=4)
    (step,) = running.ended([block(0, 1, [one], base)], first=1, since=0)
    assert step.running_order.tolist() == [first_rank(0, 1, 2)]
    other = first_rank(1, 1, 2)
    late = ended([other], [other + 1])._replace(step=2)
    (step,) = running.ended([block(1, 1, [late], other)], first=1, since=0)
    assert step.running_order.tolist() == [base + 1]


def test_what_runs_of_an_older_scenario_holds_nothing_back() -> None:
    running = RunningEpisodes(2, 0)
    base = first_rank(3, 0, 2)
    one = ended([base], [base + 1], scenario=2)._replace(step=4)
    (step,) = running.ended([block(0, 3, [one], base)], first=2, since=3)
    assert step.running_order.tolist() == [base + 1]  # actor 1 has what began later


def test_what_ran_of_an_older_scenario_before_a_block_holds_nothing_back() -> None:
    running = RunningEpisodes(2, 0)
    base, other = (first_rank(3, actor, 2) for actor in range(2))
    one = ended([base], [base + 1], scenario=2)._replace(step=4)
    earlier = ended([other], [other + 1], scenario=2)._replace(step=2)
    blocks = [block(0, 3, [one], base), block(1, 3, [earlier], other)]
    first, _ = running.ended(blocks, first=2, since=3)
    assert first.running_order.tolist() == [base]


def test_free_actors_learn_pass_lessons_and_are_counted() -> None:
    made, record = plan(actors=FREE, total_steps=8 * ROLLOUT), Record()
    training = Training(made, group=OwnActors())
    links = RunLinks(record=record, checkpoints=record)
    ended = training.learn(record, SilentObserver(), lambda: False, links=links)
    assert ended.steps == 8 * ROLLOUT
    _, metrics = record.logged[-1]
    assert metrics[names.BLOCK_AGE] <= FREE.lag
    assert metrics[names.BLOCKS_MADE_TO_TAKEN] >= 1.0
    assert metrics[names.ACTOR_RESTARTS] == metrics[names.BLOCKS_DROPPED] == 0.0
    assert '"kind": "lesson"' in record.files["events.jsonl"]


def test_a_resumed_training_goes_on_counting_with_lives_that_none_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lesson_callback, "MAX_SHARE", 1.0)  # one at each rollout
    made, record = plan(actors=FREE, total_steps=8 * ROLLOUT), Record()
    links = RunLinks(record=record, checkpoints=record)
    Training(made, group=OwnActors()).learn(record, SilentObserver(), lambda: False, links=links)
    training = Training(made, group=OwnActors())
    assert any("not kept in checkpoints" in remark for remark in training.remarks)
    training.resume(record.checkpoints[3].state)
    ended = training.learn(record, SilentObserver(), lambda: False)
    assert ended.steps == 8 * ROLLOUT
    counts = training.env.world.counts  # type: ignore[attr-defined]
    assert (counts.version, counts.taken, counts.lives) == (8, 32, 2)
    assert np.isfinite(training.model.policy.parameters().__next__().detach().numpy()).all()
