"""An episode as it is kept: how it began, and what was done."""

from collections.abc import Mapping
from dataclasses import dataclass

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.result_lines import EpisodeResult, parse_line
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.single_row import RowArrays

About = Mapping[str, str | int | float]  # what a person should know: run, lesson, step


class ReplayError(LabError):
    """A file that is not a replay, or one that does not play as it was recorded."""


@dataclass(frozen=True)
class RecordedEpisode:
    """What a whole episode depends on, and how it ended."""

    settings: ArenaSettings  # of an arena of one row
    start: RowArrays  # the row as the episode began
    actions: Float32Array  # [N, 4] world actions, one per decision
    line: str  # the result line that the world gave

    @property
    def result(self) -> EpisodeResult:
        """How it ended."""
        result = parse_line(self.line)
        if result == "command":
            raise ReplayError("the replay's result is a command")
        return result


@dataclass(frozen=True)
class Replay:
    """A recorded episode with the hash of its trajectory."""

    episode: RecordedEpisode
    about: About
    trajectory_sha256: str
