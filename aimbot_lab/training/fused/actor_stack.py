"""Several actors of one shape that act in one call of a kernel, each for rows of its own."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.matmul import whole_lanes
from aimbot_lab.foundation.kernels.packed import Packed, PackedCall
from aimbot_lab.foundation.kernels.spin_sync import SPIN_LIMIT, STRIDE
from aimbot_lab.foundation.kernels.thread_pool import ThreadPool
from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.training.fused.actor import BLIND, plain_extractor
from aimbot_lab.training.fused.core.act_stacked import (
    ACTORS_SEE,
    PIECES,
    ActorPieces,
    ActorThread,
    StackedActors,
    StackedLayer,
    act_stacked_packed,
    keep_act_stacked,
)
from aimbot_lab.training.fused.core.features import Sight
from aimbot_lab.training.fused.core.parts import (
    Floats,
    Noise,
    PolicyInput,
    Whole,
    WorkQueue,
)
from aimbot_lab.training.fused.policy import features_of, fused_weights
from aimbot_lab.training.fused.stack_workspace import new_actor_workspaces, zeros
from aimbot_lab.training.fused.weights import NetShape
from aimbot_lab.training.fused.workspace import MAX_THREADS, new_queue
from aimbot_lab.training.networks.features import EgocentricFeatures
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy

PIECE = 64  # rows of one actor that a thread takes at a time, at most


class StackTask(NamedTuple):
    """Draws an action for each row that is seated."""

    policy_input: PolicyInput
    noise: Noise
    actions: Floats  # [B, K]
    pieces: ActorPieces
    queue: WorkQueue
    calls: tuple[PackedCall, ...]  # `act_stacked` as each thread calls it

    def __call__(self, thread_id: int) -> None:
        """Work as this thread; a worker spins for the next step."""
        self.calls[thread_id]()


class Past(NamedTuple):
    """What is known of the past of each of B rows."""

    memory: Floats | None  # [B, S, H] of actors that remember; None: nothing yet
    begins: BoolArray  # [B] nothing was decided yet


Random = th.Generator | Sequence[th.Generator | None]


class ActorStack:
    """Actors like `policy`, each at a place; all act in one call.

    What an actor does in a row depends on that row and its noise alone, and is what `FusedActor`
    does in it, to the bit. Raises UnsuitedError for a policy that the kernels do not know.
    """

    def __init__(self, policy: HybridPolicy, *, places: int, threads: int) -> None:
        self._policies = [policy]
        self._shape = self._known(policy)
        self._grow_to(places)
        self._tables: Any = None  # of workspaces, which must live as long as the task
        self._same_eyes = not policy.features_extractor.state_dict()  # nothing in them was learned
        self._workers = ThreadPool(min(threads, MAX_THREADS))
        self._act = self._kernel()
        self._task: StackTask | None = None
        self._places: Whole = np.zeros(0, np.int64)  # [R] of the actors of the rows that are seated

    def _known(self, policy: HybridPolicy) -> NetShape:
        """The sizes of the heads of `policy`."""
        return fused_weights(policy)[0]

    def _kernel(self) -> Packed:
        return Packed(keep_act_stacked, act_stacked_packed)

    def grow(self, places: int) -> None:
        """Have room for so many actors, with those of now where they are."""
        self._grow_to(places)
        self._task = None

    def _grow_to(self, places: int) -> None:
        kept = len(self._policies)
        self._policies += [deepcopy(self._policies[0]) for _ in range(places - kept)]
        self._make_room()
        for place in range(kept):
            self._load(place)

    def put(self, place: int, weights: Mapping[str, th.Tensor]) -> None:
        """From now on have the actor of these `weights`, a policy's, at `place`."""
        self._policies[place].load_state_dict(dict(weights))
        self._load(place)

    def _make_room(self) -> None:
        """Make what the kernel finds the weights in, for as many places as there are policies."""
        self._stacked = _new_stack(self._shape, len(self._policies))

    def _load(self, place: int) -> None:
        """Bring the weights of the policy at `place` to where the kernel finds them."""
        _, weights = fused_weights(self._policies[place])
        weights.load()
        networks, stacked = weights.networks, self._stacked
        for layer, into in zip(networks.net.layers, stacked.layers, strict=True):
            units = into.bias.shape[1]
            into.weights[place] = layer.weights[0][:, :units]
            into.bias[place] = layer.bias[:units]
        stacked.action[place] = networks.turned.action
        stacked.action_bias[place] = networks.net.action_bias
        stacked.log_std[place] = networks.net.log_std

    def seat(self, places: Whole) -> None:
        """Have row b acted for by who is at `places[b]`; below 0 nobody does."""
        task = self._fitting_task(len(places))
        rows = np.flatnonzero(places >= 0)
        rows = rows[np.argsort(places[rows], kind="stable")]
        self._places = places[rows]
        counts = np.bincount(self._places, minlength=len(self._policies))
        pieces = -(-counts // PIECE)
        actors = np.repeat(np.arange(len(counts)), pieces)
        nth = np.arange(len(actors)) - (np.cumsum(pieces) - pieces)[actors]
        starts = (np.cumsum(counts) - counts)[actors]
        task.pieces.rows[: len(rows)] = rows
        task.pieces.actors[: len(actors)] = actors
        task.pieces.first[: len(actors)] = starts + counts[actors] * nth // pieces[actors]
        task.pieces.first[len(actors)] = len(rows)
        task.queue.numbers[PIECES] = len(actors)

    def compile(self) -> None:
        """Have the kernel compiled, or read from the cache, before anybody is seated."""
        columns = self._policies[0].observation_space.shape
        assert columns is not None
        self.seat(np.zeros(1, np.int64))
        past = Past(None, np.ones(1, np.bool_))
        self.act(zeros(1, columns[0]), np.zeros((1, 0), np.bool_), past=past, random=th.Generator())
        self._task = None

    @property
    def rows(self) -> Whole:
        """The rows [R] that are acted for, sorted by who does."""
        assert self._task is not None
        return self._task.pieces.rows[: len(self._places)]

    def act(
        self, observations: Floats, masks: BoolArray, *, past: Past, random: Random
    ) -> tuple[Any, Floats | None]:
        """(the policies' actions [R, ...] in `rows`, the new memory) for `observations` [B, D].

        Of `masks` [B, M] policies see what they were made for. Noise is drawn for all B rows, or by
        several generators for as many equal parts of them; None: nobody needs any there.
        """
        assert self._task is not None
        task, columns = self._task, observations.shape[1]
        shown = task.policy_input.observations
        shown[:, :columns] = observations
        if shown.shape[1] > columns:
            shown[:, columns:] = masks
        self._look(task)
        _draw(task.noise, random)
        task.queue.numbers[ACTORS_SEE] = self._eyes(self._policies[0]) is not None
        task.queue.taken[0] = 0
        self._workers.run(task)
        space = self._policies[0].action_space
        chosen = task.actions[self.rows].astype(space.dtype)
        return chosen.reshape(-1, *(space.shape or ())), past.memory

    def _eyes(self, policy: HybridPolicy) -> EgocentricFeatures | None:
        """What the kernel sees with in place of the extractor of `policy`."""
        extractor = plain_extractor(policy)
        return extractor if type(extractor) is EgocentricFeatures else None

    def _features(self, policy: HybridPolicy, observations: th.Tensor) -> Floats:
        return features_of(policy, observations)

    def _look(self, task: StackTask) -> None:
        """Prepare what the kernel does not see by itself."""
        given = task.policy_input
        if given.own is given.observations and self._eyes(self._policies[0]) is not None:
            return
        for policy, rows in self._rows_of_eyes():
            eyes = self._eyes(policy)
            if eyes is None:
                seen = th.from_numpy(given.observations[rows])
                given.rows[0, rows, : self._shape.inputs + self._shape.masks] = self._features(
                    policy, seen
                )
            else:
                width = given.own.shape[1]
                seen = th.from_numpy(given.observations[rows, :width])
                given.own[rows] = eyes.own_columns(seen)

    def _rows_of_eyes(self) -> Iterator[tuple[HybridPolicy, Whole]]:
        """(a policy, rows for which it sees)."""
        rows = self.rows
        if self._same_eyes:
            yield self._policies[0], rows
            return
        for place in np.unique(self._places).tolist():
            yield self._policies[place], rows[self._places == place]

    def _fitting_task(self, rows: int) -> StackTask:
        if self._task is None or len(self._task.actions) != rows:
            self._task = self._new_task(rows)
        return self._task

    def _new_task(self, rows: int) -> StackTask:
        shape, policy, eyes = self._shape, self._policies[0], self._eyes(self._policies[0])
        columns = policy.observation_space.shape
        assert columns is not None
        seen = own = zeros(rows, columns[0])
        if eyes is not None and eyes.statistics is not None:
            own = zeros(rows, eyes.sight().columns.size)
        policy_input = PolicyInput(seen, own, zeros(1, rows, shape.inputs + shape.masks))
        noise = Noise(zeros(rows, len(shape.choices)), zeros(rows, shape.gaussians))
        numbers = [np.zeros(count, np.int64) for count in (rows, rows + 1, rows)]
        task = StackTask(
            policy_input,
            noise=noise,
            actions=zeros(rows, shape.branches),
            pieces=ActorPieces(*numbers),
            queue=new_queue(self._workers.sync_flags),
            calls=(),
        )
        sight = BLIND if eyes is None else eyes.sight()
        threads = range(1 + self._workers.sync_flags.size // STRIDE)
        return task._replace(calls=self._calls(task, sight, threads))

    def _calls(self, task: StackTask, sight: Sight, threads: range) -> tuple[PackedCall, ...]:
        """The kernel as each thread calls it for `task`."""
        drawn, rows = (task.noise, task.actions), len(task.actions)
        shared = self._stacked, sight, task.policy_input, drawn, task.pieces, task.queue
        self._tables = [new_actor_workspaces(self._shape, min(PIECE, rows)) for _ in threads]
        return tuple(
            self._act.call_with(*shared, ActorThread(number, SPIN_LIMIT, table.places, example))
            for number, (table, example) in zip(threads, self._tables, strict=True)
        )


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


def _new_stack(shape: NetShape, places: int) -> StackedActors:
    layers: list[StackedLayer] = []
    below = shape.inputs
    for units in map(whole_lanes, shape.layers):
        layers.append(StackedLayer(zeros(places, below, units), zeros(places, units)))
        below = units
    return StackedActors(
        layers=tuple(layers),
        action=zeros(places, below, whole_lanes(shape.outputs)),
        action_bias=zeros(places, shape.outputs),
        log_std=zeros(places, shape.gaussians),
        starts=shape.starts,
        relu=shape.relu,
    )
