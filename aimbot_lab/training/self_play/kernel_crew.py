"""Agents at play in the matches of many pairs at once, by the kernels of past selves."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import torch as th

from aimbot_lab.evaluation.side_by_side import SideSeat
from aimbot_lab.evaluation.temperature import SAMPLED
from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.engines.engine import UnsuitedError
from aimbot_lab.training.fused.actor_stack import Past
from aimbot_lab.training.self_play.players import NOBODY, AllByKernel, Seen
from aimbot_lab.training.self_play.pool import Snapshot, SnapshotPool
from aimbot_lab.training.self_play.seated_agent import AgentPlayer, SeatedAgent

STALE = 8  # one of so many rows may be left before those that act are gathered anew


class KernelCrew:
    """Every agent that samples as in training and whose network the kernels know.

    Those that were trained alike act in one call. Each side has random numbers of its own, so that
    what an agent does in a match does not depend on who plays beside it.
    """

    def __init__(self) -> None:
        self._stacks: list[_Stack] = []

    def sit(self, sides: Sequence[SideSeat], matches: int) -> Collection[int]:
        """See `Crew`."""
        self._stacks = []
        for group in _alike(_agents_of(sides)):
            with suppress(UnsuitedError):  # such as very wide layers
                self._stacks.append(_Stack(group, sides=len(sides), matches=matches))
        return [number for stack in self._stacks for number in stack.sides]

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """See `Crew`."""
        for stack in self._stacks:
            stack.act(observations, masks, starts, actions)

    def leave(self, rows: Int64Array) -> None:
        """See `Crew`."""
        for stack in self._stacks:
            stack.leave(rows)


class _AgentSide(NamedTuple):
    number: int  # of the side
    agent: Agent
    seed: int


def _agents_of(sides: Sequence[SideSeat]) -> Iterator[_AgentSide]:
    """Those who sample at the temperature of the training."""
    for number, (player, seed) in enumerate(sides):
        if isinstance(player, AgentPlayer) and player.agent is not None:
            agent = player.agent
            if agent.samples and agent.temperature(player.temperature) == SAMPLED:
                yield _AgentSide(number, agent, seed)


def _alike(sides: Iterator[_AgentSide]) -> list[list[_AgentSide]]:
    """The same, by how they were trained."""
    groups: list[list[_AgentSide]] = []
    for side in sides:
        fitting = [group for group in groups if group[0].agent.train == side.agent.train]
        if fitting:
            fitting[0].append(side)
        else:
            groups.append([side])
    return groups


class _Stack:
    """Agents of one kind of network in some of the sides. Raises UnsuitedError as `AllByKernel`."""

    def __init__(self, group: Sequence[_AgentSide], *, sides: int, matches: int) -> None:
        agents = list({id(side.agent): side.agent for side in group}.values())
        pool = SnapshotPool()
        pool.snapshots = [
            Snapshot(number, number, agent.policy.state_dict())
            for number, agent in enumerate(agents)
        ]
        self._agents = agents
        self._players = AllByKernel(pool, agents[0].spec, agents[0].train)
        self.sides = [side.number for side in group]
        self._sits = np.full(sides * matches, NOBODY, np.int64)
        self._random: list[th.Generator | None] = [None] * sides
        for number, agent, seed in group:
            self._sits[number * matches : (number + 1) * matches] = agents.index(agent)
            self._random[number] = th.Generator().manual_seed(seed)
        self._memory: Float32Array | None = None
        self._seated = 0  # rows that the kernel acts for
        self._began = False

    def act(
        self, observations: Float32Array, masks: BoolArray, starts: BoolArray, actions: Float32Array
    ) -> None:
        """Write the actions of the rows in which somebody sits."""
        if not self._began:
            self._try(observations, masks, starts)
        self._gather()
        if self._seated:
            seen = Seen(observations, masks, Past(self._memory, starts))
            self._memory = self._players.act(seen, actions, self._random)

    def _try(self, observations: Float32Array, masks: BoolArray, starts: BoolArray) -> None:
        """Have torch say what is wrong where a network has no answer: LabError."""
        for number, agent in enumerate(self._agents):
            row = np.flatnonzero(self._sits == number)[:1]
            SeatedAgent(agent, 0).act(observations[row], masks[row], starts[row])
        self._began = True

    def _gather(self) -> None:
        """Follow those who left, once they are enough for that to be worth its time."""
        sitting = int((self._sits != NOBODY).sum())
        if self._seated - sitting > self._seated // STALE or not self._seated:
            self._players.seat(self._sits, ())
            self._seated = sitting

    def leave(self, rows: Int64Array) -> None:
        """Nobody sits in `rows` any more."""
        self._sits[rows] = NOBODY
