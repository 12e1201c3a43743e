"""The enemies that the oracle's agent is shown: those in sight, the nearest six, left to right."""

import math

from oracle_episode import ATTACK, FREE, Episode, Rules
from oracle_view import enemies_in_sight

HEAD, SLOTS, COLUMNS = 13, 6, 30
PLACE = 4e-6  # m, two units in the last place of single precision at 30


def enemy_rows(rules: Rules, episode: Episode, angle_error: float) -> list[list[float]]:
    """(seen, ahead, right, share of hits left, is a target) of each enemy shown."""
    eye = (episode.x, episode.z)
    seen = enemies_in_sight(rules, episode, angle_error)
    nearest = sorted(seen, key=lambda k: math.dist(eye, episode.enemies[k]))[:SLOTS]
    rows = []
    for k in nearest:
        away = math.dist(eye, episode.enemies[k])
        bearing = math.remainder(
            math.atan2(episode.enemies[k][0] - eye[0], episode.enemies[k][1] - eye[1])
            - episode.yaw,
            2 * math.pi,
        )
        share = episode.hits_left[k] / round(rules["enemy_hits_to_kill"])
        counts = episode.target == FREE or (episode.target == ATTACK and episode.targets[k])
        place = away * math.cos(bearing), away * math.sin(bearing)
        rows.append((bearing, [1.0, *place, share, float(counts)]))
    return [row for _, row in sorted(rows)]


def shown_rows(observation) -> list[list[float]]:
    """The same, read from an observation by the documented layout; empty slots are all 0."""
    columns = [float(number) for number in observation[HEAD : HEAD + COLUMNS]]
    rows = [[columns[4 * SLOTS + slot], *columns[4 * slot : 4 * slot + 4]] for slot in range(SLOTS)]
    taken = [row for row in rows if row[0] == 1.0]
    assert rows == taken + [[0.0] * 5] * (SLOTS - len(taken))
    return taken


def agree(shown: list[list[float]], wanted: list[list[float]]) -> bool:
    """Whether both show the same enemies at the same places."""
    if len(shown) != len(wanted):
        return False
    rows = zip(shown, wanted, strict=True)
    return all(abs(a - b) <= PLACE for row in rows for a, b in zip(*row, strict=True))


def check_enemies(rules: Rules, episode: Episode, observation, *, error: float) -> bool:
    """Whether a ray that grazes decides what is shown; fails where the oracle sees others."""
    shown = shown_rows(observation)
    if agree(shown, enemy_rows(rules, episode, 0.0)):
        return False
    near = [enemy_rows(rules, episode, turned) for turned in (error, -error)]
    wanted = enemy_rows(rules, episode, 0.0)
    assert any(agree(shown, rows) for rows in near), f"{shown} not {wanted} in {episode}"
    return True
