"""Copies of a Gymnasium environment in several processes, which give the bits of one.

`python -m aimbot_lab.worlds.gymnasium.copies_in_processes LINE FILE` is such a process. It is asked
over the descriptor LINE and shares arrays in the file behind the descriptor FILE. It ends with the
process that started it, also where that is killed.
"""

import os
import pickle
import re
import select
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from mmap import mmap
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO, Any

import numpy as np

from aimbot_lab.foundation import tied_start
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.world import (
    BoolArray,
    Float32Array,
    Observations,
    Picture,
    Scenario,
    StepBuffers,
    WorldSpec,
    closed_on_failure,
)
from aimbot_lab.worlds.gymnasium.copies import (
    Beginnings,
    Copies,
    EndedEpisode,
    Following,
    RunningEpisode,
)
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings

GONE = (EOFError, OSError)  # of a line whose other end is closed
START_SECONDS = 60.0  # at least, in which a process imports its libraries
END_SECONDS = 5.0  # that environments have to be closed
ALIGNMENT = 64  # bytes
DETAILS = re.compile(r"reset|step|-?[\d.]+")  # in which processes say the same thing differently
STEP, OTHER = b"s", b"o"
"""A byte asks for a step, and answers that there is nothing to say. All else follows pickled."""
QUIET: tuple[Any, Sequence[str]] = None, ()
"""An answer with nothing to say: no result, and nothing that a person should know."""


def _memory() -> IO[bytes]:
    """A file in memory, where the system has these."""
    create: Callable[[str], int] | None = getattr(os, "memfd_create", None)
    return tempfile.TemporaryFile() if create is None else os.fdopen(create("copies"), "r+b")


class SharedArrays:
    """The arrays of a step of `rows` rows in a shared file."""

    def __init__(self, file: int, spec: WorldSpec, rows: int) -> None:
        kind = spec.observation_dtype
        kinds: Sequence[Any] = (
            np.dtype((np.float32, (len(spec.branches) + spec.continuous,))),
            np.dtype((np.bool_, (sum(spec.branches),))),
            kind,
            np.float32,
            np.bool_,
            np.bool_,
            kind,
        )
        sizes = [rows * np.dtype(one).itemsize for one in kinds]
        places = [0]
        for size in sizes:
            places.append(places[-1] + -(-size // ALIGNMENT) * ALIGNMENT)
        if os.fstat(file).st_size < places[-1]:
            os.truncate(file, places[-1])
        memory = mmap(file, max(places[-1], 1))
        arrays: list[Any] = []
        for one, place in zip(kinds, places, strict=False):
            base = np.dtype(one)
            count = rows * int(np.prod(base.shape, dtype=np.int64))
            flat = np.frombuffer(memory, base.base, count, place)
            arrays.append(flat.reshape(rows, *base.shape))
        self.actions: Float32Array = arrays[0]
        self.masks: BoolArray = arrays[1]
        self.step = StepBuffers(*arrays[2:])


class CopiesInProcesses:
    """`count` copies of an environment, of which each of `settings.processes` has a part.

    All that a process is asked is answered, or ends in a line where it is gone or hangs.
    """

    def __init__(self, settings: GymnasiumSettings, count: int) -> None:
        self.settings = settings
        self._notices: list[str] = []
        self._said: set[str] = set()  # notices without their details
        self._parts: list[_CopyProcess] = []
        weakref.finalize(self, _end, self._parts)
        with closed_on_failure(self.close), _memory() as file:
            for rows in np.array_split(np.arange(count), min(settings.processes, count)):
                self._parts.append(_CopyProcess(settings, int(rows[0]), len(rows), file.fileno()))
            self.spec: WorldSpec = self._ask("make", settings)[0]
            self._shared = SharedArrays(file.fileno(), self.spec, count)
            self._ask("share", count)

    def _ask(self, what: str, *given: Any) -> list[Any]:
        """What every process answers."""
        return self._answers(what, [(part, given) for part in self._parts])

    def _answers(
        self, what: str, asked: "Sequence[tuple[_CopyProcess, tuple[Any, ...]]]"
    ) -> list[Any]:
        for part, given in asked:
            part.send(what, *given)
        return self._heard([part.answer(what) for part, _ in asked])

    def _heard(self, answers: Sequence[tuple[Any, Sequence[str]]]) -> list[Any]:
        """What was answered, of all, also where one has failed, whose error is raised then."""
        faults = [answer for answer, _ in answers if isinstance(answer, LabError)]
        for notice in (one for _, notices in answers for one in notices):
            if (gist := DETAILS.sub("", notice)) not in self._said:
                self._said.add(gist)
                self._notices.append(notice)
        if faults:
            raise faults[0]
        return [answer for answer, _ in answers]

    def _by_part(
        self, by_row: Mapping[int, Any]
    ) -> "list[tuple[_CopyProcess, tuple[dict[int, Any]]]]":
        """Each process that has any of these rows, with what they are given by its own rows."""
        found = []
        for part in self._parts:
            rows = [row for row in by_row if part.first <= row < part.first + part.count]
            if rows:
                found.append((part, ({row - part.first: by_row[row] for row in rows},)))
        return found

    def check_scenario(self, scenario: Scenario) -> None:
        """See Copies."""
        self._answers("check_scenario", [(self._parts[0], (scenario,))])

    def start(self, beginnings: Beginnings, observations: Observations) -> None:
        """See Copies."""
        self._answers("start", self._by_part(beginnings))
        rows = list(beginnings)
        observations[rows] = self._shared.step.observations[rows]

    def step(
        self, actions: Float32Array, buffers: StepBuffers, following: Following
    ) -> tuple[list[EndedEpisode], tuple[int, ...]]:
        """See Copies."""
        self._shared.actions[:] = actions
        for part in self._parts:
            part.send("step")
        ended: list[EndedEpisode] = []
        lives: list[int] = []
        begun: list[_CopyProcess] = []
        answers: list[tuple[Any, Sequence[str]]] = []
        for part in self._parts:
            answer = part.answer("step")
            if answer is QUIET:
                continue
            answers.append(answer)
            if answer[0] is None or isinstance(answer[0], LabError):
                continue
            over, lost = answer[0]
            lives += [row + part.first for row in lost]
            over = [one._replace(row=one.row + part.first) for one in over]
            ended += over
            if over:  # whose next episodes begin while other processes make their steps
                part.send("start", *self._by_part(following([one.row for one in over]))[0][1])
                begun.append(part)
        if answers:
            self._heard([*answers, *(part.answer("start") for part in begun)])
        for mine, theirs in zip(buffers[:-1], self._shared.step, strict=False):
            mine[:] = theirs
        if ended or lives:
            finished = buffers.finished
            buffers.final_observations[finished] = self._shared.step.final_observations[finished]
        return ended, tuple(lives)

    def take_notices(self) -> list[str]:
        """See Copies; what several processes have to say is said once."""
        taken, self._notices = self._notices, []
        return taken

    def action_masks(self, masks: BoolArray) -> None:
        """See Copies."""
        self._ask("action_masks")
        masks[:] = self._shared.masks

    def running(self, rows: Sequence[int]) -> list[RunningEpisode]:
        """See Copies."""
        asked = self._by_part(dict.fromkeys(rows))
        return [one for found in self._answers("running", asked) for one in found]

    def used_generators(self) -> list[str]:
        """See Copies."""
        return list(dict.fromkeys(name for names in self._ask("used_generators") for name in names))

    def use_generators(self, names: Iterable[str]) -> None:
        """See Copies."""
        self._ask("use_generators", list(names))

    def play_again(
        self, episodes: Mapping[int, RunningEpisode], observations: Observations
    ) -> dict[int, str]:
        """See Copies."""
        asked = self._by_part(episodes)
        pairs = zip(asked, self._answers("play_again", asked), strict=True)
        observations[:] = self._shared.step.observations
        return {row + part.first: why for (part, _), lost in pairs for row, why in lost.items()}

    def goal_rewards(
        self, achieved: Float32Array, desired: Float32Array, infos: Any
    ) -> Float32Array:
        """See Copies."""
        asked = [(self._parts[0], (achieved, desired, infos))]
        rewards: Float32Array = self._answers("goal_rewards", asked)[0]
        return rewards

    def draw(self, row: int) -> Picture:
        """See Copies."""
        picture: Picture = self._answers("draw", self._by_part({row: None}))[0]
        return picture

    def close(self) -> None:
        """See Copies; the processes end."""
        try:
            if all(part.is_well for part in self._parts):
                self._ask("close")
        finally:
            _end(self._parts)


class _CopyProcess:
    """A process that has `count` of the rows, from `first` on."""

    def __init__(self, settings: GymnasiumSettings, first: int, count: int, file: int) -> None:
        self.first, self.count = first, count
        self._lost: ForeignCodeError | None = None  # why it can't be asked any more
        self._asked = ""  # what it has not answered
        self._settings = settings
        self._line, theirs = Pipe()
        self._answers = select.poll()  # which connection.poll makes anew each time
        self._answers.register(self._line, select.POLLIN)
        paths = [path for path in sys.path if path]
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), str(file)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", tied_start.__file__, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=2,  # where environments print, too
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            pass_fds=[theirs.fileno(), file],
        )
        theirs.close()

    def send(self, what: str, *given: Any) -> None:
        """Ask it."""
        if self._asked and self._lost is None:  # by Ctrl-C
            self._lost = self._failed(f"was left in {self._asked}")
        if self._lost is not None:
            return
        if what in ("make", "share"):
            given = *given, self.first, self.count
        try:
            message = b"" if what == "step" else pickle.dumps((what, given))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ConfigurationError(
                f"env.processes: env.kwargs can't be sent to another process ({error}): give what "
                "plain YAML can say"
            ) from error
        self._asked = what
        with suppress(*GONE):  # which `answer` says
            os.write(self._line.fileno(), OTHER if message else STEP)
            if message:
                self._line.send_bytes(message)

    def answer(self, what: str) -> tuple[Any, Sequence[str]]:
        """What it answers, or the error that it raised, and what a person should know.

        A process that is gone, or that says nothing for too long, has failed for good.
        """
        if self._lost is not None:
            return self._lost, []
        patience = self._settings.timeout_wait
        if what == "make":
            patience = max(patience, START_SECONDS)
        try:
            if self._answers.poll(patience * 1000):
                answer = os.read(self._line.fileno(), 1)
                if not answer:
                    raise EOFError
                found = QUIET
                if answer == OTHER:
                    found = pickle.loads(self._line.recv_bytes())
                self._asked = ""
                return found
            how = f"gave no answer to {what} for {patience:g} s (env.timeout_wait)"
        except GONE:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
            code = self._process.returncode
            if code is None:
                how = f"has closed its line in {what}"
            elif code < 0:
                how = f"ended by signal {-code} in {what}"
            else:
                how = f"ended with the exit code {code} in {what}"
        self._lost = self._failed(how)
        return self._lost, []

    def _failed(self, how: str) -> ForeignCodeError:
        last = self.first + self.count - 1
        who = f"{self._settings.id}: the process of the copies {self.first} to {last}"
        return ForeignCodeError(f"{who} {how}")

    @property
    def is_well(self) -> bool:
        """Whether it can be asked."""
        return self._lost is None and not self._asked

    def end(self) -> None:
        """End the process, which closes its environments; one that does not end is killed."""
        self._line.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS if self._lost is None else 0.0)
        self._process.kill()
        self._process.wait()


def _end(parts: list[_CopyProcess]) -> None:
    while parts:
        parts.pop().end()


class _Server:
    """What a process does that is asked."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._copies: Copies | None = None

    def make(self, settings: GymnasiumSettings, first: int, count: int) -> WorldSpec:
        """Make the copies; what they are."""
        del first
        self._copies = Copies(settings, count)
        return self._copies.spec

    def share(self, total: int, first: int, count: int) -> None:
        """Share the arrays of all rows."""
        assert self._copies is not None
        shared = SharedArrays(self._file, self._copies.spec, total)
        rows = slice(first, first + count)
        self._actions, self._masks = shared.actions[rows], shared.masks[rows]
        mine: Any = [array[rows] for array in shared.step]
        self._buffers = StepBuffers(*mine)

    def answer(self, what: str, given: tuple[Any, ...]) -> Any:
        """What it is asked."""
        if what in ("make", "share"):
            own: Callable[..., Any] = getattr(self, what)
            return own(*given)
        if self._copies is None:  # they could not be made, so there is nothing to close
            return None
        match what:
            case "start" | "play_again":
                asked: Callable[..., Any] = getattr(self._copies, what)
                return asked(*given, self._buffers.observations)
            case "step":
                ended, lives = self._copies.step(self._actions.copy(), self._buffers, None)
                return (ended, lives) if ended or lives else None
            case "action_masks":
                return self._copies.action_masks(self._masks)
            case "running":
                return self._copies.running(list(given[0]))
            case "draw":
                return self._copies.draw(*given[0])
        asked = getattr(self._copies, what)
        return asked(*given)

    def notices(self) -> list[str]:
        """What a person should know since the last answer."""
        return [] if self._copies is None else self._copies.take_notices()


def main(line: int, file: int) -> None:
    """Answer what is asked over `line` until that is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the training ends its own
    connection, server = Connection(line), _Server(file)
    with suppress(*GONE):
        while asked := os.read(line, 1):
            what, given = "step", ()
            if asked == OTHER:
                what, given = pickle.loads(connection.recv_bytes())
            try:
                answer = server.answer(what, given)
            except LabError as error:
                answer = error
            notices = server.notices()
            if answer is None and not notices:
                os.write(line, STEP)
            else:
                os.write(line, OTHER)
                connection.send_bytes(pickle.dumps((answer, notices)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
