"""Gymnasium environments as a kind of world: what is known before one is made."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from pydantic import ValidationError

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import MakeWorld, ReplayRow, RestoredRow, RowArrays, WorldReplays
from aimbot_lab.foundation.episodes import WIN
from aimbot_lab.foundation.errors import ConfigurationError, reason
from aimbot_lab.foundation.named_code import NamedCode, is_allowed, named_code, require_allowed
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import (
    BatchWorld,
    Observations,
    WorldSpec,
    closed_on_failure,
    step_buffers,
)
from aimbot_lab.foundation.world_type import AskedType, LibraryObservations
from aimbot_lab.worlds.gymnasium.settings import TARGET, GymnasiumSettings

FRAME_SECONDS = 1 / 30  # of a film


class GymnasiumReplays(WorldReplays):
    """An episode is its seed and its parameters, and is shown as its environment renders itself."""

    def frame_seconds(self, spec: WorldSpec) -> float:
        """Of a film to a step."""
        del spec
        return FRAME_SECONDS

    def row_start(self, world: Any, row: int) -> RowArrays | None:
        """From what the episode of `row` began; None where it has begun before."""
        found: RowArrays | None = world.row_start(row)
        return found

    def ending_words(self, outcome: int, seconds: float) -> str:
        """How an episode of `seconds` steps ended; without a win rule none is lost."""
        return f"{'WON' if outcome == WIN else 'ENDED'} after {seconds:.0f} steps"

    def replay_row(self, settings: Any, start: RowArrays, make: MakeWorld) -> ReplayRow:
        """A world in which the episode of `start` begins.

        Raises MisuseError where `start` is no beginning of one.
        """
        world: Any = make(settings)
        with closed_on_failure(world.close):
            try:
                world.restore(start)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                raise MisuseError(f"no beginning of an episode: {reason(error)}") from error
            world.resume_episodes(step_buffers(world).observations)
        return RestoredRow(world)


class GymnasiumType(AskedType):
    """Copies of any Gymnasium environment."""

    name = "gymnasium"
    settings: type[Any] = GymnasiumSettings
    replays = GymnasiumReplays()
    copies = True
    shape_keys: tuple[str, ...] = (
        "id",
        "module",
        "kwargs",
        "wrappers",
        "atari",
        "frame_stack",
        "observation",
    )

    def __init__(self) -> None:
        super().__init__()
        self._specs: dict[str, WorldSpec] = {}

    def code(self, settings: GymnasiumSettings) -> NamedCode | None:
        """The module that they import: of their own, before the id's colon, or in an argument.

        Environments of installed packages, known by their id alone, are no code of a user's own.
        """
        wrappers = [one if isinstance(one, str) else asdict(one) for one in settings.wrappers]
        named = [one if isinstance(one, str) else one.wrapper for one in settings.wrappers]
        parts: dict[str, Any] = {"module": settings.module, "id": settings.id}
        given: Any = settings.kwargs
        if wrappers:
            parts["wrappers"], given = named, [settings.kwargs, wrappers]
        if settings.module is not None:
            name = settings.module
            return named_code("env.module", "module", name, parts=parts, arguments=given)
        if ":" in settings.id:
            return named_code("env.id", "module of", settings.id, parts=parts, arguments=given)
        for name in named:
            if ":" in name:
                return named_code("env.wrappers", "wrapper", name, parts=parts, arguments=given)
        if any(":" in text for text in _texts(given)):
            parts.update(settings.kwargs, **({"wrappers": wrappers} if wrappers else {}))
            what = "that a text with a colon names"
            return named_code("env.kwargs", "code", what, parts=parts)
        return None

    def shape_of(self, settings: GymnasiumSettings) -> Any:
        """What decides what is observed, which actions there are and how long an episode is."""
        return (
            *(settings.id, settings.module, settings.kwargs, settings.max_episode_steps),
            *(settings.wrappers, settings.atari, settings.frame_stack),
            settings.masks,
            settings.observation,
            settings.win is None,
        )

    def asked_spec(self, settings: GymnasiumSettings) -> WorldSpec:
        """The shape of its environments; one is made, and closed, for it.

        Raises ConfigurationError where none can be made.
        """
        key = repr(settings)
        if key not in self._specs:
            spec = self._new_spec(settings)
            try:
                spec_from(spec_document(spec))
            except ValidationError as error:
                first = error.errors()[0]
                shown = f"{first['loc'][0]}: {first['msg']} (got {str(first['input'])[:60]!r})"
                raise ConfigurationError(
                    f"env.id: agents of {settings.id} could not be read again: {shown}; change "
                    "that where it is defined, or by a wrapper"
                ) from error
            self._specs[key] = spec
        return self._specs[key]

    def _new_spec(self, settings: GymnasiumSettings) -> WorldSpec:
        from aimbot_lab.worlds.gymnasium.environments import environment_shape

        with self._tried(settings) as env:
            return environment_shape(env, settings)

    def library_observations(
        self, settings: GymnasiumSettings, spec: WorldSpec
    ) -> LibraryObservations:
        """The space of its environments, one of which is made for it, and elements drawn from it.

        Raises ConfigurationError where none can be made or it shows other entries than `spec` has.
        """
        from aimbot_lab.worlds.gymnasium.observations import ObservationReader
        from aimbot_lab.worlds.gymnasium.wrapping import seen_parts, space_of, tried_environment

        require_allowed(self.code(settings))
        kind = spec.observation_dtype
        with tried_environment(settings) as env:
            space = space_of(env, "observation_space")
            reader = ObservationReader(space, seen_parts(env, settings.observation))
        here, own = (
            ", ".join(f"{one.name} {tuple(one.shape)}" for one in blocks)
            for blocks in (reader.blocks, spec.blocks)
        )
        if spec.blocks and here != own:  # older agents say nothing of theirs
            raise ConfigurationError(
                f"env.id: {settings.id} shows {here} here; the agent learned from {own}"
            )

        def drawn(rows: int, seed: int) -> tuple[Any, Observations]:
            space.seed(seed)
            raw = [space.sample() for _ in range(rows)]
            shown = [reader.library_form(one) for one in raw]
            batch = (
                {name: np.stack([one[name] for one in shown]) for name in shown[0]}
                if isinstance(shown[0], dict)
                else np.stack(shown)
            )
            return batch, np.stack([reader.read(one, kind) for one in raw])

        return LibraryObservations(reader.library_space, drawn)

    def filmed(self, settings: GymnasiumSettings) -> GymnasiumSettings:
        """`settings` by which they render themselves."""
        return replace(settings, kwargs={**settings.kwargs, "render_mode": "rgb_array"})

    def made(self, settings: GymnasiumSettings) -> BatchWorld:
        """The environments, not yet reset."""
        from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld

        return GymnasiumWorld(settings)

    def targets(self, settings: GymnasiumSettings | None) -> Mapping[str, int]:
        """The one target, without difficulties."""
        del settings
        return {TARGET: 0}

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: GymnasiumSettings | None
    ) -> str | None:
        """Whether the environments have a number of that name, where it is an attribute."""
        del value
        if settings is None or settings.via == "options" or not is_allowed(self.code(settings)):
            return None
        from aimbot_lab.worlds.gymnasium.environments import attribute_fault

        with self._tried(settings) as env:
            return attribute_fault(env, name)

    def _tried(self, settings: Any) -> AbstractContextManager[Any]:
        """An environment to ask things of."""
        from aimbot_lab.worlds.gymnasium.wrapping import tried_environment

        return tried_environment(settings)


def _texts(given: Any) -> Iterator[str]:
    """Every text in arguments of an environment."""
    match given:
        case str():
            yield given
        case Mapping():
            for value in given.values():
                yield from _texts(value)
        case list() | tuple():
            for value in given:
                yield from _texts(value)


GYMNASIUM = GymnasiumType()
