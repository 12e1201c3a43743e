"""The duel a second time: two agents in one hall, plain Python, written from the rules.

It shares no code with the kernels, only geometry with the arena's oracle, and knows no frames: both
agents stand in the home agent's coordinates. `Hall` holds what stands, `Fighter` who fights.
"""

import math
from dataclasses import dataclass, field

from tests.arena.oracle_view import disc_distance, distance_to_half_line, wall_distance, walls_of

Point = tuple[float, float]
SIDE = 30.0  # m
TOUCH = 1e-9  # m of overlap that is let be
TIE = 1e-11  # m between depths that are equal but for rounding
TRIES = 12  # looks whether a place is free, before a tick's walk is given up


@dataclass
class Fighter:
    """One agent, in the hall's coordinates."""

    x: float
    z: float
    yaw: float
    health: int
    traits: dict[str, float]
    gun_ticks: int = 0
    mouse: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=lambda: [0.0] * 4)
    moved: bool = False
    hit_from: Point = (0.0, 0.0)
    own: dict[str, float] = field(default_factory=dict)

    @property
    def place(self) -> Point:
        return self.x, self.z


@dataclass
class Rules:
    boxes: list[tuple[float, float, float, float]]
    weights: dict[str, float]
    period: int
    timestep: float
    time_limit: float
    window: int
    middle_rays: int
    side_rays: int  # on each side
    health_decides: bool


def wrapped(angle: float) -> float:
    turned = math.remainder(angle, 2 * math.pi)
    return math.pi if turned == -math.pi else turned


def decide(rules: Rules, fighters: list[Fighter], actions, decisions: int, error: float = 0.0):
    """Both after one decision; +1, 0 or -1 for home where it ended the match, else None.

    `error` [rad] turns rays and shots, to find out whether one grazes.
    """
    for one, action in zip(fighters, actions, strict=True):
        if decisions % int(one.traits["decision_every"]) == 0:
            one.held = [float(number) for number in action]
        limit = one.traits["mouse_limit"]
        mouse = min(max(one.held[3], -limit), limit)
        one.yaw = wrapped(one.yaw + mouse * one.traits["mouse_factor"])
        one.mouse = [*one.mouse, mouse][-rules.window :]
    walk(rules, fighters)
    hits = [fire(rules, one, other, error) for one, other in pairs(fighters)]
    for (one, other), hit_by in zip(pairs(fighters), hits[::-1], strict=True):
        one.hit_from = (0.0, 0.0)
        if hit_by:
            one.health = max(one.health - int(other.traits["damage"]), 0)
            bearing = math.atan2(other.x - one.x, other.z - one.z) - one.yaw
            one.hit_from = (math.cos(bearing), math.sin(bearing))
        one.gun_ticks = max(one.gun_ticks - rules.period, 0)
    result = outcome(rules, fighters, decisions + 1)
    for (one, other), hit, sign in zip(pairs(fighters), hits, (1, -1), strict=True):
        one.own = own_terms(rules, one, other, hit, error)
        one.own["win"] = rules.weights["win"] if result == sign else 0.0
    return result


def pairs(fighters: list[Fighter]):
    home, away = fighters
    return ((home, away), (away, home))


def walk(rules: Rules, fighters: list[Fighter]) -> None:
    """Tick by tick; where the two would overlap afterwards, neither moves in that tick."""
    before = [one.place for one in fighters]
    for _ in range(rules.period):
        aims = [
            tick(rules, one, other, boxes)
            for (one, other), boxes in zip(pairs(fighters), orders(rules), strict=True)
        ]
        reach = sum(one.traits["agent_radius"] for one in fighters)
        if math.dist(*aims) >= reach - TOUCH:
            for one, (x, z) in zip(fighters, aims, strict=True):
                one.x, one.z = x, z
    for one, place in zip(fighters, before, strict=True):
        one.moved = math.dist(one.place, place) > 1e-6


def orders(rules: Rules):
    """The boxes in the order of each agent's frame, in which the list is the same."""
    turned = [tuple(SIDE - side for side in (*box[2:], *box[:2])) for box in rules.boxes]
    return rules.boxes, turned


def tick(rules: Rules, one: Fighter, other: Fighter, boxes) -> Point:
    """Where a tick leads: to its aim, pushed out of what it is deepest in until it is free.

    One that is not found free in 12 looks is not made.
    """
    ahead, right = ({0: 0, 1: 1, 2: -1}[int(key)] for key in one.held[:2])
    if ahead == 0 and right == 0:
        return one.place
    sin, cos = math.sin(one.yaw), math.cos(one.yaw)
    way = ahead * sin + right * cos, ahead * cos - right * sin
    stride = one.traits["move_speed"] * rules.timestep / math.hypot(*way)
    radius = one.traits["agent_radius"]
    place = kept(one.x + way[0] * stride, radius), kept(one.z + way[1] * stride, radius)
    for _ in range(TRIES):
        point, reach = deepest(place, boxes, other, radius)
        if reach - math.dist(place, point) <= TOUCH:
            return place
        if point == place:
            break
        place = pushed(place, point, reach, radius)
    return one.place


def deepest(place: Point, boxes, other: Fighter, radius: float) -> tuple[Point, float]:
    """What a disc at `place` is deepest in: its nearest point, and how far away it must be.

    Of equals a box before the other agent, and of boxes the first.
    """
    things = [(nearest_of(box, place), radius) for box in boxes]
    things.append((other.place, radius + other.traits["agent_radius"]))
    depths = [reach - math.dist(place, point) for point, reach in things]
    return next(
        thing for thing, depth in zip(things, depths, strict=True) if depth >= max(depths) - TIE
    )


def pushed(place: Point, point: Point, reach: float, radius: float) -> Point:
    """`place` moved straight away from `point`, to `reach` metres from it."""
    share = reach / math.dist(place, point)
    x = point[0] + (place[0] - point[0]) * share
    z = point[1] + (place[1] - point[1]) * share
    return kept(x, radius), kept(z, radius)


def kept(number: float, radius: float) -> float:
    return min(max(number, radius), SIDE - radius)


def nearest_of(box, place: Point) -> Point:
    return min(max(place[0], box[0]), box[2]), min(max(place[1], box[1]), box[3])


def fire(rules: Rules, one: Fighter, other: Fighter, error: float) -> bool:
    """Whether a shot is fired and hits; each is judged before any wounds."""
    if one.held[2] != 1 or one.gun_ticks > 0:
        return False
    one.gun_ticks = round(one.traits["gun_cooldown"] / rules.timestep)
    tag, metres = look(rules, one, other, one.yaw + error)
    return tag == 2 and metres <= one.traits["gun_range"]


def look(rules: Rules, one: Fighter, other: Fighter, angle: float) -> tuple[int, float]:
    """Tag and metres of what a ray without end meets: 0 a wall or box, 2 the other."""
    nearest = wall_distance(one.place, angle, walls_of(SIDE, rules.boxes))
    if other.health > 0:
        metres = disc_distance(one.place, angle, other.place, other.traits["agent_radius"])
        if metres < nearest:
            return 2, metres
    return 0, nearest


def rays(rules: Rules, one: Fighter, other: Fighter, error: float = 0.0):
    """(tag, metres) of every ray, (-1, 0) beyond the range."""
    seen = [look(rules, one, other, one.yaw + angle + error) for angle in fan(rules, one)]
    reach = one.traits["rays.range"]
    return [(tag, metres) if metres <= reach else (-1, 0.0) for tag, metres in seen]


def fan(rules: Rules, one: Fighter) -> list[float]:
    """Angles of the rays to the view's middle, left to right."""
    half = math.radians(one.traits["rays.view_angle"]) / 2
    inner, arm = half * one.traits["rays.middle_share"], rules.middle_rays // 2
    right = [inner * k / arm for k in range(1, arm + 1)]
    right += [inner + (half - inner) * k / rules.side_rays for k in range(1, rules.side_rays + 1)]
    return [*(-angle for angle in reversed(right)), 0.0, *right]


def own_terms(rules: Rules, one: Fighter, other: Fighter, hit: bool, error: float):
    """What one earned by itself in this decision, the result apart."""
    net = abs(math.fsum(mouse * one.traits["mouse_factor"] for mouse in one.mouse))
    spin = -one.traits["spin_rate"] * abs(one.mouse[-1])
    if net >= one.traits["spin_threshold"] - 1e-9:
        spin = -net
    facing = 0.0
    if any(tag == 2 for tag, _ in rays(rules, one, other, error)):
        away = distance_to_half_line(one.place, one.yaw, other.place)
        facing = 2.0 if away <= one.traits["facing_distance"] else 1 / math.sqrt(away / 2)
    return {
        "hit": rules.weights["hit"] if hit else 0.0,
        "facing": rules.weights["facing"] * facing,
        "spin_penalty": rules.weights["spin_penalty"] * spin,
        "move_penalty": rules.weights["move_penalty"] if one.moved else 0.0,
    }


def outcome(rules: Rules, fighters: list[Fighter], decisions: int) -> int | None:
    """1 home won, 0 draw, -1 home lost, None: it goes on."""
    home, away = (one.health for one in fighters)
    if home > 0 and away > 0:
        limit = int(rules.time_limit / (rules.period * rules.timestep) + 1e-6)
        if decisions < limit:
            return None
        if not rules.health_decides:
            return 0
    return (home > away) - (home < away)
