"""What the oracle's agent earns, term by term."""

import math

from oracle_episode import (
    ATTACK,
    COUNTS,
    FREE,
    GOTO,
    TERMS,
    Episode,
    Rules,
    Shot,
    distance_to_fire_base,
    inside,
)
from oracle_view import disc_distance, distance_to_half_line, enemies_in_sight, wall_distance

DISPLACED = 1e-6  # m, from which a decision counts as a move
SPIN_ROUNDING = 1e-9  # rad; 25 turns of 0.4 rad are 10 rad, whatever binary fractions say


def reward_terms(
    rules: Rules, before: Episode, after: Episode, shot: Shot, angle_error: float
) -> dict[str, float]:
    """Every reward term of one decision but win and lose, by its name."""
    terms = dict.fromkeys(TERMS, 0.0)
    if shot.enemy >= 0:
        is_target = after.target == FREE or (after.target == ATTACK and after.targets[shot.enemy])
        name = "target_hit" if is_target else "non_target_hit"
        terms[name] = rules[f"rewards.{name}"]
    if math.dist((before.x, before.z), (after.x, after.z)) > DISPLACED:
        terms["move_penalty"] = rules["rewards.move_penalty"]
    terms["spin_penalty"] = rules["rewards.spin_penalty"] * spin_formula(rules, after)
    if after.target == FREE:
        terms["facing"] = rules["rewards.facing"] * facing_formula(rules, after, angle_error)
    if after.target == GOTO:
        if inside(after, (after.x, after.z)):
            terms["in_area"] = rules["rewards.in_area"]
        else:
            nearer = distance_to_fire_base(before) - distance_to_fire_base(after)
            terms["distance"] = rules["rewards.distance"] * nearer
    if after.target == ATTACK and view_line_crosses_fire_base(rules, after):
        name = "suppressive" if shot.fired else "facing_area"
        terms[name] = rules[f"rewards.{name}"]
    return terms


def decision_counts(
    rules: Rules, before: Episode, after: Episode, shot: Shot, angle_error: float
) -> dict[str, int]:
    """What one decision adds to each count of an episode, by its name."""
    del rules, before, after, shot, angle_error  # which a count may need
    return dict.fromkeys(COUNTS, 0)


def spin_formula(rules: Rules, episode: Episode) -> float:
    """The penalty for turning, before its weight."""
    net_turn = abs(math.fsum(mouse * rules["mouse_factor"] for mouse in episode.mouse))
    if net_turn >= rules["spin_threshold"] - SPIN_ROUNDING:
        return -net_turn
    return -rules["spin_rate"] * abs(episode.mouse[-1])


def facing_formula(rules: Rules, episode: Episode, angle_error: float) -> float:
    """How well the view points at the detected enemy nearest to its line; 0 to 2."""
    distances = [
        distance_to_half_line((episode.x, episode.z), episode.yaw, episode.enemies[i])
        for i in enemies_in_sight(rules, episode, angle_error)
    ]
    if not distances:
        return 0.0
    nearest = min(distances)
    return 2.0 if nearest <= rules["facing_distance"] else 1.0 / math.sqrt(nearest / 2.0)


def view_line_crosses_fire_base(rules: Rules, episode: Episode) -> bool:
    """Whether the line ahead meets the circle, before an obstacle if obstacles stop it."""
    eye = (episode.x, episode.z)
    x, z, diameter = episode.fire_base
    reach = math.inf
    if rules["line_stopped_by_obstacles"]:
        reach = wall_distance(eye, episode.yaw, episode.walls)
    entry = disc_distance(eye, episode.yaw, (x, z), diameter / 2)
    return entry < math.inf and entry <= reach
