"""Which algorithms exist: those of this package, and those that other packages bring.

A package brings an algorithm by an entry point of the group `aimbot_lab.algorithms`, whose name is
the algorithm's and whose object is a `training.algorithms.algorithm.Algorithm`. Loading this
module loads no torch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import prod
from pkgutil import resolve_name
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from aimbot_lab.foundation.argument_checks import FLOAT32
from aimbot_lab.foundation.errors import ForeignCodeError, packages_of, reason_and_place
from aimbot_lab.foundation.registry import Registry, SettingsByName, package_of
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.algorithms.algorithm import (
    HER,
    POLICY_KWARGS,
    REPLAY,
    AdapterOptions,
    Algorithm,
    Arguments,
    Classes,
    Memory,
    same_names,
)
from aimbot_lab.training.networks.network import NETWORKS
from aimbot_lab.training.networks.network_parts import (
    memory_shape,
    target_choice,
    unfused_parts,
    widest_part,
)
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.processes.exchange import ShardCountError, asked_count
from aimbot_lab.training.settings import (
    GROUP,
    MAX_FUSED_UNITS,
    A2cSettings,
    ArsSettings,
    CrossqSettings,
    SacSettings,
    Td3Settings,
    TrainSettings,
)
from aimbot_lab.worlds.registry import WORLDS

if TYPE_CHECKING:
    from gymnasium import spaces

ROLLOUT = ("n_steps", "batch_size", "learning_rate", "gamma", "gae_lambda", "normalize_advantage")
CLIPPED = (*ROLLOUT, "n_epochs", "clip_range", "ent_coef", "vf_coef", "max_grad_norm", "target_kl")


def _classes(model: str, policy: str) -> Callable[[], Classes]:
    """Imports the two, each a MODULE:CLASS, where it is called."""
    return lambda: Classes(resolve_name(model), resolve_name(policy))


def lstm(settings: TrainSettings, inputs: int) -> Memory:
    """Least size of the LSTM that the options describe; its class refuses invalid ones."""
    width, depth = (settings.options.get(name) for name in ("lstm_hidden_size", "n_lstm_layers"))
    width = width if isinstance(width, int) and width > 0 else 0
    depth = depth if isinstance(depth, int) and depth > 0 else 0
    del inputs
    return Memory(width, 4 * max(width, 1) ** 2 * max(depth, 1))


def hybrid_adapter(settings: TrainSettings) -> AdapterOptions:
    """Actions and masks as the switches say."""
    aims = settings.target != "none"
    actions: Any = f"target_{settings.aim}" if aims else settings.aim
    return AdapterOptions(actions, masks_shown=settings.masks, joined=True)


def hybrid_policy(settings: TrainSettings, spec: WorldSpec) -> Arguments:
    """The policy's part of the switches."""
    target, memory = target_choice(settings, spec), memory_shape(settings)
    choices = spec.branches if target is None else (*spec.branches, 1 + target.slots)
    return {
        "hybrid": choices if settings.aim == "hybrid" else (),
        "masked": spec.branches if settings.masks else (),
        **({} if target is None else {"target": target}),
        **({} if memory is None else {"memory": memory}),
    }


def kept_rollouts(settings: TrainSettings, *_: Any) -> Arguments:
    """How many rollouts an update draws from."""
    return {"keep_rollouts": settings.samples.keep}


def surely_fused(settings: TrainSettings) -> bool:
    """Whether the fused engine learns, for which the number of threads makes no difference."""
    network = settings.network
    if not isinstance(network, NetworkSettings) or unfused_parts(settings):
        return False
    suits = widest_part(network) <= MAX_FUSED_UNITS
    asked = settings.engine != "torch" and settings.device == "cpu"
    return asked and suits and not settings.options


def shard_count(settings: TrainSettings, rows: int) -> int:
    """Into how many shards the fused engine cuts `rows`; 1 where another one learns.

    Raises ShardCountError for a number that does not divide, and for one that nothing asks for.
    """
    if settings.engine == "torch" and settings.shards != "auto":
        raise ShardCountError("has no effect with train.engine: torch: leave it out")
    if settings.algo != HYBRID_PPO.name or not surely_fused(settings):
        return 1
    memory = memory_shape(settings)
    samples = 1 if memory is None else memory.length
    batch = settings.batch_size // samples
    return asked_count(settings.shards, rows, batch, samples=samples)


LIBRARY_PPO: Mapping[str, Any] = MappingProxyType(
    {"n_steps": 2048, "batch_size": 64, "n_epochs": 10, "learning_rate": 3e-4, "ent_coef": 0.0}
)
PPO_ALGORITHM = Algorithm(
    name="ppo",
    classes=_classes(
        "stable_baselines3:PPO", "stable_baselines3.common.policies:ActorCriticPolicy"
    ),
    shared=same_names(*CLIPPED),
    of_own_worlds=LIBRARY_PPO,
    picture_layers=(),
    one_row=True,
    self_play=True,
)
MASKABLE_PPO = replace(
    PPO_ALGORITHM,
    name="maskable_ppo",
    classes=_classes(
        "sb3_contrib:MaskablePPO", "sb3_contrib.common.maskable.policies:MaskableActorCriticPolicy"
    ),
    masked=True,
)
RECURRENT_PPO = Algorithm(
    name="recurrent_ppo",
    classes=_classes(
        "sb3_contrib:RecurrentPPO",
        "sb3_contrib.common.recurrent.policies:RecurrentActorCriticPolicy",
    ),
    shared=same_names(*CLIPPED),
    of_own_worlds=MappingProxyType({**LIBRARY_PPO, "n_steps": 128, "batch_size": 128}),
    picture_layers=(),
    one_row=True,
    recurrent=True,
    policy_options=("lstm_hidden_size", "n_lstm_layers", "shared_lstm", "enable_critic_lstm"),
    memory=lstm,
)
TRPO_ALGORITHM = Algorithm(
    name="trpo",
    classes=_classes("sb3_contrib:TRPO", "stable_baselines3.common.policies:ActorCriticPolicy"),
    shared=same_names(*ROLLOUT, "target_kl"),
    of_own_worlds=MappingProxyType({"n_steps": 2048, "batch_size": 128}),
    picture_layers=(),
    one_row=True,
)
HYBRID_PPO = Algorithm(
    name="hybrid_ppo",
    classes=_classes(
        "aimbot_lab.training.algorithms.hybrid_ppo:HybridPPO",
        "aimbot_lab.training.networks.remembering_policy:RememberingPolicy",
    ),
    of_own_worlds=MappingProxyType({"batch_size": 128}),
    shared=same_names(*CLIPPED, "objective", "dual_clip", "engine", "shards"),
    self_play=True,
    adapter=hybrid_adapter,
    derived=frozenset({"aim", "masks", "target", "samples", "actors"}),
    more=kept_rollouts,
    more_policy=hybrid_policy,
    fixed=frozenset({"keep_rollouts", "own_shards", POLICY_KWARGS}),
    policy_options=("log_std_init",),
    any_threads=surely_fused,
)


MAX_BUFFER = 256 * 2**20  # bytes
MIN_ROLLOUTS = 4  # that a replay buffer holds
SHARED = ("batch_size", "learning_rate", "gamma", "max_grad_norm")


def replay_arguments(
    settings: TrainSettings, observations: "spaces.Space[Any]", rows: int
) -> dict[str, Any]:
    """Rollout, updates and buffer of a training with `rows` environments.

    The rollout is n_steps of every environment, and as many samples are drawn after it as
    n_epochs passes over it would take. The buffer holds the whole training if that fits
    MAX_BUFFER, and never less than MIN_ROLLOUTS. With an option train_freq, all is as the class
    has it.
    """
    if "train_freq" in settings.options:
        return buffer_within(settings, observations, rows)
    rollout = settings.n_steps * rows
    fits = min(settings.total_steps, MAX_BUFFER // transition_bytes(observations))
    return {
        "train_freq": settings.n_steps,
        "gradient_steps": max(1, round(settings.n_epochs * rollout / settings.batch_size)),
        "buffer_size": max(fits, MIN_ROLLOUTS * rollout),
    }


def transition_bytes(observations: "spaces.Space[Any]") -> int:
    """What a replay buffer takes for the observations before and after a step."""
    parts = observations.values() if isinstance(observations, Mapping) else [observations]
    sizes = (prod(one.shape or ()) * (one.dtype or FLOAT32).itemsize for one in parts)
    return 2 * sum(sizes)


def flat_adapter(settings: TrainSettings) -> AdapterOptions:
    """One choice of all combinations."""
    return AdapterOptions("flat", blocks=settings.options.get(REPLAY) == HER)


def number_adapter(settings: TrainSettings) -> AdapterOptions:
    """The environment's own numbers."""
    return AdapterOptions("numbers", blocks=settings.options.get(REPLAY) == HER)


LIBRARY_DQN: Mapping[str, Any] = MappingProxyType(
    {
        "batch_size": 32,
        "learning_rate": 1e-4,
        "max_grad_norm": 10.0,
        "options.train_freq": 4,
        "network.activation": "relu",
    }
)
DQN_ALGORITHM = Algorithm(
    name="dqn",
    classes=_classes("stable_baselines3:DQN", "stable_baselines3.dqn.policies:DQNPolicy"),
    shared=same_names(*SHARED),
    adapter=flat_adapter,
    ranks_actions=True,
    replay_buffer=True,
    derived=frozenset({"n_steps", "n_epochs"}),
    more=replay_arguments,
    of_own_worlds=LIBRARY_DQN,
    picture_layers=(),
    one_row=True,
)
QRDQN_ALGORITHM = replace(
    DQN_ALGORITHM,
    name="qrdqn",
    classes=_classes("sb3_contrib:QRDQN", "sb3_contrib.qrdqn.policies:QRDQNPolicy"),
    policy_options=("n_quantiles",),
    of_own_worlds=MappingProxyType({**LIBRARY_DQN, "learning_rate": 5e-5, "max_grad_norm": None}),
)


USUAL_BUFFER = 1_000_000  # transitions, as the classes have it


def buffer_within(settings: TrainSettings, _: Any, rows: int) -> Arguments:
    """The usual buffer, but no larger than what the training can fill; samples are the same.

    The last rollout may end after `total_steps`, one of whole episodes anywhere.
    """
    frequency = settings.options.get("train_freq", 1)
    last = frequency * rows if isinstance(frequency, int) else USUAL_BUFFER
    return {"buffer_size": min(USUAL_BUFFER, settings.total_steps + last + rows)}


def wide_critics(settings: TrainSettings, _: WorldSpec) -> Arguments:
    """The layers of CrossQ's actor, and those of its critics where none are named."""
    layers = getattr(settings.network, "layers", ())
    usual = layers == getattr(CrossqSettings().network, "layers", ())
    critics = [CRITIC_UNITS] * len(layers) if usual else list(layers)
    return {"net_arch": {"pi": list(layers), "qf": critics}}


CRITIC_UNITS = 1024  # of CrossQ
A2C_ALGORITHM = Algorithm(
    name="a2c",
    classes=_classes(
        "stable_baselines3:A2C", "stable_baselines3.common.policies:ActorCriticPolicy"
    ),
    shared=same_names(
        *("n_steps", "learning_rate", "gamma", "gae_lambda", "normalize_advantage"),
        *("ent_coef", "vf_coef", "max_grad_norm"),
    ),
    settings=A2cSettings,
    picture_layers=(),
    one_row=True,
)
SAC_ALGORITHM = Algorithm(
    name="sac",
    classes=_classes("stable_baselines3:SAC", "stable_baselines3.sac.policies:SACPolicy"),
    shared=same_names("batch_size", "learning_rate", "gamma"),
    settings=SacSettings,
    adapter=number_adapter,
    numbers_only=True,
    one_row=True,
    replay_buffer=True,
    more=buffer_within,
)
TQC_ALGORITHM = replace(
    SAC_ALGORITHM,
    name="tqc",
    classes=_classes("sb3_contrib:TQC", "sb3_contrib.tqc.policies:TQCPolicy"),
    policy_options=("n_quantiles", "n_critics"),
)
CROSSQ_ALGORITHM = replace(
    SAC_ALGORITHM,
    name="crossq",
    classes=_classes("sb3_contrib:CrossQ", "sb3_contrib.crossq.policies:CrossQPolicy"),
    settings=CrossqSettings,
    more_policy=wide_critics,
    sees_pictures=False,
)
TD3_ALGORITHM = replace(
    SAC_ALGORITHM,
    name="td3",
    classes=_classes("stable_baselines3:TD3", "stable_baselines3.td3.policies:TD3Policy"),
    settings=Td3Settings,
    deterministic=True,
    picture_layers=(256, 256),
)
DDPG_ALGORITHM = replace(
    TD3_ALGORITHM,
    name="ddpg",
    classes=_classes("stable_baselines3:DDPG", "stable_baselines3.td3.policies:TD3Policy"),
    more_policy=lambda *_: {"n_critics": 1},
)


ARS_ALGORITHM = Algorithm(
    name="ars",
    classes=_classes(
        "aimbot_lab.training.algorithms.candidates:CandidateSearch",
        "aimbot_lab.training.algorithms.candidates:CandidatePolicy",
    ),
    shared=same_names("learning_rate"),
    settings=ArsSettings,
    one_row=True,
    candidates=True,
    deterministic=True,
    sees_pictures=False,
)


def table_size(settings: TrainSettings, spec: WorldSpec) -> int:
    """Values of the table: one for each combination of choices in each state."""
    actions = prod(spec.branches) * len(settings.aim_bins) ** spec.continuous
    return 0 if spec.states is None else spec.states.size * actions


Q_LEARNING = Algorithm(
    name="q_learning",
    classes=_classes(
        "aimbot_lab.training.tabular.table_q_learning:TableQLearning",
        "aimbot_lab.training.tabular.table_q_learning:TablePolicy",
    ),
    shared=same_names("n_steps", "learning_rate", "gamma"),
    adapter=flat_adapter,
    ranks_actions=True,
    fixed=frozenset(
        {"support_multi_env", "monitor_wrapper", "use_sde", "sde_sample_freq", POLICY_KWARGS}
    ),
    more_policy=lambda _, spec: {"states": spec.states},
    table=table_size,
)


PPO_FAMILY = PPO_ALGORITHM, A2C_ALGORITHM, MASKABLE_PPO, RECURRENT_PPO, TRPO_ALGORITHM, HYBRID_PPO
BY_NUMBERS = SAC_ALGORITHM, TD3_ALGORITHM, DDPG_ALGORITHM, TQC_ALGORITHM, CROSSQ_ALGORITHM
OTHERS = ARS_ALGORITHM, Q_LEARNING
BY_VALUES = DQN_ALGORITHM, QRDQN_ALGORITHM
DEFAULT = PPO_ALGORITHM.name
ALGORITHMS: Registry[Algorithm] = Registry(
    group=GROUP,
    noun="algorithm",
    key="algo",
    kind=Algorithm,
    base=TrainSettings,
    own=MappingProxyType(
        {one.name: one for one in (*PPO_FAMILY, *BY_VALUES, *BY_NUMBERS, *OTHERS)}
    ),
)
AnyTrain = Annotated[TrainSettings, SettingsByName(ALGORITHMS, default=DEFAULT, judge=DEFAULT)]
"""The settings of any algorithm, as pydantic validates them; `algo` says which."""


def algorithm_of(settings: TrainSettings) -> Algorithm:
    """The algorithm that `settings` name."""
    return ALGORITHMS[settings.algo]


def any_threads(settings: TrainSettings) -> bool:
    """Whether any number of threads surely learns the same."""
    return algorithm_of(settings).any_threads(settings)


NOT_NUMBERS = "Expected parameter"  # how torch begins to refuse a distribution of NaN


def foreign_failure(
    train: TrainSettings, error: BaseException, *, env: WorldSettings | None = None
) -> ForeignCodeError | None:
    """What a package's code raised while it learned or played, in one line; None: it was not it."""
    learners = _foreign([(ALGORITHMS, train.algo), (NETWORKS, train.network.kind)])
    foreign = {**({} if env is None else _foreign([(WORLDS, env.world)])), **learners}
    through = [foreign[package] for package in packages_of(error) if package in foreign]
    if str(error).startswith(NOT_NUMBERS) and (through or learners):
        culprit = through[0] if through else " or ".join(learners.values())
        return ForeignCodeError(f"{culprit} gave NaN or infinity")
    if not through:
        return None
    return ForeignCodeError(f"{through[0]} raised {reason_and_place(error)}")


def _foreign(entries: Iterable[tuple[Registry[Any], str]]) -> dict[str, str]:
    """Those entries that packages bring, as a person is shown them, by their packages."""
    return {
        package_of(registry.group, name): registry.shown(name)
        for registry, name in entries
        if name not in registry.own
    }
