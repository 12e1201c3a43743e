"""Gymnasium environments made from settings: wrappers in their order, Atari's, frames stacked."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import singledispatch
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import NameNotFound, NamespaceNotFound

from aimbot_lab.foundation.errors import ConfigurationError, LabError, blamed
from aimbot_lab.foundation.named_code import imported
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.worlds.gymnasium.observations import OBSERVATION, entry_layouts
from aimbot_lab.worlds.gymnasium.process_state import ProcessGuard
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, ObservationParts

Env = gymnasium.Env[Any, Any]
ATARI_WRAPPER = "stable_baselines3.common.atari_wrappers:AtariWrapper"
ATARI_FRAMES = 4
Layouts = Mapping[str, str | None]


@singledispatch
def new_environment(settings: GymnasiumSettings) -> Env:
    """One environment with all its wrappers. Raises ConfigurationError, in a line, if it can't be.

    Other settings, which are derived from these, register how theirs is made.
    Atari's end an episode with each life; below them, `WholeGame` counts the whole game.
    """
    if settings.module is not None:
        imported(settings.module, "env.module: ")
    if ":" in settings.id:
        imported(settings.id.partition(":")[0], "env.id: ")
    given = dict(settings.kwargs)
    if settings.atari:
        if not all(map(find_spec, ("ale_py", "cv2"))):
            raise ConfigurationError("env.atari: needs Atari: pip install 'aimbot-lab[atari]'")
        imported("ale_py", "env.atari: ")  # which registers the games
        given = {"frameskip": 1, "repeat_action_probability": 0.0, **given}
    if settings.max_episode_steps is not None:
        given["max_episode_steps"] = settings.max_episode_steps
    with blamed(f"env.id: {settings.id} can't be made:", ConfigurationError):
        try:
            env: Env = gymnasium.make(settings.id, disable_env_checker=True, **given)
        except (NameNotFound, NamespaceNotFound) as error:
            known = settings.module or ":" in settings.id
            hint = "" if known else " If a module registers it, name that in env.module."
            raise type(error)(f"{error}{hint}") from error
        if settings.atari:
            env = _named_wrapper(ATARI_WRAPPER)(WholeGame(env))
    for place, one in enumerate(settings.wrappers):
        name, kwargs = (one, {}) if isinstance(one, str) else (one.wrapper, dict(one.kwargs))
        with blamed(f"env.wrappers.{place}: {name} can't be used:", ConfigurationError):
            env = _named_wrapper(name)(env, **kwargs)
            if not isinstance(env, gymnasium.Env):
                raise TypeError(f"it gives a {type(env).__name__}, not an environment")
    frames = settings.frame_stack or (ATARI_FRAMES if settings.atari else 1)
    return env if frames == 1 else StackedFrames(env, frames, settings.observation)


@contextmanager
def tried_environment(settings: GymnasiumSettings) -> Iterator[Env]:
    """An environment to ask things of, which is closed then.

    Raises ConfigurationError, in a line, where it can't be made or asked.
    """
    with ProcessGuard(settings.id, 1).kept():
        env = new_environment(settings)
        try:
            with blamed(f"env.id: {settings.id} can't be used:", ConfigurationError):
                yield env
        finally:
            with suppress(LabError), blamed("close:"):  # a training reports it
                env.close()


def space_of(env: Env, name: str) -> spaces.Space[Any]:
    """A space of `env`. Raises ConfigurationError where there is none of that name."""
    found = getattr(env, name, None)
    if not isinstance(found, spaces.Space):
        kind = type(found)
        shown = "missing" if found is None else f"a {kind.__module__}.{kind.__name__}"
        raise ConfigurationError(
            f"env.id: its {name} is {shown}; it must be one of gymnasium.spaces, and be there "
            "before the first reset"
        )
    return found


def _named_wrapper(name: str) -> Callable[..., Env]:
    """The class `module:Class`, or that of `gymnasium.wrappers`."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        found: Callable[..., Env] = getattr(imported(module, "env.wrappers: "), attribute)
        return found
    known = [
        key
        for key, one in vars(gymnasium.wrappers).items()
        if isinstance(one, type) and issubclass(one, gymnasium.Wrapper)
    ]
    if name not in known:
        hint = f"{nearest_name(name, known, 'name')}; your own are module:Class"
        raise ConfigurationError(f"env.wrappers: gymnasium.wrappers has no {name} ({hint})")
    wrapper: Callable[..., Env] = getattr(gymnasium.wrappers, name)
    return wrapper


class WholeGame(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A whole game, below wrappers that end an episode with each life or clip its rewards."""

    score = 0.0  # sum of its rewards
    is_over = False
    begun = 0  # games so far

    def reset(self, **given: Any) -> Any:
        """Begin a game."""
        self.is_over, self.begun = False, self.begun + 1
        self.ended_score, self.score = self.score, 0.0
        return self.env.reset(**given)

    def step(self, action: Any) -> Any:
        """A step of the game."""
        taken = self.env.step(action)
        self.score += float(taken[1])
        self.is_over = bool(taken[2] or taken[3])
        return taken


def game_of(env: Env) -> WholeGame | None:
    """The whole game below the wrappers of `env`; None: its episodes are whole."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, WholeGame):
            return env
        env = env.env
    return None


class StackedFrames(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The last `frames` observations as one, the oldest first; zeros before the first.

    Pictures are stacked by their channels, other entries by their last axis, as by
    stable-baselines3's VecFrameStack; a picture without channels gets an axis for them.
    """

    def __init__(self, env: Env, frames: int, told: ObservationParts) -> None:
        super().__init__(env)
        self._frames, self._told = frames, told
        self._kept: dict[str, np.ndarray] = {}
        self._inner = space_of(env, "observation_space")
        self.layouts: Layouts = entry_layouts(self._inner, told)
        self.observation_space = self._mapped(self._inner, self._space)

    def seen_parts(self, told: ObservationParts) -> ObservationParts:
        """As `told`, with pictures as they were before they were stacked."""
        found: dict[str, Any] = {
            name: "hwc" if layout == "hw" else layout
            for name, layout in self.layouts.items()
            if layout is not None
        }
        return replace(told, pictures=found)

    def reset(self, **given: Any) -> Any:
        """The first observation, with zeros before it."""
        observation, info = self.env.reset(**given)
        self._kept.clear()
        return self._mapped(self._inner, self._stacked, observation), info

    def step(self, action: Any) -> Any:
        """A step, with the last observations as one."""
        observation, *rest = self.env.step(action)
        return self._mapped(self._inner, self._stacked, observation), *rest

    def _mapped(
        self,
        space: spaces.Space[Any],
        change: Callable[[str, spaces.Space[Any], Any], Any],
        given: Any = None,
        name: str = OBSERVATION,
        before: str = "",
    ) -> Any:
        """What `change` makes of each entry of `space`, and of what is `given` of it."""
        if before and name in self._told.drop:
            return space if given is None else given
        entries: dict[Any, spaces.Space[Any]]
        match space:
            case spaces.Dict():
                inner, entries = before, {**space.spaces}
            case spaces.Tuple():
                inner, entries = before or f"{OBSERVATION}_", dict(enumerate(space.spaces))
            case _:
                return change(name, space, given)
        parts = {
            key: self._mapped(
                one,
                change,
                None if given is None else given[key],
                f"{inner}{key}",
                f"{inner}{key}_",
            )
            for key, one in entries.items()
        }
        if isinstance(space, spaces.Dict):
            return spaces.Dict(parts) if given is None else parts
        every = tuple(parts.values())
        return spaces.Tuple(every) if given is None else every

    def _space(self, name: str, space: spaces.Space[Any], _: Any) -> spaces.Space[Any]:
        if not isinstance(space, spaces.Box):
            raise ConfigurationError(
                f"env.frame_stack: the entry {name} is {type(space).__name__}, whose frames "
                f"can't be stacked: leave it out by env.observation: {{drop: [{name}]}}"
            )
        low, high = (self._repeated(name, end) for end in (space.low, space.high))
        return spaces.Box(low, high, dtype=space.dtype)

    def _repeated(self, name: str, bound: np.ndarray) -> np.ndarray:
        frame, axis = self._frame(name, bound)
        return np.concatenate([frame] * self._frames, axis)

    def _frame(self, name: str, given: Any) -> tuple[np.ndarray, int]:
        """One frame, and the axis by which frames are stacked."""
        frame, layout = np.asarray(given), self.layouts.get(name)
        if layout == "hw" or frame.ndim == 0:
            return frame[..., None], frame.ndim
        return frame, 0 if layout == "chw" else frame.ndim - 1

    def _stacked(self, name: str, space: spaces.Space[Any], given: Any) -> Any:
        frame, axis = self._frame(name, np.asarray(given, space.dtype))
        before = self._kept.get(name)
        if before is None:
            zeros = [np.zeros_like(frame)] * (self._frames - 1)
            found = np.concatenate([*zeros, frame], axis)
        else:
            older = before.take(range(frame.shape[axis], before.shape[axis]), axis)
            found = np.concatenate([older, frame], axis)
        self._kept[name] = found
        return found


def seen_parts(env: Env, told: ObservationParts) -> ObservationParts:
    """How the entries of `env` are seen: as `told`, or as it says itself where it names others."""
    own = getattr(env, "seen_parts", None)
    return told if own is None else own(told)
