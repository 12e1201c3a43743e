"""Builds of ML-Agents as a kind of world: what is known before one is played."""

from collections.abc import Mapping
from dataclasses import replace

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import NamedCode, named_code, require_allowed
from aimbot_lab.foundation.settings import ParameterValue
from aimbot_lab.foundation.world import BatchWorld, WorldSpec
from aimbot_lab.foundation.world_type import AskedType
from aimbot_lab.worlds.unity.settings import TARGET, BuildShape, UnitySettings, world_spec


class UnityType(AskedType):
    """Agents of a build that speaks ML-Agents' protocol."""

    name = "unity"
    settings = UnitySettings
    in_scenes = True
    shape_keys = ("file_name", "env_args", "behavior", "targets")

    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[str, BuildShape] = {}

    def shape(self, settings: UnitySettings) -> BuildShape:
        """What a process of the build is; one is started for it, the first time.

        Raises ConfigurationError where it can't be started or understood.
        """
        asked = self.shape_of(settings)
        key = repr(asked)
        require_allowed(self.code(settings))
        if key not in self._shapes:
            from aimbot_lab.worlds.unity.channels import probe

            self._shapes[key] = probe(asked)
        shape = self._shapes[key]
        if settings.file_name is None and settings.num_envs > shape.agents:
            raise ConfigurationError(
                f"env.num_envs: the editor's scene has {shape.agents} agents, and there is but one "
                f"editor: set it to {shape.agents} or less, or name a build (env.file_name)"
            )
        return shape

    def code(self, settings: UnitySettings) -> NamedCode:
        """The build's program with its arguments; without one an editor that is waited for."""
        name = settings.file_name
        parts = {key: getattr(settings, key) for key in ("file_name", "env_args", "log_folder")}
        noun = "program" if name else "editor"
        return named_code("env.file_name", noun, name or "that is waited for", parts=parts)

    def shape_of(self, settings: UnitySettings) -> UnitySettings:
        """What decides what its agents observe and do."""
        kept = settings.win if settings.win == "none" else None
        return replace(settings, num_envs=1, threads=1, win=kept)

    def asked_spec(self, settings: UnitySettings) -> WorldSpec:
        """The shape of its agents."""
        return world_spec(self.shape(settings), settings)

    def made(self, settings: UnitySettings) -> BatchWorld:
        """The agents; processes start with the first reset."""
        from aimbot_lab.worlds.unity.world import UnityWorld

        return UnityWorld(settings, self.shape(settings))

    def targets(self, settings: UnitySettings | None) -> Mapping[str, int]:
        """Those of the settings, of the build, or one without difficulties."""
        if settings is None:
            return {TARGET: 0}
        return settings.targets or self.spec(settings).difficulties

    def parameter_fault(
        self, name: str, value: ParameterValue, settings: UnitySettings | None
    ) -> str | None:
        """Whether the build has a parameter of that name, where it says which it has."""
        del value
        known = () if settings is None else self.spec(settings).parameters
        if not known or name in known:
            return None
        return f"the build has no parameter of that name (it has {', '.join(known)})"


UNITY = UnityType()
