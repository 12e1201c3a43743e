"""What is known of a Gymnasium environment, and what it is given.

Parameters of an episode are drawn from constants and samplers, and set as attributes. Environments
with the interface of the old gym are reported in a line with what Gymnasium wants.
"""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, assert_never

import gymnasium
import numpy as np

from aimbot_lab.foundation.errors import (
    ConfigurationError,
    ForeignCodeError,
    blamed,
    place_of,
    place_of_method,
    reason,
)
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import Gaussian, MultiRangeUniform, ParameterValue, Uniform
from aimbot_lab.foundation.world import GOALS, WITHOUT_WINS, Scenario, WorldSpec
from aimbot_lab.worlds.gymnasium.observations import ObservationReader
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings
from aimbot_lab.worlds.gymnasium.spaces import MisfitError, action_columns
from aimbot_lab.worlds.gymnasium.wrapping import Env, seen_parts, space_of

WANTED = {
    "reset": "it must be reset(*, seed=None, options=None) and return (observation, info)",
    "step": "it must return (observation, reward, terminated, truncated, info)",
    "compute_reward": "it is given goals [N, D] and empty infos, and must return rewards [N]",
}
SHIMMY = "which is the old gym's interface (shimmy.GymV21CompatibilityV0 wraps it)"


def attribute(env: Env, name: str) -> Any:
    """What `env` or one of its wrappers has by that name; None: nothing."""
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None


def environment_shape(env: Env, settings: GymnasiumSettings) -> WorldSpec:
    """The spec of a world of environments like `env`.

    Raises ConfigurationError for spaces that can't be columns.
    """
    parts = seen_parts(env, settings.observation)
    seen = ObservationReader(space_of(env, "observation_space"), parts)
    actions = action_columns(space_of(env, "action_space"))
    abilities = {"paired"}
    if settings.masks is not None and not actions.branches:
        raise ConfigurationError("env.masks: the environment's actions have no choices to mask")
    if settings.masks is not None or (
        actions.branches and callable(attribute(env, "action_masks"))
    ):
        abilities.add("masks")
    if _has_goals(env, seen):
        abilities.add("goals")
    if env.render_mode == "rgb_array":
        abilities |= {"draw", "replay"}
    return WorldSpec(
        observation_names=seen.names,
        observation_low=seen.low,
        observation_high=seen.high,
        branches=actions.branches,
        continuous=len(actions.taken.low),
        continuous_limit=1.0,
        continuous_bounds=actions.taken.bounds,
        targets={TARGET: 1},
        difficulties={TARGET: 0},
        reward_terms=("reward",),
        parameters=(),
        action_names=actions.names,
        environment_actions=actions.taken,
        time_unit="steps",
        max_steps=env.spec.max_episode_steps if env.spec else settings.max_episode_steps,
        abilities=frozenset(abilities),
        **({} if settings.win else WITHOUT_WINS),
        blocks=seen.blocks,
        states=seen.states,
    )


def _has_goals(env: Env, seen: ObservationReader) -> bool:
    """Whether `env` says what is gained for goals of one shape, which no wrapper has changed."""
    if not ({*GOALS} <= {*seen.goals} and callable(attribute(env, "compute_reward"))):
        return False
    owner: Any = env
    while not hasattr(owner, "compute_reward"):
        owner = owner.env
    own = getattr(owner.observation_space, "spaces", {})
    goals = [seen.goals[name] for name in GOALS]
    goals += [own[name] for name in GOALS if name in own]
    return len({(type(one), one.shape) for one in goals}) == 1


def checked_scenario(scenario: Scenario, env: Env, settings: GymnasiumSettings) -> None:
    """Raise ConfigurationError for another target, and for a parameter that there is not."""
    for target, weight in scenario.targets.items():
        if target != TARGET:
            raise ConfigurationError(f"scenario: no target {target!r}; there is {TARGET}")
        if not (np.isfinite(weight) and weight > 0):
            raise ConfigurationError(f"scenario: the weight of {TARGET} must be above 0")
    if not scenario.targets:
        raise ConfigurationError(f"scenario: the target {TARGET} is missing")
    if settings.via == "attributes":
        check_attributes(env, scenario.parameters)


def drawn_parameters(
    given: Mapping[str, ParameterValue], seed: int, *, episode: int
) -> dict[str, float]:
    """A value for each parameter in the `episode`-th episode that begins after a reset to `seed`.

    A sampler with a seed of its own draws by that instead.
    """
    return {name: _drawn(name, value, seed, episode) for name, value in given.items()}


def _drawn(name: str, value: ParameterValue, seed: int, episode: int) -> float:
    if isinstance(value, float | int):
        return float(value)
    own = value.sampler_parameters.seed
    random = np.random.default_rng(
        derive_seed(seed if own is None else own, "parameter", name, episode)
    )
    if isinstance(value, Gaussian):
        return float(random.normal(value.sampler_parameters.mean, value.sampler_parameters.st_dev))
    if isinstance(value, Uniform):
        low, high = value.sampler_parameters.min_value, value.sampler_parameters.max_value
    elif isinstance(value, MultiRangeUniform):
        low, high = _interval(value, random)
    else:
        assert_never(value)
    return float(random.uniform(low, high))


def _interval(value: MultiRangeUniform, random: np.random.Generator) -> tuple[float, float]:
    """The interval that is drawn from, each in proportion to its length."""
    intervals = value.sampler_parameters.intervals
    lengths = np.array([high - low for low, high in intervals])
    shares = lengths / lengths.sum() if lengths.sum() > 0 else None
    return intervals[int(random.choice(len(intervals), p=shares))]


def attribute_fault(env: Env, name: str) -> str | None:
    """Why neither `env` nor a wrapper of it has a number `name`; None where one has."""
    if _is_number(attribute(env, name)):
        return None
    known: set[str] = set()
    inner: Any = env
    while hasattr(inner, "__dict__"):
        known |= {key for key, value in vars(inner).items() if _is_number(value)}
        inner = vars(inner).get("env")
    shown = ", ".join(sorted(key for key in known if not key.startswith("_")))
    return f"{type(env.unwrapped).__name__} has no number of that name (it has {shown})"


def check_attributes(env: Env, names: Iterable[str]) -> None:
    """Raise ConfigurationError for a parameter that is no number of `env` or of a wrapper."""
    for name in names:
        with blamed(f"parameters.{name}: it raised", ConfigurationError):
            fault = attribute_fault(env, name)
        if fault is not None:
            raise ConfigurationError(f"parameters.{name}: {fault}")


def set_attributes(env: Env, values: Mapping[str, float]) -> None:
    """Set attributes of `env` or of the outermost wrapper that has them; a whole number stays one.

    Raises ForeignCodeError where it refuses one.
    """
    for name, value in values.items():
        what = f"parameters.{name}: {type(env.unwrapped).__name__} refuses {value:g}:"
        with blamed(what, ForeignCodeError):
            before = env.get_wrapper_attr(name)
            whole = isinstance(before, int | np.integer) and not isinstance(before, bool)
            if not env.set_wrapper_attr(name, round(value) if whole else value, force=False):
                raise AttributeError(f"nothing has {name}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def raised_words(env: Env, call: str, error: BaseException) -> str:
    """What `call` of `env` raised, where, and what is wanted if that is the old interface."""
    found, words = place_of(error), reason(error)
    place = "" if found is None else f" ({found})"
    if call == "render" and "OpenGL" in words:
        return f"{words}{place}; the variable MUJOCO_GL=egl (or osmesa) renders without a display"
    if call == "compute_reward":
        return f"{words}{place}; {WANTED[call]}"
    # What raised these is the call itself, or who took its values, and not code within.
    called = f"{call}() got an unexpected keyword" in words
    if (
        call not in WANTED
        or not isinstance(env.unwrapped, gymnasium.Env)
        or not (called or (found is None and "unpack" in words))
    ):
        return f"{words}{place}"
    return f"{words}{place or _place(env, call)}, {SHIMMY}; {WANTED[call]}"


def check_info(env: Env, info: Any) -> None:
    """Raise MisfitError for an invalid info of a reset.

    An observation of two numbers would else be taken for an observation and its info.
    """
    if info is not None and not isinstance(info, Mapping):
        got = f"gave a {type(info).__name__} in the place of its info{_place(env, 'reset')}"
        raise MisfitError(f"{got}, {SHIMMY}; {WANTED['reset']}")


def seed_notice(env: Env, name: str) -> str | None:
    """What there is to say of an environment that only the old `seed()` seeds; None: nothing."""
    inner = env.unwrapped
    if not callable(getattr(inner, "seed", None)):
        return None
    try:
        takes = "seed" in inspect.signature(inner.reset).parameters
    except (TypeError, ValueError):  # it is not written in Python
        return None
    if takes:
        return None
    return (
        f"{name}: its reset takes no seed{_place(env, 'reset')}, {SHIMMY}, so that its episodes do "
        f"not follow from the run's seed; {WANTED['reset']}"
    )


def _place(env: Env, call: str) -> str:
    return place_of_method(env.unwrapped, call)
