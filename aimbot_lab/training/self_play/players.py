"""Snapshots at play: each acts for the matches that it sits in, by torch or by kernels."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch as th
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.evaluation.temperature import SAMPLED
from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array, WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.engines.engine import UnsuitedError
from aimbot_lab.training.fused.actor_stack import ActorStack, Past, Random
from aimbot_lab.training.fused.parts.actor_stack import PartsStack
from aimbot_lab.training.fused.parts.policy import has_parts
from aimbot_lab.training.self_play.pool import SnapshotPool
from aimbot_lab.training.settings import TrainSettings

NOBODY = -1  # no snapshot: the world plays the match itself
FIRST_PLACES = 8  # of snapshots that act in one call; more where more sit


class Seen(NamedTuple):
    """What is known of B matches by those who decide in them."""

    observations: Float32Array  # [B, D]
    masks: BoolArray  # [B, choices]
    past: Past


class Players(Protocol):
    """Sample actions as in training."""

    def seat(self, sits: Int64Array, kept: Iterable[int]) -> None:
        """Have the snapshots of the numbers `sits` [B] play the matches; NOBODY plays others.

        Those of the numbers `kept` will sit somewhere soon.
        """
        ...

    def act(self, seen: Seen, actions: Float32Array, random: Random) -> Float32Array | None:
        """Write the `actions` [B, A] of the matches in which snapshots sit; the new memory.

        Torch draws from one generator, kernels also from several (see `ActorStack.act`).
        """
        ...


class EachByTorch:
    """Snapshots of any policy, each in a call of its own."""

    def __init__(self, pool: SnapshotPool, spec: WorldSpec, train: TrainSettings) -> None:
        self._pool, self._spec, self._train = pool, spec, train
        self._agents: dict[int, Agent] = {}
        self._rows: dict[int, Int64Array] = {}  # of each snapshot

    def seat(self, sits: Int64Array, kept: Iterable[int]) -> None:
        """See `Players`."""
        numbers = np.unique(sits[sits != NOBODY]).tolist()
        self._rows = {number: np.flatnonzero(sits == number) for number in numbers}
        wanted = {*numbers, *kept}
        self._agents = {number: one for number, one in self._agents.items() if number in wanted}

    def act(self, seen: Seen, actions: Float32Array, random: Random) -> Float32Array | None:
        """See `Players`."""
        (observations, masks, past), memory = seen, seen.past.memory
        assert isinstance(random, th.Generator)
        with _as_torchs_own(random):
            for number, rows in self._rows.items():
                actions[rows], after = self._agent(number).choose(
                    observations[rows],
                    state=None if memory is None else memory[rows],
                    starts=past.begins[rows],
                    branch_masks=masks[rows],
                    temperature=SAMPLED,
                )
                if after is not None:
                    if memory is None:
                        memory = np.zeros((len(observations), *after.shape[1:]), np.float32)
                    memory[rows] = after
        return memory

    def _agent(self, number: int) -> Agent:
        if number not in self._agents:
            policy = _policy(self._spec, self._train)
            policy.load_state_dict(dict(self._pool.snapshots[number].weights))
            self._agents[number] = Agent(policy, self._spec, self._train)
        return self._agents[number]


class AllByKernel:
    """Snapshots of a policy that the fused engine's kernels know, all in one call.

    Building one compiles the kernel. Raises UnsuitedError for others. A snapshot does in a match
    what it would do there alone.
    """

    def __init__(self, pool: SnapshotPool, spec: WorldSpec, train: TrainSettings) -> None:
        self._pool = pool
        policy: Any = _policy(spec, train)
        self._agent = Agent(policy, spec, train)
        stack = PartsStack if has_parts(policy) else ActorStack
        self._stack = stack(policy, places=FIRST_PLACES, threads=train.torch_threads)
        self._stack.compile()
        self._numbers = np.full(FIRST_PLACES, NOBODY, np.int64)  # of the snapshots at each place

    def seat(self, sits: Int64Array, kept: Iterable[int]) -> None:
        """See `Players`."""
        places = self._places()[sits]
        absent = np.unique(sits[(places == NOBODY) & (sits != NOBODY)])
        if len(absent):
            wanted = {*sits.tolist(), *kept}
            for number in absent.tolist():
                place = self._free_place(wanted)
                self._numbers[place] = number
                self._stack.put(place, self._pool.snapshots[number].weights)
            places = self._places()[sits]
        self._stack.seat(places)

    def _places(self) -> Int64Array:
        """The place of each snapshot by its number, and of NOBODY behind; NOBODY: it has none."""
        places = np.full(len(self._pool) + 1, NOBODY, np.int64)
        taken = np.flatnonzero(self._numbers != NOBODY)
        places[self._numbers[taken]] = taken
        return places

    def _free_place(self, wanted: set[int]) -> int:
        """A place whose snapshot is not `wanted`; a new one where there is none."""
        places = len(self._numbers)
        for place, number in enumerate(self._numbers.tolist()):
            if number == NOBODY or number not in wanted:
                return place
        self._stack.grow(2 * places)
        self._numbers = np.concatenate([self._numbers, np.full(places, NOBODY, np.int64)])
        return places

    def act(self, seen: Seen, actions: Float32Array, random: Random) -> Float32Array | None:
        """See `Players`."""
        observations, masks, past = seen
        chosen, memory = self._stack.act(observations, masks, past=past, random=random)
        rows = self._stack.rows
        actions[rows] = self._agent.world_actions(chosen, observations[rows])
        return memory


def new_players(
    pool: SnapshotPool, spec: WorldSpec, train: TrainSettings, *, engine: str
) -> Players:
    """Who play by the weights in `pool`; `engine` is what the learner computes with."""
    if engine == "fused":
        with suppress(UnsuitedError):  # such as very wide layers
            return AllByKernel(pool, spec, train)
    return EachByTorch(pool, spec, train)


def _policy(spec: WorldSpec, train: TrainSettings) -> BasePolicy:
    """A policy to load weights into."""
    with th.random.fork_rng(devices=[]):  # its first weights are drawn
        policy = new_policy(train, spec)
    policy.set_training_mode(False)
    return policy


@contextmanager
def _as_torchs_own(random: th.Generator) -> Iterator[None]:
    """Let torch draw from `random`, and leave its own generator as it was."""
    before = th.get_rng_state()
    th.set_rng_state(random.get_state())
    try:
        yield
    finally:
        random.set_state(th.get_rng_state())
        th.set_rng_state(before)
