"""Messages of ML-Agents as anybody might write them: packed or not, in any order, with more."""

import os
from random import Random

import numpy as np

from aimbot_lab.mlagents import (
    ActionSpec,
    BehaviorSpec,
    DecisionSteps,
    DimensionProperty,
    ObservationSpec,
    ObservationType,
    TerminalSteps,
)
from aimbot_lab.mlagents.messages import write_bytes, write_varint

# `AIMBOT_LAB_MESSAGES=10000` for a campaign; mutated ones are a fifth of it.
MESSAGES = int(os.environ.get("AIMBOT_LAB_MESSAGES", "200"))
FLOATS = (0.0, -0.0, 1.0, -2.5, 3e38, 1e-40, 0.1)


def field(number: int, kind: int, value: bytes) -> bytes:
    return write_varint(number << 3 | kind) + value


def number(value: int) -> bytes:
    return write_varint(value & 0xFFFFFFFFFFFFFFFF)


def a_float(random: Random) -> bytes:
    value = random.choice(FLOATS) if random.random() < 0.5 else random.uniform(-9, 9)
    return np.array(value, "<f4").tobytes()


def an_int(random: Random) -> int:
    return random.choice((0, 1, 2, 127, 128, 300, 2**31 - 1, -1, -(2**31), random.randrange(9)))


def unknown(random: Random, known: tuple[int, ...]) -> bytes:
    """A field that no schema has, or a known one of a kind that it never has."""
    free = random.choice([n for n in (12, 16, 17, 2**29 - 1) if n not in known])
    return random.choice(
        (
            field(free, 0, number(an_int(random))),
            field(free, 1, random.randbytes(8)),
            write_bytes(free, random.randbytes(random.randrange(5))),
            field(free, 5, random.randbytes(4)),
            field(free, 3, field(3, 0, b"\x05") + field(free, 4, b"")),
            field(random.choice(known), 1, random.randbytes(8)),
        )
    )


def repeated(random: Random, at: int, values: list[bytes], kind: int) -> list[bytes]:
    """A repeated field of numbers: packed, not packed, or in several pieces of both."""
    parts = []
    while values:
        count = random.choice((1, len(values), len(values)))
        piece, values = values[:count], values[count:]
        if random.random() < 0.7:
            parts.append(write_bytes(at, b"".join(piece)))
        else:
            parts += [field(at, kind, value) for value in piece]
    return parts


def mixed(random: Random, groups: list[list[bytes]], known: tuple[int, ...]) -> bytes:
    """Fields in any order, those of one number in theirs, with others between them."""
    groups = [group for group in groups if group]
    if random.random() < 0.4:
        groups += [[unknown(random, known)] for _ in range(random.randrange(1, 4))]
    parts = []
    while groups:
        at = random.randrange(len(groups)) if random.random() < 0.7 else 0
        parts.append(groups[at].pop(0))
        groups = [group for group in groups if group]
    return b"".join(parts)


def a_spec(random: Random) -> BehaviorSpec:
    sensors = []
    for place in range(random.randrange(1, 4)):
        shape = tuple(random.randrange(1, 5) for _ in range(random.choice((1, 1, 2))))
        properties = (DimensionProperty.NONE,) * len(shape)
        kind = random.choice(list(ObservationType))
        sensors.append(ObservationSpec(shape, properties, kind, f"sensor {place}"))
    branches = tuple(random.randrange(1, 5) for _ in range(random.randrange(4)))
    return BehaviorSpec(sensors, ActionSpec(random.randrange(3), branches))


def an_observation(random: Random, sensor: ObservationSpec) -> bytes:
    floats = [a_float(random) for _ in range(int(np.prod(sensor.shape)))]
    data = mixed(random, [repeated(random, 1, floats, 5)], (1,))
    shape = [number(size) for size in sensor.shape]
    return mixed(
        random,
        [
            repeated(random, 1, shape, 0),
            [write_bytes(4, data)],
            [write_bytes(8, sensor.name.encode())],
        ],
        (1, 4, 6, 8),
    )


def an_info(random: Random, spec: BehaviorSpec) -> bytes:
    """An AgentInfo; each field may be left out but for the observations."""
    choices = sum(spec.action_spec.discrete_branches)
    mask = [number(random.randrange(2)) for _ in range(random.choice((0, choices, choices, 1)))]
    single = [
        [field(7, 5, a_float(random))],
        [field(8, 0, number(random.randrange(2)))],
        [field(9, 0, number(random.randrange(2)))],
        [field(10, 0, number(an_int(random)))],
        repeated(random, 11, mask, 0),
        [field(14, 0, number(an_int(random)))],
        [field(15, 5, a_float(random))],
    ]
    observations = [write_bytes(13, an_observation(random, s)) for s in spec.observation_specs]
    kept = [group for group in single if random.random() < 0.7]
    return mixed(random, [*kept, observations], (7, 8, 9, 10, 14, 15))


def an_action(random: Random, spec: ActionSpec) -> bytes:
    floats = [a_float(random) for _ in range(spec.continuous_size)]
    choices = [number(an_int(random)) for _ in range(spec.discrete_size)]
    deprecated = [write_bytes(1, b"".join(floats))] if random.random() < 0.5 else []
    return mixed(
        random,
        [deprecated, repeated(random, 6, floats, 5), repeated(random, 7, choices, 0)],
        (1, 4, 6, 7),
    )


def a_list(random: Random, one: list[bytes]) -> bytes:
    """A list of messages."""
    return mixed(random, [[write_bytes(1, message) for message in one]], (1,))


def some_steps(random: Random, spec: BehaviorSpec) -> tuple[DecisionSteps, TerminalSteps]:
    """Steps as worlds make them, with masks or none and groups or none."""
    draw = np.random.default_rng(random.randrange(2**32))
    deciding, ended = random.randrange(6), random.randrange(4)

    def columns(count: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        obs = [draw.normal(size=(count, *s.shape)).astype("f4") for s in spec.observation_specs]
        ids = draw.integers(0, 2**31, count).astype(np.int32)
        return obs, draw.normal(size=count).astype("f4"), ids

    def groups(count: int) -> tuple[np.ndarray, np.ndarray]:
        used = random.random() < 0.5
        ids, rewards = draw.integers(0, 900, count), draw.normal(size=count)
        return (ids * used).astype(np.int32), np.abs(rewards * used).astype("f4")

    sizes = spec.action_spec.discrete_branches
    masks = [draw.random((deciding, size)) < random.choice((0.0, 0.5)) for size in sizes]
    obs, rewards, ids = columns(deciding)
    decisions = DecisionSteps(obs, rewards, ids, masks or None, *groups(deciding))
    obs, rewards, ids = columns(ended)
    cut = draw.random(ended) < 0.5
    return decisions, TerminalSteps(obs, rewards, cut, ids, *groups(ended))


def mutated(random: Random, data: bytes) -> bytes:
    """`data` with bytes changed, taken out, doubled, or cut off."""
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(changed) + 1)
        match random.randrange(5):
            case 0 if at < len(changed):
                changed[at] ^= 1 << random.randrange(8)
            case 1 if at < len(changed):
                changed[at] = random.choice((0, 0x7F, 0x80, 0xFF))
            case 2:
                del changed[at : at + random.randrange(1, 9)]
            case 3:
                changed[at:at] = random.choice((random.randbytes(3), changed[:at]))
            case _:
                del changed[at:]
    return bytes(changed)
