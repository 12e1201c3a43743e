"""A network's parts with their sizes, worked out without making it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.registry import HYBRID_PPO, surely_fused
from aimbot_lab.training.networks.parts.network_parts import KEYS, unfused_parts
from aimbot_lab.training.networks.parts.picture_shapes import picture_shape, picture_weights
from aimbot_lab.training.networks.parts.unit_inputs import input_size
from aimbot_lab.training.networks.parts.unit_kinds import (
    encoded_blocks,
    target_blocks,
    target_slots,
)
from aimbot_lab.training.networks.settings import (
    EGOCENTRIC,
    NetworkSettings,
    has_egocentric_columns,
)
from aimbot_lab.training.settings import TrainSettings


class Part(NamedTuple):
    """A part of a network."""

    name: str
    inputs: int
    outputs: int
    weights: int
    times: int = 1  # that it computes for an observation: once for each unit of its kind


def network_summary(train: TrainSettings, spec: WorldSpec) -> tuple[Part, ...]:
    """The parts of hybrid_ppo's built-in network in the order in which they compute.

    Empty for other algorithms and networks.
    """
    network = train.network
    if train.algo != HYBRID_PPO.name or not isinstance(network, NetworkSettings):
        return ()
    encoders = tuple(_encoders(network, train, spec))
    core = sum(part.outputs for part in encoders)
    memory = network.memory
    if memory is not None:
        count = 1 if memory.critic == "shared" else 2
        weights = count * 4 * memory.size * (core + memory.size + 2)
        encoders = (*encoders, Part("memory", core, memory.size, weights))
        core = memory.size
    latent = network.layers[-1] if network.layers else core
    stacks = [Part(name, core, latent, _stack((core, *network.layers))) for name in ACTORS]
    return (*encoders, *stacks, *_heads(train, spec, latent))


ACTORS = ("actor", "critic")


def engine_summary(train: TrainSettings) -> str:
    """Which engine computes, and why not a faster one."""
    if train.engine == "torch":
        return "torch"
    if unknown := unfused_parts(train):
        return f"torch (the fused engine does not know {', '.join(unknown)})"
    return "fused" if surely_fused(train) else "fused where it suits, else torch"


def _encoders(network: NetworkSettings, train: TrainSettings, spec: WorldSpec) -> Iterator[Part]:
    names, blocks = spec.observation_names, encoded_blocks(network, spec)
    sees = network.features != "scaled" and has_egocentric_columns(names)
    plain = len(names) + (EGOCENTRIC if sees else 0) - sum(block.columns.size for block in blocks)
    scalars, picture = network.scalars or (), network.picture
    pixels = 0 if picture is None else prod(picture_shape(spec))
    plain -= pixels
    if picture is None or not picture.alone:
        yield Part("scalars", plain, (plain, *scalars)[-1], _stack((plain, *scalars)))
    if picture is not None:
        yield Part("picture", pixels, picture.size, picture_weights(picture, spec))
    for block in blocks:
        assert network.units is not None
        inputs, layers = input_size(block), network.units.layers
        keys = (network.units.keys or KEYS) if _has_keys(train, block.target) else 0
        weights = _stack((inputs, *layers[:-1], layers[-1] + keys))
        name = f"{block.kind} ({block.slots} units)"
        yield Part(name, inputs, layers[-1], weights, block.slots)


def _has_keys(train: TrainSettings, target: bool) -> bool:
    return target and train.target == "attention"


def _heads(train: TrainSettings, spec: WorldSpec, latent: int) -> Iterator[Part]:
    binned = train.aim == "bins"
    mouse = spec.continuous * (len(train.aim_bins) if binned else 1)
    outputs = sum(spec.branches) + mouse
    own = 0 if binned else spec.continuous  # standard deviations
    yield Part("action", latent, outputs, _stack((latent, outputs)) + own)
    slots = target_slots(target_blocks(spec))
    if train.target == "attention":
        units = getattr(train.network, "units", None)
        keys = (units and units.keys) or KEYS
        yield Part("target attention", latent, 1 + slots, _stack((latent, keys)) + keys)
    elif train.target == "linear":
        yield Part("target linear", latent, 1 + slots, _stack((latent, 1 + slots)))
    yield Part("value", latent, 1, _stack((latent, 1)))


def _stack(sizes: Sequence[int]) -> int:
    return sum((one + 1) * other for one, other in pairwise(sizes))
