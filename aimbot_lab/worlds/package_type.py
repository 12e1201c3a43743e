"""A kind of world that a package brings, with the package named in whatever goes wrong."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from math import isfinite
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, blamed
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import BatchWorld, BoolArray, Float32Array, WorldSpec
from aimbot_lab.foundation.world_type import Act, Bounds, MakePlayer, WorldType
from aimbot_lab.worlds.package_world import PackageWorld
from aimbot_lab.worlds.spec_checks import spec_faults

ASKED = ("name", "settings", "files", "shape_keys", "bounding_keys", "gymnasium_ids", "replays")
SHAPE = (
    *("agents", "observation_names", "branches", "continuous", "continuous_limit"),
    *("continuous_bounds", "reward_terms", "episode_columns", "time_column"),
)
"""Of a spec, what layers above count on before a world is made."""


class PackageType(WorldType):
    """`inner`, shown to a person as `shown`.

    Raises ConfigurationError, in a line for each fault, for whatever its methods raise, and for
    what they must not return.
    """

    def __init__(self, inner: WorldType, shown: str) -> None:
        self._inner, self._shown = inner, shown
        for key in ASKED:
            setattr(self, key, getattr(inner, key))

    def spec(self, settings: Any) -> WorldSpec:
        """The shape of a world with `settings`, which agrees with itself."""
        with self._blamed("has no spec:"):
            spec: WorldSpec = self._inner.spec(settings)
            faults = list(spec_faults(spec))
        if faults:
            where = f"env.world: the spec of {self._shown}"
            raise ConfigurationError(*(f"{where}: {fault}" for fault in faults))
        return spec

    def make(self, settings: Any) -> BatchWorld:
        """A world with `settings`, of the shape that its spec says, which is checked as it goes."""
        with self._blamed("can't be made:"):
            world = self._inner.make(settings)
            made, rows = world.spec, world.num_envs
        said = self.spec(settings)
        for key in SHAPE:
            got, wanted = getattr(made, key, None), getattr(said, key)
            if got != wanted:
                what = f"the world that it makes has another ({_short(got)})"
                raise ConfigurationError(f"env.world: the spec of {self._shown}: {key}: {what}")
        if rows != settings.num_envs:
            raise self._fault("its make gave rows", rows, str(settings.num_envs))
        return PackageWorld(world, self._shown)

    def targets(self, settings: Any | None) -> Mapping[str, int]:
        """Targets that a lesson may mix, each with its number of difficulties."""
        with self._blamed("its targets raised"):
            given = self._inner.targets(settings)
        if not isinstance(given, Mapping) or not given or not all(map(_is_target, given.items())):
            raise self._fault("its targets gave", given, "names, each with a number from 0 on")
        if settings is not None and dict(given) != dict(said := self.spec(settings).difficulties):
            raise self._fault("its targets gave", given, f"the difficulties of its spec, {said}")
        return given

    def default_target(self) -> str:
        """The target that is meant where none is named."""
        return str(self._ask("default_target"))

    def hardest_target(self) -> str:
        """The target on which benchmarks compare learners."""
        return str(self._ask("hardest_target"))

    def baselines(self, settings: Any) -> Mapping[str, MakePlayer]:
        """Scripted players to compare agents with."""
        given = self._ask("baselines", settings)
        if not isinstance(given, Mapping) or not all(map(callable, given.values())):
            raise self._fault("its baselines gave", given, "players by their names")
        return {str(name): self._player(name, make) for name, make in given.items()}

    def _player(self, name: str, make: MakePlayer) -> MakePlayer:
        call = f"{self._shown}: its baseline {name} raised"

        def made(world: BatchWorld, seed: int) -> Act:
            with blamed(call, ForeignCodeError):
                act = make(world.inner if isinstance(world, PackageWorld) else world, seed)

            def acts(observations: Float32Array, starts: BoolArray) -> Float32Array:
                with blamed(call, ForeignCodeError):
                    return act(observations, starts)

            return acts

        return made

    def observation_size(self, settings: Any) -> int:
        """Numbers of an observation."""
        return len(self.spec(settings).observation_names)

    def parameters(self, settings: Any | None) -> Mapping[str, Bounds] | None:
        """Parameters that a lesson may set; None: any."""
        given: Mapping[str, Bounds] | None = self._ask("parameters", settings)
        if given is not None and not (
            isinstance(given, Mapping) and all(isinstance(one, Bounds) for one in given.values())
        ):
            raise self._fault("its parameters gave", given, "Bounds by their names, or None")
        return given

    def parameter_texts(self) -> Mapping[str, str]:
        """What each parameter is, for a person."""
        texts: Mapping[str, str] = self._ask("parameter_texts")
        return texts

    def parameter_fault(self, name: str, value: ParameterValue, settings: Any | None) -> str | None:
        """What is wrong with giving parameter `name` that value."""
        return self._fault_of("parameter_fault", name, value, settings)

    def together_fault(self, given: Mapping[str, ParameterValue], settings: Any) -> str | None:
        """What is wrong with these parameters together."""
        return self._fault_of("together_fault", given, settings)

    def _fault_of(self, call: str, *given: Any) -> str | None:
        """The fault that `call` finds; that it can't find any is one too."""
        try:
            fault = self._ask(call, *given)
        except ConfigurationError as error:
            return str(error).removeprefix("env.world: ")
        return None if fault is None else one_line(str(fault))

    def reward_bound(self, settings: Any) -> float:
        """The largest reward weight; 0: unknown."""
        given = self._ask("reward_bound", settings)
        if not isinstance(given, int | float) or not isfinite(given):
            raise self._fault("its reward_bound gave", given, "a finite number")
        return float(given)

    def warm_up(self, settings: Any) -> None:
        """Compile, or read from a cache, what a first step would have to."""
        self._ask("warm_up", settings)

    def spread_episodes(
        self, world: Any, scenario: Any, *, seed: int, play: Callable[[int], object]
    ) -> None:
        """Begin episodes in all rows."""
        with self._blamed("its spread_episodes raised"):
            self._inner.spread_episodes(world, scenario, seed=seed, play=play)

    def step_parts(self, world: Any, scenario: Any, buffers: Any) -> Mapping[str, Any]:
        """The parts of a step, by name."""
        parts: Mapping[str, Any] = self._ask("step_parts", world, scenario, buffers)
        return parts

    def _ask(self, call: str, *given: Any) -> Any:
        with self._blamed(f"its {call} raised"):
            return getattr(self._inner, call)(*given)

    def _blamed(self, what: str) -> AbstractContextManager[None]:
        return blamed(f"env.world: {self._shown} {what}", ConfigurationError)

    def _fault(self, call: str, got: Any, wanted: str) -> ConfigurationError:
        return ConfigurationError(
            f"env.world: {self._shown}: {call} {_short(got)}; it must give {wanted}"
        )


def _is_target(item: tuple[Any, Any]) -> bool:
    name, count = item
    return isinstance(name, str) and type(count) is int and count >= 0


def _short(value: Any) -> str:
    return shortened(one_line(repr(value)), 80)
