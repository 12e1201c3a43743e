"""Threads of the arena: interrupted steps, forked processes, copies."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play

from aimbot_lab.sim.workers import Workers

ROWS = 256
THREADS = 2
ACTIONS = random_play(1, ROWS)[0]


def new_threaded() -> Stage:
    return new_stage(ALL_TARGETS, 3, num_envs=ROWS, threads=THREADS, time_limit=1.0)


class InterruptError(Exception):
    """What the handler of a signal raises."""


def interrupt(*_: object) -> None:
    raise InterruptError


def play_interrupted(rounds: int) -> None:
    """Step while a signal's handler raises at random moments; then all must be in order."""
    stage, calm = new_threaded(), new_threaded()
    stage.step(ACTIONS)  # numba does not bear an interrupt while it loads a kernel
    signal.signal(signal.SIGALRM, interrupt)
    for moment in np.random.default_rng(0).uniform(1e-5, 1e-3, rounds):
        try:
            # Again and again, because Python drops what is raised in a destructor.
            signal.setitimer(signal.ITIMER_REAL, moment, 0.01)
            while True:
                stage.step(ACTIONS)
        except InterruptError:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    calm.arena.restore(stage.arena.snapshot())
    for actions in random_play(30, ROWS, seed=1):
        stage.step(actions)
        calm.step(actions)
        for left, right in zip(stage.buffers[:3], calm.buffers[:3], strict=True):
            np.testing.assert_array_equal(left, right)


def bounded(code: str) -> None:
    """Run `code` in a process of its own, so that a hang is a failure and no hang."""
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timer")
def test_a_signal_that_raises_in_a_step_leaves_an_arena_that_steps() -> None:
    bounded("from test_workers import play_interrupted; play_interrupted(1500)")


def test_a_raising_part_ends_the_task_and_not_the_workers() -> None:
    workers = Workers(3)
    for broken in (0, 1, 2):
        done = []

        def task(part: int, broken: int = broken, done: list[int] = done) -> None:
            if part == broken:
                raise LookupError(part)
            done.append(part)

        with pytest.raises(LookupError, match=str(broken)):
            workers.run(task)
        assert sorted(done) == [part for part in range(3) if part != broken]
        workers.run(done.append)
        assert sorted(done[2:]) == [0, 1, 2]


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_forked_process_steps_with_workers_of_its_own() -> None:
    bounded("from test_workers import forked_play; forked_play()")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda arena: pickle.loads(pickle.dumps(arena))])
def test_a_copied_arena_goes_on_by_itself(copied) -> None:
    stage = new_threaded()
    stage.step(ACTIONS)
    twin = Stage(copied(stage.arena), copy.deepcopy(stage.buffers))
    for actions in random_play(30, ROWS, seed=1):
        mine, others = stage.step(actions), twin.step(actions)
        assert mine.lines == others.lines
        np.testing.assert_array_equal(mine.running_order, others.running_order)
        for left, right in zip(stage.buffers, twin.buffers, strict=True):
            np.testing.assert_array_equal(left, right)
    kept = twin.arena.snapshot()
    stage.step(ACTIONS)
    for name, array in twin.arena.snapshot().items():
        np.testing.assert_array_equal(array, kept[name], err_msg=name)


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
        thread.join(timeout=10.0)
        assert not thread.is_alive()
