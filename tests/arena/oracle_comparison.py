"""The arena and the oracle side by side: every number of every step is compared.

Discrete values must be equal. Floats may differ by the tolerances below, which allow for rays in
single precision: a ray's length must be one that the oracle finds within AIM of its direction. A
ray or shot that grazes an edge may fall on either side of it: such a value is let pass only if
the oracle itself gives it when all is turned by AIM, and is counted.
"""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np
from oracle import allowed_actions, observed_head, step
from oracle_episode import ATTACK, COUNTS, FREE, STAY, TERMS, Episode, Outcome, Rules, held
from oracle_view import (
    ENEMY_TAG,
    NOTHING_TAG,
    Sight,
    enemies_in_sight,
    ray_sights,
    rays_of_observation,
    sight,
)

from aimbot_lab.foundation.episodes import parse_result, result_line

PLACE = 1e-9  # m, of the agent's position in the state after one decision; rad, of its yaw
SINGLE = 4e-6  # m, s: two units in the last place of single precision at 30
RAY = 2e-5  # m, of a ray's length
AIM = 1e-6  # rad
EDGE = 0.01  # m, by which lengths differ when a ray turns by AIM across an edge
TERM = 1e-5  # of a reward term's sum, beside 1e-9 of its size
HEAD, SLOTS, COLUMNS = 13, 6, 30  # of an observation
DISCRETE_HEAD = (0, 2, 5, 7, 9)  # target, y, in FireBase, gun ready, y


class Seen(NamedTuple):
    """What the arena shows of one row after a step."""

    reward: float
    finished: bool
    observation: np.ndarray  # the last one where finished
    state: object  # ArenaState, already that of the next episode where finished
    row: int
    batch: object  # EpisodeBatch


def judge(rules: Rules, episode: Episode, action, seen: Seen, tally: Counter) -> Outcome:
    """The oracle's outcome of a step; fails where the arena shows anything else."""
    outcome = step(rules, episode, action)
    faults = differences(rules, outcome, seen)
    for error in (AIM, -AIM):
        if faults:
            turned = step(rules, episode, action, angle_error=error)
            if not differences(rules, turned, seen):
                outcome, faults = turned, []
                tally["grazing outcomes"] += 1
    assert not faults, f"{faults} in row {seen.row} after {action} in {episode}"
    check_observation(rules, outcome.episode, seen.observation, tally)
    return outcome


def differences(rules: Rules, outcome: Outcome, seen: Seen) -> list[str]:
    """Where the arena's outcome of a step is not the oracle's."""
    wanted = {"finished": (seen.finished, outcome.finished)}
    near = {"reward": (seen.reward, sum(outcome.terms.values()))}
    if seen.finished:
        return _unequal(wanted, near, {}) or _ended_differences(rules, outcome, seen)
    state, row, episode = seen.state, seen.row, outcome.episode
    wanted["decisions"] = int(state.decisions[row]), episode.decisions
    wanted["gun ready"] = bool(state.gun_ticks[row] <= 0), episode.gun_ticks <= 0
    hits = tuple(int(left) for left in state.enemy_hits_left[row, : len(episode.enemies)])
    wanted["hits left"] = hits, episode.hits_left
    x, z = state.position[row]
    place = {"x": (x, episode.x), "z": (z, episode.z), "yaw": (state.yaw[row], episode.yaw)}
    sums = (*episode.terms, *episode.counts)
    for name, ours, theirs in zip((*TERMS, *COUNTS), sums, state.terms[row], strict=True):
        near[name] = float(theirs), ours
    return _unequal(wanted, near, place)


def _unequal(wanted, near, place) -> list[str]:
    faults = [f"{name}: {a} not {b}" for name, (a, b) in wanted.items() if a != b]
    for name, (a, b) in near.items():
        single = 1e-6 * abs(b) if name == "reward" else 0.0
        if not abs(a - b) <= TERM + 1e-9 * abs(b) + single:
            faults.append(f"{name}: {a} not {b}")
    for name, (a, b) in place.items():
        gap = math.remainder(a - b, 2 * math.pi) if name == "yaw" else a - b
        if not abs(gap) <= PLACE:
            faults.append(f"{name}: {a} not {b}")
    return faults


def _ended_differences(rules: Rules, outcome: Outcome, seen: Seen) -> list[str]:
    batch, episode = seen.batch, outcome.episode
    index = list(batch.row).index(seen.row)
    result = parse_result(result_line(batch, index))
    names = {0: "free", 1: "goto", 2: "attack"}
    wanted = {
        "won": (result.won, outcome.won),
        "target": (result.target, names[episode.target]),
        "difficulty": (result.difficulty, episode.difficulty or None),
        "length": (int(batch.length[index]), episode.decisions),
        "seconds": (result.seconds, round(episode.decisions * rules.decision_seconds + 1e-9, 1)),
    }
    near = {
        name: (float(theirs), ours)
        for name, ours, theirs in zip(TERMS, episode.terms, batch.terms[index], strict=True)
    }
    near["return"] = result.episode_return, sum(episode.terms)
    for name, count in zip(COUNTS, episode.counts, strict=True):
        wanted[name] = float(batch.columns[name][index]), count
    return _unequal(wanted, near, {})


def check_observation(rules: Rules, episode: Episode, observation, tally: Counter) -> None:
    """Fail where an observation is not what the oracle's agent would see."""
    assert observation.dtype == np.float32
    head = observed_head(rules, episode)
    for index, (there, here) in enumerate(zip(observation[:13], head, strict=True)):
        if index in DISCRETE_HEAD:
            assert there == here, f"observation {index}: {there} not {here} in {episode}"
        assert abs(float(there) - here) <= SINGLE, f"observation {index}: {there} not {here}"
    if rules.units:
        tally["grazing rays"] += check_enemies(rules, episode, observation, error=AIM)
        observation = np.delete(observation, range(HEAD, HEAD + COLUMNS))
    tags, distances = rays_of_observation(observation, rules.fan)
    for ray, met in enumerate(ray_sights(rules, episode)):
        tag, distance = within_range(rules, met)
        tally["rays"] += 1
        tally[f"tag {tag}"] += 1
        if tags[ray] != tag or abs(distances[ray] - distance) > RAY:
            near = sights_around(rules, episode, episode.yaw + rules.fan.angles[ray])
            assert is_among(rules, episode, near, (tags[ray], distances[ray])), (
                f"ray {ray}: {tags[ray]}, {distances[ray]} not {tag}, {distance} in {episode}"
            )
            tally["grazing rays"] += is_edge(near) or tags[ray] != tag


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
    return all(abs(a - b) <= SINGLE for row in rows for a, b in zip(*row, strict=True))


def check_enemies(rules: Rules, episode: Episode, observation, *, error: float) -> bool:
    """Whether a ray that grazes decides what is shown; fails where the oracle sees others."""
    shown = shown_rows(observation)
    if agree(shown, enemy_rows(rules, episode, 0.0)):
        return False
    near = [enemy_rows(rules, episode, turned) for turned in (error, -error)]
    wanted = enemy_rows(rules, episode, 0.0)
    assert any(agree(shown, rows) for rows in near), f"{shown} not {wanted} in {episode}"
    return True


def check_mask(rules: Rules, episode: Episode, mask) -> None:
    """Fail where an action mask is not the oracle's."""
    wanted = allowed_actions(rules, episode)
    assert mask.tolist() == wanted, f"{mask} not {wanted} in {episode}"


def within_range(rules: Rules, met: Sight) -> tuple[int, float]:
    """Tag and distance as an observation gives them."""
    return (met.tag, met.distance) if met.distance <= rules["rays.range"] else (NOTHING_TAG, 0.0)


def sights_around(rules: Rules, episode: Episode, angle: float) -> list[Sight]:
    """What rays a little to the left and right of a direction, and in it, would meet."""
    return [sight(episode, angle + error, rules["enemy_radius"]) for error in (-AIM, 0.0, AIM)]


def is_edge(near: list[Sight]) -> bool:
    """Whether neighbouring rays meet different things."""
    lengths = [met.distance for met in near]
    return len({met.enemy for met in near}) > 1 or max(lengths) - min(lengths) > EDGE


def is_among(rules: Rules, episode: Episode, near: list[Sight], shown: tuple[int, float]) -> bool:
    """Whether neighbouring rays meet what an observation shows, or lengths on both sides of it."""
    reach = rules["rays.range"]
    if shown[0] == NOTHING_TAG:
        return shown[1] == 0.0 and any(met.distance > reach - RAY for met in near)
    alike = [met.distance for met in near if met.tag == shown[0]]
    if shown[0] == ENEMY_TAG and is_edge(near):
        eye = (episode.x, episode.z)
        alike += [
            math.sqrt(math.dist(eye, episode.enemies[met.enemy]) ** 2 - rules["enemy_radius"] ** 2)
            for met in near
            if met.tag == ENEMY_TAG
        ]
    return bool(alike) and min(alike) - RAY <= shown[1] <= min(max(alike), reach) + RAY


def count_events(before: Episode, outcome: Outcome, rules: Rules, tally: Counter) -> None:
    """Count what happened, to show that the play met the rules that it is to test."""
    tally["steps"] += 1
    for name, old, new in zip(COUNTS, before.counts, outcome.episode.counts, strict=True):
        tally[name] += new > old
    for name in TERMS:
        tally[name] += outcome.terms[name] != 0.0
    tally["spun"] += outcome.terms["spin_penalty"] < -rules["spin_threshold"] / 2
    tally["walked into something"] += (
        outcome.terms["move_penalty"] != 0.0
        and math.dist((before.x, before.z), (outcome.episode.x, outcome.episode.z))
        < 0.9 * rules["move_speed"] * rules.decision_seconds
    )
    tally["held"] += held(rules, before)
    tally["recalled"] += rules["recall_seconds"] > 0 and outcome.won
    tally["won"] += outcome.won
    tally["lost"] += outcome.finished and not outcome.won
    tally["stayed"] += before.target == STAY
