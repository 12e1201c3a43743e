"""Threads of the arena: interrupted steps, forked processes, copies."""

import copy
import gc
import math
import os
import pickle
import signal
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play

from aimbot_lab.foundation.kernels.jit import kernel
from aimbot_lab.foundation.kernels.threads import (
    ASLEEP,
    DONE,
    POSTED,
    STRIDE,
    WORKING,
    ThreadPool,
    WorkQueue,
    fall_asleep,
    is_at_work,
    new_queue,
    post,
    take_rows,
)
from aimbot_lab.worlds.arena.core.step import CHUNK
from tests.installed import said_by

ROWS = 256
THREADS = 2
ACTIONS = random_play(1, ROWS)[0]


@kernel
def chunk_of(queue: WorkQueue, owner: int, rows: int) -> tuple[int, int]:
    return take_rows(queue, owner, rows, CHUNK)


def new_threaded() -> Stage:
    return new_stage(ALL_TARGETS, 3, num_envs=ROWS, threads=THREADS, time_limit=1.0)


class InterruptError(Exception):
    """What the handler of a signal raises."""


class Alarm:
    """A signal whose handler raises, again and again while it is armed.

    Once would not do: Python drops what is raised in a destructor.
    """

    def __init__(self) -> None:
        self._armed, self._raised = False, -math.inf
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, *_: object) -> None:
        # Once: the next, should this one be lost, comes when a busy machine has had its time.
        if self._armed and time.monotonic() > self._raised + 1.0:
            self._raised = time.monotonic()
            raise InterruptError

    def arm(self, moment: float) -> None:
        self._raised = -math.inf
        self._armed = True
        signal.setitimer(signal.ITIMER_REAL, moment, 0.01)

    def disarm(self) -> None:
        while True:
            try:
                self._armed = False  # from here on nothing is raised any more
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                return
            except InterruptError:
                pass


def play_interrupted(rounds: int) -> None:
    """Step while a signal's handler raises at random moments; then all must be in order."""
    stage, calm = new_threaded(), new_threaded()
    stage.step(ACTIONS)  # numba does not bear an interrupt while it loads a kernel
    alarm = Alarm()
    for moment in np.random.default_rng(0).uniform(1e-5, 1e-3, rounds):
        try:
            alarm.arm(moment)
            while True:
                stage.step(ACTIONS)
        except InterruptError:
            alarm.disarm()
    calm.arena.restore(stage.arena.snapshot())
    for actions in random_play(30, ROWS, seed=1):
        stage.step(actions)
        calm.step(actions)
        for left, right in zip(stage.buffers[:3], calm.buffers[:3], strict=True):
            np.testing.assert_array_equal(left, right)


def bounded(code: str, *, seconds: float = 300.0) -> str:
    """What `code` prints in a process of its own, so that a hang is a failure and no hang."""
    return said_by("-c", code, cwd=Path(__file__).parent, seconds=seconds)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timer")
def test_a_signal_that_raises_in_a_step_leaves_an_arena_that_steps() -> None:
    bounded("from test_workers import play_interrupted; play_interrupted(1500)")


class Chores:
    """A task of 3 threads that all take part: nobody ends before all have begun."""

    def __init__(self, workers: ThreadPool, broken: int | None = None) -> None:
        self.workers, self.broken = workers, broken
        self.all_here = threading.Barrier(3, timeout=300.0)
        self.done: list[int] = []

    def __call__(self, workspace: int) -> None:
        sync_flags, worker = self.workers.sync_flags, workspace - 1
        if worker >= 0:
            assert sync_flags[worker * STRIDE] == POSTED
            sync_flags[worker * STRIDE] = WORKING
        self.all_here.wait()
        if workspace == self.broken:
            raise LookupError(workspace)
        self.done.append(workspace)
        if worker >= 0:
            fall_asleep(sync_flags, worker)


def test_a_raising_thread_ends_the_task_and_not_the_workers() -> None:
    workers = ThreadPool(3)
    for broken in (0, 1, 2):
        task = Chores(workers, broken)
        with pytest.raises(LookupError, match=str(broken)):
            workers.run(task)
        assert sorted(task.done) == [workspace for workspace in range(3) if workspace != broken]
        sound = Chores(workers)
        workers.run(sound)
        assert sorted(sound.done) == [0, 1, 2]


def test_a_worker_that_never_comes_delays_nobody_and_one_that_looks_out_is_not_woken() -> None:
    sync_flags = np.full(2 * STRIDE, ASLEEP, np.int64)
    assert post(sync_flags) == 0b11
    assert [is_at_work(sync_flags, worker) for worker in range(2)] == [False, False]
    assert sync_flags[[0, STRIDE]].tolist() == [DONE, DONE]
    sync_flags[0] = ASLEEP
    assert post(sync_flags) == 0b01
    assert sync_flags[[0, STRIDE]].tolist() == [POSTED, POSTED]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_threads_take_every_row_once(threads: int) -> None:
    for rows in (1, 63, 64, 1000):
        queue = new_queue(np.zeros((threads - 1) * STRIDE, np.int64), threads=threads)
        taken: list[int] = []
        for owner in reversed(range(threads)):
            while (chunk := chunk_of(queue, owner, rows))[0] < chunk[1]:
                taken.extend(range(*chunk))
        assert sorted(taken) == list(range(rows))


def forked_play() -> None:
    stage, other = new_threaded(), new_threaded()
    stage.step(ACTIONS)
    other.step(ACTIONS)
    child = os.fork()
    if child == 0:
        stage.step(ACTIONS)
        sound = stage.buffers.rewards.any() and stage.arena.state.clock[0] == 2
        os._exit(0 if sound else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    stage.step(ACTIONS)


def copied_play() -> None:
    stage = new_threaded()
    stage.step(ACTIONS)
    for copied in (copy.deepcopy, lambda arena: pickle.loads(pickle.dumps(arena))):
        twin = Stage(copied(stage.arena), copy.deepcopy(stage.buffers))
        for _ in range(5):
            stage.arena.set_scenario(ALL_TARGETS)
            twin.arena.set_scenario(ALL_TARGETS)
            stage.step(ACTIONS)
            twin.step(ACTIONS)
            np.testing.assert_array_equal(stage.buffers.rewards, twin.buffers.rewards)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_and_copies_step_with_workers_of_their_own() -> None:
    bounded("from test_workers import *; forked_play(); copied_play()")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda arena: pickle.loads(pickle.dumps(arena))])
def test_a_copied_arena_goes_on_by_itself(copied) -> None:
    stage = new_threaded()
    stage.step(ACTIONS)
    twin = Stage(copied(stage.arena), copy.deepcopy(stage.buffers))
    for actions in random_play(30, ROWS, seed=1):
        mine, others = stage.step(actions), twin.step(actions)
        assert mine.cell == others.cell
        for name in ("terms", "running_order"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(others, name))
        for left, right in zip(stage.buffers, twin.buffers, strict=True):
            np.testing.assert_array_equal(left, right)
    kept = twin.arena.snapshot()
    stage.step(ACTIONS)
    for name, array in twin.arena.snapshot().items():
        np.testing.assert_array_equal(array, kept[name], err_msg=name)


LATE_PLAY = """
import atexit
played = []  # after the finalizers, which are told of the end when the first one is made
atexit.register(lambda: [late_step(played[0]) for _ in range(3)] and print("played"))
from test_workers import late_step, new_threaded
played.append(new_threaded())
"""


def late_step(stage: Stage) -> None:
    stage.arena.set_scenario(ALL_TARGETS)
    stage.step(ACTIONS)


def test_an_arena_steps_until_the_very_end_of_its_process() -> None:
    assert bounded(LATE_PLAY, seconds=60.0) == "played\n"


def test_an_arena_that_is_gone_takes_its_threads_along() -> None:
    before = set(threading.enumerate())
    stage = new_threaded()
    stage.step(ACTIONS)
    own = set(threading.enumerate()) - before
    assert len(own) == THREADS - 1
    gone = weakref.ref(stage.arena)
    del stage
    gc.collect()
    assert gone() is None
    for thread in own:
        thread.join(timeout=120.0)
        assert not thread.is_alive()
