"""A row at one moment as plain numbers, for a page that draws it from above or from within."""

from dataclasses import dataclass

WALL, ENEMY, NOTHING = 0, 1, -1  # what a ray hits


@dataclass(frozen=True)
class Body:
    """A disc that stands on the floor."""

    x: float  # m
    z: float
    radius: float
    hits_left: int  # 0: it is down
    counts: bool  # whether it is a target


@dataclass(frozen=True)
class Fighter:
    """One of the two agents of a match, in the frame of the first."""

    x: float  # m
    z: float
    yaw: float
    radius: float
    view_angle: float  # degrees
    health: int  # hits left; 0: it is down
    max_health: int
    ready: bool  # whether it can shoot
    reload_seconds: float  # until it can
    fired: bool  # in the last decision
    hit: bool  # whether that shot met the other
    rays: tuple[tuple[float, float, int], ...]  # as those of a `SceneView`


@dataclass(frozen=True)
class SceneView:
    """A row of a world on a square floor: metres, x to the right, z up, yaw right of z in rad."""

    size: float  # side of the floor
    x: float  # of the agent
    z: float
    yaw: float
    radius: float
    view_angle: float  # degrees
    ready: bool  # whether it can shoot
    boxes: tuple[tuple[float, float, float, float], ...]  # min x, min z, max x, max z
    plots: tuple[tuple[float, float, float, float], ...]  # marked squares, as boxes
    circle: tuple[float, float, float] | None  # x, z, radius of what is to be reached
    bodies: tuple[Body, ...]
    rays: tuple[tuple[float, float, int], ...]  # angle to the view, length, WALL, ENEMY or NOTHING
    ray_range: float  # m, the length of those that meet nothing
    target: str  # for a person
    goal: str  # what is left to do
    seconds_left: float | None  # None: there is no end
    fired: bool = False  # in the last decision
    hit: int = -1  # the body that the shot met, -1: none
    fighters: tuple[Fighter, ...] = ()  # of a match both agents, the one above first
