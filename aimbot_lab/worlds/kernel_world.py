"""The base of worlds with kernels, and snapshots of their arrays by name.

A snapshot holds what a world must share to go on from it. A world with the ability `parts` shares
out its rows: snapshots of all parts join to the whole's, to the bit, and are cut from it.
"""

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from aimbot_lab.foundation.argument_checks import (
    BOOL,
    MisuseError,
    check_buffers,
    check_writable,
    whole_seed,
)
from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.kernels.jit import Packed, PackedCall
from aimbot_lab.foundation.kernels.rng import seed_streams
from aimbot_lab.foundation.kernels.row_numbers import RowNumbers
from aimbot_lab.foundation.kernels.threads import (
    BEGIN,
    STEP,
    StepTask,
    ThreadPool,
    new_queue,
    next_task,
)
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import CONSTANT, KINDS
from aimbot_lab.foundation.world import (
    COLUMNS,
    BoolArray,
    Float32Array,
    Int64Array,
    Observations,
    Scenario,
    StepBuffers,
    WorldSpec,
    new_step_buffers,
)

FITS = "fits"  # what a snapshot calls the lines "setting=value" that a world must share
OF_SCENARIO = "scenario_tables."  # what the names of the scenario's arrays begin with
LARGEST = 2**62  # of a counter, far from where it would turn over
SHOWN = 16  # characters of a value that differs

Arrays = Mapping[str, np.ndarray]


def setting_lines(settings: Any, *, without: Container[str]) -> list[str]:
    """Lines "name=value" of the dataclass `settings`, those of inner ones by "outer.inner"."""
    return [
        line
        for name, value in asdict(settings).items()
        if name not in without
        for line in _lines(name, value)
    ]


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _lines(f"{name}.{part}", inner)
    else:
        yield f"{name}={value!r}"


def check_arrays(snapshot: Arrays, own: Arrays, *, growing: Container[str]) -> None:
    """Raise MisuseError, saying what differs, unless `snapshot` has the arrays of `own`.

    Those `growing` may differ in their second axis, and the lines under "fits" must be the same.
    """
    for name in {**own, **snapshot}:
        if (name in own) != (name in snapshot):
            reason = "is missing" if name in own else "is not an array of this world"
            raise MisuseError(f"snapshot: {name} {reason}")
    _check_fits(snapshot[FITS], own[FITS])
    for name, array in own.items():
        given = snapshot[name]
        if name != FITS and _form(given, name in growing) != _form(array, name in growing):
            raise MisuseError(f"snapshot: {name} is {_shown(given)}; here it is {_shown(array)}")


def check_range(
    name: str, values: np.ndarray, *, low: int | np.ndarray, high: int | np.ndarray
) -> None:
    """Raise MisuseError unless all of `values`, the array `name`, lie in `low` to `high`."""
    wrong = ~((values >= low) & (values <= high))  # so that NaN is wrong as well
    if wrong.any():
        raise MisuseError(f"snapshot: {name} holds {values[wrong][0]:g}, which it never does")


def check_samplers(snapshot: Arrays, own: Arrays, prefix: str) -> dict[str, tuple[int, int]]:
    """Limits of the arrays below `prefix` by which kernels draw parameters.

    Raises MisuseError where bounds are not those of the world whose arrays are `own`, and where a
    constant, or a parameter of an episode that has begun, lies beyond them.
    """
    for name in (prefix + "bounds", prefix + "whole"):
        if not np.array_equal(snapshot[name], own[name]):
            raise MisuseError(f"snapshot: {name} is not that of this world")
    low, high = own[prefix + "bounds"].T
    constant = snapshot[prefix + "sampler"] == CONSTANT
    first = snapshot[prefix + "sampler_values"][:, 0]
    check_range(prefix + "sampler_values", first[constant], low=low[constant], high=high[constant])
    begun = snapshot["episode"] > 0
    check_range("parameters", snapshot["parameters"][begun], low=low, high=high)
    return {
        prefix + "sampler": (0, max(KINDS)),
        prefix + "sampler_range_count": (0, snapshot[prefix + "sampler_ranges"].shape[1]),
    }


def content_line(name: str, arrays: Iterable[np.ndarray]) -> str:
    """A line "name=value" that tells `arrays` from others."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode() + array.tobytes())
    return f"{name}={digest.hexdigest()[:16]}"


def _check_fits(given: Any, own: np.ndarray) -> None:
    if not isinstance(given, np.ndarray) or given.dtype.kind != "U" or given.ndim != 1:
        raise MisuseError(f"snapshot: {FITS} is {_shown(given)}; here it is {_shown(own)}")
    theirs, ours = (dict(line.split("=", 1) for line in lines.tolist()) for lines in (given, own))
    differing = [
        f"{name} is {theirs.get(name, 'missing')[:SHOWN]}, here {ours.get(name, 'unknown')[:SHOWN]}"
        for name in {**ours, **theirs}
        if theirs.get(name) != ours.get(name)
    ]
    if differing:
        raise MisuseError(f"snapshot: it is of another world: {'; '.join(differing)}")


def _form(array: Any, grows: bool) -> tuple[Any, ...] | None:
    """What must be alike in two arrays of a name; None for other things."""
    if not isinstance(array, np.ndarray):
        return None
    shape: tuple[int, ...] = array.shape
    if grows and array.ndim > 1:
        shape = (shape[0], -1, *shape[2:])
    return shape, array.dtype


def _shown(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype} {array.shape}"


OF_ALL = ("clock", "sampler_key", FITS)  # arrays that are not by row
TABLES = ("scenario_tables.", "sampler_tables.")  # what the names of further ones begin with
ROWS = "episode"  # an array [B] that every such world has


class PartWorld(Protocol):
    """What a world with the ability `parts` has beside what all worlds have."""

    def place(self, first_row: int, total_rows: int) -> None:
        """Be the rows from `first_row` on of a world of `total_rows`; before the first reset."""

    @property
    def first_row(self) -> int:
        """Which row of all its first one is."""

    def running(self) -> tuple[Int64Array, Int64Array]:
        """Rank and scenario [N] of the episode that runs in each seat: the world's own arrays."""

    def joined(self, parts: Sequence[Arrays]) -> Arrays:
        """The snapshot of the whole from those of all parts, in the order of their rows."""

    def part_of(self, whole: Arrays) -> Arrays:
        """Of the snapshot of the whole that which this world can restore."""


def joined(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """The snapshot of the whole from those of its `parts`, in the order of their rows.

    It is what one world with all rows would give, to the bit. Raises MisuseError where they are not
    parts of one world.
    """
    return {name: _whole(name, parts) for name in parts[0]}


def part_of(whole: Arrays, first_row: int, rows: int) -> dict[str, np.ndarray]:
    """The snapshot of `rows` rows of `whole`, from `first_row` on."""
    total = len(whole[ROWS])
    return {
        name: array if _is_of_all(name) else _cut(array, total, slice(first_row, first_row + rows))
        for name, array in whole.items()
    }


def _is_of_all(name: str) -> bool:
    return name.rpartition(".")[2] in OF_ALL or name.startswith(TABLES)


def _whole(name: str, parts: Sequence[Arrays]) -> np.ndarray:
    arrays = [part.get(name) for part in parts]
    known = [array for array in arrays if array is not None]
    if len(known) < len(parts):
        raise MisuseError(f"snapshot: {name} is missing in one of the parts")
    if not _is_of_all(name):
        agents = [
            _by_agent(array, len(part[ROWS])) for array, part in zip(known, parts, strict=True)
        ]
        together = np.concatenate(agents, axis=1)
        return together.reshape(together.shape[0] * together.shape[1], *together.shape[2:])
    if not all(np.array_equal(array, known[0]) for array in known):
        raise MisuseError(f"snapshot: {name} differs between the parts")
    return known[0]


def _cut(array: np.ndarray, total: int, rows: slice) -> np.ndarray:
    own = _by_agent(array, total)[:, rows]
    return own.reshape(own.shape[0] * own.shape[1], *own.shape[2:])


def _by_agent(array: np.ndarray, rows: int) -> np.ndarray:
    """`array` [agents, rows, ...] by seats: those of the first agent come first."""
    return array.reshape(len(array) // rows, rows, *array.shape[1:])


NO_PICTURES: Mapping[str, Int64Array] = MappingProxyType({})


def named_arrays(values: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """The arrays of the NamedTuple `values` by `prefix` and field, inner ones by "outer.inner"."""
    fields = values._asdict()
    inner = {name: value for name, value in fields.items() if isinstance(value, tuple)}
    named = {prefix + name: value for name, value in fields.items() if name not in inner}
    for name, value in inner.items():
        named.update(named_arrays(value, f"{prefix}{name}."))
    return named


def copied(values: Any) -> Any:
    """A copy of the NamedTuple `values` and of all its arrays."""
    return type(values)(
        *(copied(value) if isinstance(value, tuple) else value.copy() for value in values)
    )


def overwrite(values: Any, arrays: Arrays) -> None:
    """Fill the arrays of the NamedTuple `values` with those of `arrays`, by `named_arrays`."""
    for name, array in named_arrays(values).items():
        array[...] = arrays[name]


class KernelWorld:
    """`settings.num_envs` rows, stepped together by a kernel that `settings.threads` share.

    A world adds its `state` (a NamedTuple of arrays with `streams`, `sampler_key`, `clock`,
    `episode`), its tables (a NamedTuple with `rows` and the scenario in force), the log of ended
    episodes, the kernel of a step and the methods that raise NotImplementedError here. `reset`
    must come before the first step. What a world is called with is checked: MisuseError says in
    one line what is wrong, and the world is as it was.
    """

    MIN_ROWS: ClassVar[int] = 64
    """Rows that are worth a thread of their own."""
    NOT_STARTED: ClassVar[str] = "the world has no episodes yet: reset first"
    DRAWN_FROM: ClassVar[Mapping[str, str]] = {"scenario_tables.": "scenario"}
    """Tables that a snapshot holds: what their arrays' names begin with, and their field."""
    _advance: Packed  # the kernel of a step, of a world that has but one

    def __init__(
        self,
        settings: Any,
        spec: WorldSpec,
        *,
        state: Any,
        tables: Any,
        log: Any,
        fits: np.ndarray,
        pictures: Mapping[str, Int64Array] = NO_PICTURES,
    ) -> None:
        self.spec = spec
        self.num_envs = settings.num_envs
        self.keep_endings = False
        self.ended_state: Any = None
        self.state: Any = state
        self._tables: Any = tables
        self._log, self._fits = log, fits
        self._seats, kind = spec.agents * self.num_envs, spec.observation_dtype
        self._shape, self._dtype = (self._seats, *kind.shape), kind.base
        self._actions = np.zeros((self._seats, len(spec.action_names)), np.float32)
        self.frames = PictureFrames(spec, pictures, self._seats) if pictures else None
        threads = max(1, min(settings.threads, self.num_envs // self.MIN_ROWS))
        self._workspaces = self._new_workspaces(threads)
        self._workers = ThreadPool(threads)
        self._queue = new_queue(self._workers.sync_flags, threads=threads)
        self._task: StepTask | None = None
        self._nothing_ended = self._episodes(np.zeros(0, np.int64))

    def _new_workspaces(self, threads: int) -> Sequence[Any]:
        """What each thread works with."""
        raise NotImplementedError

    def _kernel(self) -> Packed:
        """The kernel of a step with the present tables."""
        return self._advance

    def _take(self, actions: Float32Array) -> None:
        """Check `actions` [N, A] and write them to `_actions`. Raises ActionError."""
        raise NotImplementedError

    def _episodes(self, rows: Int64Array) -> EpisodeBatch:
        """The episodes that ended in `rows`, which are in their next one already."""
        raise NotImplementedError

    def _scenario_tables(self, scenario: Scenario, number: int) -> Any:
        """The tables with `scenario` in force. Raises ConfigurationError."""
        raise NotImplementedError

    def _clear(self) -> None:
        """Bring the state to where it is before any episode began."""
        raise NotImplementedError

    def _seed_rows(self, seed: int) -> None:
        """Seed the streams of all rows."""
        seed_streams(self.state.streams, np.uint64(seed % 2**64), self._tables.rows.first)

    def _begun(self, rows: Int64Array) -> None:
        """Do what a new episode in each of `rows` needs beside the kernels."""

    @property
    def scenario_number(self) -> int:
        """Number of the scenario in force; 0 until one is set."""
        return int(self._tables.scenario.number[0])

    def set_scenario(self, scenario: Scenario) -> int:
        """Number of the scenario that every episode from now on is drawn from.

        Raises ConfigurationError where it names what the world does not have.
        """
        if not isinstance(scenario, Scenario):
            raise MisuseError(f"scenario: must be a Scenario (got {type(scenario).__name__})")
        number = self.scenario_number + 1
        self._tables = self._scenario_tables(scenario, number)
        return number

    def place(self, first_row: int, total_rows: int) -> None:
        """See `PartWorld`.

        Raises MisuseError where the rows do not lie within all, and once episodes have begun.
        """
        rows = self.num_envs
        if self.state.episode.any():
            raise MisuseError(
                "the world has begun its episodes: place its rows before the first reset"
            )
        if not 0 <= first_row <= total_rows - rows:
            raise MisuseError(
                f"first_row: must lie between 0 and {total_rows - rows}, as {rows} of {total_rows} "
                f"rows begin there (got {first_row})"
            )
        numbers = RowNumbers(int(first_row), int(total_rows))
        self._tables = self._tables._replace(rows=numbers)

    @property
    def first_row(self) -> int:
        """See `PartWorld`."""
        return int(self._tables.rows.first)

    def running(self) -> tuple[Int64Array, Int64Array]:
        """See `PartWorld`."""
        return self.state.order, self.state.scenario

    def joined(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """See `PartWorld`."""
        return joined(parts)

    def part_of(self, whole: Arrays) -> dict[str, np.ndarray]:
        """See `PartWorld`."""
        return part_of(whole, self.first_row, self.num_envs)

    def reset(self, seed: int, observations: Observations) -> None:
        """Start first episodes in all rows from `seed`; writes `observations` [N]."""
        seed = whole_seed(seed)
        check_writable(observations, "observations", shape=self._shape, dtype=self._dtype)
        self._clear()
        self._seed_rows(seed)
        self.state.sampler_key[0] = derive_seed(seed, "samplers")
        frames = self.frames
        buffers = new_step_buffers(*self._shape) if frames is None else frames.buffers
        buffers.finished[:] = True
        self._do(self._task_for(buffers), BEGIN)
        self._begun(np.arange(self.num_envs))
        if frames is None:
            observations[:] = buffers.observations
        else:
            frames.write(buffers.observations, observations)

    def step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """Episodes that ended in this step, one for each agent; writes `buffers`.

        `actions` [N, A], columns as the spec names them. Raises ActionError, with the world as it
        was, for an action that does not exist.

        With `keep_endings`, `ended_state` is a copy of the state before finished rows were reset.
        Where something else raises in here (a signal's handler), each thread's rows have made
        their decision or not; episodes that ended are restarted and not reported.
        """
        self.check_started()
        check_buffers(buffers, self._shape, self._dtype)
        if self.frames is not None:
            return self.frames.step(partial(self._step, actions), buffers)
        return self._step(actions, buffers)

    def _step(self, actions: Float32Array, buffers: StepBuffers) -> EpisodeBatch:
        """The same with observations as kernels write them."""
        self._take(actions)
        buffers.finished.fill(False)
        ended = self._queue.ended
        ended.fill(0)
        task = self._task_for(buffers)
        try:
            self.state.clock[0] += 1
            self._do(task, STEP if self.keep_endings else STEP | BEGIN)
            if self.keep_endings and any(ended.tolist()):
                self.ended_state = copied(self.state)
        finally:
            if self.keep_endings and any(ended.tolist()):
                self._do(task, BEGIN)
        if not any(ended.tolist()):
            return self._nothing_ended
        rows = buffers.finished.nonzero()[0]  # a row's agents all finish with it
        if self.spec.agents > 1:
            rows = rows[: len(rows) // self.spec.agents]
        self._begun(rows)
        return self._episodes(rows)

    def _do(self, task: StepTask, duty: int) -> None:
        task.begin_work(duty)
        self._workers.run(task)

    def _task_for(self, buffers: StepBuffers) -> StepTask:
        """What steps into `buffers`: the last task where it fits, since workers may be in it."""
        task, tables = self._task, self._tables
        if task is None or not task.fits(tables, buffers):
            task = next_task(task, tables, buffers, queue=self._queue, calls=self._calls)
            self._task = task
        return task

    def _calls(self, pair: tuple[StepBuffers, StepBuffers]) -> tuple[PackedCall, ...]:
        """The kernel as each thread calls it to write `pair`."""
        kernel, shared = self._kernel(), (self.state, self._tables, self._actions, pair, self._log)
        return tuple([kernel.call_with(*shared, one, self._queue) for one in self._workspaces])

    def _check_masks(self, masks: BoolArray) -> None:
        """Raise MisuseError unless `masks` [N, choices] can be written now."""
        self.check_started()
        shape = self._seats, sum(self.spec.branches)
        check_writable(masks, "masks", shape=shape, dtype=BOOL)

    def _shown_state(self, *, ending: bool) -> Any:
        """The state, or with `ending` the last one before finished rows were reset."""
        self.check_started()
        state = self.ended_state if ending else self.state
        if state is None:
            raise MisuseError("no ending was kept: set keep_endings before the step")
        return state

    def snapshot(self) -> dict[str, np.ndarray]:
        """A copy of everything that the future depends on, by name.

        State and scenario, and under "fits" what a world must share to restore it.
        """
        return {name: array.copy() for name, array in self.arrays().items()}

    def arrays(self) -> Mapping[str, np.ndarray]:
        """What a snapshot copies, by name; to be read and not written."""
        named = named_arrays(self.state)
        for prefix, field in self.DRAWN_FROM.items():
            named.update(named_arrays(getattr(self._tables, field), prefix))
        return {**named, FITS: self._fits}

    def check_started(self) -> None:
        """Raise MisuseError before the first reset."""
        if self.state.episode[0] == 0:
            raise MisuseError(self.NOT_STARTED)


class PictureFrames:
    """Parts the columns [N, W] that kernels write, of which some are pixels from 0 to 1.

    `pictures` names the pixels [H, W, C] of each picture; the others are the observation's columns.
    """

    buffers: StepBuffers
    """What kernels wrote in the last step."""

    def __init__(self, spec: WorldSpec, pictures: Mapping[str, Int64Array], seats: int) -> None:
        pixels = np.concatenate([columns.ravel() for columns in pictures.values()])
        width = len(spec.observation_names) + len(pixels)
        self._pictures = pictures
        self._columns = np.setdiff1d(np.arange(width), pixels)
        self.buffers = new_step_buffers(seats, width)

    def write(self, wide: Float32Array, observations: Observations) -> None:
        """Write `wide` [N, W] as `observations` [N]."""
        observations[COLUMNS] = wide[:, self._columns]
        for name, columns in self._pictures.items():
            observations[name] = np.rint(255.0 * wide[:, columns])

    def step(
        self, step: Callable[[StepBuffers], EpisodeBatch], buffers: StepBuffers
    ) -> EpisodeBatch:
        """What `step` gives, which writes wide buffers; `buffers` are written."""
        episodes, wide = step(self.buffers), self.buffers
        self.write(wide.observations, buffers.observations)
        for mine, given in zip(wide[1:4], buffers[1:4], strict=True):
            given[:] = mine
        if episodes:
            ended = np.flatnonzero(wide.finished)
            last = buffers.final_observations[ended]
            self.write(wide.final_observations[ended], last)
            buffers.final_observations[ended] = last
        return episodes


def tables_of(kind: type[Any], snapshot: Arrays, prefix: str) -> Any:
    """Copies of the arrays of `snapshot` below `prefix`, as the NamedTuple `kind`."""
    return kind(**{name: snapshot[prefix + name].copy() for name in kind._fields})
