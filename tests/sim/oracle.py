"""The arena a second time: one agent, plain Python, written from the rules for reading.

It shares no code with the kernels, only the settings and the names of the parameters. `step`
takes an episode and an action and gives the episode after them; nothing is changed in place.
"""

import math
from dataclasses import replace

from oracle_episode import (
    ATTACK,
    FREE,
    GOTO,
    STAY,
    TERMS,
    Episode,
    Outcome,
    Rules,
    Shot,
    distance_to_fire_base,
    gun_ready,
    inside,
)
from oracle_reward import DISPLACED, reward_terms
from oracle_view import Point, sight

TOUCH = 1e-9  # m, overlap that is let be
PASSES = 4


def step(rules: Rules, episode: Episode, action, angle_error: float = 0.0) -> Outcome:
    """One decision. `angle_error` [rad] turns rays and shot, to find out whether one grazes."""
    vertical, horizontal, attack = (int(number) for number in action[:3])
    limit = rules["mouse_limit"]
    mouse = min(max(float(action[3]), -limit), limit)
    before = episode
    episode = replace(
        episode,
        yaw=wrapped(episode.yaw + mouse * rules["mouse_factor"]),
        mouse=(*episode.mouse, mouse)[-rules.spin_window :],
    )
    x, z = walked(rules, episode, vertical, horizontal)
    episode = replace(episode, x=x, z=z)
    shot = Shot(fired=False, enemy=-1)
    if attack == 1 and gun_ready(episode):
        shot = shoot(rules, episode, angle_error)
        episode = replace(episode, gun_ticks=cooldown_ticks(rules))
    if shot.enemy >= 0:
        hits = list(episode.hits_left)
        hits[shot.enemy] -= 1
        episode = replace(episode, hits_left=tuple(hits))
    episode = replace(
        episode, gun_ticks=episode.gun_ticks - rules.period, decisions=episode.decisions + 1
    )
    won = has_won(rules, episode)
    lost = not won and episode.target != STAY and episode.decisions >= rules.decision_limit
    terms = reward_terms(rules, before, episode, shot, angle_error)
    terms["win"] = rules["rewards.win"] if won else 0.0
    terms["lose"] = rules["rewards.lose"] if lost else 0.0
    sums = tuple(old + terms[name] for old, name in zip(episode.terms, TERMS, strict=True))
    return Outcome(replace(episode, terms=sums), terms, won=won, finished=won or lost)


def wrapped(angle: float) -> float:
    """The same direction in (-pi, pi]."""
    turned = math.remainder(angle, 2 * math.pi)
    return math.pi if turned == -math.pi else turned


def walked(rules: Rules, episode: Episode, vertical: int, horizontal: int) -> Point:
    """Where the agent stands after walking for one decision, tick by tick."""
    place = (episode.x, episode.z)
    ahead = {0: 0, 1: 1, 2: -1}[vertical]
    right = {0: 0, 1: 1, 2: -1}[horizontal]
    if ahead == 0 and right == 0:
        return place
    sin, cos = math.sin(episode.yaw), math.cos(episode.yaw)
    way_x, way_z = ahead * sin + right * cos, ahead * cos - right * sin
    length = math.hypot(way_x, way_z)
    tick_step = rules["move_speed"] * rules["fixed_timestep"]
    parts = max(1, math.ceil(tick_step / (rules["agent_radius"] / 2)))
    stride = tick_step / parts
    for _ in range(rules.period * parts):
        place = moved(rules, episode, place, (way_x / length * stride, way_z / length * stride))
    return place


def moved(rules: Rules, episode: Episode, place: Point, stride: Point) -> Point:
    """The place after one small move that slides along what is in the way."""
    radius = rules["agent_radius"]
    x, z = on_floor(rules, place[0] + stride[0], place[1] + stride[1])
    for _ in range(PASSES):
        pushed = False
        for box in episode.boxes:
            nearest = (min(max(x, box[0]), box[2]), min(max(z, box[1]), box[3]))
            x, z, touched = kept_away(x, z, nearest, radius)
            pushed = pushed or touched
        for centre, hits in zip(episode.enemies, episode.hits_left, strict=True):
            if hits > 0:
                x, z, touched = kept_away(x, z, centre, radius + rules["enemy_radius"])
                pushed = pushed or touched
        x, z = on_floor(rules, x, z)
        if not pushed:
            return x, z
    return place


def on_floor(rules: Rules, x: float, z: float) -> Point:
    """The nearest place where the whole agent is on the floor."""
    low, high = rules["agent_radius"], rules["floor_size"] - rules["agent_radius"]
    return min(max(x, low), high), min(max(z, low), high)


def kept_away(x: float, z: float, point: Point, allowed: float) -> tuple[float, float, bool]:
    """The place at least `allowed` from a point, pushed straight away from it, and whether so."""
    gap_x, gap_z = x - point[0], z - point[1]
    gap = math.hypot(gap_x, gap_z)
    if gap >= allowed - TOUCH:
        return x, z, False
    if gap == 0.0:
        return x, z, True  # no way out is nearer than another: the move will be taken back
    return point[0] + gap_x / gap * allowed, point[1] + gap_z / gap * allowed, True


def cooldown_ticks(rules: Rules) -> int:
    """Physics ticks between two shots."""
    return round(rules["gun_cooldown"] / rules["fixed_timestep"])


def shoot(rules: Rules, episode: Episode, angle_error: float) -> Shot:
    """A shot straight ahead: it hits the nearest thing, if that is a living enemy in range."""
    found = sight(episode, episode.yaw + angle_error, rules["enemy_radius"])
    hit = found.enemy >= 0 and found.distance <= rules["gun_range"]
    return Shot(fired=True, enemy=found.enemy if hit else -1)


def has_won(rules: Rules, episode: Episode) -> bool:
    """Whether the episode's aim is reached."""
    if episode.target == GOTO:
        return distance_to_fire_base(episode) <= rules["goto_win_radius"]
    if episode.target == FREE:
        return all(hits <= 0 for hits in episode.hits_left)
    if episode.target == ATTACK:
        of_block = [i for i, place in enumerate(episode.enemies) if inside(episode, place)]
        return all(episode.hits_left[i] <= 0 for i in of_block)
    return False


def allowed_actions(rules: Rules, episode: Episode) -> list[bool]:
    """The 3 + 3 + 2 mask: whether a move alone leads anywhere, and whether the gun is ready."""
    here = (episode.x, episode.z)
    vertical = [math.dist(here, walked(rules, episode, key, 0)) > DISPLACED for key in (1, 2)]
    horizontal = [math.dist(here, walked(rules, episode, 0, key)) > DISPLACED for key in (1, 2)]
    return [True, *vertical, True, *horizontal, True, gun_ready(episode)]


def observed_head(rules: Rules, episode: Episode) -> list[float]:
    """The 13 numbers of an observation before its rays."""
    x, z, diameter = episode.fire_base or (0.0, 0.0, 0.0)
    time_left = rules["time_limit"] - episode.decisions * rules.decision_seconds
    if episode.decisions >= rules.decision_limit:
        time_left = 0.0
    if episode.target == STAY:
        time_left = rules["time_limit"]
    in_fire_base = float(inside(episode, (episode.x, episode.z)))
    return [
        *(float(episode.target), x, 0.0, z, diameter, in_fire_base),
        *(max(time_left, 0.0), float(gun_ready(episode)), episode.x, 0.0, episode.z),
        *(math.cos(episode.yaw), math.sin(episode.yaw)),
    ]
