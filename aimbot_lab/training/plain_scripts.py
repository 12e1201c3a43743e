"""Scripts of stable-baselines3 as its own pages have them, in Gymnasium environments.

They are what we measure ourselves by. Nothing of ours takes part in them but the seeds from which
episodes begin and, where the proof of a lesson is to be reached, the test of its episodes.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import gymnasium
import numpy as np
import torch as th
from gymnasium.wrappers import DtypeObservation
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env, make_vec_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecNormalize

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.foundation.episodes import LOSS, WIN, Cell, EpisodeBatch
from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import ParameterValue, Uniform
from aimbot_lab.training.algorithms.models import ACTIVATIONS, new_action_noise
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.settings import TrainingPlan, value_at
from aimbot_lab.worlds.registry import type_of


def check_plain(plan: TrainingPlan) -> None:
    """Raise ConfigurationError where `learn_plain_ppo` can't train by `plan`."""
    rule = getattr(plan.env, "win", None)
    if getattr(rule, "return_above", None) is None:
        raise ConfigurationError("env: must be a Gymnasium environment with win.return_above")


def learn_plain_ppo(plan: TrainingPlan) -> tuple[int, float, bool]:
    """(steps, seconds, whether it passed) of training until the last lesson of `plan` passes.

    In that lesson alone, by its parameters. Rows, rollouts and hyper-parameters are those of
    `plan`. Raises ConfigurationError for a plan of another world than a Gymnasium environment
    whose episodes are won by their return.
    """
    check_plain(plan)
    env, lesson, train = plan.env, plan.lessons[-1], plan.train
    settings: Any = env
    cell = Cell(type_of(env).default_target(), 0)
    th.set_num_threads(train.torch_threads)
    progress = CurriculumProgress((lesson,), {cell.target: 0}, total_steps=train.total_steps)
    progress.begin_scenario(1)
    make = partial(_new_environment, settings, lesson.parameters)
    began = time.monotonic()
    envs = make_vec_env(make, n_envs=env.num_envs, seed=plan.seed)
    network: Any = train.network
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=train.n_steps,
        batch_size=train.batch_size,
        n_epochs=train.n_epochs,
        learning_rate=value_at(train.learning_rate, 1.0),
        ent_coef=value_at(train.ent_coef, 1.0),
        policy_kwargs={
            "net_arch": list(network.layers),
            "activation_fn": ACTIVATIONS[network.activation],
        },
        device="cpu",
        seed=plan.seed,
    )
    with closing(envs):
        model.learn(train.total_steps, callback=_Test(progress, cell, settings.win.return_above))
    return model.num_timesteps, time.monotonic() - began, progress.finished


class Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose episodes begin from the next of `seeds`, which copies of it share."""

    def __init__(self, env: "gymnasium.Env[Any, Any]", seeds: Iterator[int]) -> None:
        super().__init__(env)
        self.seeds = seeds

    def reset(self, *, options: dict[str, Any] | None = None, **_: Any) -> Any:
        """Begin the next episode of all copies."""
        return self.env.reset(seed=next(self.seeds), options=options)


def episode_seeds(learner: int) -> Iterator[int]:
    """Those from which episodes of our trainings begin, where the learner's seed is `learner`."""
    return (derive_seed(learner, "episode", number) % 2**31 for number in count())


class EpisodeReturns(BaseCallback):
    """Keeps the return of every episode that ends."""

    def __init__(self) -> None:
        super().__init__()
        self.returns: list[float] = []

    def _on_step(self) -> bool:
        self.returns += [one["episode"]["r"] for one in self.locals["infos"] if "episode" in one]
        return True


def learn_entry(env: str, algo: str, entry: Mapping[str, Any], *, steps: int, seed: int) -> Any:
    """(returns of its episodes, processor's seconds) of a training by the library's own class.

    `entry` has hyper-parameters as rl-zoo3 writes them, with `policy_kwargs` as a mapping. The
    learner and the episodes begin from the seeds that our training by `seed` has. Raises
    ConfigurationError where the environment can't be made.
    """
    th.set_num_threads(1)
    learner = derive_seed(seed, "learner")
    seeds = episode_seeds(learner)

    def new(**arguments: Any) -> Any:
        return Seeded(gymnasium.make(env, **arguments), seeds)

    given: dict[str, Any] = dict(entry)
    rows, normalize = given.pop("n_envs", 1), given.pop("normalize", False)
    wrapper, policy = given.pop("env_wrapper", None), "MlpPolicy"
    envs: VecEnv
    with blamed(f"{env} can't be made:", ConfigurationError):
        if env.startswith("ALE/"):
            import_module("ale_py")
            fixed = {"frameskip": 1, "repeat_action_probability": 0.0}
            envs = make_atari_env(new, n_envs=rows, seed=learner, env_kwargs=fixed)
            envs, policy = VecFrameStack(envs, 4), "CnnPolicy"
        else:
            module, _, name = (wrapper or "").rpartition(".")
            if module:
                import_module(module.partition(".")[0])  # which makes its ids known
            wrap = getattr(import_module(module), name) if module else _unchanged
            kind = partial(_in_floats, wrap) if normalize else wrap
            envs = make_vec_env(new, n_envs=rows, seed=learner, wrapper_class=kind)
    if normalize:
        envs = VecNormalize(envs, gamma=given.get("gamma", 0.99))
    for key in ("learning_rate", "clip_range"):
        if isinstance(text := given.get(key), str):
            given[key] = partial(_falling, float(text.removeprefix("lin_")))
    if (noise := given.pop("noise_type", None)) is not None:
        deviation = given.pop("noise_std")
        given["action_noise"] = new_action_noise((noise, deviation), envs.action_space, rows)
    if of_policy := dict(given.pop("policy_kwargs", {})):
        if "activation_fn" in of_policy:
            of_policy["activation_fn"] = ACTIVATIONS[of_policy["activation_fn"]]
        given["policy_kwargs"] = of_policy
    model: Any = ALGORITHMS[algo].load().model
    made = model(policy, envs, seed=learner, device="cpu", **given)
    returns, begun = EpisodeReturns(), time.process_time()
    with closing(envs):
        made.learn(steps, callback=returns)
    return returns.returns, time.process_time() - begun


def _unchanged(env: "gymnasium.Env[Any, Any]") -> "gymnasium.Env[Any, Any]":
    return env


def _in_floats(wrap: Callable[[Any], Any], env: "gymnasium.Env[Any, Any]") -> Any:
    """`env` in `wrap`, with floats for whole numbers.

    VecNormalize leaves their space as it is, and rollouts would then cut scaled observations to
    whole numbers, from which nothing is learned.
    """
    wrapped = wrap(env)
    is_whole = np.issubdtype(wrapped.observation_space.dtype, np.integer)
    return DtypeObservation(wrapped, np.float32) if is_whole else wrapped


def _falling(start: float, left: float) -> float:
    return start * left


def _new_environment(
    settings: Any, parameters: Mapping[str, ParameterValue]
) -> "gymnasium.Env[Any, Any]":
    limit = settings.max_episode_steps
    given = {} if limit is None else {"max_episode_steps": limit}
    return _Drawn(gymnasium.make(settings.id, **given, **dict(settings.kwargs)), parameters)


class _Drawn(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose attributes are drawn anew for every episode."""

    def __init__(
        self, env: "gymnasium.Env[Any, Any]", parameters: Mapping[str, ParameterValue]
    ) -> None:
        super().__init__(env)
        self._parameters = parameters

    def reset(self, **given: Any) -> Any:
        """Draw the attributes, then reset."""
        result = super().reset(**given)  # seeds the generator where a seed is given
        for name, value in self._parameters.items():
            setattr(self.unwrapped, name, _drawn(name, value, self.unwrapped.np_random))
        return result


def _drawn(name: str, value: ParameterValue, random: np.random.Generator) -> float:
    if isinstance(value, Uniform):
        limits = value.sampler_parameters
        return float(random.uniform(limits.min_value, limits.max_value))
    if isinstance(value, float | int):
        return float(value)
    raise ConfigurationError(f"parameters.{name}: must be a number or a uniform sampler here")


class _Test(BaseCallback):
    """Ends the training where the lesson of `progress` passes; counts episodes as they began."""

    def __init__(self, progress: CurriculumProgress, cell: Cell, return_above: float) -> None:
        super().__init__()
        self._progress, self._cell, self._above = progress, cell, return_above
        self._order = np.zeros(0, np.int64)
        self._begun = 0

    def _on_training_start(self) -> None:
        self._begun = self.training_env.num_envs
        self._order = np.arange(self._begun)

    def _on_step(self) -> bool:
        ended = np.flatnonzero(self.locals["dones"])
        if not len(ended):
            return True
        episodes = [self.locals["infos"][row]["episode"] for row in ended]
        order = self._order[ended]
        self._order[ended] = self._begun + np.arange(len(ended))
        self._begun += len(ended)
        returns = np.array([episode["r"] for episode in episodes], np.float64)
        batch = EpisodeBatch(
            row=ended,
            agent=np.zeros_like(ended),
            order=order,
            scenario=np.ones_like(ended),
            cell=(self._cell,) * len(ended),
            outcome=np.where(returns >= self._above, WIN, LOSS).astype(np.int8),
            length=np.array([episode["l"] for episode in episodes], np.int64),
            terms=returns[:, None],
            running_order=self._order,
            running_scenario=np.ones_like(self._order),
        )
        self._progress.add(batch, step=self.num_timesteps)
        return not self._progress.finished
