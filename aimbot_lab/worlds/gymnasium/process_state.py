"""What belongs to the whole process and environments change: folder, signal handlers, generators,
how numbers are computed.

After their calls it is what it was before, and what had to be put back is reported once. What they
print goes to standard error.
"""

import _signal  # type: ignore[import-not-found]
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TextIO, TypeVar

import numpy as np

SIGNALS = int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP)
WATCHED_CALLS = 200  # in which generators are compared, which takes 20 us; who seeds does so early

NOTHING: Mapping[str, Any] = MappingProxyType({})
ProcessState = tuple[tuple[TextIO, TextIO], str | None, Sequence[Any], Mapping[str, Any]]
"""Standard output and error, the folder, what is done on SIGNALS, and what is watched."""


class Generator(NamedTuple):
    """A generator of the whole process, or a setting of a library, which has no seed."""

    state: Callable[[], Any]
    restore: Callable[[Any], object]
    seed: Callable[[int], object] | None = None
    shown: Callable[[Any], object] = str  # what tells two states apart


def generators() -> Mapping[str, Generator]:
    """The global generators and settings by name, torch's where it is loaded."""
    found = {
        "random": Generator(random.getstate, random.setstate, random.seed, tuple),
        "numpy.random": Generator(
            np.random.get_state,
            np.random.set_state,
            np.random.seed,
            lambda state: (state[1].tobytes(), *state[2:]),
        ),
        "numpy.seterr": Generator(np.geterr, lambda state: np.seterr(**state)),
    }
    if (torch := sys.modules.get("torch")) is not None:
        get, put, seed = torch.get_rng_state, torch.set_rng_state, torch.manual_seed
        found["torch"] = Generator(get, put, seed, lambda state: state.numpy().tobytes())
        get, put = torch.get_default_dtype, torch.set_default_dtype
        found["torch.set_default_dtype"] = Generator(get, put)
        get, put = torch.get_num_threads, torch.set_num_threads
        found["torch.set_num_threads"] = Generator(get, put)
    return found


class ProcessGuard:
    """Keeps the process as it is while the environments called `name` in `rows` rows are called.

    Those that seed global generators, or draw from them, have some of their own, one for each row,
    which are seeded with each episode.
    """

    def __init__(self, name: str, rows: int) -> None:
        self._name, self._rows = name, rows
        self._told: dict[str, bool] = {}  # what was put back, and whether that is reported
        self._watched = 0
        self.own: dict[str, list[Any]] = {}
        """States by row of the generators that environments have of their own, by name."""

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        new = [what for what, told in self._told.items() if not told]
        self._told = dict.fromkeys(self._told, True)
        return [f"{self._name}: it {what} (told once)" for what in new]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Have the process be afterwards what it was, whatever the block makes it."""
        before = self.look()
        try:
            yield
        finally:
            self.put_back(before)

    def look(self) -> ProcessState:
        """What the process is now; from here on, what is printed goes to standard error."""
        states = NOTHING if self._watched >= WATCHED_CALLS else self._states()
        before = (sys.stdout, sys.stderr), _folder(), _handlers(), states
        sys.stdout = sys.stderr
        return before

    def put_back(self, before: ProcessState) -> None:
        """Have the process be what it was `before`."""
        (sys.stdout, sys.stderr), folder, handlers, states = before
        if folder is not None and folder != _folder():
            with suppress(OSError):  # it is gone
                os.chdir(folder)
            self._tell("changed the working directory, which was put back")
        if handlers != _handlers():
            self._put_back_handlers(handlers)
        for name, state in states.items():
            self._keep_apart(name, state)

    def _put_back_handlers(self, handlers: Sequence[Any]) -> None:
        for number, handler in zip(SIGNALS, handlers, strict=True):
            if handler is not None and handler != _signal.getsignal(number):  # None: not Python's
                signal.signal(number, handler)
                name = signal.Signals(number).name
                self._tell(f"changed what {name} does, which was put back")

    def _states(self) -> dict[str, Any]:
        self._watched += 1
        return {name: one.state() for name, one in generators().items() if name not in self.own}

    def _keep_apart(self, name: str, before: Any) -> None:
        """Have the generator `name` be in the state `before`, and environments have their own."""
        one = generators()[name]
        after = one.state()
        if one.shown(after) != one.shown(before):
            one.restore(before)
            if one.seed is None:
                self._tell(f"called {name}, which was undone")
                return
            self.own[name] = [after] * self._rows
            self._tell(f"seeds the global generator {name}, or draws from it: it has its own now")

    def _tell(self, what: str) -> None:
        self._told.setdefault(what, False)

    def seed_own(self, row: int, seed: int) -> None:
        """Seed the generators that `row` has of its own."""
        before = {name: generators()[name].state() for name in self.own}
        for name in self.own:
            if (reseed := generators()[name].seed) is not None:
                reseed(seed)
        self.take_back(row, before)

    def hand_over(self, row: int) -> Mapping[str, Any]:
        """Have the generators be those of `row`; their states before, for `take_back`."""
        if not self.own:
            return NOTHING
        before = {name: generators()[name].state() for name in self.own}
        for name, states in self.own.items():
            generators()[name].restore(states[row])
        return before

    def take_back(self, row: int, before: Mapping[str, Any]) -> None:
        """Keep the generators as those of `row`, and have them be `before` again."""
        for name, state in before.items():
            self.own[name][row] = generators()[name].state()
            generators()[name].restore(state)


def _folder() -> str | None:
    """The working directory; None where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def _handlers() -> Sequence[Any]:
    """What is done on SIGNALS; (): this thread can't change that."""
    if threading.get_ident() != threading.main_thread().ident:
        return ()
    return [_signal.getsignal(number) for number in SIGNALS]  # 40 times as fast as signal's own


class Guarded(Protocol):
    """What has a guard."""

    guard: ProcessGuard


Given = ParamSpec("Given")
Result = TypeVar("Result")
Owner = TypeVar("Owner", bound=Guarded)


def keeps_process(
    method: Callable[Concatenate[Owner, Given], Result],
) -> Callable[Concatenate[Owner, Given], Result]:
    """`method`, after which the process is what it was, by the guard of what it belongs to."""

    @wraps(method)
    def guarded(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        before = self.guard.look()
        try:
            return method(self, *args, **kwargs)
        finally:
            self.guard.put_back(before)

    return guarded
