"""How an agent is trained: the algorithm, its network, its hyper-parameters and their schedules.

    learning_rate: {schedule: linear, start: 1e-3, end: 1e-4}

A schedule is called as stable-baselines3 calls one, with the share of `total_steps` that is
left; where a training has a goal, `end_fraction` says by when the change is to be over.
Loading this module loads no torch.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from math import cos, pi
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from aimbot_lab.curriculum.settings import ForgettingSettings, Lesson
from aimbot_lab.foundation.episodes import MIN_EPISODES
from aimbot_lab.foundation.registry import installed_names
from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass, is_whole
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.networks.network import AnyNetwork
from aimbot_lab.training.networks.settings import NetworkSettings
from aimbot_lab.training.processes.exchange import MAX_SHARDS


def _kind_of_window(value: object) -> str | None:
    if value == "all":
        return "word"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else None


Window = Annotated[
    Annotated[Annotated[Int, Ge(1)], Tag("number")] | Annotated[Literal["all"], Tag("word")],
    Discriminator(
        _kind_of_window,
        custom_error_type="window_type",
        custom_error_message="must be a whole number or 'all'",
    ),
]
Elo = Annotated[Float, Ge(-1e6), Le(1e6)]


class SettingFault(NamedTuple):
    """What is wrong with one key of `train`."""

    key: tuple[str | int, ...]
    what: str
    known: tuple[str, ...] = ()  # what there is, where the key or its value is none of it


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Newest:
    """The newest of all snapshots, whatever the window."""

    share: Annotated[Float, Gt(0), Le(1)] = 0.5
    """Share of all snapshots."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Prioritised:
    """Prioritised fictitious self-play."""

    weighting: Literal["hard", "even"] = "hard"
    """`hard`: mostly opponents that the learner loses to; `even`: mostly equal ones."""
    power: Annotated[Float, Ge(0), Le(16)] = 2.0
    """Exponent of the hard weighting."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class NearRating:
    """Snapshots by how far their rating is from the learner's."""

    spread: Annotated[Float, Gt(0), Le(1e6)] = 200.0
    """Standard deviation in rating points."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplingByNewest:
    """`{newest: {...}}`."""

    newest: Newest
    """Which snapshots these are."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplingByScore:
    """`{pfsp: {...}}`."""

    pfsp: Prioritised
    """How the expected scores weigh."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplingByRating:
    """`{rating: {...}}`."""

    rating: NearRating
    """How close to the learner's rating."""


def _kind_of_sampling(value: object) -> str | None:
    if value == "uniform":
        return "uniform"
    for name, kind in SAMPLINGS.items():
        if isinstance(value, kind) or (isinstance(value, Mapping) and set(value) == {name}):
            return name
    return None


SAMPLINGS: Mapping[str, type] = MappingProxyType(
    {"newest": SamplingByNewest, "pfsp": SamplingByScore, "rating": SamplingByRating}
)
Sampling = Annotated[
    Annotated[Literal["uniform"], Tag("uniform")]
    | Annotated[SamplingByNewest, Tag("newest")]
    | Annotated[SamplingByScore, Tag("pfsp")]
    | Annotated[SamplingByRating, Tag("rating")],
    Discriminator(
        _kind_of_sampling,
        custom_error_type="sampling_type",
        custom_error_message="must be uniform, or a mapping with newest, pfsp or rating",
    ),
]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SelfPlaySettings:
    """Matches of the agent against itself, as it is now (mirrored) and as it was (snapshots)."""

    save_steps: Annotated[Int, Ge(1)] = 500_000
    """Environment steps between two snapshots. One is taken where a rollout begins, one of the
    untrained agent, and one where a lesson begins."""
    window: Window = 10
    """How many of the newest snapshots to draw from, or `all`."""
    play_against_latest_model_ratio: Annotated[Float, Ge(0), Le(1)] = 0.5
    """Share of mirrored matches, in which both agents are the current one, and both learn. They
    add that share of rows to `env.num_envs`."""
    swap_steps: Annotated[Int, Ge(1)] = 100_000
    """Environment steps for which to draw from the same snapshots."""
    at_once: Annotated[Int, Ge(1), Le(64)] = 8
    """How many snapshots to draw from in that time, at most."""
    initial_elo: Elo = 1200.0
    """Rating of the first snapshot, relative to which all others are given."""
    sampling: Sampling = "uniform"
    """How they are drawn. `uniform`: uniformly from the window. `{newest: {share: 0.5}}`: uniformly
    from the newest half of all snapshots. `{pfsp: {weighting: hard, power: 2}}`: in proportion to
    (1 - p)^power, where p is the learner's expected score against each, or to p (1 - p) with
    weighting `even`. `{rating: {spread: 200}}`: near the learner's rating. Each candidate keeps at
    least 2 %."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Linear:
    """From `start` to `end` in a straight line."""

    schedule: Literal["linear"] = "linear"
    """Kind of schedule."""
    start: Annotated[Float, Ge(0)]
    """Value at the beginning of the training."""
    end: Annotated[Float, Ge(0)]
    """Value after the change."""
    end_fraction: Annotated[Float, Gt(0), Le(1)] = 1.0
    """Share of total_steps after which the change ends."""

    def __post_init__(self) -> None:
        _refuse_nothing(self.start, self.end)

    def __call__(self, progress_remaining: float) -> float:
        """The value where this share of the training is left."""
        return self.start + (self.end - self.start) * _done(progress_remaining, self.end_fraction)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cosine:
    """From `start` to `end` along half a wave: slow, fast, slow (Loshchilov & Hutter 2017)."""

    schedule: Literal["cosine"] = "cosine"
    """Kind of schedule."""
    start: Annotated[Float, Ge(0)]
    """Value at the beginning of the training."""
    end: Annotated[Float, Ge(0)]
    """Value after the change."""
    end_fraction: Annotated[Float, Gt(0), Le(1)] = 1.0
    """Share of total_steps after which the change ends."""

    def __post_init__(self) -> None:
        _refuse_nothing(self.start, self.end)

    def __call__(self, progress_remaining: float) -> float:
        """The value where this share of the training is left."""
        done = _done(progress_remaining, self.end_fraction)
        return self.end + (self.start - self.end) * (1.0 + cos(pi * done)) / 2.0


Schedule = Linear | Cosine


def value_at(value: float | Schedule, progress_remaining: float) -> float:
    """What `value` is worth where this share of the training is left."""
    return value(progress_remaining) if isinstance(value, Linear | Cosine) else value


def _done(progress_remaining: float, end_fraction: float) -> float:
    """How much of the change is over, from 0 to 1; the last rollout may end after total_steps."""
    return min((1.0 - progress_remaining) / end_fraction, 1.0)


def _refuse_nothing(start: float, end: float) -> None:
    if start == 0 and end == 0:
        raise ValueError("start must be greater than 0 where end is 0")


def _kind(value: object) -> str | None:
    """Whether `value` wants to be a number or a schedule."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return "schedule" if isinstance(value, Mapping | Linear | Cosine) else None


_TOLD_APART = Discriminator(
    _kind,
    custom_error_type="schedule_type",
    custom_error_message="must be a number or a schedule",
)
_Scheduled = Annotated[Schedule, Field(discriminator="schedule"), Tag("schedule")]

Positive = Annotated[Annotated[Float, Gt(0), Tag("number")] | _Scheduled, _TOLD_APART]
"""A number above 0, or a schedule."""
NotNegative = Annotated[Annotated[Float, Ge(0), Tag("number")] | _Scheduled, _TOLD_APART]
"""A number of at least 0, or a schedule."""


MAX_ACTORS = 1024
MAX_UNCORRECTED_LAG = 1  # updates, beyond which PPO's clip alone is no correction
USUAL_POOL = 2


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ActorSettings:
    """Processes that step the world's rows and act on their own, for slow worlds."""

    number: Annotated[Int, Ge(1), Le(MAX_ACTORS)]
    """Actors, each a process with a world of its own."""
    rows: Annotated[Int, Ge(1)] | None = None
    """Rows of each actor; number times rows must be env.num_envs. By default an equal share."""
    lag: Annotated[Int, Ge(0), Le(20)] = 0
    """How many updates old an actor's weights may be when its rollouts are learned from. 0: in
    step, the learner and all actors wait for each other. More: none waits, and older rollouts are
    dropped."""
    correction: Literal["none", "vtrace"] = "none"
    """`vtrace` recomputes advantages, values and log-probabilities for the current policy before
    each update; needed for a lag above 1."""
    pool: Annotated[Int, Ge(1), Le(64)] = USUAL_POOL
    """With a lag: how many rollouts of each actor may wait to be learned from; then actors wait.
    Fewer, down to one, if the learner never has to wait."""
    preload: Annotated[Int, Ge(1)] | None = None
    """With a lag: how many rollouts must wait before the first update. By default one of each
    actor."""

    def __post_init__(self) -> None:
        if self.lag > MAX_UNCORRECTED_LAG and self.correction == "none":
            raise ValueError(
                f"lag must be at most {MAX_UNCORRECTED_LAG} without correction: vtrace "
                f"(got {self.lag})"
            )
        for key, usual in ("pool", USUAL_POOL), ("preload", None):
            if not self.lag and getattr(self, key) != usual:
                raise ValueError(f"{key} has no effect without a lag: leave it out")
        if self.preload is not None and not self.number <= self.preload <= self.room:
            raise ValueError(
                f"preload must be {self.number} to {self.room}, number to number * pool "
                f"(got {self.preload})"
            )

    @property
    def room(self) -> int:
        """Rollouts of all actors that may wait to be learned from."""
        return self.number * self.pool


Fraction = Annotated[Float, Ge(0), Le(1)]
ALGOS = (
    *("ppo", "a2c", "maskable_ppo", "recurrent_ppo", "trpo", "dqn", "qrdqn"),
    *("sac", "td3", "ddpg", "tqc", "crossq", "ars", "hybrid_ppo", "q_learning"),
)
"""The algorithms of this package."""
GROUP = "aimbot_lab.algorithms"
"""Entry points by which installed packages bring algorithms."""


if TYPE_CHECKING:
    Algo = str
else:
    Algo = Literal[(*ALGOS, *(name for name in installed_names(GROUP) if name not in ALGOS))]
"""The names of all algorithms."""
MAX_FUSED_UNITS = 1024  # of a layer; beyond, matrix products are all of the cost anyway
MAX_KEPT = 64  # rollouts
AIM_BINS = (-5.0, -2.5, -1.0, -0.4, -0.1, 0.0, 0.1, 0.4, 1.0, 2.5, 5.0)
FEW_AIM_BINS = (-5.0, -0.5, 0.0, 0.5, 5.0)
USUAL_BINS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"dqn": FEW_AIM_BINS, "qrdqn": FEW_AIM_BINS}
)
"""Mouse values by algorithm, where not AIM_BINS."""

REWARD_SCALE = 0.01  # of returns of about a thousand
LEARNING_RATE = 1e-3
USUAL_RATES: Mapping[str, float] = MappingProxyType({"q_learning": 0.5})
"""Learning rates by algorithm, where not LEARNING_RATE."""


def _plain(value: Any) -> Any:
    if is_whole(value):
        return int(value)  # 1e4 as a person means it; a class that wants a float takes it too
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return tuple(_plain(one) for one in value)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(one) for key, one in value.items()}
    raise PydanticCustomError("option_type", "must be a plain value, a list or a mapping")


def _number_or(word: str) -> Callable[[object], str | None]:
    """What tells a number from `word`."""

    def kind(value: object) -> str | None:
        if value == word:
            return "word"
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return "number" if is_number else None

    return kind


RewardScale = Annotated[
    Annotated[Float, Gt(0), Tag("number")] | Annotated[Literal["running"], Tag("word")],
    Discriminator(
        _number_or("running"),
        custom_error_type="reward_scale_type",
        custom_error_message="must be a number or 'running'",
    ),
]
ShardCount = Annotated[
    Annotated[Int, Ge(1), Le(MAX_SHARDS), Tag("number")] | Annotated[Literal["auto"], Tag("word")],
    Discriminator(
        _number_or("auto"),
        custom_error_type="shards_type",
        custom_error_message="must be a whole number or 'auto'",
    ),
]
OptionValue = Annotated[Any, AfterValidator(_plain)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SamplesSettings:
    """From which rollouts an update draws its samples."""

    keep: Annotated[Int, Ge(1), Le(MAX_KEPT)] = 1
    """How many of the newest rollouts an epoch passes over; older ones keep their
    log-probabilities, values and advantages. 1: only the last one."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CallbackSettings:
    """A callback of your own, with the interface of stable-baselines3's BaseCallback."""

    callback: str
    """Its class as MODULE:CLASS; the module may lie in the working directory."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of its constructor."""

    def __post_init__(self) -> None:
        module, colon, name = self.callback.partition(":")
        if not (colon and name.isidentifier() and all(map(str.isidentifier, module.split(".")))):
            raise ValueError(
                f"callback must be MODULE:CLASS, such as my_callbacks:Progress "
                f"(got {self.callback!r:.80})"
            )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrainSettings:
    """Algorithm and hyper-parameters; names are stable-baselines3's where it has one."""

    algo: Algo = "ppo"
    """Learning algorithm: the class of stable-baselines3 or sb3-contrib with this name, or our own
    hybrid_ppo, which equals ppo unless aim, masks, objective or dual_clip are set."""
    total_steps: Annotated[Int, Ge(1)] = 5_000_000
    """Environment steps after which training ends in any case; a running rollout is finished."""
    n_steps: Annotated[Int, Ge(2)] = 128
    """Steps of every environment per rollout, between two updates."""
    batch_size: Annotated[Int, Ge(2)] = 8192
    """Samples per gradient step."""
    n_epochs: Annotated[Int, Ge(1), Le(10_000)] = 4
    """Passes over a rollout; dqn and qrdqn take as many samples from the replay buffer."""
    learning_rate: Positive = LEARNING_RATE
    """Step size of Adam: a number, or a schedule such as {schedule: linear, start: 1e-3, end:
    1e-4}, linear or cosine. q_learning: the share by which a value moves towards the observed
    outcome, by default 0.5."""
    gamma: Fraction = 0.99
    """Discount factor."""
    gae_lambda: Fraction = 0.95
    """Bias-variance factor of the advantage estimate."""
    clip_range: Positive = 0.2
    """Clip range of the probability ratio: a number or a schedule."""
    ent_coef: NotNegative = 0.01
    """Weight of the entropy bonus: a number or a schedule."""
    vf_coef: Annotated[Float, Ge(0)] = 0.5
    """Weight of the value loss."""
    max_grad_norm: Annotated[Float, Gt(0)] | None = 0.5
    """Largest norm of a gradient; null: as in the algorithm's class (for qrdqn: no limit)."""
    target_kl: Annotated[Float, Gt(0)] | None = None
    """Stop an update before a gradient step whose minibatch shows more than 1.5 times this
    divergence (Kullback-Leibler) from the policy of the rollout; trpo bounds its step by it."""
    reward_scale: RewardScale | None = None
    """Factor on rewards before they reach the learner, or `running`: rewards divided by the
    standard deviation of all discounted returns so far. Tracked rewards stay raw. Default: 0.01; in
    the worlds gymnasium and unity `running` with hybrid_ppo, and 1 with all other algorithms."""
    aim_bins: tuple[Float, ...] = AIM_BINS
    """Mouse values that the agent chooses from; by default eleven, for dqn and qrdqn five. If an
    action has only numbers, only dqn, qrdqn and hybrid_ppo choose from bins."""
    aim: Literal["bins", "hybrid"] = "bins"
    """hybrid_ppo: whether the mouse is one of aim_bins or a continuous number (Gaussian). The
    latter needs a smaller ent_coef, because the bonus can widen a Gaussian without bound."""
    masks: Bool = False
    """hybrid_ppo: whether impossible actions (blocked moves, attacks while the gun is not ready)
    are excluded."""
    objective: Literal["joint", "per_branch"] = "joint"
    """hybrid_ppo: one clipped objective for the whole action, or the sum of one per branch."""
    dual_clip: Annotated[Float, Gt(1)] | None = None
    """hybrid_ppo: for a negative advantage A, the objective is at least this times A."""
    samples: SamplesSettings = SamplesSettings()
    """hybrid_ppo: from which rollouts an update draws; by default only the last one."""
    target: Literal["none", "linear", "attention"] = "none"
    """hybrid_ppo: whether a separate branch chooses an observed unit, from which the mouse is the
    offset: by a linear layer, or by attention over the keys of network.units."""
    engine: Literal["auto", "torch", "fused"] = "auto"
    """hybrid_ppo: what computes. `torch` equals stable-baselines3 to the bit if no option is on.
    `fused` is several times as fast, with other random numbers and the same updates within
    rounding. `auto` is fused wherever possible: networks of equal layers on the CPU."""
    shards: ShardCount = "auto"
    """hybrid_ppo, fused engine: how many blocks of neighbouring rows a rollout is divided into,
    each with its own order of samples and its own sum. What is learned depends on it. `auto`: as
    many as suit, up to 16, with at least 256 samples of a minibatch each."""
    actors: ActorSettings | None = None
    """hybrid_ppo: processes that play the world's rows, each in a world of its own, while this one
    learns; for slow worlds. By default one process does both."""
    network: AnyNetwork = NetworkSettings()
    """The networks; `kind` says which, by default `mlp`."""
    device: Literal["auto", "cpu", "cuda"] = "cpu"
    """Where the networks run: cpu, cuda, or auto (cuda if there is a device). The same seed gives
    the same training on a CPU; on CUDA this is not guaranteed."""
    torch_threads: Annotated[Int, Ge(1), Le(256)] = 1
    """Threads for learning. `hybrid_ppo` has its own, which yield to other processes; two are 1.6
    times as fast as one. Torch's gain little on small networks and lose much beside another busy
    process, because waiting threads take the core from the working one."""
    normalize_advantage: Bool = True
    """Whether advantages are normalised per minibatch."""
    checkpoint_every: Annotated[Int, Ge(1)] | None = None
    """Environment steps between two checkpoints; each waits for the next rollout. By default as
    often as 5 % of the time allows."""
    options: Mapping[str, OptionValue] = field(default_factory=dict)
    """Further hyper-parameters of the algorithm, by the names that its class gives them."""
    callbacks: tuple[CallbackSettings, ...] = ()
    """Your own callbacks, called in this order. If `_on_step` of one returns False, the training
    stops."""

    def __post_init__(self) -> None:
        if self.learning_rate is LEARNING_RATE:  # nothing was given
            rate = USUAL_RATES.get(self.algo, LEARNING_RATE)
            object.__setattr__(self, "learning_rate", rate)
        if self.aim_bins is AIM_BINS:
            object.__setattr__(self, "aim_bins", USUAL_BINS.get(self.algo, AIM_BINS))
        if len(self.aim_bins) < 2 or list(self.aim_bins) != sorted(set(self.aim_bins)):
            raise ValueError("aim_bins must hold at least two rising values")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class A2cSettings(TrainSettings):
    """The defaults of stable-baselines3's A2C, where they differ from those of PPO."""

    n_steps: Annotated[Int, Ge(2)] = 5
    """Steps of every environment per rollout, between two updates."""
    learning_rate: Positive = 7e-4
    """Step size of RMSprop: a number or a schedule."""
    gae_lambda: Fraction = 1.0
    """Bias-variance factor of the advantage estimate."""
    ent_coef: NotNegative = 0.0
    """Weight of the entropy bonus: a number or a schedule."""
    normalize_advantage: Bool = False
    """Whether advantages are normalised per minibatch."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SacSettings(TrainSettings):
    """The defaults of stable-baselines3's SAC and sb3-contrib's TQC."""

    batch_size: Annotated[Int, Ge(2)] = 256
    """Samples per gradient step."""
    learning_rate: Positive = 3e-4
    """Step size of Adam: a number or a schedule."""
    network: AnyNetwork = NetworkSettings(layers=(256, 256), activation="relu")
    """The networks; `kind` says which, by default `mlp`."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Td3Settings(SacSettings):
    """The defaults of stable-baselines3's TD3 and DDPG."""

    learning_rate: Positive = LEARNING_RATE
    """Step size of Adam: a number or a schedule."""
    network: AnyNetwork = NetworkSettings(layers=(400, 300), activation="relu")
    """The networks; `kind` says which, by default `mlp`."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CrossqSettings(SacSettings):
    """The defaults of sb3-contrib's CrossQ, whose critics' layers have 1,024 units unless named."""

    learning_rate: Positive = LEARNING_RATE
    """Step size of Adam: a number or a schedule."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ArsSettings(TrainSettings):
    """The defaults of sb3-contrib's ARS, and layers as its MlpPolicy has."""

    learning_rate: Positive = 0.02
    """Step size of the search: a number or a schedule."""
    network: AnyNetwork = NetworkSettings(activation="relu")
    """The networks; `kind` says which, by default `mlp`."""


def bins_within(train: TrainSettings, limit: float) -> tuple[float, ...]:
    """The aim bins of a world whose continuous columns go from -`limit` to `limit`.

    Bins beyond that are taken for shares of the farthest of them; in the arena they are refused.
    """
    farthest = max(map(abs, train.aim_bins))
    if farthest <= limit:
        return train.aim_bins
    return tuple(value / farthest * limit for value in train.aim_bins)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EvaluationSettings:
    """How often the agent plays the last lesson's cells during the training, in separate episodes.
    These are the same in every run and do not change the training."""

    every: Annotated[Int, Ge(1)]
    """Environment steps between two evaluations; each waits for the next rollout."""
    episodes: Annotated[Int, Ge(MIN_EPISODES), Le(10_000)] = 50
    """Episodes of each target at each difficulty."""
    max_steps: Annotated[Int, Ge(1)] | None = None
    """Steps after which an unfinished episode is an error, here and when the run is evaluated; by
    default twice the world's longest episode, or 30,000 if that is unknown."""


@dataclasses.dataclass(frozen=True)
class TrainingPlan:
    """What a training is made from."""

    seed: int
    env: WorldSettings
    lessons: tuple[Lesson, ...]
    train: TrainSettings
    forgetting: ForgettingSettings = field(default_factory=ForgettingSettings)
    evaluation: EvaluationSettings | None = None  # while it trains; None: none
    self_play: SelfPlaySettings | None = None  # None: it never meets itself
