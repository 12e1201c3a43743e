"""What does not fit together between a network's parts, the world and the algorithm."""

from collections.abc import Iterable, Iterator
from math import isqrt
from typing import NamedTuple

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.networks.parts.network_parts import network_parts, unfused_parts
from aimbot_lab.training.networks.parts.picture_shapes import map_sizes, picture_shape
from aimbot_lab.training.networks.parts.unit_kinds import encoded_blocks, target_blocks
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import seats_in, spec_of

OURS = "hybrid_ppo"


class PartFault(NamedTuple):
    """What is wrong with one key of `train`."""

    key: tuple[str | int, ...]
    what: str
    known: tuple[str, ...] = ()  # what there is, where the key's value is none of it


def part_faults(train: TrainSettings, env: WorldSettings) -> Iterator[PartFault]:
    """What is wrong with encoders and target of `train` in the world of `env`."""
    spec, network = spec_of(env), train.network
    takes_parts = "target" in algorithm_of(train).takes
    if not takes_parts:
        for key in network_parts(network):
            other = f"use algo: {OURS}"
            if key == "memory" and train.algo == "recurrent_ppo":
                other = "set train.options.lstm_hidden_size"
            what = f"does nothing with {train.algo}: leave it out, or {other}"
            yield PartFault(("network", key), what)
        return
    if isinstance(network, NetworkSettings):
        yield from _kind_faults(network, spec, env)
        yield from _picture_faults(network, spec, env)
        yield from _memory_faults(network, train, seats_in(env))
    yield from _target_faults(train, spec, env)
    if train.engine == "fused":
        for key in unfused_parts(train):
            yield PartFault(("engine",), f"fused does not know train.{key}: use auto or torch")


def part_remarks(train: TrainSettings) -> Iterator[str]:
    """What `train` says of its network's parts that does nothing, each in a line."""
    network = train.network
    if not isinstance(network, NetworkSettings):
        return
    units, memory = network.units, network.memory
    if units is not None and units.keys and train.target != "attention":
        yield "train.network.units.keys does nothing without train.target: attention"
    if memory is not None and memory.sequence_length == 1:
        yield (
            "train.network.memory.sequence_length 1: the agent remembers and can't learn to, as no "
            "gradient reaches an earlier step"
        )


def _kind_faults(
    network: NetworkSettings, spec: WorldSpec, env: WorldSettings
) -> Iterator[PartFault]:
    if network.units is None:
        return
    shown = tuple(block.kind for block in spec.units)
    if not shown:
        yield PartFault(("network", "units"), f"world {env.world} shows no units")
        return
    for number, kind in enumerate(network.units.kinds or ()):
        place = ("network", "units", "kinds", number)
        if kind not in shown:
            yield PartFault(place, f"{kind}: no such units are shown{_hint(env)}", known=shown)
    if network.units.kinds is not None and len(set(network.units.kinds)) != len(
        network.units.kinds
    ):
        yield PartFault(("network", "units", "kinds"), "must differ")
    if network.units.kinds == ():
        yield PartFault(("network", "units", "kinds"), "must name at least one", known=shown)


def _picture_faults(
    network: NetworkSettings, spec: WorldSpec, env: WorldSettings
) -> Iterator[PartFault]:
    picture, where = network.picture, ("network", "picture")
    if picture is None:
        return
    channels, height, width = picture_shape(spec)
    if not channels:
        other = ": one has height, width and channels, in uint8"
        hint = ": set env.observation.camera" if _may_have_camera(env) else other
        yield PartFault(where, f"world {env.world} shows no picture{hint}")
        return
    if min(size for sizes in map_sizes(picture, height, width) for size in sizes) < 1:
        what = f"{picture.encoder} needs a larger picture (it has {width} x {height} pixels)"
        yield PartFault((*where, "encoder"), what)
    if picture.alone:
        for key in ("scalars", "units"):
            if getattr(network, key) is not None:
                what = "encodes what network.picture.alone leaves out: leave out one of both"
                yield PartFault(("network", key), what)


def _target_faults(
    train: TrainSettings, spec: WorldSpec, env: WorldSettings
) -> Iterator[PartFault]:
    if train.target == "none":
        return
    blocks, network = target_blocks(spec), train.network
    if not blocks or spec.turn_per_unit is None:
        what = f"{train.target}: world {env.world} shows nobody to aim at{_hint(env)}"
        yield PartFault(("target",), what)
        return
    if train.target != "attention":
        return
    if not isinstance(network, NetworkSettings) or network.units is None:
        yield PartFault(("target",), "attention needs the keys of train.network.units")
        return
    encoded = {block.kind for block in encoded_blocks(network, spec)}
    for block in blocks:
        if block.kind not in encoded:
            what = f"must name {block.kind}, which train.target chooses from"
            yield PartFault(("network", "units", "kinds"), what)


def _memory_faults(
    network: NetworkSettings, train: TrainSettings, rows: int
) -> Iterator[PartFault]:
    """What is wrong with a memory's lengths; `rows` are stepped together."""
    memory, where = network.memory, ("network", "memory")
    if memory is None:
        return
    length, steps = memory.sequence_length, train.n_steps
    if steps % length:
        fits = nearest(divisors(steps), length)
        what = f"must divide train.n_steps = {steps} (got {length}; nearest that does: {fits})"
        yield PartFault((*where, "sequence_length"), what)
        return
    if train.batch_size % length:
        fitting = [length * one for one in divisors(rows * steps // length)]
        fits = nearest(fitting, train.batch_size)
        got = f"got {train.batch_size}; nearest that is: {fits}"
        what = f"must be a multiple of train.network.memory.sequence_length = {length} ({got})"
        yield PartFault(("batch_size",), what)
    if memory.burn_in % length or memory.burn_in >= steps:
        fits = nearest(range(0, steps, length), memory.burn_in)
        what = f"must be a multiple of sequence_length = {length} below n_steps = {steps}"
        got = f"(got {memory.burn_in}; nearest that is: {fits})"
        yield PartFault((*where, "burn_in"), f"{what} {got}")


def divisors(number: int) -> list[int]:
    """All numbers that divide `number`."""
    small = [one for one in range(1, isqrt(number) + 1) if number % one == 0]
    return sorted({*small, *(number // one for one in small)})


def nearest(fitting: Iterable[int], wanted: int) -> int:
    """That of the numbers `fitting` which is nearest to `wanted`, the smaller of two."""
    return min(fitting, key=lambda one: (abs(one - wanted), one))


def _may_have_camera(env: WorldSettings) -> bool:
    return hasattr(getattr(env, "observation", None), "camera")


def _hint(env: WorldSettings) -> str:
    """What makes the world show more units, where a setting of it does."""
    hidden = getattr(getattr(env, "observation", None), "units", None) is False
    return ": set env.observation.units: true" if hidden else ""
