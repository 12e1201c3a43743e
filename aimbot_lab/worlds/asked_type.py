"""A kind of world that has to be made, or started, before anyone knows its shape."""

from abc import abstractmethod
from typing import Any

from aimbot_lab.foundation.named_code import is_allowed, require_allowed
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.foundation.world_type import WorldType


class AskedType(WorldType):
    """A world of code that its settings name.

    Where that code may not run, its shape is the one that was kept when it last ran.
    """

    bounds_are_ranges = False

    def __init__(self) -> None:
        self._kept: dict[str, WorldSpec] = {}

    @abstractmethod
    def asked_spec(self, settings: Any) -> WorldSpec:
        """The shape of the world with `settings`, which is made for it."""

    @abstractmethod
    def made(self, settings: Any) -> BatchWorld:
        """The world with `settings`, not yet reset."""

    @abstractmethod
    def shape_of(self, settings: Any) -> Any:
        """What of `settings` decides its shape."""

    def spec(self, settings: Any) -> WorldSpec:
        """The shape of the world with `settings`.

        Raises UntrustedCodeError where nothing was kept and its code may not run here, and
        ConfigurationError where it can't be made.
        """
        kept = self._kept.get(repr(self.shape_of(settings)))
        code = self.code(settings)
        if kept is not None and not is_allowed(code):
            return kept
        require_allowed(code)
        return self.asked_spec(settings)

    def make(self, settings: Any) -> BatchWorld:
        """The world with `settings`, not yet reset; raises as `spec` does."""
        require_allowed(self.code(settings))
        return self.made(settings)

    def keep_spec(self, settings: Any, spec: WorldSpec) -> None:
        """Take `spec` for the shape of the world with `settings` where its code may not run."""
        self._kept[repr(self.shape_of(settings))] = spec

    def knows_spec(self, settings: Any) -> bool:
        """Whether `spec` runs nothing that this process may not run."""
        return is_allowed(self.code(settings)) or repr(self.shape_of(settings)) in self._kept
