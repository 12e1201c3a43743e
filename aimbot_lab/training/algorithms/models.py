"""An algorithm's model: how it is made, and what is adjusted while it learns."""

import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import reduce
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import (
    ActionNoise,
    NormalActionNoise,
    OrnsteinUhlenbeckActionNoise,
    VectorizedActionNoise,
)
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import get_action_dim, get_obs_shape
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.her import HerReplayBuffer
from torch.nn import Module
from torch.optim import Adam, Optimizer, RMSprop

from aimbot_lab.adapters.sb3 import WorldVecEnv, reward_scale
from aimbot_lab.adapters.spaces import learner_codec, observation_space
from aimbot_lab.foundation.errors import ConfigurationError, blamed, place_of
from aimbot_lab.foundation.seeds import restore_torch_random, torch_random
from aimbot_lab.foundation.world import BatchWorld, Float32Array, WorldSpec, columns_of, seats_of
from aimbot_lab.training.algorithms.algorithm import (
    HER,
    REPLAY,
    Algorithm,
    policy_class_arguments,
    with_named_encoder,
)
from aimbot_lab.training.algorithms.registry import ALGORITHMS, algorithm_of
from aimbot_lab.training.algorithms.replay import keep_once
from aimbot_lab.training.networks.encoders import Moments, ScaledFeatures, together
from aimbot_lab.training.networks.network import NETWORKS, network_of, stack_of
from aimbot_lab.training.networks.network_parts import with_keys
from aimbot_lab.training.networks.settings import KindOfNetwork
from aimbot_lab.training.processes.exchange import Alone, of_all_shards, one_shard
from aimbot_lab.training.settings import (
    REWARD_SCALE,
    Cosine,
    Linear,
    Schedule,
    TrainSettings,
    bins_within,
)

REFUSALS = AssertionError, ValueError, RuntimeError, MemoryError


def new_model(
    settings: TrainSettings, env: VecEnv, *, spec: WorldSpec, seed: int, **more: Any
) -> BaseAlgorithm:
    """An untrained model for `env`, all its random choices drawn from `seed`.

    `more` goes to the algorithm's class as it is.
    Raises ConfigurationError where the algorithm's class refuses the settings, or where there is
    no such device.
    """
    spare_compiler_import()
    device = chosen_device(settings.device)
    algorithm = algorithm_of(settings)
    arguments = algorithm.model_arguments(settings, env.observation_space, env.num_envs)
    if arguments.get("action_noise") is not None:
        space, rows = env.action_space, env.num_envs
        arguments["action_noise"] = new_action_noise(arguments["action_noise"], space, rows)
    if arguments.pop(REPLAY, None) == HER:
        arguments["replay_buffer_class"] = HerReplayBuffer
    of_policy = policy_arguments(algorithm, settings, spec)
    model, policy = algorithm.load()
    try:
        with catch_warnings():  # of twice the memory that the replay buffer takes
            filterwarnings("ignore", "This system does not have apparently enough memory")
            made = model(
                policy,
                env,
                policy_kwargs=of_policy,
                seed=seed,
                device=device,
                **arguments,
                **more,
            )
        keep_once(made)
        return made
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        ours = algorithm.name in ALGORITHMS.own and settings.network.kind in NETWORKS.own
        if ours and not isinstance(error, REFUSALS):
            raise  # a mistake of our own
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        place = "" if ours or (found := place_of(error)) is None else f" ({found})"
        raise ConfigurationError(f"train: {settings.algo} refuses this: {what}{place}") from error


def new_action_noise(given: Any, space: spaces.Space[Any], rows: int) -> ActionNoise:
    """The noise on actions of `space`, from -1 to 1, of each of `rows` environments.

    `given` is a standard deviation, or normal or ornstein-uhlenbeck with it.
    """
    kind, sigma = given if isinstance(given, tuple) else ("normal", given)
    made = NormalActionNoise if kind == "normal" else OrnsteinUhlenbeckActionNoise
    size = get_action_dim(space)
    noise = made(np.zeros(size), float(sigma) * np.ones(size))
    return noise if rows == 1 else VectorizedActionNoise(noise, rows)


def new_policy(settings: TrainSettings, spec: WorldSpec) -> BasePolicy:
    """An untrained policy to load weights into."""
    spare_compiler_import()
    algorithm = algorithm_of(settings)
    adapter = algorithm.adapter(settings)
    actions = learner_codec(
        spec, adapter.actions, bins_within(settings, spec.continuous_limit)
    ).space
    observations = observation_space(
        spec, masks=adapter.masks_shown, joined=adapter.joined, blocks=adapter.blocks
    )
    arguments = policy_arguments(algorithm, settings, spec)
    if settings.options.get("use_sde"):  # which a model gives its policy by itself
        arguments["use_sde"] = True
    return algorithm.load().policy(observations, actions, lambda _: 0.0, **arguments)


def policy_arguments(
    algorithm: Algorithm, settings: TrainSettings, spec: WorldSpec
) -> dict[str, Any]:
    """Arguments of the policy's class, but spaces and learning rate."""
    if algorithm.table is not None:
        return algorithm.policy_arguments(settings, spec)
    settings = with_named_encoder(settings)
    one_stack = algorithm.ranks_actions or algorithm.replay_buffer or algorithm.candidates
    network = network_arguments(with_keys(settings), spec, one_stack=one_stack)
    own = algorithm.policy_arguments(settings, spec)
    return {**network, **own, **policy_class_arguments(settings)}


def new_vec_env(world: BatchWorld, train: TrainSettings, *, seed: int) -> WorldVecEnv:
    """`world` with the actions, masks and rewards that the algorithm of `train` wants."""
    adapter = algorithm_of(train).adapter(train)
    scale = REWARD_SCALE if train.reward_scale is None else train.reward_scale
    return WorldVecEnv(
        world,
        bins_within(train, world.spec.continuous_limit),
        actions=adapter.actions,
        show_masks=adapter.masks_shown,
        joined=adapter.joined,
        blocks=adapter.blocks,
        seed=seed,
        reward_scale=reward_scale(scale, seats_of(world), gamma=train.gamma),
    )


ACTIVATIONS = {"tanh": th.nn.Tanh, "relu": th.nn.ReLU}


def network_arguments(
    settings: KindOfNetwork, spec: WorldSpec, *, one_stack: bool
) -> dict[str, Any]:
    """Arguments of a policy with one network to act and one to value; or with `one_stack`."""
    network = network_of(settings)
    layers, activation = stack_of(settings)
    with NETWORKS.blamed(network.name, "raised"):
        more = {**network.policy_arguments(settings, spec)}
    return {
        "net_arch": [*layers] if one_stack else {"pi": [*layers], "vf": [*layers]},
        "activation_fn": ACTIVATIONS[activation],
        "features_extractor_class": functools.partial(features_of, settings, spec),
        **more,
    }


def features_of(
    settings: KindOfNetwork, spec: WorldSpec, observations: spaces.Space[Any]
) -> BaseFeaturesExtractor:
    """The module for `observations`, as the algorithm is shown them.

    Raises ConfigurationError, in one line, where a stranger's network can't be made.
    """
    network = network_of(settings)
    what = f"train.network: the network {network.name} can't be made:"
    with blamed(what, ConfigurationError):
        made = network.features(settings, observations, spec=spec)
        if isinstance(made, BaseFeaturesExtractor):
            return made
        return ModuleFeatures(observations, made)


class ModuleFeatures(BaseFeaturesExtractor):
    """Any torch module from observations [N, D] to features [N, F]."""

    def __init__(self, observations: spaces.Space[Any], module: th.nn.Module) -> None:
        super().__init__(observations, features_dim=_width(observations, module))
        self.module = module

    def forward(self, observations: th.Tensor) -> th.Tensor:
        """Features [N, F] of raw observations [N, D]."""
        features: th.Tensor = self.module(observations)
        return features


def _width(observations: spaces.Space[Any], module: th.nn.Module) -> int:
    """How many features `module` gives; tried with two observations."""
    trains, shape = module.training, get_obs_shape(observations)
    given: Any
    if isinstance(shape, dict):
        given = {name: th.zeros(2, *inner) for name, inner in shape.items()}
    else:
        given = th.zeros(2, *shape)
    with th.no_grad():
        features = module.eval()(given)
    module.train(trains)
    if features.ndim != 2 or len(features) != 2:
        raise ValueError(f"features of 2 observations must be [2, F] (got {list(features.shape)})")
    return int(features.shape[1])


def chosen_device(wanted: str) -> str:
    """The torch device that `auto`, `cpu` or `cuda` means on this machine.

    Raises ConfigurationError where it is not there.
    """
    is_there = th.cuda.is_available()
    if wanted == "cuda" and not is_there:
        raise ConfigurationError(
            "train.device: cuda is asked for, and torch finds no CUDA device: use auto or cpu"
        )
    return "cuda" if is_there and wanted != "cpu" else "cpu"


MARKED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
STEPPING = Adam, RMSprop  # those of stable-baselines3


def spare_compiler_import() -> None:
    """Let optimizers be made, read, loaded and used without importing `torch._dynamo`.

    torch wraps these methods so that `torch.compile` leaves them as they are, and imports its
    compiler at their first call to say so. Here they are said to be left as they are beforehand.
    What they do stays the same. Where torch wraps them in another way, or has imported its
    compiler already, this does nothing.
    """
    if "torch._dynamo" in sys.modules:
        return
    for name in MARKED:
        method = getattr(getattr(Optimizer, name), "__wrapped__", None)
        if method is not None and not hasattr(method, "__dynamo_disable"):
            method.__dynamo_disable = method
    for kind in STEPPING:
        _spare_step(kind)


def _spare_step(kind: type[Optimizer]) -> None:
    """A step of `kind` is taken by torch's own code, without its word to the compiler before it."""
    announced: Any = kind.step
    bare: Any = getattr(announced, "__wrapped__", None)
    if bare is None or hasattr(announced, "hooked") or hasattr(announced, "spares_compiler"):
        return  # torch has no such word, an optimizer was made before, or this was done before

    @functools.wraps(bare)
    def step(self: Optimizer, *given: Any, **named: Any) -> Any:
        if "torch._dynamo" in sys.modules:
            return announced(self, *given, **named)
        with th.set_grad_enabled(self.defaults["differentiable"]):
            return bare(self, *given, **named)

    step.spares_compiler = True  # type: ignore[attr-defined]
    kind.step = step  # type: ignore[method-assign]


def adjustments(settings: TrainSettings, policy: Module) -> list[BaseCallback]:
    """The callbacks that `settings` and the features of `policy` ask for."""
    callbacks: list[BaseCallback] = []
    if isinstance(settings.ent_coef, Linear | Cosine):
        callbacks.append(EntropyScheduleCallback(settings.ent_coef))
    if any(features.statistics is not None for features in scaled_features(policy)):
        callbacks.append(StatisticsCallback())
    if settings.options.get("action_noise") is not None or settings.options.get("use_sde"):
        callbacks.append(NoiseCallback())
    return callbacks


def schedule_jumps(
    model: BaseAlgorithm, train: TrainSettings, *, before: int
) -> dict[str, tuple[float, float]]:
    """The numbers of `model` that its schedules had when `before` steps were to be taken, and now.

    By the names of the settings of `train`, for those that differ.
    """
    step = model.num_timesteps
    named = {f"train.{one.name}": getattr(train, one.name) for one in fields(train)}
    named["the exploration rate"] = getattr(model, "exploration_schedule", None)
    left = [max(1.0 - step / total, 0.0) for total in (before, train.total_steps)]
    schedules = {name: value for name, value in named.items() if callable(value)}
    pairs = {name: (float(at(left[0])), float(at(left[1]))) for name, at in schedules.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def scaled_features(policy: Module) -> list[ScaledFeatures]:
    """All of `policy`; a network and its target network have one each."""
    return [module for module in policy.modules() if isinstance(module, ScaledFeatures)]


class EntropyScheduleCallback(BaseCallback):
    """Sets `ent_coef` before each update, which stable-baselines3 takes as a number only.

    The learning rate and the clip range need no callback: it takes callables for these, and asks
    them at the same progress.
    """

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self._schedule = schedule

    def _on_step(self) -> bool:
        return True

    def _on_training_start(self) -> None:
        self._set()  # a training that goes on does not begin at the schedule's start

    def _on_rollout_end(self) -> None:
        self._set()

    def _set(self) -> None:
        model = self.model
        assert isinstance(model, OnPolicyAlgorithm)
        model.ent_coef = self._schedule(1.0 - model.num_timesteps / model._total_timesteps)

    def _on_rollout_start(self) -> None:
        self._record()

    def _on_training_end(self) -> None:
        self._record()

    def _record(self) -> None:
        """Not before the update: stable-baselines3 empties its records between rollout and it."""
        assert isinstance(self.model, OnPolicyAlgorithm)
        self.logger.record("train/ent_coef", self.model.ent_coef)


EXPLORATIONS = ("exploration_mat", "exploration_matrices")


class NoiseCallback(BaseCallback):
    """Noise on actions goes on where it was; stable-baselines3 resets it where learning begins.

    That of gSDE is drawn where a rollout begins, before anything can be kept or put back there.
    """

    def __init__(self) -> None:
        super().__init__()
        self._before: Mapping[str, Any] | None = None

    @property
    def _noises(self) -> list[Any]:
        """Those that depend on their last values."""
        noise = getattr(self.model, "action_noise", None)
        return [one for one in getattr(noise, "noises", [noise]) if hasattr(one, "noise_prev")]

    @property
    def _explorations(self) -> dict[str, th.Tensor]:
        """The noise of gSDE: of one action, and of each environment's."""
        acting: Any = getattr(self.model, "actor", None) or self.model.policy
        drawn = vars(getattr(acting, "action_dist", None) or object).items()
        return {name: one for name, one in drawn if name in EXPLORATIONS}

    def state(self) -> dict[str, Any]:
        """The last values of each environment's noise, and what comes after them."""
        return {
            "last": [one.noise_prev for one in self._noises],
            "explorations": {name: one.detach() for name, one in self._explorations.items()},
            **torch_random(th),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave, once the training starts."""
        self._before = state

    def _on_training_start(self) -> None:
        if self._before is not None:
            for one, before in zip(self._noises, self._before["last"], strict=True):
                one.noise_prev = before

    def _on_rollout_start(self) -> None:
        before, self._before = self._before, None
        if before is not None and before["explorations"]:
            acting: Any = getattr(self.model, "actor", None) or self.model.policy
            for name, one in before["explorations"].items():
                setattr(acting.action_dist, name, one.to(self.model.device))
            restore_torch_random(th, before)

    def _on_step(self) -> bool:
        return True


class StatisticsCallback(BaseCallback):
    """Counts a rollout's observations into the policy's running statistics after its update.

    Not earlier: the update compares log-probabilities with those of the rollout, which were made
    with the old statistics. Nothing is pending where a rollout begins; after the last one its
    observations are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: Moments | None = None

    def state(self) -> list[Any] | None:
        """What is pending."""
        return None if self._seen is None else list(self._seen)

    def resume(self, state: Sequence[Any] | None) -> None:
        """Go on from what `state()` gave."""
        self._seen = None if state is None else Moments(*state)

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        found = [self._features()[0].moments(rows) for rows in self._observations()]
        exchange = getattr(self.model, "exchange", Alone())
        own = np.array([np.concatenate([one.mean, one.variance]) for one in found])
        halves = (np.split(one, 2) for one in of_all_shards(own, exchange))
        each = (Moments(mean, variance, found[0].rows) for mean, variance in halves)
        self._seen = reduce(together, each)

    def _on_rollout_start(self) -> None:
        if self._seen is None:
            return
        for features in self._features():
            if features.statistics is not None:
                features.statistics.fold(self._seen)
        self._seen = None

    def _features(self) -> list[ScaledFeatures]:
        return scaled_features(self.model.policy)

    def _observations(self) -> list[Float32Array]:
        """Those of the last rollout [N, D], shard by shard."""
        model = self.model
        shards = getattr(model, "shards", one_shard(model.n_envs))
        if isinstance(model, OnPolicyAlgorithm):
            observations: Any = model.rollout_buffer.observations
        else:
            assert isinstance(model, OffPolicyAlgorithm)
            buffer = model.replay_buffer
            assert buffer is not None
            steps = min(model.train_freq.frequency, buffer.buffer_size)  # type: ignore[union-attr]
            observations, last = buffer.observations, np.arange(buffer.pos - steps, buffer.pos)
            if isinstance(observations, dict):
                observations = {name: part[last] for name, part in observations.items()}
            else:
                observations = observations[last]
        if isinstance(observations, dict):  # block by block, beside pictures
            plain = [part for part in observations.values() if part.dtype == np.float32]
            observations = np.concatenate(plain, axis=-1)
        columns = columns_of(observations)
        blocks = np.split(columns, shards.here, axis=1)
        return [block.reshape(-1, columns.shape[-1]) for block in blocks]
