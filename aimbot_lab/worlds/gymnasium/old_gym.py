"""Environments with the interface of the old gym, told in a line with what Gymnasium wants."""

import inspect
from collections.abc import Mapping
from typing import Any

import gymnasium

from aimbot_lab.foundation.errors import place_of, place_of_method, reason
from aimbot_lab.worlds.gymnasium.spaces import MisfitError

Env = gymnasium.Env[Any, Any]
WANTED = {
    "reset": "it must be reset(*, seed=None, options=None) and return (observation, info)",
    "step": "it must return (observation, reward, terminated, truncated, info)",
}
SHIMMY = "which is the old gym's interface (shimmy.GymV21CompatibilityV0 wraps it)"


def raised_words(env: Env, call: str, error: BaseException) -> str:
    """What `call` of `env` raised, where, and what is wanted if that is the old interface."""
    found = place_of(error)
    place = "" if found is None else f" ({found})"
    # What raised these is the call itself, or who took its values, and not code within.
    called = f"{call}() got an unexpected keyword" in str(error)
    if call not in WANTED or not (called or (found is None and "unpack" in str(error))):
        return f"{reason(error)}{place}"
    return f"{reason(error)}{place or _place(env, call)}, {SHIMMY}; {WANTED[call]}"


def check_info(env: Env, info: Any) -> None:
    """Raise MisfitError for what is no info of a reset.

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
