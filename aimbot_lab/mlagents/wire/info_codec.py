"""What all agents of a behavior tell in a step, as builds send it.

A list of AgentInfo holds those whose episodes ended (`done`) and those that need an action.
"""

from dataclasses import dataclass, field

import numpy as np

from aimbot_lab.foundation.world import BoolArray, Float32Array
from aimbot_lab.mlagents.behaviors import BehaviorSpec, ObservationSpec
from aimbot_lab.mlagents.exception import UnityObservationException
from aimbot_lab.mlagents.steps import DecisionSteps, TerminalSteps
from aimbot_lab.mlagents.wire import info_layout as at
from aimbot_lab.mlagents.wire import wire_format
from aimbot_lab.mlagents.wire.info_layout import COMPRESSION, FLOATS, VALUE, Columns, InfoLayout
from aimbot_lab.mlagents.wire.wire_format import (
    FIXED32,
    LENGTH,
    Field,
    WireError,
    fields,
    joined,
    number_of,
    packed_numbers,
    signed32,
)


class InfoCodec:
    """Reads and writes ListAgentInfo messages of one behavior."""

    def __init__(self, spec: BehaviorSpec) -> None:
        self._spec = spec
        branches = spec.action_spec.discrete_branches
        self._choices, self._branch_ends = sum(branches), np.cumsum(branches)[:-1].tolist()
        self._layouts = {
            (masked, grouped): InfoLayout(spec, masked=masked, grouped=grouped)
            for masked in (False, True)
            for grouped in (False, True)
            if self._choices or not masked
        }

    @property
    def longest_info(self) -> int:
        """Bytes that an agent takes at most."""
        return max(layout.length for layout in self._layouts.values())

    def encode(self, decisions: DecisionSteps, terminals: TerminalSteps) -> bytes:
        """Both as a ListAgentInfo, those that ended first. Ids are from 0 on."""
        deciding = Columns(
            reward=decisions.reward,
            done=np.zeros(len(decisions), np.bool_),
            max_step=np.zeros(len(decisions), np.bool_),
            agent_id=decisions.agent_id,
            forbidden=_joined_masks(decisions),
            obs=decisions.obs,
            group_id=decisions.group_id,
            group_reward=decisions.group_reward,
        )
        ended = Columns(
            reward=terminals.reward,
            done=np.ones(len(terminals), np.bool_),
            max_step=terminals.interrupted,
            agent_id=terminals.agent_id,
            forbidden=None,
            obs=terminals.obs,
            group_id=terminals.group_id,
            group_reward=terminals.group_reward,
        )
        return self._write(ended) + self._write(deciding)

    def _write(self, columns: Columns) -> bytes:
        for ids in (columns.agent_id, columns.group_id):
            if len(ids) and ids.min() < 0:
                raise WireError(f"an id to send must not be negative (got {ids.min()})")
        grouped = bool(columns.group_id.any() or columns.group_reward.any())
        return self._layouts[columns.forbidden is not None, grouped].write(columns)

    def decode(self, data: bytes) -> tuple[DecisionSteps, TerminalSteps]:
        """The steps in `data`, a ListAgentInfo, in its order.

        Raises WireError for what is none, UnityObservationException for other observations.
        """
        parts, start = [], 0
        while start < len(data):
            columns, start = self._next(data, start)
            parts.append(columns)
        return self._steps(parts)

    def _next(self, data: bytes, start: int) -> tuple[Columns, int]:
        """Agents at `start` and where they end: all that are alike, or one as it is."""
        for layout in self._layouts.values():
            columns, end = layout.read(data, start)
            if end > start:
                return columns, end
        entry = next(fields(data, start), None)
        if entry is None:
            return self._stacked([]), len(data)
        if (entry.number, entry.kind) != (VALUE, LENGTH):
            return self._stacked([]), entry.end
        return self._stacked([self._read_one(data[entry.start : entry.end])]), entry.end

    def _read_one(self, data: bytes) -> "_Info":
        info = _Info()
        for one in fields(data):
            _read_field(info, data, one)
        if len(info.observations) != len(self._spec.observation_specs):
            raise UnityObservationException(
                f"agent {info.agent_id} has {len(info.observations)} observations; it must have "
                f"{len(self._spec.observation_specs)}"
            )
        return info

    def _stacked(self, infos: list["_Info"]) -> Columns:
        sensors = self._spec.observation_specs
        # A mask of another length says nothing, as in ML-Agents.
        masks = [
            info.mask if len(info.mask) == self._choices else [False] * self._choices
            for info in infos
        ]
        return Columns(
            reward=np.array([info.reward for info in infos], np.float32),
            done=np.array([info.done for info in infos], np.bool_),
            max_step=np.array([info.max_step for info in infos], np.bool_),
            agent_id=np.array([info.agent_id for info in infos], np.int32),
            forbidden=np.array(masks, np.bool_).reshape(len(infos), self._choices),
            obs=[
                _observations([info.observations[n] for info in infos], sensor)
                for n, sensor in enumerate(sensors)
            ],
            group_id=np.array([info.group_id for info in infos], np.int32),
            group_reward=np.array([info.group_reward for info in infos], np.float32),
        )

    def _steps(self, parts: list[Columns]) -> tuple[DecisionSteps, TerminalSteps]:
        whole = _concatenated(parts or [self._stacked([])], self._choices)
        done, going = whole.done, ~whole.done
        assert whole.forbidden is not None
        masks = np.split(whole.forbidden[going], self._branch_ends, axis=1)
        decisions = DecisionSteps(
            [seen[going] for seen in whole.obs],
            whole.reward[going],
            whole.agent_id[going],
            masks if self._choices and going.any() else None,
            whole.group_id[going],
            whole.group_reward[going],
        )
        terminals = TerminalSteps(
            [seen[done] for seen in whole.obs],
            whole.reward[done],
            whole.max_step[done],
            whole.agent_id[done],
            whole.group_id[done],
            whole.group_reward[done],
        )
        return decisions, terminals


@dataclass
class _Info:
    """What one agent tells."""

    reward: float = 0.0
    done: bool = False
    max_step: bool = False
    agent_id: int = 0
    mask: list[bool] = field(default_factory=list)
    observations: list[bytes] = field(default_factory=list)
    group_id: int = 0
    group_reward: float = 0.0


def _read_field(info: _Info, data: bytes, one: Field) -> None:
    value = data[one.start : one.end]
    match (one.number, one.kind):
        case (at.REWARD, wire_format.FIXED32):
            info.reward = _float(value)
        case (at.DONE, wire_format.VARINT):
            info.done = one.value != 0
        case (at.MAX_STEP, wire_format.VARINT):
            info.max_step = one.value != 0
        case (at.ID, wire_format.VARINT):
            info.agent_id = signed32(one.value)
        case (at.MASK, wire_format.VARINT):
            info.mask.append(one.value != 0)
        case (at.MASK, wire_format.LENGTH):
            info.mask += [number != 0 for number in packed_numbers(data, one)]
        case (at.OBSERVATION, wire_format.LENGTH):
            info.observations.append(value)
        case (at.GROUP_ID, wire_format.VARINT):
            info.group_id = signed32(one.value)
        case (at.GROUP_REWARD, wire_format.FIXED32):
            info.group_reward = _float(value)


def _float(value: bytes) -> float:
    return float(np.frombuffer(value, "<f4")[0])


def _observations(messages: list[bytes], sensor: ObservationSpec) -> Float32Array:
    """[n, ...] of Observation messages. Raises UnityObservationException for another size."""
    seen = np.zeros((len(messages), *sensor.shape), np.float32)
    for row, message in enumerate(messages):
        if number_of(message, COMPRESSION):
            raise WireError(f"sensor {sensor.name!a}: compressed pictures can't be read")
        floats = _float_data(joined(message, FLOATS))
        if len(floats) != seen[row].size:
            raise UnityObservationException(
                f"sensor {sensor.name!a}: an observation has {len(floats)} numbers; it must have "
                f"{seen[row].size}, of shape {sensor.shape}"
            )
        seen[row] = floats.reshape(sensor.shape)
    return seen


def _float_data(message: bytes) -> Float32Array:
    parts = [
        message[one.start : one.end]
        for one in fields(message)
        if one.number == 1 and one.kind in (LENGTH, FIXED32)
    ]
    floats = b"".join(parts)
    if len(floats) % 4:
        raise WireError("numbers of an observation are cut off")
    return np.frombuffer(floats, "<f4").astype(np.float32)


def _joined_masks(decisions: DecisionSteps) -> BoolArray | None:
    """[n, choices of all branches]; None where nothing is forbidden."""
    if not decisions.action_mask:
        return None
    forbidden = np.concatenate(decisions.action_mask, axis=1)
    return forbidden if forbidden.any() else None


def _concatenated(parts: list[Columns], choices: int) -> Columns:
    masks = [
        np.zeros((len(part.done), choices), np.bool_) if part.forbidden is None else part.forbidden
        for part in parts
    ]
    obs = [np.concatenate(seen) for seen in zip(*(part.obs for part in parts), strict=True)]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("reward", "done", "max_step", "agent_id", "group_id", "group_reward")
    }
    return Columns(forbidden=np.concatenate(masks), obs=obs, **columns)
