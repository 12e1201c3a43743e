"""What the settings of a training mean for the parts of its network."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.parts.unit_kinds import target_blocks
from aimbot_lab.training.networks.settings import KindOfNetwork, NetworkSettings
from aimbot_lab.training.settings import TrainSettings

if TYPE_CHECKING:
    from aimbot_lab.training.networks.parts.lstm import MemoryShape
    from aimbot_lab.training.networks.parts.target_head import TargetChoice

KEYS = 16  # numbers of a unit's key where none are named


def with_keys(train: TrainSettings) -> KindOfNetwork:
    """The network of `train`, whose units have keys where its target is chosen by attention."""
    network = train.network
    if not isinstance(network, NetworkSettings) or network.units is None:
        return network
    keys = (network.units.keys or KEYS) if train.target == "attention" else None
    return replace(network, units=replace(network.units, keys=keys))


def unfused_parts(train: TrainSettings) -> tuple[str, ...]:
    """The keys of `train` that name what the fused engine does not know."""
    has_picture = getattr(train.network, "picture", None) is not None
    keys = {"samples.keep": train.samples.keep > 1, "network.picture": has_picture}
    return tuple(key for key, given in keys.items() if given)


def widest_part(network: NetworkSettings) -> int:
    """The most units that a layer, an encoder or the memory of `network` has."""
    units, memory, picture = network.units, network.memory, network.picture
    sizes: list[int] = [*network.layers, *(network.scalars or ())]
    sizes += [] if units is None else [*units.layers, units.keys or KEYS]
    sizes += [] if memory is None else [memory.size]
    sizes += [] if picture is None else [picture.size]
    return max(sizes)


def network_parts(network: KindOfNetwork) -> tuple[str, ...]:
    """The keys of those parts that `network` has; a network of a package has none of ours."""
    if not isinstance(network, NetworkSettings):
        return ()
    parts = ("scalars", "units", "picture", "memory")
    return tuple(key for key in parts if getattr(network, key) is not None)


def memory_shape(train: TrainSettings) -> "MemoryShape | None":
    """The memory that the policy of `train` has; None: it has none."""
    network = train.network
    memory = network.memory if isinstance(network, NetworkSettings) else None
    if memory is None:
        return None
    from aimbot_lab.training.networks.parts.lstm import MemoryShape

    return MemoryShape(
        memory.size, memory.sequence_length, memory.burn_in, own_critic=memory.critic == "own"
    )


def target_choice(train: TrainSettings, spec: WorldSpec) -> "TargetChoice | None":
    """The branch that chooses a unit of `spec` to aim at; None: there is none."""
    if train.target == "none":
        return None
    from aimbot_lab.training.networks.parts.target_head import TargetChoice

    network: Any = with_keys(train)
    attends = train.target == "attention"
    columns = [block.column_of(block.seen or "") for block in target_blocks(spec)]
    return TargetChoice(
        branches=spec.branches,
        seen_columns=tuple(int(column) for part in columns for column in part),
        keys=network.units.keys if attends else 0,
        masked=attends or train.masks,
    )
