"""Acting by kernels: of one policy, and of many at once."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.buffers import RolloutBuffer

from aimbot_lab.foundation.kernels.jit import Packed, PackedCall, PackedTable
from aimbot_lab.foundation.kernels.threads import SPIN_LIMIT, STRIDE, ThreadPool
from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.training.fused.core.act import (
    AT_STEP,
    MULTIPLE,
    PIECES,
    SEES,
    ActorPieces,
    Actors,
    ActorStep,
    ActorThread,
    act_packed,
    fill_noise,
)
from aimbot_lab.training.fused.core.arrays import (
    Floats,
    Noise,
    PieceQueue,
    PolicyInput,
    Sampled,
    States,
    Whole,
)
from aimbot_lab.training.fused.layout import (
    MAX_THREADS,
    HeadShape,
    NetworkShape,
    new_queue,
    new_workspace,
)
from aimbot_lab.training.fused.policy import (
    FusedWeights,
    eyes_of,
    fused_weights,
    network_sight,
    shown_to,
)
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy

Answer = tuple[th.Tensor, th.Tensor, th.Tensor]
PIECE = 64  # rows that a thread takes at a time, some 40 microseconds of work
CPU = th.device("cpu")


class ActTask(NamedTuple):
    """Draws an action for each of B rows that has an actor."""

    step: ActorStep
    pieces: ActorPieces
    queue: PieceQueue
    calls: tuple[PackedCall, ...]  # `act` as each thread calls it
    tables: tuple[PackedTable, ...]  # of the threads' workspaces, which must live as long

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next step."""
        self.calls[thread_id]()

    def assign(self, places: Whole) -> Whole:
        """Have the actor at `places[b]` act for row b, below 0 none; the rows, by their actors."""
        rows = np.flatnonzero(places >= 0)
        rows = rows[np.argsort(places[rows], kind="stable")]
        counts = np.bincount(places[rows])
        pieces = -(-counts // PIECE)
        actors = np.repeat(np.arange(len(counts)), pieces)
        nth = np.arange(len(actors)) - (np.cumsum(pieces) - pieces)[actors]
        starts = (np.cumsum(counts) - counts)[actors]
        self.pieces.rows[: len(rows)] = rows
        self.pieces.actors[: len(actors)] = actors
        self.pieces.first[: len(actors)] = starts + counts[actors] * nth // pieces[actors]
        self.pieces.first[len(actors)] = len(rows)
        self.queue.numbers[PIECES] = len(actors)
        return self.pieces.rows[: len(rows)]

    def begin_step(self, step: int, *, sees: bool) -> None:
        """Set the next work to `step`; `sees` says whether it writes the inputs of the networks."""
        self.queue.numbers[AT_STEP], self.queue.numbers[SEES] = step, sees
        self.queue.taken[0] = 0


def new_act_task(
    kernel: Packed,
    actors: Actors,
    rows: Floats,
    *,
    policy: HybridPolicy,
    shape: NetworkShape,
    workers: ThreadPool,
    judges: bool = True,
) -> ActTask:
    """A task for `actors` like `policy`, whose networks see what is in `rows` [T, B, W].

    Values are written where it `judges`.
    """
    count, heads, sight = rows.shape[1], shape.heads, network_sight(policy)
    columns, eyes = policy.observation_space.shape, eyes_of(policy)

    def zeros(width: int) -> Floats:
        return np.zeros((count, width), np.float32)

    seen = own = zeros(columns[0] if columns else 0)
    if eyes is not None and eyes.statistics is not None:
        own = zeros(sight.sight.columns.size)
    before, after = np.zeros((2, count, shape.states, shape.lanes), np.float32)
    step = ActorStep(
        PolicyInput(seen, own, rows),
        States(np.ones(count, np.float32), before, after),
        Noise(zeros(len(heads.choices)), zeros(heads.gaussians)),
        Sampled(zeros(heads.branches), zeros(1), zeros(heads.ratios)),
    )
    pieces = ActorPieces(*(np.zeros(size, np.int64) for size in (count, count + 1, count)))
    queue = new_queue(workers.sync_flags)
    calls, tables = [], []
    for number in range(1 + workers.sync_flags.size // STRIDE):
        counts = range(MULTIPLE, min(PIECE, count) + MULTIPLE, MULTIPLE)
        workspaces = [new_workspace(shape, size, judges=judges) for size in counts]
        noise = Noise(
            np.zeros((counts[-1], len(heads.choices)), np.float32),
            np.zeros((counts[-1], heads.gaussians), np.float32),
        )
        tables.append(PackedTable(workspaces))
        thread = ActorThread(
            number,
            SPIN_LIMIT,
            tables[-1].places,
            workspaces[0],
            noise,
            np.zeros(sight.sight.columns.size + 5, np.float32),
        )
        calls.append(kernel.call_with(actors, sight, step, pieces, queue, thread))
    return ActTask(step, pieces, queue, tuple(calls), tuple(tables))


class FusedActor:
    """Does what the policy's `forward` does, and keeps what the networks are shown.

    It acts from what every row remembers, which lives in the policy as it does with torch. Random
    numbers depend on the rollout's key, the row's number and the step alone; choices are drawn from
    them in another way than torch's distributions do it.
    """

    def __init__(self, policy: HybridPolicy, shape: NetworkShape, weights: FusedWeights) -> None:
        self._policy, self._shape, self._weights = policy, shape, weights
        self.rollout = FusedRollout(shape.heads)
        self._eyes = eyes_of(policy)
        self._kernel = Packed(act_packed)
        self._table = PackedTable([weights.networks])
        self._workers = ThreadPool(1)
        self._task: ActTask | None = None
        self._key = np.zeros(3, np.uint64)  # of the rollout, of its first row, of the step

    def join(self, workers: ThreadPool) -> None:
        """From now on work with `workers`."""
        self._workers, self._task = workers, None

    def begin(self, steps: int, rows: int, *, seed: int = 0, first_row: int = 0) -> None:
        """Begin a rollout of `steps` steps of `rows` rows, by the weights of its first step.

        Its random numbers come from `seed`; its rows have the numbers from `first_row` on.
        """
        self.rollout.begin(steps, rows)
        self._key[:2] = seed, first_row

    def act(self, observations: th.Tensor) -> Answer:
        """(actions [B, ...], values [B, 1], log-probabilities [B] or [B, K]) for [B, columns].

        The policy then has the state after the step.
        """
        if self.rollout.steps == 0:
            self._weights.load()
        task, self._key[2] = self._fitting_task(), self.rollout.steps
        policy: Any = self._policy
        if self._shape.memories:
            self._remember(policy.rollout.before(len(observations), CPU))
        fill_noise(*task.step.noise, self._key)
        self._look_and_choose(observations, self.rollout.take_step())
        if self._shape.memories:
            after = task.step.states.after[:, :, : self._shape.size]
            policy.rollout.state = th.from_numpy(after.copy())
        return self._answer(task.step.sampled)

    def values(self, observations: th.Tensor) -> th.Tensor:
        """Values [B, 1] of the observations [B, columns] that follow the rollout's last step.

        Nothing is remembered.
        """
        policy: Any = self._policy
        if self._shape.memories:
            self._remember(policy.rollout.state)
        self._look_and_choose(observations, len(self.rollout.rows))
        return th.from_numpy(self._fitting_task().step.sampled.values.copy())

    def _remember(self, state: th.Tensor) -> None:
        """Have the kernel begin with `state` [B, S, H]."""
        states, policy = self._fitting_task().step.states, self._policy
        states.before[:, :, : self._shape.size] = state.numpy()
        memory: Any = policy.rollout
        states.kept[:] = 1.0 - memory.starts(len(state), CPU)[0].numpy()

    def _look_and_choose(self, observations: th.Tensor, step: int) -> None:
        if self._eyes is None:
            self.rollout.show(step, shown_to(self._policy, observations))
        else:
            self.look(observations)
        self.choose(step)

    def look(self, observations: th.Tensor) -> None:
        """Give the kernel what it needs to see `observations` [B, columns] by itself."""
        given, eyes = self._fitting_task().step.policy_input, self._eyes
        assert eyes is not None
        given.observations[...] = observations.numpy()
        if given.own is not given.observations:
            given.own[...] = eyes.own_columns(observations[:, : given.own.shape[1]])

    def compile(self) -> None:
        """Have the kernels compiled, or read from the cache."""
        fill_noise(*self._fitting_task().step.noise, self._key)
        self.choose(0)

    def choose(self, step: int) -> None:
        """Have the kernel do `step`, with the policy input and the noise that it was given."""
        task = self._fitting_task()
        task.begin_step(step, sees=self._eyes is not None)
        self._workers.run(task)

    def _fitting_task(self) -> ActTask:
        """What acts on the rollout's rows: the last task where it fits."""
        task, rows = self._task, self.rollout.after
        if task is None or task.step.policy_input.rows is not rows:
            actors = Actors(self._table.places, self._weights.networks)
            task = self._task = new_act_task(
                self._kernel,
                actors,
                rows,
                policy=self._policy,
                shape=self._shape,
                workers=self._workers,
            )
            task.assign(np.zeros(rows.shape[1], np.int64))
        return task

    def _answer(self, sampled: Sampled) -> Answer:
        """What was drawn in the form that a policy gives it."""
        space, log_probs = self._policy.action_space, sampled.log_probs
        actions = sampled.actions.astype(space.dtype).reshape(-1, *(space.shape or ()))
        whole = log_probs if self._shape.heads.ratios > 1 else log_probs[:, 0]
        values = sampled.values.copy()
        return th.from_numpy(actions), th.from_numpy(values), th.from_numpy(whole.copy())


class FusedRollout:
    """A rollout as rows that hold all that is known of a sample in one place.

    `rows` [T, B, W]: a sample's inputs, masks, actions, old log-probabilities, advantage,
    return and old value.

    What the networks are shown is written step by step while it is collected; the rest comes from
    the rollout buffer when it is complete.
    """

    def __init__(self, shape: HeadShape) -> None:
        self._shape = shape
        self._width = shape.inputs + shape.masks + shape.branches + shape.ratios + 3
        self._shown = shape.inputs + shape.masks
        self.rows: Floats = np.zeros((0, 0, self._width), np.float32)
        self._samples = self.rows.reshape(0, self._width)  # [T B, W] the same
        self.after = self.rows  # [T + 1, B, W] the same, and a step that follows the rollout
        self.steps = 0  # whose inputs are there

    def begin(self, steps: int, rows: int) -> None:
        """Make room for `steps` steps of `rows` environments."""
        self.steps = 0
        if self.rows.shape[:2] != (steps, rows):
            self.after = np.zeros((steps + 1, rows, self._width), np.float32)
            self.rows = self.after[:steps]
            self._samples = self.rows.reshape(steps * rows, self._width)

    def take_step(self) -> int:
        """The step that comes next; where there are more than there is room for, the last."""
        self.steps += 1
        return min(self.steps, len(self.rows)) - 1

    def show(self, step: int, features: Floats) -> None:
        """Keep inputs and masks [B, F + M] of `step`, which may be the one after the rollout."""
        self.after[step, :, : self._shown] = features

    def show_all(self, features: Floats) -> None:
        """Keep inputs and masks [T, B, F + M] of all steps."""
        self.rows[:, :, : self._shown] = features
        self.steps = len(self.rows)

    @property
    def shown(self) -> Floats:
        """Inputs and masks [T, B, F + M] of all steps, a view."""
        return self.rows[:, :, : self._shown]

    def complete(self, buffer: RolloutBuffer) -> Floats:
        """The rows [T B, W], step by step, with what `buffer` knows of them."""
        steps, rows = self.rows.shape[:2]
        rest = self.rows[:, :, self._shown :]
        branches, ratios = self._shape.branches, self._shape.ratios
        rest[:, :, :branches] = buffer.actions.reshape(steps, rows, branches)
        rest[:, :, branches : branches + ratios] = buffer.log_probs.reshape(steps, rows, ratios)
        for column, values in enumerate((buffer.advantages, buffer.returns, buffer.values)):
            rest[:, :, branches + ratios + column] = values
        return self._samples


class Past(NamedTuple):
    """What is known of the past of each of B rows."""

    memory: Floats | None  # [B, S, H] of actors that remember; None: nothing yet
    begins: BoolArray  # [B] nothing was decided yet


Random = th.Generator | Sequence[th.Generator | None]


class ActorStack:
    """Actors like `policy`, each at a place; all act in one call.

    What an actor does in a row depends on that row and its noise alone, and is what `FusedActor`
    does in it, to the bit. What rows remember is [B, S, H], as `RememberingPolicy.predict` gives
    it. Raises UnsuitedError for a policy that the kernels do not know.
    """

    def __init__(self, policy: HybridPolicy, *, places: int, threads: int) -> None:
        self._policies = [policy]
        self._shape, weights = fused_weights(policy)
        self._weights = [weights]
        self._same_eyes = not policy.features_extractor.state_dict()  # nothing in them was learned
        self._workers = ThreadPool(min(threads, MAX_THREADS))
        self._kernel = Packed(act_packed)
        self._task: ActTask | None = None
        self._places: Whole = np.zeros(0, np.int64)  # [B] of the actor of each row
        self.rows: Whole = self._places  # [R] those that are acted for, sorted by who does
        self.grow(places)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy works in memory of its own."""
        return _copied, (self._policies, self._workers.count, self._places)

    def grow(self, places: int) -> None:
        """Make room for `places` actors; those that are there stay where they are."""
        for _ in range(places - len(self._policies)):
            self._policies.append(deepcopy(self._policies[0]))
            self._weights.append(fused_weights(self._policies[-1])[1])
        self._table = PackedTable([one.networks for one in self._weights])
        for weights in self._weights:
            weights.load()
        self._task = None

    def put(self, place: int, weights: Mapping[str, th.Tensor]) -> None:
        """From now on have the actor of these `weights`, a policy's, at `place`."""
        self._policies[place].load_state_dict(dict(weights))
        self._weights[place].load()

    def seat(self, places: Whole) -> None:
        """Assign the actor at `places[b]` to row b; a negative place leaves the row idle."""
        if self._task is None or len(self._places) != len(places):
            shape = self._shape.heads
            seen = np.zeros((1, len(places), shape.inputs + shape.masks), np.float32)
            self._task = new_act_task(
                self._kernel,
                Actors(self._table.places, self._weights[0].networks),
                seen,
                policy=self._policies[0],
                shape=self._shape,
                workers=self._workers,
                judges=False,
            )
        self._places = places.copy()
        self.rows = self._task.assign(places)

    def compile(self) -> None:
        """Have the kernel compiled, or read from the cache, before anybody is seated."""
        columns = self._policies[0].observation_space.shape
        assert columns is not None
        self.seat(np.zeros(1, np.int64))
        past = Past(None, np.ones(1, np.bool_))
        observations = np.zeros((1, columns[0]), np.float32)
        self.act(observations, np.zeros((1, 0), np.bool_), past=past, random=th.Generator())
        self._task = None

    def act(
        self, observations: Floats, masks: BoolArray, *, past: Past, random: Random
    ) -> tuple[Any, Floats | None]:
        """(the policies' actions [R, ...] in `rows`, the new memory) for `observations` [B, ...].

        Of `masks` [B, M] policies see what they were made for. Noise is drawn for all B rows, or by
        several generators for as many equal parts of them; None: no row needs any there.
        """
        task, rows, columns = self._task, self.rows, observations.shape[1]
        assert task is not None
        shown, states = task.step.policy_input.observations, task.step.states
        shown[:, :columns] = observations
        if shown.shape[1] > columns:
            shown[:, columns:] = masks
        memory, size = past.memory, self._shape.size
        if self._shape.memories:
            if memory is None:
                memory = np.zeros((len(observations), self._shape.states, size), np.float32)
            states.before[:, :, :size] = memory
            states.kept[:] = ~past.begins
        self._look(task)
        _draw(task.step.noise, random)
        task.begin_step(0, sees=eyes_of(self._policies[0]) is not None)
        self._workers.run(task)
        if self._shape.memories and memory is not None:
            memory[rows] = states.after[rows, :, :size]
        space = self._policies[0].action_space
        chosen = task.step.sampled.actions[rows].astype(space.dtype)
        return chosen.reshape(-1, *(space.shape or ())), memory

    def _look(self, task: ActTask) -> None:
        """Prepare what the kernel does not see by itself."""
        given, width = task.step.policy_input, self._shape.heads.inputs + self._shape.heads.masks
        if given.own is given.observations and eyes_of(self._policies[0]) is not None:
            return
        for policy, rows in self._rows_of_eyes():
            seen, eyes = th.from_numpy(given.observations[rows]), eyes_of(policy)
            if eyes is None:
                given.rows[0, rows, :width] = shown_to(policy, seen)
            else:
                given.own[rows] = eyes.own_columns(seen[:, : given.own.shape[1]])

    def _rows_of_eyes(self) -> Iterator[tuple[HybridPolicy, Whole]]:
        """(a policy, rows for which it sees)."""
        if self._same_eyes:
            yield self._policies[0], self.rows
            return
        of_rows = self._places[self.rows]
        for place in np.unique(of_rows).tolist():
            yield self._policies[place], self.rows[of_rows == place]


def _copied(policies: Sequence[HybridPolicy], threads: int, places: Whole) -> ActorStack:
    made = ActorStack(policies[0], places=len(policies), threads=threads)
    for place, policy in enumerate(policies):
        made.put(place, policy.state_dict())
    if len(places):
        made.seat(places)
    return made


def _draw(noise: Noise, random: Random) -> None:
    """Draw it for all rows, or for each of as many equal parts of them as there are generators."""
    sources = [random] if isinstance(random, th.Generator) else random
    count = len(noise.uniform) // len(sources)
    for k, source in enumerate(sources):
        if source is None:
            continue
        uniform, normal = (part[k * count : (k + 1) * count] for part in noise)
        th.rand(*uniform.shape, generator=source, out=th.from_numpy(uniform))
        th.randn(*normal.shape, generator=source, out=th.from_numpy(normal))
