"""What a training counts of its episodes, and what the ends of its processes mean."""

import signal
from typing import Any

import numpy as np
import pytest

from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.curriculum.evidence import Outcome
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.episodes import Cell, WinRate, wilson
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.callbacks.report_callback import EpisodeTally, WinTally
from aimbot_lab.training.checkpoint import pack, unpack
from aimbot_lab.training.processes.exchange import LostError
from aimbot_lab.training.processes.supervisor import (
    MAX_RESTARTS,
    STOPPED,
    ProcessEnd,
    Restarts,
    Verdict,
    judged,
)
from aimbot_lab.training.run_hooks import SilentObserver, TrainingSnapshot
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import make_world
from tests.episode_batches import ended_batch
from tests.training.tiny_training import Sink

LONGEST = 100  # steps of an episode


ROWS, STEPS = 256, 110


SETTINGS = ArenaSettings(num_envs=ROWS, time_limit=LONGEST / 10, goto_win_radius=14.0)


TRAIN = TrainSettings(
    total_steps=ROWS * STEPS,
    n_steps=10,
    batch_size=2560,
    n_epochs=1,
    learning_rate=1e-12,  # changes no action: all that is counted is of one agent
    network=NetworkSettings(layers=(8,)),
)


class Watcher(SilentObserver):
    """Keeps the first win rate that is shown over a hundred episodes or more."""

    def __init__(self) -> None:
        self.first: TrainingSnapshot | None = None

    def progress(self, snapshot: TrainingSnapshot) -> None:
        if self.first is None and snapshot.view.window >= 100:
            self.first = snapshot


def evaluation(model: Any) -> tuple[WinRate, WinRate]:
    """The win rate of the first episode of each of many rows, each played to its end.

    And that of all episodes that end in the first half of the longest.
    """
    world = make_world(SETTINGS)
    env = WorldVecEnv(world, TRAIN.aim_bins, seed=99)
    world.set_scenario(Scenario({"goto": 1.0}))
    wins: list[bool] = []
    early: list[bool] = []
    for _ in range(3):
        observations = env.reset()
        won: dict[int, bool] = {}
        for step in range(LONGEST):
            actions, _ = model.predict(observations, deterministic=False)
            observations, _, _, infos = env.step(actions)
            assert env.episodes is not None
            for row in env.episodes.row.tolist():
                won.setdefault(row, bool(infos[row]["is_success"]))
                early += [bool(infos[row]["is_success"])] * (step < LONGEST / 2)
        assert len(won) == ROWS
        wins += won.values()
    return wilson(sum(wins), len(wins)), wilson(sum(early), len(early))


EASY, HARD = Cell("goto", 1), Cell("goto", 3)


def outcomes(cell: Cell | None, wins: int, losses: int) -> list[Outcome]:
    return [Outcome(won, cell) for won in [True] * wins + [False] * losses]


def test_fewer_than_thirty_episodes_wait_for_more() -> None:
    tally = WinTally()
    tally.add(outcomes(EASY, 29, 0))
    assert tally.take() == {}
    tally.add(outcomes(EASY, 0, 29))
    found = tally.take()
    assert found["learning/win_rate"] == found["learning/win_rate/goto/1"] == 0.5
    assert found["learning/win_rate_lower"] < 0.5 < found["learning/win_rate_upper"]
    assert tally.take() == {}


def test_a_seldom_cell_has_its_point_when_it_has_episodes_enough() -> None:
    tally = WinTally()
    points = []
    for _ in range(6):
        tally.add([*outcomes(EASY, 40, 0), *outcomes(HARD, 0, 10), *outcomes(None, 0, 1)])
        points.append(tally.take())
    assert [("learning/win_rate/goto/3" in point) for point in points] == [False, False, True] * 2
    assert all(point["learning/win_rate"] == 40 / 51 for point in points)


def test_every_episode_is_in_one_point_also_over_a_stop() -> None:
    generator = np.random.default_rng(3)
    tally, wins, shown = WinTally(), 0, 0.0
    for size in generator.integers(0, 60, 50):
        won = generator.random(size) < 0.6
        wins += int(won.sum())
        tally.add(Outcome(bool(one), None) for one in won)
        kept = WinTally()
        kept.resume(tally.state())
        tally = kept
        counted = {row[0]: row[2] for row in tally.state()}.get("", 0)
        shown += tally.take().get("learning/win_rate", 0.0) * counted
    left = {row[0]: row[3] for row in tally.state()}.get("", 0)
    assert round(shown) + left == wins


WON = "Warning|Result|Win|seconds=2.0|return=4.0"
DRAWN = "Warning|Result|Draw|seconds=3.0|return=0.0"
LOST = "Warning|Result|Lose|seconds=5.0|return=-1.0"


def tally() -> EpisodeTally:
    return EpisodeTally(("reward",), ("seconds",))


def test_columns_of_the_world_are_tracked_as_means() -> None:
    counted = tally()
    counted.add(ended_batch([WON], order=[0], running=[1]))
    counted.add(ended_batch([LOST], order=[1], running=[2]))
    metrics = counted.take()
    assert metrics["rollout/seconds"] == 3.5
    assert metrics["rollout/return"] == 1.5
    assert metrics["rollout/episodes"] == 2.0
    assert counted.take() == {}


GOTO = "|target=goto|difficulty=3"


def test_draws_are_a_share_of_the_episodes_of_each_cell_and_of_all() -> None:
    counted = tally()
    counted.add(ended_batch([WON + GOTO, DRAWN + GOTO, DRAWN], order=[0, 1, 2], running=[3]))
    metrics = counted.take()
    assert metrics["rollout/draw_rate"] == pytest.approx(2 / 3)
    assert metrics["rollout/draw_rate/goto/3"] == 0.5
    counted.add(ended_batch([WON + GOTO], order=[4], running=[5]))
    assert counted.take()["rollout/draw_rate/goto/3"] == 0.0


def test_draw_rates_are_tracked_where_the_world_has_draws_or_there_was_one() -> None:
    for has_draws in (False, True):
        counted = EpisodeTally(("reward",), ("seconds",), has_draws=has_draws)
        counted.add(ended_batch([WON], order=[0], running=[1]))
        assert ("rollout/draw_rate" in counted.take()) is has_draws


def test_a_stored_tally_goes_on() -> None:
    whole, before, after = tally(), tally(), tally()
    first = ended_batch([WON, DRAWN + GOTO], order=[0, 3], running=[1, 4])
    for one in (whole, before):
        one.add(first)
    after.resume(unpack(pack(before.state())))
    for one in (whole, after):
        one.add(ended_batch([LOST + GOTO], order=[1], running=[2]))
    np.testing.assert_equal(after.take(), whole.take())


WELL = [ProcessEnd(rank, 0, "") for rank in range(3)]
KILLED = ProcessEnd(1, -signal.SIGKILL, "rank 1 was ended by SIGKILL")
NOTICED = ProcessEnd(0, LostError.exit_code, "rank 0 ended with exit code 75")
REFUSED = [ProcessEnd(rank, 2, f"rank {rank}: no such key") for rank in range(2)]
SAVED = ProcessEnd(0, STOPPED, "")


def test_the_first_win_rate_that_is_shown_is_that_of_the_agent() -> None:
    lesson = Lesson(name="one", targets={"goto": 1.0})
    training = Training(TrainingPlan(seed=3, env=SETTINGS, lessons=(lesson,), train=TRAIN))
    watcher = Watcher()
    training.learn(Sink(), watcher, lambda: False)
    assert watcher.first is not None
    assert watcher.first.step == ROWS * LONGEST  # as soon as the first losses are known
    shown = watcher.first.view.win_rate
    true, early = evaluation(training.model)
    assert shown.lower <= true.upper
    assert true.lower <= shown.upper
    assert early.lower > true.upper
    assert early.win_rate == 1.0


def test_all_that_end_well_end_the_run() -> None:
    assert judged(WELL, stopping=False) == Verdict(0)


def test_the_cause_of_a_loss_is_the_signal_and_not_who_noticed_it() -> None:
    assert judged([NOTICED, KILLED], stopping=False) == Verdict(None, loss=KILLED)


def test_an_error_that_all_meet_ends_the_run_with_its_code_and_is_told_once() -> None:
    assert judged(REFUSED, stopping=False) == Verdict(2)
    assert judged(REFUSED[::-1], stopping=False) == Verdict(2)
    assert judged([NOTICED, REFUSED[1]], stopping=False) == Verdict(2, error=REFUSED[1].cause)
    assert judged([*REFUSED, KILLED], stopping=False).loss is None


@pytest.mark.parametrize("code", [0, STOPPED])
@pytest.mark.parametrize("other", [KILLED, ProcessEnd(1, 1, "rank 1 failed")])
def test_once_the_leader_has_ended_well_the_others_change_nothing(
    code: int, other: ProcessEnd
) -> None:
    assert judged([other, ProcessEnd(0, code, "")], stopping=False) == Verdict(code)


def test_who_was_asked_to_stop_is_not_begun_again() -> None:
    assert judged([SAVED, KILLED], stopping=True) == Verdict(STOPPED)
    assert judged([SAVED], stopping=True) == Verdict(STOPPED)
    assert judged(WELL, stopping=True) == Verdict(0)


def test_losses_without_a_checkpoint_between_are_mended_three_times() -> None:
    restarts = Restarts(lambda: 7)
    for number in range(1, MAX_RESTARTS + 1):
        line = f"{KILLED.cause}; all restart (restart {number} of 3)"
        assert restarts.after(KILLED) == (True, line)
    assert restarts.after(KILLED) == (False, f"{KILLED.cause}; gave up after 3 restarts")


def test_every_new_checkpoint_gives_all_restarts_back() -> None:
    steps = iter(range(20))
    restarts = Restarts(lambda: next(steps))
    assert all(restarts.after(KILLED)[1].endswith("(restart 1 of 3)") for _ in range(10))
