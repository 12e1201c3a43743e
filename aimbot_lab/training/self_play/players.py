"""Agents at play in the seats of many matches: each by torch, or many in one call of a kernel."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch as th
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.evaluation.matches import (
    IDLE,
    EachAlone,
    MatchPlayer,
    Players,
    Seated,
    Side,
)
from aimbot_lab.evaluation.temperature import SAMPLED, Temperature
from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array, WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.ppo_update import UnsuitedError
from aimbot_lab.training.fused.actor import ActorStack, Past, Random
from aimbot_lab.training.self_play.pool import Weights
from aimbot_lab.training.settings import TrainSettings

FIRST_PLACES = 8  # of agents that act in one call; more where more sit
STALE = 8  # rows are gathered anew once more than 1 of this many has been left


@dataclass(frozen=True)
class AgentPlayer(MatchPlayer):
    """An agent as a player; at the temperature that is advised where none is given."""

    agent: Agent | None = None
    temperature: Temperature | None = None


def agent_player(
    name: str, agent: Agent, *, step: int, run: str, temperature: Temperature | None = None
) -> AgentPlayer:
    """`agent` as a player that draws from random numbers of its own."""

    def sit(seed: int) -> Seated:
        state, random = None, th.Generator().manual_seed(seed)

        def act(observations: Float32Array, masks: BoolArray, starts: BoolArray) -> Float32Array:
            nonlocal state
            with _as_torchs_own(random):
                actions, state = agent.choose(
                    observations,
                    state=state,
                    starts=starts,
                    branch_masks=masks,
                    temperature=temperature,
                )
            return actions

        return act

    return AgentPlayer(name, sit, step, run, agent=agent, temperature=temperature)


class SnapshotPlayers(Players, Protocol):
    """Players by the numbers of their weights, which sample actions as in training."""

    memory: Float32Array | None
    """[B, ...] of those that remember; None: nothing yet."""
    random: Random
    """What is drawn from: torch draws from one generator, kernels also from several (see
    `ActorStack.act`)."""


class EachByTorch:
    """Snapshots of any policy, each in a call of its own."""

    def __init__(
        self, weights_of: Callable[[int], Weights], spec: WorldSpec, train: TrainSettings
    ) -> None:
        self._weights_of, self._spec, self._train = weights_of, spec, train
        self._agents: dict[int, Agent] = {}
        self._rows: dict[int, Int64Array] = {}  # of each snapshot
        self.memory: Float32Array | None = None
        self.random: Random = th.Generator()

    def seat(self, sits: Int64Array, kept: Iterable[int] = ()) -> None:
        """See `Players`."""
        numbers = np.unique(sits[sits != IDLE]).tolist()
        self._rows = {number: np.flatnonzero(sits == number) for number in numbers}
        wanted = {*numbers, *kept}
        self._agents = {number: one for number, one in self._agents.items() if number in wanted}

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """See `Players`."""
        memory = self.memory
        assert isinstance(self.random, th.Generator)
        with _as_torchs_own(self.random):
            for number, rows in self._rows.items():
                actions[rows], after = self._agent(number).choose(
                    observations[rows],
                    state=None if memory is None else memory[rows],
                    starts=starts[rows],
                    branch_masks=masks[rows],
                    temperature=SAMPLED,
                )
                if after is not None:
                    if memory is None:
                        memory = np.zeros((len(observations), *after.shape[1:]), np.float32)
                    memory[rows] = after
        self.memory = memory

    def _agent(self, number: int) -> Agent:
        if number not in self._agents:
            policy = _policy(self._spec, self._train)
            policy.load_state_dict(dict(self._weights_of(number)))
            self._agents[number] = Agent(policy, self._spec, self._train)
        return self._agents[number]


class AllByKernel:
    """Snapshots of a policy that the fused engine's kernels know, all in one call.

    Building one compiles the kernel. Raises UnsuitedError for others. A snapshot does in a match
    what it would do there alone.
    """

    def __init__(
        self, weights_of: Callable[[int], Weights], spec: WorldSpec, train: TrainSettings
    ) -> None:
        self._weights_of = weights_of
        policy: Any = _policy(spec, train)
        self._agent = Agent(policy, spec, train)
        self._stack = ActorStack(policy, places=FIRST_PLACES, threads=train.torch_threads)
        self._stack.compile()
        self._numbers = np.full(FIRST_PLACES, IDLE, np.int64)  # of the snapshots at each place
        self.memory: Float32Array | None = None
        self.random: Random = th.Generator()

    def seat(self, sits: Int64Array, kept: Iterable[int] = ()) -> None:
        """See `Players`."""
        places = self._places(sits)
        absent = np.unique(sits[(places == IDLE) & (sits != IDLE)])
        if len(absent):
            wanted = {*sits.tolist(), *kept}
            for number in absent.tolist():
                place = self._free_place(wanted)
                self._numbers[place] = number
                self._stack.put(place, self._weights_of(number))
            places = self._places(sits)
        self._stack.seat(places)

    def _places(self, sits: Int64Array) -> Int64Array:
        """The place [B] of the snapshot in each row; IDLE where it has none, or none sits there."""
        taken = np.flatnonzero(self._numbers != IDLE)
        most = max(self._numbers.max(), sits.max(initial=IDLE))
        places = np.full(most + 2, IDLE, np.int64)  # by number; that of IDLE is behind
        places[self._numbers[taken]] = taken
        return places[sits]

    def _free_place(self, wanted: set[int]) -> int:
        """A place whose snapshot is not `wanted`; a new one where there is none."""
        places = len(self._numbers)
        for place, number in enumerate(self._numbers.tolist()):
            if number == IDLE or number not in wanted:
                return place
        self._stack.grow(2 * places)
        self._numbers = np.concatenate([self._numbers, np.full(places, IDLE, np.int64)])
        return places

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """See `Players`."""
        past = Past(self.memory, starts)
        chosen, self.memory = self._stack.act(observations, masks, past=past, random=self.random)
        rows = self._stack.rows
        actions[rows] = self._agent.world_actions(chosen, observations[rows])


def new_players(
    weights_of: Callable[[int], Weights], spec: WorldSpec, train: TrainSettings, *, engine: str
) -> SnapshotPlayers:
    """Players by the weights of snapshots; `engine` is what the learner computes with."""
    if engine == "fused":
        with suppress(UnsuitedError):  # such as very wide layers
            return AllByKernel(weights_of, spec, train)
    return EachByTorch(weights_of, spec, train)


class AgentsByKernel:
    """Agents that were trained alike, in `own` of all `sides`, in one call of a kernel.

    Each side has random numbers of its own, so that what an agent does in a match does not depend
    on what plays beside it. Raises UnsuitedError as `AllByKernel`.
    """

    def __init__(self, own: Sequence[tuple[int, Agent, int]], *, sides: int) -> None:
        self._agents = list({id(agent): agent for _, agent, _ in own}.values())
        first = self._agents[0]
        weights = [agent.policy.state_dict() for agent in self._agents]
        self._players = AllByKernel(weights.__getitem__, first.spec, first.train)
        self._agent_of = np.full(sides + 1, IDLE, np.int64)  # of each side; the last: of none
        random: list[th.Generator | None] = [None] * sides
        for side, agent, seed in own:
            self._agent_of[side] = self._agents.index(agent)
            random[side] = th.Generator().manual_seed(seed)
        self._players.random = random
        self._sits: Int64Array = np.zeros(0, np.int64)
        self._seated = 0  # rows that the kernel acts for
        self._began = False

    def seat(self, sits: Int64Array, kept: Iterable[int] = ()) -> None:
        """See `Players`; rows are gathered anew once enough were left to be worth the time."""
        del kept
        self._sits = self._agent_of[sits]
        sitting = int((self._sits != IDLE).sum())
        if self._seated - sitting > self._seated // STALE or not self._seated:
            self._players.seat(self._sits)
            self._seated = sitting

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """See `Players`. Raises LabError where a network gives no answer."""
        if not self._began:
            for number, agent in enumerate(self._agents):  # torch says what is wrong
                row = np.flatnonzero(self._sits == number)[:1]
                agent_player("", agent, step=0, run="").sit(0)(
                    observations[row], masks[row], starts[row]
                )
            self._began = True
        if self._seated:
            self._players.act(observations, masks, starts, actions)


def by_kernels(sides: Sequence[Side]) -> Sequence[Players]:
    """The players of `sides`: agents by kernels where these know them, the others each alone.

    Kernels know agents that sample as in training by a network of the fused engine. Those that
    were trained alike act in one call.
    """
    groups: list[list[tuple[int, Agent, int]]] = []
    for number, (player, seed) in enumerate(sides):
        if not isinstance(player, AgentPlayer) or player.agent is None:
            continue
        agent = player.agent
        if agent.samples and agent.temperature(player.temperature) == SAMPLED:
            alike = [group for group in groups if group[0][1].train == agent.train]
            if not alike:
                groups.append([])
            (alike or groups[-1:])[0].append((number, agent, seed))
    players: list[Players] = []
    left = {*range(len(sides))}
    for group in groups:
        with suppress(UnsuitedError):  # such as very wide layers
            players.append(AgentsByKernel(group, sides=len(sides)))
            left -= {number for number, _, _ in group}
    alone = {number: sides[number][0].sit(sides[number][1]) for number in sorted(left)}
    return [*players, EachAlone(alone)]


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
