"""A match whose rows are edited between steps, in the arena and by the oracle."""

import math
from dataclasses import replace

import numpy as np
from oracle_comparison import PLACE, check_observation
from oracle_episode import ATTACK, GOTO, Episode
from oracle_match import Match
from oracle_placement import TARGETS, matching_turns
from oracle_scenes import (
    Floor,
    Scene,
    Stand,
    assigned,
    hits_something,
    kept,
    stayed,
    with_block,
    with_enemy,
    without_block,
    without_enemy,
)
from oracle_view import walls_of

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.worlds.arena.scenes.row_editor import RowEditor

EDIT_SHARE = 0.05  # of the rows, after a step
CARRY_SHARE = 0.5  # of the rows whose episode has ended
EXACT = 1e-9  # m
ODDS = {
    "enemy": 0.3,
    "block": 0.25,
    "assign": 0.3,
    "block away": 0.05,
    "enemy away": 0.04,
    "agent": 0.05,
    "clear": 0.01,
}


class EditedMatch(Match):
    """A match whose rows are edited between decisions, in the arena and by the oracle."""

    def __init__(self, case, seed: int, *, presets, tally) -> None:
        self.ended = {}
        super().__init__(case, seed, presets=presets, tally=tally)
        self.arena.keep_endings = True
        self.editor = RowEditor(self.arena)
        self.dice = np.random.default_rng(seed)
        self.floors = [self._drawn_floor(row) for row in range(len(self.episodes))]

    def step(self) -> None:
        super().step()
        for row in np.flatnonzero(self.buffers.finished).tolist():
            self._after_end(row)
        for row in np.flatnonzero(self.dice.random(len(self.episodes)) < EDIT_SHARE).tolist():
            self._edit(row)

    def _drawn_floor(self, row: int) -> Floor:
        episode = self.episodes[row]
        if episode.target not in (GOTO, ATTACK):
            return Floor((), (-1,) * len(episode.enemies))
        corner = tuple(map(float, self.arena.state.block[row]))
        preset, turns = matching_turns(self.rules[row], episode, corner, self.presets)[0]
        own = len(preset.enemies)
        owners = (0,) * own + (-1,) * (len(episode.enemies) - own)
        return Floor((Stand(preset, corner, turns),), owners, about=0)

    def _next_episode(self, row: int, batch) -> None:
        self.ended[row] = self.rules[row], self.episodes[row]
        super()._next_episode(row, batch)

    def _after_end(self, row: int) -> None:
        """Go on as drawn, or where everything stood."""
        if self.dice.random() >= CARRY_SHARE:
            self.floors[row] = self._drawn_floor(row)
            return
        self.rules[row], last = self.ended[row]
        self.editor.carry_on(row)
        self.tally["carried on"] += 1
        self._accept(row, stayed((self.floors[row], self._at_place(row, last))))

    def _at_place(self, row: int, last: Episode) -> Episode:
        """`last` at the arena's pose, which is PLACE away at most."""
        x, z = map(float, self.arena.state.position[row])
        assert math.dist((x, z), (last.x, last.z)) <= PLACE
        yaw = float(self.arena.state.yaw[row])
        assert abs(math.remainder(yaw - last.yaw, 2 * math.pi)) <= PLACE
        return replace(last, x=x, z=z, yaw=yaw)

    def _edit(self, row: int) -> None:
        """One random edit; the arena refuses it exactly where the oracle does."""
        dice, rules, edit = self.dice, self.rules[row], self.editor
        scene = self.floors[row], self.episodes[row]
        at = tuple(dice.uniform(0.0, rules["floor_size"], 2).tolist())
        if scene[1].fire_base is not None and dice.random() < 0.3:  # where enemies count
            at = tuple((dice.normal(0.0, 2.0, 2) + scene[1].fire_base[:2]).tolist())
        number, yaw = int(dice.integers(4)), float(dice.uniform(-math.pi, math.pi))
        preset = self.presets[int(dice.integers(len(self.presets)))]
        key, target = (preset.target, preset.name), str(dice.choice([*TARGETS]))
        kind = str(dice.choice([*ODDS], p=np.array([*ODDS.values()])))
        if kind == "enemy":
            self._both(row, with_enemy(rules, scene, at), lambda: edit.place_enemy(row, at))
        elif kind == "block":
            wanted = with_block(rules, scene, at, preset, number)
            place = lambda: edit.place_block(row, at, preset=key, turns=number)  # noqa: E731
            self._both(row, wanted, place)
            if wanted is not None:  # as in test mode, where that is one click
                scene, target = (self.floors[row], self.episodes[row]), preset.target
                wanted = assigned(scene, TARGETS[target])
                self._both(row, wanted, lambda: edit.assign(row, target))
        elif kind == "assign":
            self._both(row, assigned(scene, TARGETS[target]), lambda: edit.assign(row, target))
        elif kind == "block away":
            wanted = without_block(rules, scene, number)
            self._both(row, wanted, lambda: edit.remove_block(row, number))
        elif kind == "enemy away":
            wanted = without_enemy(rules, scene, number)
            self._both(row, wanted, lambda: edit.remove_enemy(row, number))
        elif kind == "agent":
            blocked = hits_something(rules, scene[1], at, rules["agent_radius"])
            moved = scene[0], replace(scene[1], x=at[0], z=at[1], yaw=yaw)
            place = lambda: edit.place_agent(row, at, yaw=yaw)  # noqa: E731
            self._both(row, None if blocked else moved, place)
        else:
            empty = Floor(), kept(rules, scene, (), ())
            self._both(row, stayed(empty), lambda: edit.clear(row))

    def _both(self, row: int, wanted: Scene | None, edit) -> None:
        """Edit the arena's row; fail where it does not become what the oracle wants."""
        before, refusal = self.arena.snapshot() if wanted is None else {}, None
        try:
            edit()
        except MisuseError as error:
            refusal = error
        assert (refusal is not None) == (wanted is None), f"{refusal}, in {wanted}"
        self.tally["edited" if refusal is None else "refused"] += 1
        if wanted is not None:
            self._accept(row, wanted)
            return
        after = self.arena.snapshot()
        assert all(np.array_equal(array, after[name]) for name, array in before.items())

    def _accept(self, row: int, wanted: Scene) -> None:
        """Take the oracle's scene over, once the arena shows it."""
        self.floors[row], episode = wanted
        state, rules = self.arena.state, self.rules[row]
        boxes = state.obstacles[row, : state.obstacle_count[row]]
        enemies = state.enemies[row, : state.enemy_count[row]]
        np.testing.assert_allclose(boxes, np.reshape(episode.boxes, (-1, 4)), atol=EXACT)
        np.testing.assert_allclose(enemies, np.reshape(episode.enemies, (-1, 2)), atol=EXACT)
        hits = state.enemy_hits_left[row, : len(episode.enemies)]
        assert tuple(map(int, hits)) == episode.hits_left
        assert (int(state.target[row]), int(state.difficulty[row])) == (
            episode.target,
            episode.difficulty,
        )
        if episode.target == ATTACK:
            marks = state.enemy_is_target[row, : len(episode.enemies)]
            assert tuple(map(bool, marks)) == episode.targets
        boxes = tuple(tuple(map(float, box)) for box in boxes)
        self.episodes[row] = replace(
            episode,
            boxes=boxes,
            walls=walls_of(rules["floor_size"], boxes),
            enemies=tuple((float(x), float(z)) for x, z in enemies),
        )
        self.editor.observe(row, self.buffers.observations)
        check_observation(rules, self.episodes[row], self.buffers.observations[row], self.tally)
        self.orders[row] = int(state.order[row])
        self.numbers[row] = int(state.scenario[row])
