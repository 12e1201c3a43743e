"""Workers of a sweep, which Ray places on the machines of its cluster."""

import socket
from collections.abc import Mapping
from typing import Any

from aimbot_lab.foundation.errors import LabError, StoreError
from aimbot_lab.sweep.worker import WorkerArguments, WorkerPool
from aimbot_lab.tracking.data_folder import without_password
from aimbot_lab.tracking.tracker import Notify
from aimbot_lab.version import code_hash

LISTEN_SECONDS = 1.0  # between two words of a worker

TrialProgress = Mapping[tuple[str, int], float]
"""Shares of the trials in hand that are done, by stage and number."""


class Board:
    """Where workers say what they do, and are told when to stop; an actor of Ray."""

    def __init__(self) -> None:
        self._stopped = False
        self._at_work: dict[int, TrialProgress] = {}
        self._notices: list[str] = []

    def say(self, worker: int, at_work: TrialProgress, notices: list[str]) -> bool:
        """Whether the worker of this number is to stop."""
        self._at_work[worker] = at_work
        self._notices += notices
        return self._stopped

    def hear(self, *, stop: bool) -> tuple[TrialProgress, list[str]]:
        """What is done, and the notices since the last call; from now on `stop` is the answer."""
        self._stopped = self._stopped or stop
        shares = {trial: share for one in self._at_work.values() for trial, share in one.items()}
        notices, self._notices = self._notices, []
        return shares, notices


def work_on_machine(board: Any, number: int, arguments: WorkerArguments) -> None:
    """Run a worker on the machine of this call until every trial has ended, or `board` says so.

    A task of Ray. Raises what `WorkerPool` raises.
    """
    import ray

    notices: list[str] = []
    if arguments.code != code_hash():
        notices.append(
            f"machine {socket.gethostname()} has other code of aimbot-lab ({code_hash()}, and here "
            f"is {arguments.code}): values of trials may not compare"
        )
    if ray.get(board.say.remote(number, {}, notices)):
        return
    pool = WorkerPool(arguments, 1, notify=notices.append)
    stopping = False
    try:
        while not pool.is_done:
            pool.listen(LISTEN_SECONDS)
            said = board.say.remote(number, pool.at_work, notices)
            notices.clear()
            if ray.get(said) and not stopping:
                stopping = True
                pool.stop()
    finally:
        pool.kill()
        board.say.remote(number, {}, notices)


class RayWorkers:
    """That many workers, on whatever machines `ray` has; what dies is started anew by Ray."""

    def __init__(self, ray: Any, arguments: WorkerArguments, size: int, *, notify: Notify) -> None:
        self._ray, self._notify = ray, notify
        self._board = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Board).remote()
        task = ray.remote(num_cpus=1, max_retries=-1)(work_on_machine)
        self._tasks = [task.remote(self._board, number, arguments) for number in range(size)]
        self._stopping = False
        self.at_work: TrialProgress = {}

    @property
    def is_done(self) -> bool:
        """Whether all have gone."""
        return not self._tasks

    def listen(self, seconds: float) -> None:
        """Take in what the workers say for at most `seconds`.

        Raises StoreError for an error that the others would meet too.
        """
        ended, self._tasks = self._ray.wait(self._tasks, timeout=seconds)
        try:
            for task in ended:
                self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LabError):
                raise error.cause from error
            what = without_password(f"a worker failed: {error.cause!r}")
            raise StoreError(what) from error
        # A worker ends when all trials have: those that wait for a machine have nothing to do.
        self._stopping = self._stopping or bool(ended)
        self.at_work, notices = self._ray.get(self._board.hear.remote(stop=self._stopping))
        for notice in notices:
            self._notify(notice)

    def stop(self) -> None:
        """Have every worker leave its trial for later once its update is done."""
        self._stopping = True

    def kill(self) -> None:
        """End every worker at once."""
        for task in self._tasks:
            self._ray.cancel(task, force=True)
        self._tasks = []
