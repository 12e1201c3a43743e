"""Which build is meant, how it is started and watched, and what counts as winning."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Literal
from uuid import UUID

from annotated_types import MinLen

from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

TARGET = "task"
"""The one target of a build that names no others."""
Port = Annotated[Int, Ge(1024), Le(65535)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnityWinRule:
    """What counts as a won episode of a build that sends no result lines: one of these."""

    return_above: Annotated[Float, Ge(-1e12), Le(1e12)] | None = None
    """The sum of its rewards is this or more."""
    stat: Annotated[str, MinLen(1)] | None = None
    """The build's stat of this name, sent once for each episode with its end, is above 0.5."""

    def __post_init__(self) -> None:
        given = [one.name for one in fields(self) if getattr(self, one.name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"must have exactly one of return_above, stat (got {', '.join(given) or 'none'})"
            )


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UnitySettings:
    """Agents in as many processes of a build as they need."""

    world: Literal["unity"] = "unity"
    """The world."""
    file_name: Annotated[str, MinLen(1)] | None = None
    """The build's program; null waits for an editor, in which somebody presses Play."""
    env_args: tuple[str, ...] = ()
    """Arguments of the build's own."""
    num_envs: Annotated[Int, Ge(1), Le(65536)] = 8
    """Agents that are stepped together, in as many processes as that takes."""
    threads: Annotated[Int, Ge(1), Le(1024)] = 1
    """No effect: a build has threads of its own. So a curriculum of another world needs no change
    but its world."""
    behavior: Annotated[str, MinLen(1)] | None = None
    """The behavior that learns, without its team; only needed where a build has several."""
    targets: Mapping[str, Annotated[Int, Ge(0), Le(100)]] | None = None
    """Targets that result lines and lessons name, each with its number of difficulties (0: has
    none). Left out, what the build says, or one target `task`."""
    win: UnityWinRule | None = None
    """What counts as won; left out, result lines say it."""
    log_channel: str = str(STRING_LOG)
    """Id of the side channel that result lines come over."""
    no_graphics: Bool = True
    """Whether the build runs without pictures."""
    timeout_wait: Annotated[Float, Gt(0), Le(1e6)] = 60.0
    """Seconds that a build may take for a start or a step; then it counts as hanging."""
    base_port: Port | None = None
    """Process i calls at this port + i; left out, any that is free. An editor calls at 5004."""
    log_folder: Annotated[str, MinLen(1)] | None = None
    """Folder for the builds' logs, Player-0.log and so on."""
    max_lifetime_restarts: Annotated[Int, Ge(-1), Le(10**9)] = 10
    """How often a process that was killed or hangs is started again; -1: always."""
    restarts_rate_limit_n: Annotated[Int, Ge(-1), Le(10**9)] = 1
    """How often of it within `restarts_rate_limit_period_s`; -1: always."""
    restarts_rate_limit_period_s: Annotated[Float, Gt(0), Le(1e9)] = 60.0
    """Seconds."""
    width: Annotated[Int, Ge(1), Le(65536)] = 84
    """Width of the screen in pixels."""
    height: Annotated[Int, Ge(1), Le(65536)] = 84
    """Height of the screen in pixels."""
    quality_level: Annotated[Int, Ge(0), Le(100)] = 5
    """Quality of the pictures."""
    time_scale: Annotated[Float, Gt(0), Le(100)] = 20.0
    """Seconds of the game in one of the clock."""
    target_frame_rate: Annotated[Int, Ge(-1), Le(10**6)] = -1
    """Pictures a second; -1: as many as possible."""
    capture_frame_rate: Annotated[Int, Ge(0), Le(10**6)] = 60
    """Pictures in a second of the game; 0: as the clock says."""

    def __post_init__(self) -> None:
        if self.targets is not None and not self.targets:
            raise ValueError("targets must name at least one")
        try:
            UUID(self.log_channel)
        except ValueError:
            raise ValueError(
                f"log_channel must be an id such as {STRING_LOG} (got {self.log_channel!r:.60})"
            ) from None
