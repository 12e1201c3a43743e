"""`train.options.policy_kwargs`: arguments of a policy's class as a file writes them.

Classes are written by name: `activation_fn: relu`, `optimizer: adamw`, `features_extractor: impala`
for the encoder of pictures. Loading this module loads no torch.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, get_args

from aimbot_lab.training.algorithms.algorithm import POLICY_KWARGS
from aimbot_lab.training.networks.settings import (
    MAX_LAYERS,
    MAX_UNITS,
    Encoder,
    NetworkSettings,
    PictureSettings,
)
from aimbot_lab.training.settings import SettingFault, TrainSettings

EXTRACTOR = "features_extractor"
ACTIVATIONS: Mapping[str, str] = MappingProxyType(
    {
        "tanh": "Tanh",
        "relu": "ReLU",
        "leaky_relu": "LeakyReLU",
        "elu": "ELU",
        "selu": "SELU",
        "gelu": "GELU",
        "silu": "SiLU",
        "mish": "Mish",
        "sigmoid": "Sigmoid",
        "softplus": "Softplus",
    }
)
"""Activations by name, each with its class in torch.nn."""
OPTIMIZERS = ("adam", "adamw", "rmsprop", "rmsprop_tf", "sgd")
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "activation_fn": tuple(ACTIVATIONS),
        "optimizer": OPTIMIZERS,
        EXTRACTOR: get_args(Encoder),
    }
)
"""Arguments that are classes, with the names that stand for these."""
HINTS: Mapping[str, str] = MappingProxyType(
    {
        "features_extractor_class": f"{EXTRACTOR}: nature, impala, small or simple says it",
        "features_extractor_kwargs": "train.network.picture.size says it",
        "optimizer_class": f"optimizer: {', '.join(OPTIMIZERS)} says it",
        "lstm_kwargs": "lstm_hidden_size and n_lstm_layers say it",
        "use_sde": "train.options.use_sde says it",
    }
)
STACKS = "pi", "vf", "qf"  # the networks that net_arch may name
GIVEN = frozenset({"observation_space", "action_space", "lr_schedule", *HINTS})


def policy_faults(
    given: Mapping[str, Any],
    plain: Mapping[str, Any],
    *,
    stacks: tuple[str, ...],
    named: tuple[str, ...],
    type_fault: Callable[[Any, Any], str | None],
) -> Iterator[SettingFault]:
    """What is wrong with `given`, by keys below `policy_kwargs`; the policy has `plain` parameters.

    `stacks` are those that net_arch may name: pi and vf, or pi and qf; () where there is but one.
    `named` are those of NAMES that it takes.
    `type_fault` says what is wrong with a value that must be of some of these types.
    """
    known = {name: kinds for name, kinds in plain.items() if name not in GIVEN}
    known |= {"net_arch": (tuple, dict) if stacks else (tuple,), **dict.fromkeys(named, (str,))}
    for name, value in given.items():
        if name in HINTS:
            yield SettingFault((name,), HINTS[name])
        elif name not in known:
            yield SettingFault((name,), "the policy has no such argument", tuple(known))
        elif (fault := type_fault(value, known[name])) is not None:
            yield SettingFault((name,), fault)
        elif name in NAMES and value not in NAMES[name]:
            yield SettingFault((name,), f"must be {' or '.join(NAMES[name])}")
        elif name == "net_arch":
            yield from _layer_faults(value, stacks)
        elif name == "optimizer_kwargs":
            yield from _optimizer_faults(value, given.get("optimizer", OPTIMIZERS[0]))


def _layer_faults(given: Any, stacks: tuple[str, ...]) -> Iterator[SettingFault]:
    for stack, layers in given.items() if isinstance(given, Mapping) else [(None, given)]:
        path = ("net_arch",) if stack is None else ("net_arch", stack)
        if stack is not None and stack not in stacks:
            yield SettingFault(path, "there is no such network", stacks)
        elif not isinstance(layers, tuple) or len(layers) > MAX_LAYERS:
            yield SettingFault(path, f"must be a list of at most {MAX_LAYERS} layers' units")
        elif not all(type(units) is int and 1 <= units <= MAX_UNITS for units in layers):
            yield SettingFault(path, f"must hold whole numbers from 1 to {MAX_UNITS}")


def _optimizer_faults(given: Mapping[str, Any], optimizer: Any) -> Iterator[SettingFault]:
    if optimizer not in OPTIMIZERS:
        return
    known = tuple(inspect.signature(_optimizer(optimizer)).parameters)[2:]
    for name in given:
        if name not in known:
            what = f"{optimizer} has no such argument"
            yield SettingFault(("optimizer_kwargs", name), what, known)


def _optimizer(name: str) -> Any:
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
    from torch import optim

    kinds = optim.Adam, optim.AdamW, optim.RMSprop, RMSpropTFLike, optim.SGD
    return dict(zip(OPTIMIZERS, kinds, strict=True))[name]


def policy_class_arguments(settings: TrainSettings) -> dict[str, Any]:
    """What `policy_kwargs` say, as the policy's class takes it."""
    from torch import nn

    given = dict(_given(settings))
    given.pop(EXTRACTOR, None)
    if "activation_fn" in given:
        given["activation_fn"] = getattr(nn, ACTIVATIONS[given["activation_fn"]])
    if "optimizer" in given:
        given["optimizer_class"] = _optimizer(given.pop("optimizer"))
    if "net_arch" in given:
        layers = given["net_arch"]
        named = isinstance(layers, Mapping)
        given["net_arch"] = {k: [*v] for k, v in layers.items()} if named else [*layers]
    return given


def with_named_encoder(settings: TrainSettings) -> TrainSettings:
    """`settings` whose network has the encoder of pictures that `policy_kwargs` name, if any."""
    encoder = _given(settings).get(EXTRACTOR)
    network = settings.network
    if encoder is None or not isinstance(network, NetworkSettings):
        return settings
    picture = replace(network.picture or PictureSettings(), encoder=encoder)
    return replace(settings, network=replace(network, picture=picture))


def named_layers(settings: TrainSettings) -> tuple[tuple[int, ...], ...]:
    """The layers of each network that a well-formed `net_arch` names; () where there is none."""
    given: Any = _given(settings).get("net_arch")
    stacks = tuple(given.values()) if isinstance(given, Mapping) else (given,)
    return () if list(_layer_faults(given, STACKS)) else stacks


def _given(settings: TrainSettings) -> Mapping[str, Any]:
    given = settings.options.get(POLICY_KWARGS)
    return given if isinstance(given, Mapping) else {}
