"""The base of worlds that kernels step: what arena, duel and Gorge Walk have in common."""

from collections.abc import Callable, Mapping, Sequence
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
from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
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
from aimbot_lab.worlds.snapshots import FITS, Arrays, joined, part_of

NO_PICTURES: Mapping[str, Int64Array] = MappingProxyType({})


class RowSettings(Protocol):
    """What the settings of every such world have."""

    @property
    def num_envs(self) -> int:
        """Rows that are stepped together."""
        ...

    @property
    def threads(self) -> int:
        """Threads that share the rows."""
        ...


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
    """`num_envs` rows, stepped together by a kernel that threads share.

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

    def __init__(
        self,
        settings: RowSettings,
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
        raise NotImplementedError

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
        """See `worlds.snapshots.PartWorld`.

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
        """See `worlds.snapshots.PartWorld`."""
        return int(self._tables.rows.first)

    def joined(self, parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
        """See `worlds.snapshots.PartWorld`."""
        return joined(parts)

    def part_of(self, whole: Arrays) -> dict[str, np.ndarray]:
        """See `worlds.snapshots.PartWorld`."""
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
