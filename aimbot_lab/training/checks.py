"""Checks of a training's settings before it begins, and what it will cost.

Loading this module loads no torch, but for options, whose names are those of the classes.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Protocol, Union, get_args, get_origin

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import NamedCode, imported, is_allowed, named_code
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.algorithm import (
    EXTRACTOR,
    HER,
    HER_ARGUMENTS,
    POLICY_KWARGS,
    POLICY_NAMES,
    REPLAY,
    Algorithm,
    policy_faults,
    stack_weights,
    with_named_encoder,
)
from aimbot_lab.training.algorithms.registry import (
    ALGORITHMS,
    DEFAULT,
    HYBRID_PPO,
    MASKABLE_PPO,
    algorithm_of,
    shard_count,
    surely_fused,
    transition_bytes,
)
from aimbot_lab.training.networks.network import MLP
from aimbot_lab.training.networks.network_parts import (
    divisors,
    memory_shape,
    nearest,
    network_parts,
    network_summary,
    unfused_parts,
)
from aimbot_lab.training.networks.settings import NetworkSettings, PictureSettings, Scaling
from aimbot_lab.training.processes.exchange import Rank, Shards, share
from aimbot_lab.training.settings import (
    REWARD_SCALE,
    CallbackSettings,
    SelfPlaySettings,
    SettingFault,
    TrainSettings,
)
from aimbot_lab.worlds.registry import named_type, seats_in, spec_of, type_of

WORDS: Mapping[Any, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list",
    dict: "a mapping",
    NoneType: "null",
}
# What no curriculum sets: what the run gives itself, and what is only for display.
OURS = frozenset(
    {
        *("policy", "env", "device", "seed"),
        *("verbose", "stats_window_size", "tensorboard_log", "_init_setup_model"),
        *("supported_action_spaces", "support_multi_env"),  # what a class gives the library's base
        *("rollout_buffer_kwargs", HER_ARGUMENTS),  # of classes that a file can't name
    }
)
# Settings of the training itself, which every algorithm has.
EVERY = {
    "algo",
    "total_steps",
    "reward_scale",
    "aim_bins",
    "network",
    "device",
    "torch_threads",
    "checkpoint_every",
    "options",
    "callbacks",
}
NOISES = "normal", "ornstein-uhlenbeck"  # of actions
# Whole numbers that may be less than 1; stable-baselines3 takes any, and divides by some.
LEAST = {"learning_starts": 0, "top_quantiles_to_drop_per_net": 0, "sde_sample_freq": -1}
STRATEGIES = "future", "final", "episode"  # by which HER chooses other goals
NOISE = "ActionNoise"  # stable-baselines3's class
SDE = "use_sde"  # noise of numbers that depends on the state
FREQUENCY = "n_steps", "n_epochs"  # by which dqn's train_freq and gradient_steps follow
TRAIN_FREQ = "options.train_freq"
OF_NETWORKS = {"network", "device"}  # which do nothing with a table
HYPER_PARAMETERS = {field.name for field in fields(TrainSettings)} - EVERY


OF_POLICY = "net_arch", "activation_fn", "log_std_init", "ortho_init"
SAID_HERE: Mapping[str, tuple[str, ...]] = {
    "train.total_steps": ("n_timesteps", "total_timesteps"),
    "train.options.action_noise: [normal, 0.1]": ("noise_type", "noise_std"),
    "train.options.replay_buffer: her": ("replay_buffer_class",),
    "seed, at the top of the file,": ("seed",),
    "train.device": ("device",),
    "train.callbacks": ("callback",),
    "evaluation.every": ("eval_freq",),
    "env, at the top of the file,": ("env",),
    "env.num_envs": ("n_envs",),
    "env.kwargs": ("env_kwargs",),
    "env.wrappers": ("env_wrapper", "vec_env_wrapper"),
    "env.frame_stack": ("frame_stack",),
}
NEEDLESS: Mapping[str, tuple[str, ...]] = {
    "metrics go to MLflow, for aimbot-lab ui": ("tensorboard_log", "tb_log_name"),
    "the buffer is the algorithm's own": (
        *("rollout_buffer_class", "rollout_buffer_kwargs"),
        HER_ARGUMENTS,
    ),
    "the command decides what is shown": (
        *("verbose", "log_interval", "progress_bar", "stats_window_size"),
    ),
}
RUNNING = "network: {scaling: running} and reward_scale: running"
ELSEWHERE: Mapping[str, str] = {
    **{name: f"{way} says it here" for way, names in SAID_HERE.items() for name in names},
    **dict.fromkeys(("normalize", "normalize_kwargs"), f"{RUNNING} say it here"),
    "policy": "what the world shows and train.network say it here",
    **{name: f"{why}: leave it out" for why, names in NEEDLESS.items() for name in names},
    **{name: f"train.options.policy_kwargs.{name} says it here" for name in OF_POLICY},
}
"""Names of stable-baselines3 and rl-baselines3-zoo, with what says the same here."""


def elsewhere(key: str, train: Mapping[str, Any]) -> str | None:
    """What an unknown `key` of a file's section `train` may mean elsewhere; None: nothing does."""
    algorithm, options = _options_in(train)
    kind = TrainSettings if algorithm is None else algorithm.settings
    own = [field.name for field in fields(kind)]
    others = {}
    if algorithm is not None:
        lacks = f"and {algorithm.name} has no such option"
        others = {
            name: f"it is an option of {able}, {lacks}"
            for name, able in _options_of_others(options).items()
        }
    ways = {name: way for name, way in {**others, **ELSEWHERE}.items() if name not in own}
    ways |= {name: f"it is an option: train.options.{name}" for name in options}
    return _nearest_way(key, own, ways)


def as_option(key: str, train: Mapping[str, Any]) -> str | None:
    """That a `key` of a file's section `train` is an option of its algorithm; None: it is not."""
    algorithm, options = _options_in(train)
    if algorithm is None or key in algorithm.takes or key not in options:
        return None
    return f"is an option of {algorithm.name}: write train.options.{key}"


def _options_in(train: Mapping[str, Any]) -> tuple[Algorithm | None, dict[str, tuple[Any, ...]]]:
    """The algorithm that a file's section `train` names, and what its options are."""
    try:
        algorithm = ALGORITHMS[train.get("algo", DEFAULT)]
        return algorithm, known_options(algorithm)
    except (LookupError, TypeError, ConfigurationError):  # which the settings themselves report
        return None, {}


def _options_of_others(own: Iterable[str]) -> dict[str, str]:
    """The options of all algorithms but those of one, its `own`, and which algorithms have each."""
    able: dict[str, list[str]] = {}
    for algo, algorithm in ALGORITHMS.own.items():
        for name in known_options(algorithm).keys() - own:
            able.setdefault(name, []).append(algo)
    return {
        name: f"{', '.join(algos[:2])} and others" if len(algos) > 2 else " and ".join(algos)
        for name, algos in able.items()
    }


def _nearest_way(key: str, known: Iterable[str], ways: Mapping[str, str]) -> str | None:
    """What the nearest of `ways` says, if none of the `known` names is nearer to `key`."""
    names = get_close_matches(key, [*ways, *known], n=1)
    if not names or names[0] not in ways:
        return None
    name = names[0]
    return ways[name] if name == key else f"nearest: {name}; {ways[name]}"


def settings_faults(
    settings: TrainSettings, spec: WorldSpec | None = None
) -> Iterator[SettingFault]:
    """What `settings` say that their algorithm does not take, in the world of `spec`."""
    algorithm = algorithm_of(settings)
    yield from _useless(settings, algorithm)
    if settings.options:  # their names are those of the classes, which load torch
        yield from _option_faults(settings, algorithm)
    if spec is not None and not spec.pictures and with_named_encoder(settings) is not settings:
        what = "needs a world that shows pictures; there are none here"
        yield SettingFault(("options", POLICY_KWARGS, EXTRACTOR), what)
    if spec is not None and settings.options.get(REPLAY) == HER and algorithm.knows_hindsight:
        yield from _goal_faults(settings, spec)
    if algorithm.candidates and getattr(settings.network, "scaling", None) == "running":
        yield SettingFault(("network",), f"scaling: running is not learned by {settings.algo}")
    chooses = spec is not None and algorithm.chooses_bins(settings, spec)
    if settings.options.get(SDE) is True and chooses:
        what = f"needs continuous actions only; {settings.algo} has choices here"
        yield SettingFault(("options", SDE), what)


def action_remarks(settings: TrainSettings, spec: WorldSpec) -> Iterator[str]:
    """What to know of how actions are learned in an environment of a user's own."""
    if (bins := _bins_remark(settings, spec)) is not None:
        yield bins
    elif (ranges := _ranges_remark(settings, spec)) is not None:
        yield ranges
    if spec.environment_actions is None or not spec.can("masks"):
        return
    adapter = algorithm_of(settings).adapter(settings)
    if not adapter.masks_shown and not settings.masks and settings.algo != MASKABLE_PPO.name:
        yield (
            f"train.algo: {settings.algo} does not heed the environment's action_masks; "
            "maskable_ppo, and hybrid_ppo with masks: true, do"
        )


STEP_BYTES = 12  # of a replay buffer's step: its reward, and how it ended
TOLD_BYTES = 500e6  # of a replay buffer, from which its size is said


def replay_bytes(train: TrainSettings, env: WorldSettings) -> int:
    """What the replay buffer of `train` takes in memory once it is full, and about on the disk.

    0 where it has none.
    """
    algorithm, spec = algorithm_of(train), spec_of(env)
    if not algorithm.replay_buffer:
        return 0
    from aimbot_lab.adapters.spaces import observation_space

    shown = algorithm.adapter(train)
    seen = observation_space(spec, masks=shown.masks_shown, joined=shown.joined)
    steps = algorithm.model_arguments(train, seen, seats_in(env)).get("buffer_size")
    a_step = transition_bytes(seen) // 2 + 8 * max(spec.continuous, 1) + STEP_BYTES
    return steps * a_step if isinstance(steps, int) else 0  # else it is refused by its type


def plan_remarks(train: TrainSettings, env: WorldSettings) -> Iterator[str]:
    """What to know of a replay buffer's size, of steps that mean something else, of processes."""
    if (size := replay_bytes(train, env)) >= TOLD_BYTES:
        yield (
            f"train.options.buffer_size: the replay buffer takes {size / 1e9:.1f} GB of memory "
            "once it is full, and as much on the disk, in the checkpoints of the run"
        )
    algorithm = algorithm_of(train)
    takes_steps = algorithm.replay_buffer and "n_steps" in algorithm.takes
    if takes_steps and not type_of(env).bounds_are_ranges and "train_freq" not in train.options:
        yield (
            f"train.n_steps: {train.algo} makes an update after {train.n_steps} steps of every "
            "environment; returns of several steps are train.options.n_steps"
        )
    if (processes := getattr(env, "processes", 1)) > env.num_envs:
        yield (
            f"env.processes: {processes} step {env.num_envs} of env.num_envs, so that "
            f"{processes - env.num_envs} would have nothing to do and are not started"
        )


def replay_fault(train: TrainSettings, env: WorldSettings) -> str | None:
    """Why the memory of this machine can't hold the replay buffer of `train`; None: it can."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if (size := replay_bytes(train, env)) <= memory:
        return None
    return (
        f"must be smaller: the replay buffer would take {size / 1e9:,.1f} GB, and this machine has "
        f"{memory / 1e9:.1f} GB of memory"
    )


USUAL_RANGE = 0.1, 20.0  # of a number of an action, in which a Gaussian of deviation 1 explores


def _ranges_remark(settings: TrainSettings, spec: WorldSpec) -> str | None:
    """Which number of an action a Gaussian in its own units hardly explores; None: all are fine."""
    algorithm = algorithm_of(settings)
    scaled = settings.algo == HYBRID_PPO.name or algorithm.replay_buffer or algorithm.deterministic
    if spec.environment_actions is None or scaled or algorithm.table is not None:
        return None
    for name, (low, high) in zip(
        spec.action_names[len(spec.branches) :], spec.continuous_bounds, strict=True
    ):
        if isfinite(high - low) and not (
            low == high or USUAL_RANGE[0] <= high - low <= USUAL_RANGE[1]
        ):
            return (
                f"train.algo: {settings.algo} explores by a Gaussian of deviation 1 at first, and "
                f"{name} goes from {low:g} to {high:g}: wrap the environment in "
                "gymnasium.wrappers.RescaleAction, or use hybrid_ppo with aim: hybrid"
            )
    return None


def _bins_remark(settings: TrainSettings, spec: WorldSpec) -> str | None:
    """What to know of the numbers of an action where bins of them are learned; None: nothing.

    Of a mouse the pages say it; of other numbers most expect a Gaussian.
    """
    chooses = algorithm_of(settings).chooses_bins(settings, spec)
    if not spec.continuous or spec.turn_per_unit is not None or not chooses:
        return None
    count = "the number" if spec.continuous == 1 else f"each of the {spec.continuous} numbers"
    way = "" if settings.algo == HYBRID_PPO.name else "algo: hybrid_ppo with "
    return (
        f"train.algo: {settings.algo} chooses {count} of an action from {len(settings.aim_bins)} "
        f"bins (train.aim_bins); {way}aim: hybrid acts by a Gaussian"
    )


def with_defaults(data: Mapping[str, Any]) -> dict[str, Any]:
    """The `data` of a file with what it leaves to its algorithm in a world of a user's own.

    There the library's own defaults hold. Where the world or the algorithm can't be told, as it is.
    """
    given, train = data.get("env"), data.get("train", {})
    world = named_type(given)
    if world is None or world.bounds_are_ranges or not isinstance(train, Mapping):
        return dict(data)
    try:
        algorithm = ALGORITHMS[train.get("algo", DEFAULT)]
    except (LookupError, TypeError, ConfigurationError):  # which the settings themselves report
        return dict(data)
    filled = {**data, "train": _filled(train, algorithm.of_own_worlds)}
    if world.copies and algorithm.one_row and isinstance(given, Mapping):
        filled["env"] = {"num_envs": 1, **given}
    return filled


def _filled(given: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """`given` with those values of `usual`, by dotted keys, for which it has none."""
    filled = dict(given)
    for key, value in usual.items():
        section, _, name = key.rpartition(".")
        inner = filled.get(section, {})
        if not section:
            filled.setdefault(name, value)
        elif key == TRAIN_FREQ and not given.keys().isdisjoint(FREQUENCY):
            continue
        elif isinstance(inner, Mapping) and inner.get("kind", MLP.name) == MLP.name:
            filled[section] = {name: value, **inner}
    return filled


def with_picture_layers(train: TrainSettings, spec: WorldSpec) -> TrainSettings:
    """`train` with as many layers as its class has where the picture of `spec` is all there is."""
    network, layers = train.network, algorithm_of(train).picture_layers
    alone = len(spec.pictures) == 1 and not spec.observation_names
    if layers is None or not alone or not isinstance(network, NetworkSettings):
        return train
    picture = network.picture or PictureSettings()
    return replace(train, network=replace(network, layers=layers, picture=picture))


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


def _option_faults(settings: TrainSettings, algorithm: Algorithm) -> Iterator[SettingFault]:
    known = known_options(algorithm)
    ours = settings.algo in ALGORITHMS.own
    for name, value in settings.options.items():
        if name in algorithm.shared:
            yield SettingFault(("options", name), f"is a setting of its own: train.{name}")
        elif name == REPLAY and name not in known:
            able = [one for one, kind in ALGORITHMS.own.items() if kind.knows_hindsight]
            what = f"{settings.algo} learns nothing by hindsight: use {', '.join(able)}"
            yield SettingFault(("options", name), what)
        elif name not in known:
            ways = {other: f"{able} have it" for other, able in _options_of_others(known).items()}
            ways |= {other: f"train.{other} is a setting of its own" for other in algorithm.shared}
            ways = {
                other: way for other, way in {**ways, **ELSEWHERE}.items() if other not in known
            }
            what, way = f"{settings.algo} has no such option", _nearest_way(name, known, ways)
            known_names = () if way else tuple(known)
            yield SettingFault(("options", name), f"{what} ({way})" if way else what, known_names)
        elif (fault := _type_fault(value, known[name])) is not None:
            yield SettingFault(("options", name), fault)
        elif algorithm.replay_buffer and name in FORMS:
            if (form := FORMS[name](value)) is not None:
                yield SettingFault(("options", name), form)
        elif name == HER_ARGUMENTS:
            yield from _her_faults(settings)
        elif name == POLICY_KWARGS and value is not None:
            yield from _policy_faults(value, algorithm)
        elif ours and type(value) is int and int in known[name] and value < LEAST.get(name, 1):
            yield SettingFault(("options", name), f"must be at least {LEAST.get(name, 1)}")


def _frequency_fault(value: Any) -> str | None:
    count, unit = value if isinstance(value, tuple) and len(value) == 2 else (value, "step")
    if _is_count(count) and unit in ("step", "episode"):
        return None
    return "must be a number of steps, or [NUMBER, step] or [NUMBER, episode]"


def _noise_fault(value: Any) -> str | None:
    kind, sigma = value if isinstance(value, tuple) and len(value) == 2 else (NOISES[0], value)
    if value is None or (kind in NOISES and _fits(sigma, (float,)) and sigma >= 0):
        return None
    return (
        "must be a standard deviation such as 0.1, or [KIND, DEVIATION] with the kind "
        f"{' or '.join(NOISES)}"
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


FORMS: Mapping[str, Callable[[Any], str | None]] = {
    REPLAY: lambda value: None if value == HER else f"must be {HER}",
    "action_noise": _noise_fault,
    "train_freq": _frequency_fault,
    "optimize_memory_usage": lambda value: (
        "must be left out: each observation is kept once as it is" if value else None
    ),
    "gradient_steps": lambda value: (
        None if _is_count(value) or value == -1 else "must be at least 1, or -1 for one a step"
    ),
    **dict.fromkeys(
        ("target_policy_noise", "target_noise_clip"),
        lambda value: None if value >= 0 else "must be at least 0",
    ),
}
"""What is wrong with the value of an option beside its type, by its name."""


def _type_fault(value: Any, kinds: tuple[Any, ...]) -> str | None:
    """What is wrong with `value`, which must be of one of `kinds`; None: nothing is."""
    words = " or ".join(WORDS[kind] for kind in kinds)
    return None if _fits(value, kinds) else f"must be {words}"


def _her_faults(settings: TrainSettings) -> Iterator[SettingFault]:
    """What is wrong with the arguments of the replay buffer."""
    given = settings.options[HER_ARGUMENTS]
    if settings.options.get(REPLAY) != HER:
        yield SettingFault(("options", HER_ARGUMENTS), f"has no effect without {REPLAY}: {HER}")
        return
    goals, strategy = "n_sampled_goal", "goal_selection_strategy"
    for name in given:
        if name not in (goals, strategy):
            what = f"{HER} has no such argument"
            yield SettingFault(("options", HER_ARGUMENTS, name), what, (goals, strategy))
    if type(given.get(goals, 1)) is not int or given.get(goals, 1) < 1:
        yield SettingFault(("options", HER_ARGUMENTS, goals), "must be a whole number from 1 on")
    if given.get(strategy, STRATEGIES[0]) not in STRATEGIES:
        what = f"must be {' or '.join(STRATEGIES)}"
        yield SettingFault(("options", HER_ARGUMENTS, strategy), what)


def _goal_faults(settings: TrainSettings, spec: WorldSpec) -> Iterator[SettingFault]:
    """Why hindsight experience replay is impossible in the world of `spec`."""
    if not spec.can("goals"):
        what = (
            f"{HER} needs an environment of goals: observations that are a Dict of observation, "
            "achieved_goal and desired_goal, both goals of one space, and a method compute_reward "
            "of such goals (env.frame_stack and wrappers must not change their shape)"
        )
        yield SettingFault(("options", REPLAY), what)
    elif settings.reward_scale == "running":
        what = f"running knows nothing of other goals; {REPLAY}: {HER} needs a number"
        yield SettingFault(("reward_scale",), what)


def _policy_faults(given: Mapping[str, Any], algorithm: Algorithm) -> Iterator[SettingFault]:
    one = algorithm.ranks_actions or algorithm.candidates
    stacks = () if one else ("pi", "qf" if algorithm.replay_buffer else "vf")
    plain = _plain_parameters(algorithm.load().policy)
    named = ("activation_fn",) if algorithm.candidates else tuple(POLICY_NAMES)
    found = policy_faults(given, plain, stacks=stacks, named=named, type_fault=_type_fault)
    for path, what, known in found:
        yield SettingFault(("options", POLICY_KWARGS, *path), what, known)


def known_options(algorithm: Algorithm) -> dict[str, tuple[Any, ...]]:
    """The kinds of value of every option that `algorithm` takes, by name."""
    taken = OURS | algorithm.fixed | set(algorithm.shared.values())
    model, policy = map(_plain_parameters, algorithm.load())
    return {
        **{name: kinds for name, kinds in model.items() if name not in taken},
        **{name: policy[name] for name in algorithm.policy_options},
        **({REPLAY: (str,), HER_ARGUMENTS: (dict,)} if algorithm.knows_hindsight else {}),
    }


def _useless(settings: TrainSettings, algorithm: Algorithm) -> Iterator[SettingFault]:
    """Settings that were changed and that the algorithm does not take."""
    usual = type(settings)(algo=settings.algo)
    of_networks = set() if algorithm.table is None else OF_NETWORKS
    network = settings.network
    if isinstance(network, NetworkSettings) and network.scaling == "ranges":
        # As earlier versions wrote the default.
        settings = replace(settings, network=replace(network, scaling=None))
    by_class = algorithm.replay_buffer and "train_freq" in settings.options
    beside = set(FREQUENCY) if by_class else set()
    for key in sorted((HYPER_PARAMETERS | of_networks) - (algorithm.takes - beside)):
        if getattr(settings, key) != getattr(usual, key):
            other = "options.train_freq" if key in beside & algorithm.takes else settings.algo
            what = f"has no effect with {other}: leave it out"
            if algorithm.numbers_only and key in known_options(algorithm):
                what = f"is an option of {settings.algo}: write train.options.{key}"
            yield SettingFault((key,), what)


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
    kinds = [get_origin(member) or member for member in members]
    if any(getattr(kind, "__name__", None) == NOISE for kind in kinds):
        return float, tuple, NoneType  # of which an object is made
    return tuple(kind for kind in kinds if kind in WORDS)


def _fits(value: Any, kinds: tuple[Any, ...]) -> bool:
    if value is None or isinstance(value, bool | str | tuple | dict):
        return type(value) in kinds
    if isinstance(value, int):
        return int in kinds or float in kinds
    return isinstance(value, float) and float in kinds and isfinite(value)


PASSES = 3  # over the weights for a sample: forwards, and backwards for weights and for inputs
NETWORKS = 2  # the policy and the value function; for dqn the network and its target
PER_SECOND = 2e10  # multiply-adds of one core, roughly
MAX_WEIGHTS = 2**25  # of one network: with gradients and Adam's moments some 0.5 GB
MAX_MULTIPLY_ADDS = 1e15  # of an update: half a day and more
COSTLY_SECONDS = 60.0  # of an update that is worth a line


class UpdateCost(NamedTuple):
    """Estimates, which leave out what is small beside the layers."""

    weights: int  # of one network's layers
    multiply_adds: float  # of an update
    of_minibatch: float  # of one of its gradient steps
    pictures: bool = False  # whether convolutions, which are left out too, take most of its time

    @property
    def seconds(self) -> float:
        """What an update takes on one core, roughly."""
        return self.multiply_adds / PER_SECOND

    @property
    def costly(self) -> bool:
        """Whether a person should know before it starts."""
        return self.seconds >= COSTLY_SECONDS

    def __str__(self) -> str:
        """A line for a person."""
        minibatch = self.of_minibatch / PER_SECOND
        return (
            f"an update takes some {self.multiply_adds:.2g} multiply-adds, about "
            f"{_duration(self.seconds)} on a core that makes {PER_SECOND:.0e} a second; Ctrl-C "
            f"takes effect between minibatches, of about {_duration(minibatch)} each"
            + ("; the convolutions of pictures come on top" if self.pictures else "")
        )


def update_cost(train: TrainSettings, env: WorldSettings) -> UpdateCost:
    """The cost of an update by a rollout of `env`."""
    if algorithm_of(train).table is not None:
        return UpdateCost(0, 0.0, 0.0)  # a value a step
    weights, per_pass = _of_network(train, env)
    per_sample = float(PASSES * per_pass)
    algorithm = algorithm_of(train)
    if algorithm.candidates:
        return UpdateCost(weights, 0.0, 0.0)  # nothing but steps
    by_class = "n_steps" not in algorithm.takes or "train_freq" in train.options
    if algorithm.replay_buffer and by_class:  # it draws minibatches from what it keeps
        of_minibatch, count = per_sample * train.batch_size, train.options.get("gradient_steps", 1)
        updates = count if isinstance(count, int) and count > 0 else seats_in(env)
        return UpdateCost(weights, of_minibatch * updates, of_minibatch)
    samples = seats_in(env) * train.n_steps * train.samples.keep
    return UpdateCost(
        weights,
        per_sample * samples * train.n_epochs,
        per_sample * min(train.batch_size, samples),
    )


def _of_network(train: TrainSettings, env: WorldSettings) -> tuple[int, int]:
    """Weights, and multiply-adds of a pass over an observation: units of a kind share weights."""
    if train.algo == HYBRID_PPO.name and network_parts(train.network):
        parts = network_summary(train, spec_of(env))
        return sum(one.weights for one in parts), sum(one.weights * one.times for one in parts)
    inputs = type_of(env).observation_size(env)
    weights = stack_weights(train, inputs, 0)
    return weights, NETWORKS * weights


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{max(seconds, 0.1):.1f} s"


def actor_faults(env: WorldSettings, train: TrainSettings) -> Iterator[tuple[tuple[str, ...], str]]:
    """(key below `train`, what) stands between the actors of `train` and the world of `env`.

    Other algorithms than hybrid_ppo don't take the setting at all.
    """
    actors, rows = train.actors, type_of(env).rows(env)
    if actors is None or train.algo != HYBRID_PPO.name:
        return
    if spec_of(env).agents > 1:
        yield ("actors",), f"needs a world with one agent a row (got {env.world})"
    if memory_shape(train) is not None:
        yield ("actors",), "needs a network without memory: leave one of the two out"
    if train.samples.keep > 1:
        yield ("samples", "keep"), f"must be 1 with actors (got {train.samples.keep})"
    if train.reward_scale == "running":
        yield ("reward_scale",), "must be a number with actors (got 'running')"
    if actors.rows is not None and actors.number * actors.rows != rows:
        product = f"number * rows = {actors.number * actors.rows}"
        yield ("actors",), f"{product} must be env.num_envs, {rows}"
    elif rows % actors.number:
        got = f"got {actors.number}; nearest that does: {nearest(divisors(rows), actors.number)}"
        yield ("actors", "number"), f"must divide env.num_envs, {rows} ({got})"


def callback_code(train: TrainSettings) -> NamedCode | None:
    """The modules of the callbacks that `train` names; None: it names none."""
    if not train.callbacks:
        return None
    names = [one.callback for one in train.callbacks]
    arguments = {str(number): one.kwargs for number, one in enumerate(train.callbacks)}
    shown, parts = ", ".join(names), {"callbacks": names}
    return named_code("train.callbacks", "code of", shown, parts=parts, arguments=arguments)


def callback_faults(train: TrainSettings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(key below `train`, what) is wrong with its callbacks, as far as their code may run here."""
    if train.callbacks and train.actors is not None:
        yield ("callbacks",), f"{UNSEEN}: leave one of the two out"
    elif is_allowed(callback_code(train)):
        for number, one in enumerate(train.callbacks):
            try:
                kind = callback_class(one)
                inspect.signature(kind).bind(**one.kwargs)
            except ConfigurationError as error:
                yield ("callbacks", number, "callback"), str(error)
            except TypeError as error:
                names = ", ".join(inspect.signature(kind).parameters) or "no arguments"
                what = f"{one.callback}: {error} (it takes {names})"
                yield ("callbacks", number, "kwargs"), what
            except ValueError:  # a class of C, whose arguments are not known before
                pass


UNSEEN = "can't see the steps that train.actors play"


def callback_class(one: CallbackSettings) -> type:
    """The class of `one`, whose module is imported. Raises ConfigurationError, in a line."""
    from stable_baselines3.common.callbacks import BaseCallback

    module, _, name = one.callback.partition(":")
    found = getattr(imported(module, ""), name, None)
    if not (isinstance(found, type) and issubclass(found, BaseCallback)):
        what = "has no class" if found is None else "has another kind of object as"
        raise ConfigurationError(
            f"{module} {what} {name}: must be derived from "
            "stable_baselines3.common.callbacks.BaseCallback"
        )
    return found


class Shareable(Protocol):
    """What a training is made from, as far as it matters here."""

    @property
    def env(self) -> WorldSettings:
        """The world."""

    @property
    def train(self) -> TrainSettings:
        """The learner."""

    @property
    def self_play(self) -> SelfPlaySettings | None:
        """Whether and how it meets itself."""


def shards_in(plan: Shareable) -> int:
    """How many shards there are to share out."""
    return shard_count(plan.train, type_of(plan.env).rows(plan.env))


def engine_summary(train: TrainSettings) -> str:
    """Which engine computes, and why not a faster one."""
    if train.engine == "torch":
        return "torch"
    if unknown := unfused_parts(train):
        return f"torch (the fused engine does not know {', '.join(unknown)})"
    return "fused" if surely_fused(train) else "fused where it suits, else torch"


def check_sharing(plan: Shareable, processes: int, *, asked: str | None = None) -> None:
    """Raise ConfigurationError where `processes` can't share the training of `plan`.

    `asked` is by which options that was asked for.
    """
    if processes == 1:
        return
    asked = asked or f"--processes {processes}"
    out = f"leave {' and '.join(asked.split()[::2])} out"
    train, spec = plan.train, spec_of(plan.env)
    if train.algo != HYBRID_PPO.name or not surely_fused(train):
        raise ConfigurationError(
            f"{asked}: only hybrid_ppo with its fused engine, on the CPU and "
            f"without train.options, learns in several processes; {out}"
        )
    if train.actors is not None:
        raise ConfigurationError(
            f"{asked}: train.actors feed one learner; leave one of the two out"
        )
    if not spec.can("parts") or spec.agents > 1 or plan.self_play is not None:
        what = "self_play" if plan.self_play is not None else f"the world {plan.env.world}"
        raise ConfigurationError(f"{asked}: {what} can't be shared out; {out}")
    if train.callbacks:
        raise ConfigurationError(f"{asked}: train.callbacks see one process's rows alone; {out}")
    if train.reward_scale == "running":
        raise ConfigurationError(
            f"{asked}: train.reward_scale: running is learned in one process; give "
            f"a number, or {out}"
        )
    total = shards_in(plan)
    if processes > total:
        raise ConfigurationError(
            f"{asked}: there are only {total} shards to share out "
            "(train.shards; with auto they follow from env.num_envs and train.batch_size)"
        )


def own_shards(plan: Shareable, place: Rank) -> Shards | None:
    """The shards of the process at `place`; None where it has all.

    Raises ConfigurationError where `plan` can't be shared.
    """
    if place.count == 1:
        return None
    check_sharing(plan, place.count)
    total = shards_in(plan)
    mine = share(place.rank, place.count, total)
    return Shards(total, mine.start, len(mine), type_of(plan.env).rows(plan.env) // total)
