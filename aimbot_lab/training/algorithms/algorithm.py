"""What an algorithm is: its classes, and which settings reach them under which names.

`train.options.policy_kwargs` writes classes by name: `activation_fn: relu`, `optimizer: adamw`,
`features_extractor: impala` for the encoder of pictures. Loading this module loads no torch, so
that files are checked fast.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import mul
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.shown_text import allowed_names
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.network import network_of
from aimbot_lab.training.networks.settings import (
    MAX_LAYERS,
    MAX_UNITS,
    Encoder,
    NetworkSettings,
    PictureSettings,
)
from aimbot_lab.training.settings import SettingFault, TrainSettings, value_at

if TYPE_CHECKING:
    from gymnasium import spaces
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    from aimbot_lab.adapters.spaces import LearnerActions

Arguments = dict[str, Any]
NUMBERS = frozenset({"ent_coef"})
"""Arguments that the classes take as numbers only; a schedule gives its first value."""
POLICY_KWARGS = "policy_kwargs"
"""The option that holds arguments of the policy's class."""
REPLAY, HER = "replay_buffer", "her"
"""The option that names a replay buffer, and the one of hindsight experience replay."""
HER_ARGUMENTS = "replay_buffer_kwargs"


class AdapterOptions(NamedTuple):
    """How the world is shown to an algorithm."""

    actions: "LearnerActions" = "own"
    masks_shown: bool = False  # in the observation's last columns
    blocks: bool = False  # whether there is a Dict of blocks without pictures, too
    joined: bool = False  # whether columns stay together beside pictures, not block by block


class Classes(NamedTuple):
    """The classes of stable-baselines3, sb3-contrib or your own that do the work."""

    model: "type[BaseAlgorithm]"
    policy: "type[BasePolicy]"


class Memory(NamedTuple):
    """What a policy that remembers has between its features and its layers."""

    outputs: int
    weights: int  # at least


def same_names(*names: str) -> Mapping[str, str]:
    """Settings whose arguments have the same names."""
    return MappingProxyType({name: name for name in names})


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """An algorithm as a curriculum names it by `train.algo`.

    `shared` maps settings to the arguments that take them as they are; a setting that is
    neither there nor in `derived` does nothing here. `policy_options` are options that go to
    the policy's class instead of the model's.
    """

    name: str
    classes: Callable[[], Classes]
    """Imports and gives them; asked where a training or an agent is made, not by `check`."""
    shared: Mapping[str, str]
    settings: type[TrainSettings] = TrainSettings
    """The settings of `train`; one's own class adds fields to these."""
    of_own_worlds: Mapping[str, Any] = field(default_factory=dict)
    """Settings that a file leaves out, by their dotted keys, in worlds whose bounds are no ranges:
    the defaults of its class, where they are others than those of `settings`."""
    picture_layers: tuple[int, ...] | None = None
    """Layers there where a picture is all that is seen; None: as many as elsewhere."""
    one_row: bool = False
    """Whether a file that names no number of copies of an environment has one, as the scripts of
    stable-baselines3; else as many as the world says."""
    adapter: Callable[[Any], AdapterOptions] = lambda _: AdapterOptions()
    masked: bool = False  # predictions take masks of the choices
    recurrent: bool = False  # the policy remembers
    self_play: bool = False  # snapshots of its policy can be met in self-play
    ranks_actions: bool = False
    """Whether the policy values all combinations of choices, and has no probabilities."""
    deterministic: bool = False
    """Whether the policy acts without chance; exploration is added to it."""
    candidates: bool = False
    """Whether it plays whole episodes of candidates, one after the other, in a single row."""
    numbers_only: bool = False  # acts by numbers alone, each between two bounds
    replay_buffer: bool = False  # learns from one, not from each rollout in whole minibatches
    policy_options: tuple[str, ...] = ()
    derived: frozenset[str] = frozenset()
    """Settings that `more`, `more_policy` or `adapter` read."""
    more: "Callable[[Any, spaces.Space[Any], int], Arguments]" = lambda *_: {}
    """Further arguments from the settings, the observation space and the number of rows."""
    more_policy: Callable[[Any, WorldSpec], Arguments] = lambda *_: {}
    """Further arguments of the policy's class."""
    fixed: frozenset[str] = frozenset()
    """Arguments that `more` gives and no option may change."""
    any_threads: Callable[[Any], bool] = lambda _: False
    """Whether any number of threads surely learns the same."""
    sees_pictures: bool = True
    """Whether its classes take observations that are pictures, or have some among them."""
    table: Callable[[Any, WorldSpec], int] | None = None
    """How many values it keeps in a table, in place of a network; None: it learns a network."""
    memory: Callable[[Any, int], Memory] = lambda _, inputs: Memory(inputs, 0)
    """The memory between features and layers, by the number of inputs; without one, the inputs."""

    def load(self) -> Classes:
        """Its classes. Raises ConfigurationError, in one line, where they can't be imported."""
        where = f"train.algo: the algorithm {self.name} can't be loaded:"
        with blamed(where, ConfigurationError):
            classes = self.classes()
        if not (isinstance(classes, Classes) and all(isinstance(one, type) for one in classes)):
            raise ConfigurationError(f"{where} its classes must be Classes(MODEL, POLICY)")
        return classes

    def chooses_bins(self, settings: TrainSettings, spec: WorldSpec) -> bool:
        """Whether the learner sees choices alone: bins where the world of `spec` has numbers."""
        actions = self.adapter(settings).actions
        if actions in ("own", "numbers"):
            return bool(spec.branches)
        return actions in ("bins", "flat", "target_bins")

    @property
    def knows_hindsight(self) -> bool:
        """Whether it may learn from goals that were reached in the place of those that were not."""
        return self.replay_buffer and self.sees_pictures  # which are entries of a Dict, too

    @property
    def samples(self) -> bool:
        """Whether agents may draw actions from probabilities."""
        return not (self.ranks_actions or self.deterministic)

    def rollout_steps(self, settings: TrainSettings) -> int:
        """Steps of every environment between two updates; 1 where episodes are counted instead."""
        usual = settings.n_steps if "n_steps" in self.takes else 1
        frequency = settings.options.get("train_freq", usual) if self.replay_buffer else usual
        return frequency if isinstance(frequency, int) else 1

    @property
    def takes(self) -> frozenset[str]:
        """The settings that do something."""
        return self.derived.union(self.shared)

    def model_arguments(
        self, settings: TrainSettings, observations: "spaces.Space[Any]", rows: int
    ) -> Arguments:
        """Keyword arguments of the model's class, its policy's and the seed left out."""
        shared = {name: getattr(settings, key) for key, name in self.shared.items()}
        for name in NUMBERS & shared.keys():
            shared[name] = value_at(shared[name], 1.0)
        # None means the class's own default where the class does not take None itself.
        given = {name: value for name, value in shared.items() if value is not None}
        of_policy = {*self.policy_options, POLICY_KWARGS}
        options = {k: v for k, v in settings.options.items() if k not in of_policy}
        return {**given, **self.more(settings, observations, rows), **options}

    def policy_arguments(self, settings: TrainSettings, spec: WorldSpec) -> Arguments:
        """Keyword arguments of the policy's class, those of its network left out."""
        options = {k: v for k, v in settings.options.items() if k in self.policy_options}
        return {**self.more_policy(settings, spec), **options}


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
POLICY_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "activation_fn": tuple(ACTIVATIONS),
        "optimizer": OPTIMIZERS,
        EXTRACTOR: get_args(Encoder),
    }
)
"""Arguments that are classes, with the names that stand for these."""
POLICY_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "features_extractor_class": f"{EXTRACTOR}: nature, impala, small or simple says it",
        "features_extractor_kwargs": "train.network.picture.size says it",
        "optimizer_class": f"optimizer: {', '.join(OPTIMIZERS)} says it",
        "lstm_kwargs": "lstm_hidden_size and n_lstm_layers say it",
        "use_sde": "train.options.use_sde says it",
    }
)
STACKS = "pi", "vf", "qf"  # the networks that net_arch may name
POLICY_GIVEN = frozenset({"observation_space", "action_space", "lr_schedule", *POLICY_HINTS})


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
    `named` are those of POLICY_NAMES that it takes.
    `type_fault` says what is wrong with a value that must be of some of these types.
    """
    known = {name: kinds for name, kinds in plain.items() if name not in POLICY_GIVEN}
    known |= {"net_arch": (tuple, dict) if stacks else (tuple,), **dict.fromkeys(named, (str,))}
    for name, value in given.items():
        if name in POLICY_HINTS:
            yield SettingFault((name,), POLICY_HINTS[name])
        elif name not in known:
            yield SettingFault((name,), "the policy has no such argument", tuple(known))
        elif (fault := type_fault(value, known[name])) is not None:
            yield SettingFault((name,), fault)
        elif name in POLICY_NAMES and value not in POLICY_NAMES[name]:
            names = POLICY_NAMES[name]
            allowed = allowed_names(value, names, " or ".join(names))
            yield SettingFault((name,), f"must be {allowed}")
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

    given = dict(_policy_kwargs(settings))
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
    encoder = _policy_kwargs(settings).get(EXTRACTOR)
    network = settings.network
    if encoder is None or not isinstance(network, NetworkSettings):
        return settings
    picture = replace(network.picture or PictureSettings(), encoder=encoder)
    return replace(settings, network=replace(network, picture=picture))


def named_layers(settings: TrainSettings) -> tuple[tuple[int, ...], ...]:
    """The layers of each network that a well-formed `net_arch` names; () where there is none."""
    given: Any = _policy_kwargs(settings).get("net_arch")
    stacks = tuple(given.values()) if isinstance(given, Mapping) else (given,)
    return () if list(_layer_faults(given, STACKS)) else stacks or ((),)  # {}: no layers


def stack_weights(settings: TrainSettings, inputs: int, outputs: int) -> int:
    """Weights that the largest of its networks has at least, by `net_arch` or its own layers."""
    stacks = named_layers(settings)
    if not stacks:
        return network_of(settings.network).weights(settings.network, inputs, outputs)
    ends = outputs if len(stacks) == 1 else 0  # of which of several is not known
    largest: int = max(sum(map(mul, (inputs, *one), (*one, ends))) for one in stacks)
    return largest


def _policy_kwargs(settings: TrainSettings) -> Mapping[str, Any]:
    given = settings.options.get(POLICY_KWARGS)
    return given if isinstance(given, Mapping) else {}
