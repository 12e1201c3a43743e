"""Which parts a training's network has, with their sizes, and what is wrong with them.

Loads no torch.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import isqrt, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.networks.settings import (
    EGOCENTRIC,
    KindOfNetwork,
    NetworkSettings,
    PictureSettings,
    encoded_blocks,
    fits,
    has_egocentric_columns,
    input_size,
    picture_weights,
    resolved_picture,
    target_blocks,
    target_slots,
)
from aimbot_lab.training.settings import SettingFault, TrainSettings
from aimbot_lab.worlds.registry import seats_in, spec_of

if TYPE_CHECKING:
    from aimbot_lab.training.networks.hybrid_policy import TargetChoice
    from aimbot_lab.training.networks.remembering_policy import MemoryShape

KEYS = 16  # numbers of a unit's key where none are named
OURS = "hybrid_ppo"
ACTORS = ("actor", "critic")


def with_keys(train: TrainSettings) -> KindOfNetwork:
    """The network of `train`, whose units have keys where its target is chosen by attention."""
    network = train.network
    if not isinstance(network, NetworkSettings) or network.units is None:
        return network
    keys = (network.units.keys or KEYS) if train.target == "attention" else None
    return replace(network, units=replace(network.units, keys=keys))


def unfused_parts(train: TrainSettings) -> tuple[str, ...]:
    """The keys of `train` that name what the fused engine does not know."""
    has_picture = getattr(train.network, "picture", None) is not None  # once it is resolved
    keys = {"samples.keep": train.samples.keep > 1, "network.picture": has_picture}
    return tuple(key for key, given in keys.items() if given)


def widest_part(network: NetworkSettings) -> int:
    """The most units that a layer, an encoder or the memory of `network` has; 0 where none says."""
    units, memory, picture = network.units, network.memory, network.picture
    sizes: list[int] = [*network.layers, *(network.scalars or ())]
    sizes += [] if units is None else [*units.layers, units.keys or KEYS]
    sizes += [] if memory is None else [memory.size]
    sizes += [] if picture is None or picture.size is None else [picture.size]
    return max(sizes, default=0)


def network_parts(network: KindOfNetwork) -> tuple[str, ...]:
    """The keys of those parts that `network` has; a network of a package has none of ours."""
    return network.parts if isinstance(network, NetworkSettings) else ()


def memory_shape(train: TrainSettings) -> "MemoryShape | None":
    """The memory that the policy of `train` has; None: it has none."""
    network = train.network
    memory = network.memory if isinstance(network, NetworkSettings) else None
    if memory is None:
        return None
    from aimbot_lab.training.networks.remembering_policy import MemoryShape

    return MemoryShape(
        memory.size, memory.sequence_length, memory.burn_in, own_critic=memory.critic == "own"
    )


def target_choice(train: TrainSettings, spec: WorldSpec) -> "TargetChoice | None":
    """The branch that chooses a unit of `spec` to aim at; None: there is none."""
    if train.target == "none":
        return None
    from aimbot_lab.training.networks.hybrid_policy import TargetChoice

    network: Any = with_keys(train)
    attends = train.target == "attention"
    columns = [block.column_of(block.seen or "") for block in target_blocks(spec)]
    return TargetChoice(
        branches=spec.branches,
        seen_columns=tuple(int(column) for part in columns for column in part),
        keys=network.units.keys if attends else 0,
        masked=attends or train.masks,
    )


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
    if train.algo != OURS or not isinstance(network, NetworkSettings):
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


def _encoders(network: NetworkSettings, train: TrainSettings, spec: WorldSpec) -> Iterator[Part]:
    names, blocks = spec.observation_names, encoded_blocks(network, spec)
    sees = network.features != "scaled" and has_egocentric_columns(names)
    plain = len(names) + (EGOCENTRIC if sees else 0) - sum(block.columns.size for block in blocks)
    scalars = network.scalars or ()
    picture = resolved_picture(network, spec) if spec.pictures else PictureSettings()
    if plain and not picture.alone:
        yield Part("scalars", plain, (plain, *scalars)[-1], _stack((plain, *scalars)))
    for shown in spec.pictures:
        weights = picture_weights(picture, shown.shape)
        yield Part(shown.name, prod(shown.shape), picture.size or 0, weights)
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


def part_faults(
    train: TrainSettings, env: WorldSettings, *, takes_parts: bool
) -> Iterator[SettingFault]:
    """What is wrong with encoders and target of `train` in the world of `env`.

    `takes_parts`: whether its algorithm does anything with them.
    """
    spec, network = spec_of(env), train.network
    if not takes_parts:
        for key in network_parts(network):
            if key == "picture":  # which every algorithm sees by
                continue
            other = f"use algo: {OURS}"
            if key == "memory" and train.algo == "recurrent_ppo":
                other = "set train.options.lstm_hidden_size"
            what = f"has no effect with {train.algo}: leave it out, or {other}"
            yield SettingFault(("network", key), what)
        if isinstance(network, NetworkSettings):
            yield from _picture_faults(network, spec, env)
        return
    if isinstance(network, NetworkSettings):
        yield from _kind_faults(network, spec, env)
        yield from _picture_faults(network, spec, env)
        if spec.pictures:
            train = replace(
                train, network=replace(network, picture=resolved_picture(network, spec))
            )
        yield from _memory_faults(network, train, seats_in(env))
    yield from _target_faults(train, spec, env)
    if train.engine == "fused":
        for key in unfused_parts(train):
            yield SettingFault(("engine",), f"fused does not know train.{key}: use auto or torch")


def part_remarks(train: TrainSettings) -> Iterator[str]:
    """What `train` says of its network's parts that does nothing, each in a line."""
    network = train.network
    if not isinstance(network, NetworkSettings):
        return
    units, memory = network.units, network.memory
    if units is not None and units.keys and train.target != "attention":
        yield "train.network.units.keys has no effect without train.target: attention"
    if memory is not None and memory.sequence_length == 1:
        yield (
            "train.network.memory.sequence_length 1: the agent remembers and can't learn to, as no "
            "gradient reaches an earlier step"
        )


def _kind_faults(
    network: NetworkSettings, spec: WorldSpec, env: WorldSettings
) -> Iterator[SettingFault]:
    if network.units is None:
        return
    shown = tuple(block.kind for block in spec.units)
    if not shown:
        yield SettingFault(("network", "units"), f"world {env.world} shows no units")
        return
    for number, kind in enumerate(network.units.kinds or ()):
        place = ("network", "units", "kinds", number)
        if kind not in shown:
            yield SettingFault(place, f"{kind}: no such units are shown{_hint(env)}", known=shown)
    if network.units.kinds is not None and len(set(network.units.kinds)) != len(
        network.units.kinds
    ):
        yield SettingFault(("network", "units", "kinds"), "must differ")
    if network.units.kinds == ():
        yield SettingFault(("network", "units", "kinds"), "must name at least one", known=shown)


def _picture_faults(
    network: NetworkSettings, spec: WorldSpec, env: WorldSettings
) -> Iterator[SettingFault]:
    picture, where = network.picture, ("network", "picture")
    if picture is None:
        return
    if not spec.pictures:
        other = ": one has height, width and channels, in uint8"
        has_camera = hasattr(getattr(env, "observation", None), "camera")
        hint = ": set env.observation.camera" if has_camera else other
        yield SettingFault(where, f"world {env.world} shows no picture{hint}")
        return
    if picture.encoder is not None and not fits(picture.encoder, spec):
        height, width, _ = min(block.shape for block in spec.pictures)
        what = f"{picture.encoder} needs a larger picture (it has {width} x {height} pixels)"
        yield SettingFault((*where, "encoder"), what)
    if picture.alone:
        for key in ("scalars", "units"):
            if getattr(network, key) is not None:
                what = "encodes what network.picture.alone leaves out: leave out one of both"
                yield SettingFault(("network", key), what)


def _target_faults(
    train: TrainSettings, spec: WorldSpec, env: WorldSettings
) -> Iterator[SettingFault]:
    if train.target == "none":
        return
    blocks, network = target_blocks(spec), train.network
    if not blocks or spec.turn_per_unit is None:
        what = f"{train.target}: world {env.world} shows no unit to aim at{_hint(env)}"
        yield SettingFault(("target",), what)
        return
    if train.target != "attention":
        return
    if not isinstance(network, NetworkSettings) or network.units is None:
        yield SettingFault(("target",), "attention needs the keys of train.network.units")
        return
    encoded = {block.kind for block in encoded_blocks(network, spec)}
    for block in blocks:
        if block.kind not in encoded:
            what = f"must name {block.kind}, which train.target chooses from"
            yield SettingFault(("network", "units", "kinds"), what)


def _memory_faults(
    network: NetworkSettings, train: TrainSettings, rows: int
) -> Iterator[SettingFault]:
    """What is wrong with a memory's lengths; `rows` are stepped together."""
    memory, where = network.memory, ("network", "memory")
    if memory is None:
        return
    length, steps = memory.sequence_length, train.n_steps
    if steps % length:
        fits = nearest(divisors(steps), length)
        what = f"must divide train.n_steps = {steps} (got {length}; nearest that does: {fits})"
        yield SettingFault((*where, "sequence_length"), what)
        return
    if train.batch_size % length:
        fitting = [length * one for one in divisors(rows * steps // length)]
        fits = nearest(fitting, train.batch_size)
        got = f"got {train.batch_size}; nearest that is: {fits}"
        what = f"must be a multiple of train.network.memory.sequence_length = {length} ({got})"
        yield SettingFault(("batch_size",), what)
    if memory.burn_in % length or memory.burn_in >= steps:
        fits = nearest(range(0, steps, length), memory.burn_in)
        what = f"must be a multiple of sequence_length = {length} below n_steps = {steps}"
        got = f"(got {memory.burn_in}; nearest that is: {fits})"
        yield SettingFault((*where, "burn_in"), f"{what} {got}")


def divisors(number: int) -> list[int]:
    """All numbers that divide `number`."""
    small = [one for one in range(1, isqrt(number) + 1) if number % one == 0]
    return sorted({*small, *(number // one for one in small)})


def nearest(fitting: Iterable[int], wanted: int) -> int:
    """That of the numbers `fitting` which is nearest to `wanted`, the smaller of two."""
    return min(fitting, key=lambda one: (abs(one - wanted), one))


def _hint(env: WorldSettings) -> str:
    """What makes the world show more units, where a setting of it does."""
    hidden = getattr(getattr(env, "observation", None), "units", None) is False
    return ": set env.observation.units: true" if hidden else ""
