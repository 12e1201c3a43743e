"""A world and the oracle play the same games, and everything that both say is compared."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from gorge_oracle import (
    MOVES,
    Cell,
    Game,
    Ground,
    Rules,
    best_score,
    may_begin_at,
    placed_count,
    steps_to,
)

from aimbot_lab.foundation.settings import Uniform, UniformParameters
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.gorge.gorge import Gorge
from aimbot_lab.worlds.gorge.settings import GorgeRewardWeights, GorgeSettings, ScoreSettings

FEATURES = (
    "position",
    "pos_norm",
    "pos_polar",
    "treasure",
    "obstacle_map",
    "treasure_map",
    "end_map",
    "pos_row",
    "pos_col",
    "walked_map",
    "list_treasure",
    "steps_left",
)
WEIGHTS = {
    "treasure": 1.5,
    "finish": 0.75,
    "step_score": 2.0,
    "step_penalty": -0.125,
    "bump": -3.0,
    "revisit": -0.7,
    "distance": 0.9,
    "treasure_distance": 1.3,
    "win": 40.0,
    "lose": -20.0,
}
MOST_SEARCHED = 4  # treasures, of which the oracle tries every order
TARGETS = ("walk", "collect", "score")


def settings_with(**given: object) -> GorgeSettings:
    """Settings in which every weight acts and everything is seen."""
    usual = {
        "num_envs": 24,
        "max_steps": 240,
        "features": FEATURES,
        "rewards": GorgeRewardWeights(**WEIGHTS),
        "score": ScoreSettings(end=120.0, step=0.3),
        "win_share": 0.4,
    }
    return GorgeSettings(**{**usual, **given})  # type: ignore[arg-type]


def scenario_with(targets: dict[str, float], *, drawn: bool) -> Scenario:
    """These targets, all difficulties; with numbers drawn anew for each episode or fixed ones."""

    def between(low: float, high: float) -> Uniform:
        return Uniform(sampler_parameters=UniformParameters(min_value=low, max_value=high))

    parameters = {
        "max_steps": between(135, 240),
        "treasure_num": between(0, 4),
        "win_share": between(0.2, 1.0),
        "score.end": between(0, 300),
        "score.step": between(0, 1),
        "rewards.bump": between(-2, 2),
        "random_start": between(0, 1),
    }
    return Scenario(targets, parameters=parameters if drawn else {})


@dataclass
class Seen:
    """What happened, so that a test can ask for all of it."""

    cells: set[tuple[str, int]] = field(default_factory=set)
    won: set[tuple[str, bool]] = field(default_factory=set)
    bumps: int = 0
    taken: int = 0
    late: int = 0  # episodes that the limit ended
    left_behind: int = 0  # arrivals with treasures left


class Match:
    """Games of a world, each beside one of the oracle's."""

    def __init__(self, world: Gorge, scenario: Scenario, seed: int) -> None:
        self.world, self.seen = world, Seen()
        self.random = np.random.default_rng(seed)
        self.grounds = [ground_of(grid) for grid in world.maps]
        self.buffers = step_buffers(world)
        self.masks = np.zeros((world.num_envs, 4), np.bool_)
        world.set_scenario(scenario)
        world.reset(seed, self.buffers.observations)
        rows = range(world.num_envs)
        self.goals: list[Cell | None] = [None] * world.num_envs
        self.games = [self.begun(row) for row in rows]
        for row in rows:
            self.compare(row)

    def begun(self, row: int) -> Game:
        """The game that began in `row`, from what was drawn, once that is seen to be allowed."""
        state, settings, numbers = self.world.state, self.world.settings, {}
        for name, value in zip(self.world.spec.parameters, state.parameters[row], strict=True):
            numbers[name] = float(value)
        ground = self.grounds[int(state.map[row])]
        pool = settings.treasure_pool or tuple(range(len(ground.sites)))
        rules = Rules(
            target=TARGETS[int(state.target[row])],
            difficulty=int(state.difficulty[row]),
            max_steps=int(numbers["max_steps"]),
            view=settings.view,
            features=settings.features,
            end=numbers["score.end"],
            step=numbers["score.step"],
            decay=settings.score_decay,
            random_start=numbers["random_start"] == 1,
            win_share=numbers["win_share"],
            treasure_num=int(numbers["treasure_num"]),
            pool=pool,
            weights={name: numbers[f"rewards.{name}"] for name in WEIGHTS},
        )
        start = int(state.x[row]), int(state.z[row])
        placed = frozenset(site for site in range(10) if int(state.placed[row]) >> site & 1)
        assert placed <= set(pool)
        assert len(placed) == placed_count(rules)
        assert may_begin_at(ground, rules, start)
        optimum = float(state.optimum[row])
        if len(placed) <= MOST_SEARCHED:
            of_score = rules.max_steps, rules.end, rules.step, rules.decay
            assert optimum == pytest.approx(best_score(ground, of_score, start, placed), abs=1e-9)
        self.goals[row] = None
        self.seen.cells.add((rules.target, rules.difficulty))
        return Game(ground, rules, start, placed, optimum)

    def action(self, row: int) -> int:
        """Mostly on the way to something, else anywhere, also into walls."""
        game = self.games[row]
        if row % 6 == 0 or self.random.random() < 0.12:
            return int(self.random.integers(4))
        if self.goals[row] is None or self.goals[row] == game.hero:
            self.goals[row] = self.next_goal(game)
        goal = self.goals[row]
        assert goal is not None
        closed = None if goal == game.ground.end else game.ground.end
        ways = steps_to(game.ground, goal, closed=closed)
        x, z = game.hero
        far = 10_000
        return int(np.argmin([ways.get((x + dx, z + dz), far) for dx, dz in MOVES]))

    def next_goal(self, game: Game) -> Cell:
        """The nearest treasure for which there is time, and now and then the end."""
        ground, rules = game.ground, game.rules
        to_end = steps_to(ground, ground.end)
        found = []
        for site in game.left:
            cell = ground.sites[site]
            way = steps_to(ground, cell, closed=ground.end)[game.hero]
            if game.steps + 1.3 * (way + to_end[cell]) < rules.max_steps:
                found.append((way, cell))
        return min(found)[1] if found and self.random.random() < 0.9 else ground.end

    def play(self, steps: int) -> Seen:
        """So many steps of all rows, each compared."""
        world, buffers = self.world, self.buffers
        for _ in range(steps):
            actions = [self.action(row) for row in range(world.num_envs)]
            batch = world.step(np.array(actions, np.float32)[:, None], buffers)
            ended = batch.row.tolist()
            for row, action in enumerate(actions):
                game = self.games[row]
                reward = game.step(action)
                assert buffers.rewards[row] == pytest.approx(reward, rel=1e-6, abs=1e-6)
                assert bool(buffers.finished[row]) is game.over
                assert not buffers.truncated[row]
                if game.over:
                    self.compare_end(row, batch, ended.index(row))
                    self.games[row] = self.begun(row)
                self.compare(row)
        return self.seen

    def compare_end(self, row: int, batch: object, place: int) -> None:
        game, seen = self.games[row], self.seen
        last = np.array(game.observation(), np.float32)
        np.testing.assert_array_equal(self.buffers.final_observations[row], last)
        assert batch.cell[place] == (game.rules.target, game.rules.difficulty)
        assert bool(batch.won[place]) is game.won
        assert batch.length[place] == game.steps
        told = {name: float(column[place]) for name, column in batch.columns.items()}
        assert told == pytest.approx({name: float(v) for name, v in game.columns().items()})
        terms = dict(zip(self.world.spec.reward_terms, batch.terms[place].tolist(), strict=True))
        assert terms == pytest.approx(game.terms, rel=1e-9, abs=1e-7)
        seen.won.add((game.rules.target, game.won))
        seen.bumps += game.bumps
        seen.taken += len(game.placed) - len(game.left)
        seen.late += not game.arrived
        seen.left_behind += game.arrived and bool(game.left)

    def compare(self, row: int) -> None:
        """What is seen in `row`, what it may do, and its raw data."""
        game, world = self.games[row], self.world
        wanted = np.array(game.observation(), np.float32)
        np.testing.assert_array_equal(self.buffers.observations[row], wanted)
        world.action_masks(self.masks)
        assert self.masks[row].tolist() == game.masks()
        frame = world.frame(row)
        for name in ("score", "total_score"):
            assert frame.pop(name) == pytest.approx(game.frame()[name], abs=1e-9)
        rest = {name: value for name, value in game.frame().items() if "score" not in name}
        assert frame == rest


def ground_of(grid: object) -> Ground:
    """A map in the oracle's words."""
    cells = [(x, z) for x in range(64) for z in range(64)]
    return Ground(
        road=frozenset(cell for cell in cells if not grid.walls[cell]),
        start=tuple(grid.start),
        end=tuple(grid.end),
        sites=tuple(map(tuple, grid.sites.tolist())),
        points=tuple(grid.points.tolist()),
    )
