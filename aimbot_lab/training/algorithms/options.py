"""Settings that an algorithm does not take, and options that its class does not know."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.algorithms.algorithm import Algorithm
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.algorithms.rollout_algorithms import HYBRID_PPO, MASKABLE_PPO
from aimbot_lab.training.networks.settings import NetworkSettings, Scaling
from aimbot_lab.training.settings import REWARD_SCALE, TrainSettings

WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    NoneType: "null",
}
# What no curriculum sets: what the run gives itself, and what is only for display.
OURS = frozenset({"seed", "verbose", "stats_window_size", "_init_setup_model"})
# Settings of the training itself, which every algorithm has.
EVERY = {
    "algo",
    "total_steps",
    "reward_scale",
    "aim_bins",
    "network",
    "device",
    "torch_threads",
    "options",
}
SDE = "use_sde"  # noise of numbers that depends on the state
OF_NETWORKS = {"network", "device"}  # which do nothing with a table
HYPER_PARAMETERS = {field.name for field in fields(TrainSettings)} - EVERY


class OptionFault(NamedTuple):
    """What is wrong with one setting of `train`."""

    key: str
    option: str | None  # the option's name where the setting is `options`
    what: str
    known: tuple[str, ...] = ()  # the options there are, where this is none of them


def settings_faults(settings: TrainSettings) -> Iterator[OptionFault]:
    """What `settings` say that their algorithm does not take."""
    algorithm = algorithm_of(settings)
    yield from _useless(settings, algorithm)
    if settings.options:  # their names are those of the classes, which load torch
        yield from _option_faults(settings, algorithm)


def action_remarks(settings: TrainSettings, spec: WorldSpec) -> Iterator[str]:
    """What to know of how actions are learned in an environment of a user's own."""
    if (bins := _bins_remark(settings, spec)) is not None:
        yield bins
    if spec.environment_actions is None or not spec.can("masks"):
        return
    adapter = algorithm_of(settings).adapter(settings)
    if not adapter.masks_shown and not settings.masks and settings.algo != MASKABLE_PPO.name:
        yield (
            f"train.algo: {settings.algo} does not heed the environment's action_masks; "
            "maskable_ppo, and hybrid_ppo with masks: true, do"
        )


def _bins_remark(settings: TrainSettings, spec: WorldSpec) -> str | None:
    """What to know of the numbers of an action where bins of them are learned; None: nothing.

    Of a mouse the pages say it; of other numbers most expect a Gaussian.
    """
    if not spec.continuous or spec.turn_per_unit is not None or not _chooses(settings):
        return None
    count = "the number" if spec.continuous == 1 else f"each of the {spec.continuous} numbers"
    way = "" if settings.algo == "hybrid_ppo" else "algo: hybrid_ppo with "
    return (
        f"train.algo: {settings.algo} chooses {count} of an action from {len(settings.aim_bins)} "
        f"bins (train.aim_bins); {way}aim: hybrid acts by a Gaussian"
    )


def with_scaling(train: TrainSettings, *, bounds_are_ranges: bool) -> TrainSettings:
    """`train` with the scaling of observations and rewards that it leaves out.

    Rewards of worlds whose bounds are no ranges are of any size, too. hybrid_ppo learns what suits
    them, but for rewards that several actors get; other algorithms see everything as it is.
    """
    algorithm = algorithm_of(train)
    learned = algorithm is HYBRID_PPO
    scaling: Scaling = "ranges"
    reward_scale: float | Literal["running"] = REWARD_SCALE
    if not bounds_are_ranges:
        scaling = "running" if learned else "none"
        if train.actors is None:
            reward_scale = "running" if learned else 1.0
    network = train.network
    if algorithm.table is None and isinstance(network, NetworkSettings) and network.scaling is None:
        network = replace(network, scaling=scaling)
    if train.reward_scale is not None:
        reward_scale = train.reward_scale
    return replace(train, network=network, reward_scale=reward_scale)


def _chooses(settings: TrainSettings) -> bool:
    """Whether the learner sees choices alone, bins in the place of numbers."""
    return algorithm_of(settings).adapter(settings).actions in ("bins", "flat", "target_bins")


def _option_faults(settings: TrainSettings, algorithm: Algorithm) -> Iterator[OptionFault]:
    known = known_options(algorithm)
    for name, value in settings.options.items():
        if name in algorithm.shared:
            yield OptionFault("options", name, f"is a setting of its own: train.{name}")
        elif name not in known:
            what = f"{settings.algo} has no such option"
            yield OptionFault("options", name, what, known=tuple(known))
        elif name == SDE and value and _chooses(settings):
            what = f"needs actions of numbers; {settings.algo} chooses them from bins here"
            yield OptionFault("options", name, what)
        elif not _fits(value, known[name]):
            wanted = " or ".join(WORDS[kind] for kind in known[name])
            yield OptionFault("options", name, f"must be {wanted}")
        elif name in algorithm.policy_options and known[name] == (int,) and value < 1:
            yield OptionFault("options", name, "must be at least 1")


def known_options(algorithm: Algorithm) -> dict[str, tuple[Any, ...]]:
    """The kinds of value of every option that `algorithm` takes, by name."""
    taken = OURS | algorithm.fixed | set(algorithm.shared.values())
    model, policy = map(_plain_parameters, algorithm.load())
    return {
        **{name: kinds for name, kinds in model.items() if name not in taken},
        **{name: policy[name] for name in algorithm.policy_options},
    }


def _useless(settings: TrainSettings, algorithm: Algorithm) -> Iterator[OptionFault]:
    """Settings that were changed and that the algorithm does not take."""
    usual = type(settings)(algo=settings.algo)
    of_networks = set() if algorithm.table is None else OF_NETWORKS
    network = settings.network
    if isinstance(network, NetworkSettings) and network.scaling == "ranges":
        # As earlier versions wrote it where nobody had.
        settings = replace(settings, network=replace(network, scaling=None))
    for key in sorted((HYPER_PARAMETERS | of_networks) - algorithm.takes):
        if getattr(settings, key) != getattr(usual, key):
            yield OptionFault(key, None, f"does nothing with {settings.algo}: leave it out")


def _plain_parameters(kind: type) -> dict[str, tuple[Any, ...]]:
    """The parameters of a class that can be written as plain values, with their kinds."""
    parameters = inspect.signature(kind).parameters
    if any(given.kind is given.VAR_KEYWORD for given in parameters.values()):
        inherited = _plain_parameters(kind.__mro__[1])
    else:
        inherited = {}
    kinds = {name: _plain_kinds(given.annotation) for name, given in parameters.items()}
    own = {name: plain for name, plain in kinds.items() if set(plain) - {NoneType}}
    return {**inherited, **own}


def _plain_kinds(hint: Any) -> tuple[Any, ...]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(member for member in members if member in WORDS)


def _fits(value: Any, kinds: tuple[Any, ...]) -> bool:
    if value is None or isinstance(value, bool):
        return type(value) in kinds
    if isinstance(value, int):
        return int in kinds or float in kinds
    return isinstance(value, float) and float in kinds and isfinite(value)
