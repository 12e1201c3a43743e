"""Variants of an agent: what is switched on in each, and nothing else differs."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from aimbot_lab.training.networks.settings import MemorySettings, NetworkSettings, UnitsSettings
from aimbot_lab.training.settings import TrainSettings

Switches = Mapping[str, Any]  # by key of `train`, or of `train.network` behind "network."
PARTS = "network."  # what keys of train.network begin with
UNITS: Switches = {"network.units": UnitsSettings()}
ATTENTION: Switches = {**UNITS, "target": "attention"}
MEMORY: Switches = {"network.memory": MemorySettings()}
CLASSIC: Switches = {"aim": "hybrid", "masks": True, "objective": "per_branch", "dual_clip": 3.0}
EVERYTHING: Switches = {**CLASSIC, **ATTENTION, **MEMORY}

ALONE: Mapping[str, Switches] = MappingProxyType(
    {
        "bins": {},
        "hybrid aim": {"aim": "hybrid"},
        "masks": {"masks": True},
        "per branch": {"objective": "per_branch"},
        "dual clip": {"dual_clip": 3.0},
        "dual clip 1.5": {"dual_clip": 1.5},
        "all of these": CLASSIC,
        "units": UNITS,
        "target linear": {"target": "linear"},
        "target attention": ATTENTION,
        "memory": MEMORY,
    }
)
"""Each switch by itself; the first variant is plain PPO, which the others stand against.

Units stand against the same columns fed flat, `target attention` against `target linear`; keys are
made by encoders of units, so that it has these, too.
"""


def without(*keys: str) -> Switches:
    """Everything but the switches of these keys."""
    return {key: value for key, value in EVERYTHING.items() if key not in keys}


LEFT_OUT: Mapping[str, Switches] = MappingProxyType(
    {
        "everything": EVERYTHING,
        "without hybrid aim": without("aim"),
        "without masks": without("masks"),
        "without per branch": without("objective"),
        "without dual clip": without("dual_clip"),
        "without units": {**without("network.units"), "target": "linear"},
        "target linear": {**EVERYTHING, "target": "linear"},
        "without target": without("target"),
        "without memory": without("network.memory"),
    }
)
"""Everything on, and then each switch off in turn. Attention needs units: without them the target
is linear, so compare that variant with the one after it."""


def known_variants(*, leave_one_out: bool) -> Mapping[str, Switches]:
    """All variants of a table by name, the one that the others stand against first."""
    return LEFT_OUT if leave_one_out else ALONE


def switched(train: TrainSettings, switches: Switches) -> TrainSettings:
    """`train` with these switches; a memory keeps the length of sequences that `train` names."""
    of_network = {
        key.removeprefix(PARTS): value for key, value in switches.items() if key.startswith(PARTS)
    }
    others = {key: value for key, value in switches.items() if not key.startswith(PARTS)}
    network = train.network
    assert isinstance(network, NetworkSettings)
    if "memory" in of_network and network.memory is not None:
        of_network["memory"] = network.memory
    plain = replace(network, memory=None)
    return replace(train, network=replace(plain, **of_network), **others)
