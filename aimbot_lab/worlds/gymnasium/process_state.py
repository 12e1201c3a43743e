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
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TextIO, TypeVar

import numpy as np

from aimbot_lab.foundation.seeds import restore_torch_random, torch_random

SIGNALS = int(signal.SIGINT), int(signal.SIGTERM), int(signal.SIGHUP)
HANDLER: Callable[[int], Any] = _signal.getsignal  # 40 times as fast as signal's own
WATCHED_CALLS = 500  # of environments, which take 60 us more each; who draws does so early
SEEDS = "seeds the global generator {}, or draws from it: it has its own now"
UNDONE = "called {}, which was undone"

NOTHING: Mapping[str, Any] = MappingProxyType({})
ProcessState = tuple[tuple[TextIO, TextIO], str | None, Sequence[Any]]
"""Standard output and error, the folder, and what is done on SIGNALS."""


class Generator(NamedTuple):
    """A generator of the whole process, or a setting of a library, which has no seed."""

    state: Callable[[], Any]
    restore: Callable[[Any], object]
    seed: Callable[[int], object] | None = None
    shown: Callable[[Any], object] = str  # what tells two states apart
    initial: Any = None  # of a library that was just loaded; None: unknown


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
        "warnings.simplefilter": Generator(
            lambda: list(warnings.filters), _put_filters, shown=_raising
        ),
    }
    if (torch := sys.modules.get("torch")) is not None:
        found["torch"] = Generator(
            partial(torch_random, torch),
            partial(restore_torch_random, torch),
            torch.manual_seed,
            lambda state: state["torch"].numpy().tobytes(),
        )
        get, put = torch.get_default_dtype, torch.set_default_dtype
        found["torch.set_default_dtype"] = Generator(get, put, initial=torch.float32)
        get, put = torch.get_num_threads, torch.set_num_threads
        found["torch.set_num_threads"] = Generator(get, put)
        get, put = torch.is_grad_enabled, torch.set_grad_enabled
        found["torch.set_grad_enabled"] = Generator(get, put, initial=True)
        found["torch.set_default_device"] = Generator(
            torch.get_default_device,
            lambda device: torch.set_default_device(None if device.type == "cpu" else device),
            initial=torch.device("cpu"),
        )
    return found


def _raising(filters: Sequence[Any]) -> list[Any]:
    """Which of the filters raise warnings, at which place from the end: others come before them."""
    return [one for one in enumerate(reversed(filters)) if one[1][0] == "error"]


def _put_filters(filters: Sequence[Any]) -> None:
    """Have warnings be raised by these alone, as the learner's libraries warn, too."""
    present: Any = warnings.filters
    if _raising(present) != _raising(filters):
        warnings.resetwarnings()
        present[:] = filters


class ProcessGuard:
    """Keeps the process as it is while the environments called `name` in `rows` rows are called.

    Their calls see global generators of their own, one for each row, which are seeded with each
    episode. After some calls those stay that they draw from or seed, and settings that they change.
    """

    def __init__(self, name: str, rows: int) -> None:
        self._name, self._rows = name, rows
        self._told: dict[str, bool] = {}  # what was put back, and whether that is reported
        self._watched = 0  # calls in which all generators are the environments' own
        self._own: dict[str, list[Any]] = {}  # states by row, of each generator
        self.used: dict[str, None] = {}
        """The generators that environments seed or draw from, and settings that they change."""

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        new = [what for what, told in self._told.items() if not told]
        self._told = dict.fromkeys(self._told, True)
        return [f"{self._name}: it {what} (reported once)" for what in new]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Have the process be afterwards what it was, generators too, whatever the block does."""
        before, states = self.look(), {name: one.state() for name, one in generators().items()}
        try:
            yield
        finally:
            self.put_back(before)
            for name, one in generators().items():
                state = states.get(name, one.initial)
                if state is not None and one.shown(one.state()) != one.shown(state):
                    one.restore(state)
                    if one.seed is None:  # a module that is imported may draw, too
                        self._tell(UNDONE.format(name))

    def look(self) -> ProcessState:
        """What the process is now; from here on, what is printed goes to standard error."""
        before = (sys.stdout, sys.stderr), _folder(), list(map(HANDLER, SIGNALS))
        sys.stdout = sys.stderr
        return before

    def put_back(self, before: ProcessState) -> None:
        """Have the process be what it was `before`."""
        (sys.stdout, sys.stderr), folder, handlers = before
        if sys.stderr.closed:
            sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
            self._tell("closed standard error, which was opened again")
        if folder is not None and folder != _folder():
            with suppress(OSError):  # it is gone
                os.chdir(folder)
            self._tell("changed the working directory, which was put back")
        if handlers != list(map(HANDLER, SIGNALS)):
            self._put_back_handlers(handlers)

    def _put_back_handlers(self, handlers: Sequence[Any]) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # which alone can change them
        for number, handler in zip(SIGNALS, handlers, strict=True):
            if handler is not None and handler != HANDLER(number):  # None: not Python's
                signal.signal(number, handler)
                name = signal.Signals(number).name
                self._tell(f"changed what {name} does, which was put back")

    def _tell(self, what: str) -> None:
        self._told.setdefault(what, False)

    def seed_own(self, row: int, seed: int) -> None:
        """Seed the generators that `row` has of its own."""
        for name in self._names():
            one = generators()[name]
            if one.seed is None:
                continue
            state = one.state()
            one.seed(seed)
            self._own.setdefault(name, [None] * self._rows)[row] = one.state()
            one.restore(state)

    def hand_over(self, row: int) -> Mapping[str, Any]:
        """Have the generators be those of `row`; their states before, for `take_back`."""
        if not self.is_watching:
            return NOTHING
        before = {name: generators()[name].state() for name in self._names()}
        for name, states in self._own.items():
            if name in before and states[row] is not None:
                generators()[name].restore(states[row])
        return before

    def take_back(self, row: int, before: Mapping[str, Any]) -> None:
        """Keep the generators as those of `row`, and have them be `before` again."""
        if before is NOTHING:
            return
        self._watched += 1
        for name, state in before.items():
            one = generators()[name]
            own, after = self._own.get(name, [None] * self._rows), one.state()
            given = state if own[row] is None else own[row]
            if name not in self.used and one.shown(after) != one.shown(given):
                self._tell((UNDONE if one.seed is None else SEEDS).format(name))
                self.used[name] = None
            own[row] = None if own[row] is None else after
            one.restore(state)

    @property
    def is_watching(self) -> bool:
        """Whether a row's generators are handed over to it."""
        return self._watched < WATCHED_CALLS or bool(self.used)

    def _names(self) -> Iterable[str]:
        return list(self.used) if self._watched >= WATCHED_CALLS else list(generators())


def _folder() -> str | None:
    """The working directory; None where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


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
