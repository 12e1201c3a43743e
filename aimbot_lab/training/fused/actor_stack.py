"""Several actors of one shape that act in one call of a kernel, each for rows of its own."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch as th

from aimbot_lab.foundation.kernels.packed import Packed, PackedTable
from aimbot_lab.foundation.kernels.thread_pool import ThreadPool
from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.training.fused.actor import ActTask, new_act_task
from aimbot_lab.training.fused.core.act import Actors, act_packed
from aimbot_lab.training.fused.core.arrays import Floats, Noise, Whole
from aimbot_lab.training.fused.policy import fused_weights
from aimbot_lab.training.fused.sight import eyes_of, shown_to
from aimbot_lab.training.fused.workspace import MAX_THREADS
from aimbot_lab.training.networks.hybrid_policy import HybridPolicy


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
        """Have room for so many actors, with those of now where they are."""
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
        several generators for as many equal parts of them; None: nobody needs any there.
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
