"""Where actors run: the group of them that a learner asks, and that of this machine's processes."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any, NamedTuple, Protocol

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.garbage import collect_seldom
from aimbot_lab.training.actors.actor import Actor
from aimbot_lab.training.actors.block import ActorPlan
from aimbot_lab.training.processes.cores import one_thread
from aimbot_lab.version import code_hash

GONE = (EOFError, OSError)
END_SECONDS = 5.0  # that an actor has to end by itself
LOOK_SECONDS = 0.2  # between two looks for processes that ended while others hold their line open
PROGRAM = "import sys; sys.path[:] = {path!r}; from {module} import main; main({line})"
"""What an actor's process runs: no script of a user's, which would train once more, but with its
path, on which the modules of environments may lie."""


class Answer(NamedTuple):
    """What came of a question to an actor."""

    actor: int
    value: Any = None
    fault: str | None = None  # why it can't play, in a line
    is_lost: bool = False  # whether it is gone, and the question with it


class ActorGroup(Protocol):
    """Actors by number; each is asked one thing at a time."""

    def start(self, plan: ActorPlan) -> None:
        """Have the actor `plan.number`, in place of a lost one of that number."""

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Have `actor` call its method `what`; one that is gone answers so."""

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What has been answered; waits at most so long for the first."""

    def end(self, actor: int) -> None:
        """End `actor`, whose answer is then that it is lost."""

    def close(self) -> None:
        """End all actors."""


class ActorHost:
    """The actor of `plan`, made where it is first asked; what it can't do, it says in one line."""

    def __init__(self, plan: ActorPlan) -> None:
        self._plan = plan
        self._actor: Actor | None = None

    def answer(self, what: str, given: tuple[Any, ...]) -> Answer:
        """What the actor's method `what` gives."""
        number = self._plan.number
        try:
            if self._actor is None:
                _check_code(self._plan)
                self._actor = Actor(self._plan)
            return Answer(number, getattr(self._actor, what)(*given))
        except LabError as error:
            return Answer(number, fault=str(error))

    def close(self) -> None:
        """End the actor, if there is one; it may raise a LabError of its world's, which is lost."""
        if self._actor is not None:
            with suppress(LabError):
                self._actor.close()
        self._actor = None


def _check_code(plan: ActorPlan) -> None:
    """Raise ConfigurationError where the learner has other code than is here."""
    if plan.code != code_hash():
        raise ConfigurationError(
            f"machine {socket.gethostname()} has other code of aimbot-lab ({code_hash()}) than the "
            f"learner ({plan.code}): all need the same"
        )


class _Process(NamedTuple):
    process: "subprocess.Popen[bytes]"
    connection: Connection


class LocalActors:
    """A process for each actor; they end with this one."""

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}
        self._unheard: list[int] = []  # lost where they were to be asked something

    @property
    def pids(self) -> dict[int, int]:
        """The processes' ids, by the actors' numbers."""
        return {number: one.process.pid for number, one in self._processes.items()}

    def start(self, plan: ActorPlan) -> None:
        """Begin a process that makes the actor.

        Raises ConfigurationError in the worker of a sweep, which must have no processes of its own.
        """
        if multiprocessing.current_process().daemon:
            raise ConfigurationError("train.actors: can't be used by the trials of a sweep")
        ours, theirs = multiprocessing.Pipe()
        program = PROGRAM.format(path=sys.path, module=__name__, line=theirs.fileno())
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._processes[plan.number] = _Process(process, ours)
        try:
            ours.send(plan)
        except GONE:
            self._unheard.append(plan.number)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Send the question."""
        try:
            self._processes[actor].connection.send((what, given))
        except GONE:
            self._unheard.append(actor)

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What the processes sent; one whose end of the line is closed is lost."""
        found = [self._lost(number) for number in dict.fromkeys(self._unheard)]
        self._unheard = []
        until = monotonic() + seconds
        while not found:
            left = max(until - monotonic(), 0.0)
            every = dict(self._processes)
            ready = wait([one.connection for one in every.values()], min(left, LOOK_SECONDS))
            for number, one in every.items():
                if one.connection in ready:
                    found.append(self._heard(number))
                elif one.process.poll() is not None:  # one of its own may hold the line open
                    found.append(self._lost(number))
            if left == 0.0:
                break
        return found

    def _heard(self, actor: int) -> Answer:
        try:
            answer: Answer = self._processes[actor].connection.recv()
        except GONE:
            return self._lost(actor)
        return answer

    def _lost(self, actor: int) -> Answer:
        if actor in self._processes:
            _end([self._processes.pop(actor)])
        return Answer(actor, is_lost=True)

    def end(self, actor: int) -> None:
        """Kill its process, which may be one that takes no other signal."""
        self._processes[actor].process.kill()

    def close(self) -> None:
        """End the processes."""
        _end([*self._processes.values()])
        self._processes = {}


def _end(processes: Sequence[_Process]) -> None:
    """Have all end, each with its environments, and kill those that do not."""
    for one in processes:
        one.connection.close()
        one.process.terminate()
    until = monotonic() + END_SECONDS
    for one in processes:
        with suppress(subprocess.TimeoutExpired):
            one.process.wait(max(until - monotonic(), 0.0))
        one.process.kill()
        one.process.wait()


def main(line: int) -> None:
    """Be the actor of the plan that comes over `line`, a descriptor, until that is closed."""
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the learner ends its actors
    signal.signal(signal.SIGTERM, _leave)
    os.set_inheritable(line, False)
    connection = Connection(line)
    one_thread()
    host: ActorHost | None = None
    try:
        with suppress(*GONE):
            host = ActorHost(connection.recv())
            while True:
                connection.send(host.answer(*connection.recv()))
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it leaves
        if host is not None:
            host.close()


def _leave(number: int, _frame: object) -> None:
    """Leave whatever goes on, once; an environment takes no KeyboardInterrupt for its own."""
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
