"""The rows of one build: what its messages bring, the actions that it is sent, who sits where."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array, Int64Array, Observations, WorldSpec
from aimbot_lab.mlagents.base_env import ActionTuple, DecisionSteps, Int32Array, TerminalSteps
from aimbot_lab.mlagents.builds import Behaviors, BuildLink
from aimbot_lab.mlagents.exception import UnityObservationException, UnityTimeOutException
from aimbot_lab.mlagents.messages import RESET, STEP, BuildMessage
from aimbot_lab.mlagents.side_channel.side_channel import unframed
from aimbot_lab.worlds.unity.channels import Agent, Result, ResultReader
from aimbot_lab.worlds.unity.settings import BuildShape, OtherActions, observed, plain_name

EMPTY = -1  # the row of an agent without one


class RowArrays(NamedTuple):
    """What is known of B rows."""

    observations: Observations  # [B] last one that an action was asked for
    allowed: BoolArray  # [B, choices of all branches]
    rewards: Float32Array  # [B] since the last step, of the episode that ended or goes on
    carried: Float32Array  # [B] rewards of the next episode that came already
    returns: Float32Array  # [B] of the episode so far
    over: BoolArray  # [B] the episode ended, and the next one has not begun
    away: Int64Array  # [B] steps for which it has been over
    finished: BoolArray  # [B] and has begun in this step
    interrupted: BoolArray  # [B] it was cut off
    final_observations: Observations  # [B] its last one

    def part(self, rows: slice) -> "RowArrays":
        """Views of some rows."""
        return RowArrays._make(array[rows] for array in self)


def new_rows(count: int, spec: WorldSpec) -> RowArrays:
    """Rows of a world with `spec`, of which nothing is known."""
    return RowArrays(
        observations=np.zeros(count, spec.observation_dtype),
        allowed=np.ones((count, sum(spec.branches)), np.bool_),
        rewards=np.zeros(count, np.float32),
        carried=np.zeros(count, np.float32),
        returns=np.zeros(count, np.float32),
        over=np.zeros(count, np.bool_),
        away=np.zeros(count, np.int64),
        finished=np.zeros(count, np.bool_),
        interrupted=np.zeros(count, np.bool_),
        final_observations=np.zeros(count, spec.observation_dtype),
    )


class BuildRows:
    """The agents of `link` in rows, which `at` holds."""

    def __init__(
        self,
        link: BuildLink,
        shape: BuildShape,
        at: RowArrays,
        *,
        spec: WorldSpec,
        reader: ResultReader,
        others: Mapping[str, OtherActions],
        timeout_wait: float,
        seed: int,
    ) -> None:
        self.link, self._shape, self._at, self._spec = link, shape, at, spec
        self._timeout_wait = timeout_wait  # s
        self._reader, self._behaviors = reader, Behaviors()
        self._seating = Seating(len(at.over))
        self._pending: dict[str, Int64Array] = {}  # rows of the agents that wait for an action
        self._others, self._random = others, np.random.default_rng(seed)
        self._masks: dict[str, list[BoolArray]] = {}  # of other behaviors that act at random
        self.results: dict[int, Result] = {}  # by row

    def reset(self, channels: bytes) -> None:
        """Begin episodes in all rows, which are not reported as ended."""
        at = self._at
        self._seating = Seating(len(at.over))
        self.results.clear()
        self.link.send(RESET, {}, channels)
        at.over[:] = True
        self._receive_until(lambda _: self._seating.is_full, "not as many agents as before needed")
        for array in (at.over, at.away, at.finished, at.rewards, at.carried, at.returns):
            array[:] = 0

    def send(self, actions: Float32Array, channels: bytes) -> None:
        """Act by `actions` [rows, branches + continuous]."""
        self.link.send(STEP, self._actions(actions), channels)

    def collect(self) -> None:
        """Take messages until one asks for an action of ours."""
        self._receive_until(bool, "no agent needed")

    def _receive_until(self, is_enough: Callable[[bool], bool], lack: str) -> None:
        """Take messages until what the last one asks for `is_enough`, with zeros as actions.

        Raises UnityTimeOutException, which says the `lack`, after `timeout_wait` seconds.
        """
        until = 0.0
        while not is_enough(self._absorb(self.link.receive())):
            now = time.monotonic()
            until = until or now + self._timeout_wait
            if now > until:
                raise UnityTimeOutException(
                    f"{self.link}: behavior {self._shape.behavior}: {lack} an action within "
                    f"{self._timeout_wait:g} s (env.timeout_wait)"
                )
            self.link.send(STEP, self._actions(None), b"")

    def _actions(self, actions: Float32Array | None) -> dict[str, bytes]:
        """What every agent that waits is sent; zeros for those without a row.

        Those of other behaviors act at random where `others` says so.
        """
        sent = {}
        for name, rows in self._pending.items():
            behavior = self._behaviors.known[name]
            chosen = behavior.spec.action_spec.empty_action(len(rows))
            if actions is not None and (rows != EMPTY).any():
                branches, seated = behavior.spec.action_spec.discrete_size, rows != EMPTY
                chosen.discrete[seated] = actions[rows[seated], :branches]
                chosen.continuous[seated] = actions[rows[seated], branches:]
            if self._others.get(plain_name(name)) == "random":
                self._draw(chosen, self._masks[name])
            sent[name] = behavior.actions.encode(ActionTuple(chosen.continuous, chosen.discrete))
        return sent

    def _draw(self, chosen: ActionTuple, forbidden: list[BoolArray]) -> None:
        """Random numbers from -1 to 1, and choices [n] that are not `forbidden` [n, size]."""
        chosen.continuous[:] = self._random.uniform(-1, 1, chosen.continuous.shape)
        for branch, masks in enumerate(forbidden):
            drawn = np.where(masks, -1.0, self._random.random(masks.shape))
            chosen.discrete[:, branch] = drawn.argmax(axis=1)

    def _absorb(self, message: BuildMessage) -> bool:
        """Take what `message` says; whether it asks for an action of ours."""
        self._reader.receive(unframed(message.side_channels))
        known = self._behaviors.of(message)
        self._pending = {}
        steps = {
            name: self._decoded(name, infos)
            for name, infos in message.infos.items()
            if name in known
        }
        ours = [name for name in steps if plain_name(name) == self._shape.behavior]
        self._end({name: steps[name][1] for name in ours})
        asked = False
        for name, (decisions, _) in steps.items():
            if name in ours:
                self._pending[name] = self._begin(name, decisions)
                asked = asked or bool((self._pending[name] != EMPTY).any())
            else:
                self._pending[name] = np.full(len(decisions), EMPTY)
                plain = plain_name(name)
                sent = "random actions" if self._others.get(plain) == "random" else "zeros"
                what = f"behavior {plain} does not learn: it is sent {sent} (env.others)"
                self._reader.channels.note(what)
                self._masks[name] = decisions.action_mask or []
        return asked

    def _decoded(self, name: str, infos: bytes) -> tuple[DecisionSteps, TerminalSteps]:
        """What agents tell; a group's reward is part of that of each member."""
        both = self._behaviors.known[name].infos.decode(infos)
        for steps in both:
            if steps.group_reward.any():
                steps.reward[:] += steps.group_reward
                who = f"agents of {plain_name(name)} are in groups"
                self._reader.channels.note(f"{who}: a group's reward is added to each member's")
        return both

    def _end(self, ended: dict[str, TerminalSteps]) -> None:
        """Close the episodes of agents that one message reports as ended."""
        at, places, cut = self._at, [], []
        totals: list[float] = []
        for name, steps in ended.items():
            rows = self._seating.rows(name, steps.agent_id)
            if self._seating.surplus:
                unseated = steps.agent_id[rows == EMPTY].tolist()
                self._seating.surplus.difference_update((name, one) for one in unseated)
            places += rows.tolist()
            cut += steps.interrupted.tolist()
            # Only of a row that has not ended since it was last reported.
            fresh = (rows != EMPTY) & ~at.over[rows]
            chosen = rows[fresh]
            at.rewards[chosen] += steps.reward[fresh]
            at.returns[chosen] += steps.reward[fresh]
            totals += np.where(rows != EMPTY, at.returns[rows], 0.0).tolist()
            at.final_observations[chosen] = self._observed(name, steps)[fresh]
            at.interrupted[chosen] = steps.interrupted[fresh]
            at.over[chosen] = True
        results = self._reader.results(totals, np.array(cut, np.bool_))
        for row, result in zip(places, results, strict=True):
            if row != EMPTY:
                self.results.setdefault(row, result)

    def _begin(self, name: str, decisions: DecisionSteps) -> Int64Array:
        """Note what agents that need an action observe; their rows."""
        at = self._at
        rows = self._seating.seat(name, decisions.agent_id, at.over)
        seated = rows != EMPTY
        chosen = rows[seated]
        if not len(chosen):
            return rows
        at.observations[chosen] = self._observed(name, decisions)[seated]
        forbidden = decisions.action_mask
        if forbidden:
            at.allowed[chosen] = ~np.concatenate(forbidden, axis=1)[seated]
        begins, rewards = at.over[chosen] | at.finished[chosen], decisions.reward[seated]
        at.carried[chosen[begins]] += rewards[begins]
        at.rewards[chosen[~begins]] += rewards[~begins]
        at.returns[chosen[~begins]] += rewards[~begins]
        at.finished[chosen] |= at.over[chosen]
        at.over[chosen] = False
        return rows

    def _observed(self, name: str, steps: DecisionSteps | TerminalSteps) -> Observations:
        """[n] of agents. Raises UnityObservationException for others than were declared."""
        spec = self._behaviors.known[name].spec
        shapes, before = (
            [one.shape for one in of.observation_specs] for of in (spec, self._shape.spec)
        )
        if shapes != before:
            raise UnityObservationException(
                f"behavior {name}: its sensors have the shapes {shapes}; before they had {before}"
            )
        if spec.action_spec != self._shape.spec.action_spec:
            raise UnityObservationException(
                f"behavior {name}: its actions are {spec.action_spec}; before they were "
                f"{self._shape.spec.action_spec}"
            )
        given = [(values, "an observation") for values in steps.obs]
        for values, kind in (*given, (steps.reward, "a reward")):
            if not np.isfinite(values).all():
                agent = int(steps.agent_id[np.argwhere(~np.isfinite(values))[0][0]])
                value = values[~np.isfinite(values)].flat[0]
                raise UnityObservationException(
                    f"behavior {name}: {kind} of agent {agent} holds {value:g}"
                )
        return observed(steps.obs, spec, self._spec)


class Seating:
    """Rows 0 to `rows` - 1 of one build.

    A new agent takes a free row, else that of an agent whose episode ended and that has not come
    back. Agents beyond the rows are `surplus` until their episodes end.
    """

    def __init__(self, rows: int) -> None:
        self._row: dict[Agent, int] = {}
        self._agent: list[Agent | None] = [None] * rows
        self.surplus: set[Agent] = set()
        self._known: dict[str, tuple[Int32Array, Int64Array]] = {}

    @property
    def is_full(self) -> bool:
        """Whether there is an agent in every row."""
        return None not in self._agent

    def rows(self, behavior: str, ids: Int32Array) -> Int64Array:
        """[n] row of each of these agents, EMPTY of those without one."""
        kept = self._known.get(behavior)
        if kept is not None and np.array_equal(kept[0], ids):
            return kept[1]
        found = np.array([self._row.get((behavior, one), EMPTY) for one in ids.tolist()], np.int64)
        self._known[behavior] = (ids.copy(), found)
        return found

    def seat(self, behavior: str, ids: Int32Array, over: BoolArray) -> Int64Array:
        """The same for agents that decide; those that are new are seated where there is room.

        `over` [rows]: the episode in that row ended, and its agent has not come back.
        """
        found = self.rows(behavior, ids)
        if not (found == EMPTY).any():
            return found
        agents = [(behavior, one) for one in ids.tolist()]
        new = [one for one in agents if one not in self._row and one not in self.surplus]
        if not new:
            return found
        here = set(found.tolist())
        room = [row for row, agent in enumerate(self._agent) if agent is None]
        room += [
            row
            for row in np.flatnonzero(over).tolist()
            if self._agent[row] is not None and row not in here
        ]
        for agent in new:
            if room:
                self._take(agent, room.pop(0))
            else:
                self.surplus.add(agent)
        return self.rows(behavior, ids)

    def _take(self, agent: Agent, row: int) -> None:
        before = self._agent[row]
        if before is not None:
            del self._row[before]
        self._row[agent], self._agent[row] = row, agent
        self._known.clear()
