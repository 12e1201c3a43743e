"""An episode as it is kept: how it began, and what was done."""

from collections.abc import Mapping
from dataclasses import dataclass

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.replays import RowArrays, WorldReplays
from aimbot_lab.foundation.result_lines import EpisodeResult, parse_line
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.worlds.registry import spec_of, type_of

About = Mapping[str, str | int | float]  # what a person should know: run, lesson, step


class ReplayError(LabError):
    """A file that is not a replay, or one that does not play as it was recorded."""


class ReplayFileError(ReplayError):
    """A file that the user named and that can't be played."""

    exit_code = 2


class OtherContentError(ReplayError):
    """What the replay's world was made of is another now."""


@dataclass(frozen=True)
class RecordedEpisode:
    """What a whole episode depends on, and how it ended."""

    settings: WorldSettings  # of a world of one row
    start: RowArrays  # the row as the episode began
    actions: Float32Array  # [N, agents x A] world actions, one agent's after another's
    line: str  # the result line of the first agent

    @property
    def result(self) -> EpisodeResult:
        """How it ended."""
        result = parse_line(self.line)
        if result == "command":
            raise ReplayError("the replay's result is a command")
        return result

    @property
    def spec(self) -> WorldSpec:
        """The shape of its world."""
        return spec_of(self.settings)

    @property
    def frame_seconds(self) -> float:
        """Of a film to a decision."""
        return self.world.frame_seconds(self.spec)

    @property
    def world(self) -> WorldReplays:
        """What its world says of replays. Raises ReplayError where the world has none."""
        return replays_of(self.settings)


def replays_of(settings: WorldSettings) -> WorldReplays:
    """What the world of `settings` says of replays. Raises ReplayError where it has none."""
    found = type_of(settings).replays
    if found is None:
        raise ReplayError(f"the world {settings.world} has no replays: its episodes can't be kept")
    return found


@dataclass(frozen=True)
class Replay:
    """A recorded episode with the hash of its trajectory."""

    episode: RecordedEpisode
    about: About
    trajectory_sha256: str
