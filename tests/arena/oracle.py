"""The arena a second time: one agent, plain Python, written from the rules for reading.

It shares no code with the kernels, only the settings and the names of the parameters. `step`
takes an episode and an action and gives the episode after them; nothing is changed in place.
"""

import math
from dataclasses import replace

from oracle_episode import (
    ATTACK,
    COUNTS,
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
    held,
    inside,
)
from oracle_reward import DISPLACED, decision_counts, reward_terms
from oracle_view import Point, sight
from oracle_walk import walked

STANDING = (0, 0, 0, 0.0)


def step(rules: Rules, episode: Episode, action, angle_error: float = 0.0) -> Outcome:
    """One decision. `angle_error` [rad] turns rays and shot, to find out whether one grazes."""
    if held(rules, episode):
        action = STANDING
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
    more = decision_counts(rules, before, episode, shot, angle_error)
    counts = tuple(old + more[name] for old, name in zip(episode.counts, COUNTS, strict=True))
    ended = won or lost
    after = replace(episode, terms=sums, counts=counts)
    return Outcome(after, terms, won=won, finished=ended)


def wrapped(angle: float) -> float:
    """The same direction in (-pi, pi]."""
    turned = math.remainder(angle, 2 * math.pi)
    return math.pi if turned == -math.pi else turned


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
        pairs = zip(episode.targets, episode.hits_left, strict=True)
        return all(hits <= 0 for is_target, hits in pairs if is_target)
    return False


def allowed_actions(rules: Rules, episode: Episode) -> list[bool]:
    """The 3 + 3 + 2 mask: whether a move alone leads anywhere, and whether the gun is ready.

    One that is held can do nothing.
    """
    if held(rules, episode):
        return [True, False, False, True, False, False, True, False]
    vertical = [leads_away(episode, walked(rules, episode, key, 0)) for key in (1, 2)]
    horizontal = [leads_away(episode, walked(rules, episode, 0, key)) for key in (1, 2)]
    return [True, *vertical, True, *horizontal, True, gun_ready(episode)]


def leads_away(episode: Episode, place: Point) -> bool:
    """Whether a walk to a place displaces the agent."""
    return math.dist((episode.x, episode.z), place) > DISPLACED


def observed_head(rules: Rules, episode: Episode) -> list[float]:
    """The 13 numbers of an observation before its rays."""
    hidden = rules["recall_seconds"] > 0 and not held(rules, episode)
    x, z, diameter = (0.0, 0.0, 0.0) if hidden else episode.fire_base or (0.0, 0.0, 0.0)
    time_left = rules["time_limit"] - episode.decisions * rules.decision_seconds
    if episode.decisions >= rules.decision_limit:
        time_left = 0.0
    if episode.target == STAY:
        time_left = rules["time_limit"]
    in_fire_base = float(not hidden and inside(episode, (episode.x, episode.z)))
    return [
        *(float(episode.target), x, 0.0, z, diameter, in_fire_base),
        *(max(time_left, 0.0), float(gun_ready(episode)), episode.x, 0.0, episode.z),
        *(math.cos(episode.yaw), math.sin(episode.yaw)),
    ]
