"""Actors as processes of this machine."""

import multiprocessing
import signal
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.actors.block import ActorPlan
from aimbot_lab.training.actors.group import Answer
from aimbot_lab.training.actors.player import Player
from aimbot_lab.training.networks.torch_threads import one_thread

GONE = (EOFError, OSError)
END_SECONDS = 5.0  # that an actor has to end by itself


class _Process(NamedTuple):
    process: SpawnProcess
    connection: Connection


class LocalActors:
    """A process for each actor; they end with this one."""

    def __init__(self) -> None:
        self._processes: dict[int, _Process] = {}
        self._unheard: list[int] = []  # lost where they were to be asked something

    @property
    def pids(self) -> dict[int, int]:
        """The processes' ids, by the actors' numbers."""
        return {number: one.process.pid or 0 for number, one in self._processes.items()}

    def start(self, plan: ActorPlan) -> None:
        """Begin a process that makes the actor.

        Raises ConfigurationError in the worker of a sweep, which must have no processes of its own.
        """
        if multiprocessing.current_process().daemon:
            raise ConfigurationError("train.actors: can't be used by the trials of a sweep")
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=play, args=(theirs, plan), daemon=True)
        process.start()
        theirs.close()
        self._processes[plan.number] = _Process(process, ours)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Send the question."""
        try:
            self._processes[actor].connection.send((what, given))
        except GONE:
            self._unheard.append(actor)

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What the processes sent; one whose end of the line is closed is lost."""
        found = [self._lost(number) for number in self._unheard]
        self._unheard = []
        every = dict(self._processes)
        ends: list[Any] = [
            end for one in every.values() for end in (one.connection, one.process.sentinel)
        ]
        ready = wait(ends, 0.0 if found else seconds)
        for number, one in every.items():
            if one.connection in ready:
                found.append(self._heard(number))
            elif one.process.sentinel in ready:  # a process of its own may hold the line open
                found.append(self._lost(number))
        return found

    def _heard(self, actor: int) -> Answer:
        try:
            said = self._processes[actor].connection.recv()
        except GONE:
            return self._lost(actor)
        return Answer(actor, said.value, said.fault)

    def _lost(self, actor: int) -> Answer:
        if actor in self._processes:
            _end(self._processes.pop(actor))
        return Answer(actor, is_lost=True)

    def end(self, actor: int) -> None:
        """Kill its process, which may be one that takes no other signal."""
        self._processes[actor].process.kill()

    def close(self) -> None:
        """End the processes."""
        for one in self._processes.values():
            one.process.terminate()
        for one in self._processes.values():
            _end(one)
        self._processes = {}


def _end(one: _Process) -> None:
    one.connection.close()
    one.process.terminate()
    one.process.join(END_SECONDS)
    if one.process.is_alive():
        one.process.kill()
        one.process.join()
    one.process.close()


def play(connection: Connection, plan: ActorPlan) -> None:
    """Be the actor of `plan` until the learner's end of `connection` is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the learner ends its actors
    one_thread()
    player = Player(plan)
    with suppress(*GONE):
        while True:
            connection.send(player.say(*connection.recv()))
