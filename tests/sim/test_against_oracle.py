"""The arena agrees with the oracle, number for number, over play that meets every rule."""

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pytest
from duel import Seen, check_observation, count_events, judge
from oracle_episode import Rules, rules_of
from oracle_placement import begun_episode, check_placement
from players import KINDS, Player

from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.sim.arena import Arena
from aimbot_lab.sim.presets import load_presets
from aimbot_lab.sim.settings import ArenaSettings, RaySettings, RewardWeights

STEPS = int(os.environ.get("AIMBOT_LAB_ORACLE_STEPS", "30000"))
GRAZING_SHARE = 1e-4  # of all rays, and of all outcomes
NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Case:
    """One set-up, and what must have happened in it at least once."""

    name: str
    scenario: Scenario
    met: tuple[str, ...]
    settings: dict = field(default_factory=dict)
    later: Scenario | None = None  # in force from half way
    strangers: int = 0  # enemies that a person puts on the floor, in no block


ODD_REWARDS = RewardWeights(
    non_target_hit=-2.5,
    target_hit=7.0,
    move_penalty=0.25,
    spin_penalty=0.3,
    win=50.0,
    lose=-10.0,
    facing=-1.5,
    distance=3.0,
    in_area=1.25,
    suppressive=0.75,
    facing_area=-0.125,
)
WIDE = RaySettings(middle_count=9, side_count=3, middle_share=0.3, view_angle=170.0, range=9.0)
LONE = RaySettings(middle_count=1, side_count=4, view_angle=60.0, range=15.0, tags="one_hot")
ONE_HOT = RaySettings(tags="one_hot", range=20.0)
ALL = {"free": 1.0, "goto": 1.0, "attack": 1.0}
WITH_STAY = {**ALL, "stay": 0.2}
UNEVEN = {"goto": (2.0, 0.0, 0.0, 0.0, 1.0), "attack": (0.0, 0.0, 1.0, 0.0, 1.0)}
TOUGH = {"enemy_hits_to_kill": 2.0, "gun_cooldown": 0.5, "decision_period": 3.0, "move_speed": 8.0}
SPINNY = {"spin_threshold": 3.0, "spin_rate": 0.5, "line_stopped_by_obstacles": 1.0}
SLOW = {"decision_period": 7.0}  # which does not divide the time limit
SMALL = {"rays.range": 6.0, "gun_range": 5.0, "mouse_limit": 2.0, "mouse_factor": 0.3}
BIG = {"agent_radius": 0.3, "enemy_radius": 0.9, "free_enemies": 3.0, "time_limit": 5.0}
MOVED = {
    "goto_win_radius": 0.4,
    "block_gap_to_agent": 3.0,
    "block_gap_to_walls": 4.0,
    "move_speed": 9.0,
}

CASES = (
    Case("goto", Scenario({"goto": 1}), ("won", "lost", "distance", "in_area", "spun")),
    Case("attack", Scenario({"attack": 1}), ("won", "lost", "suppressive", "facing_area")),
    Case("free", Scenario({"free": 1}), ("lost", "facing", "target_hit", "tag 1")),
    Case("stay", Scenario({"stay": 1}), ("stayed", "spun", "walked into something")),
    Case(
        "short one-hot rays, all targets",
        Scenario(WITH_STAY),
        ("won", "lost", "tag -1", "tag 0", "tag 1"),
        {"rays": ONE_HOT, "time_limit": 8.0},
    ),
    Case(
        "wide rays, tough enemies",
        Scenario({"attack": 1, "free": 1}, parameters=TOUGH),
        ("target_hit", "won", "tag -1", "tag 1"),
        {"rays": WIDE, "time_limit": 9.0},
    ),
    Case(
        "other rewards, other places",
        Scenario(WITH_STAY, UNEVEN, MOVED),
        ("won", "lost", "facing", "in_area"),
        {"rewards": ODD_REWARDS, "time_limit": 10.0},
    ),
    Case(
        "reckless speed",
        Scenario(ALL, parameters={"move_speed": 60.0, "decision_period": 10.0}),
        ("won", "lost", "walked into something"),
        {"floor_size": 31.0, "rays": LONE, "time_limit": 12.0},
    ),
    Case(
        "view stopped by obstacles, short spin window",
        Scenario({"attack": 1}, parameters=SPINNY | SLOW),
        ("facing_area", "suppressive", "spun"),
        {"spin_window": 7, "time_limit": 10.0},
    ),
    Case(
        "a new scenario in the middle of play",
        Scenario(ALL, parameters=SMALL),
        ("won", "lost", "tag -1", "target_hit"),
        {"time_limit": 7.0},
        Scenario({"free": 1, "goto": 1}, parameters=BIG),
    ),
    Case(
        "strangers on the floor",
        Scenario({"goto": 1, "stay": 0.2}, parameters={"enemy_hits_to_kill": 3.0}),
        ("non_target_hit", "tag 1", "in_area"),
        {"time_limit": 9.0},
        strangers=5,
    ),
)


class Match:
    """One arena and an oracle for each of its rows."""

    def __init__(self, case: Case, seed: int) -> None:
        rows = len(KINDS)
        self.settings = ArenaSettings(num_envs=rows, **case.settings)
        self.presets = load_presets()
        self.arena = Arena(self.settings, self.presets)
        self.tally: Counter = Counter()
        self.strangers = case.strangers
        self.rules: dict[int, Rules] = {}
        self.players = [Player(kind, seed + row) for row, kind in enumerate(KINDS)]
        self.set_scenario(case.scenario)
        self.buffers = new_step_buffers(rows, len(self.arena.spec.observation_names))
        self.arena.reset(seed, self.buffers.observations)
        self.numbers = [self.newest] * rows  # of the scenario of each running episode
        self.orders = [int(order) for order in self.arena.state.order]
        self.episodes = [self._begun(row, None) for row in range(rows)]

    def set_scenario(self, scenario: Scenario) -> None:
        """Let the next episodes be drawn from a scenario, by its rules."""
        self.newest = self.arena.set_scenario(scenario)
        names = self.arena.spec.parameters
        self.rules[self.newest] = rules_of(self.settings, names, scenario.parameters)
        self.drawn_from = scenario

    def step(self) -> None:
        """Play and compare one decision of every row."""
        rules = [self.rules[number] for number in self.numbers]
        pairs = zip(self.players, rules, self.episodes, strict=True)
        actions = np.array([player.act(rule, ep) for player, rule, ep in pairs], np.float32)
        batch = self.arena.step(actions, self.buffers)
        assert sorted(batch.row) == list(np.flatnonzero(self.buffers.finished))
        for row, before in enumerate(self.episodes):
            outcome = judge(rules[row], before, actions[row], self._seen(row, batch), self.tally)
            count_events(before, outcome, rules[row], self.tally)
            self.episodes[row] = outcome.episode
            if outcome.finished:
                self._next_episode(row, batch)

    def _seen(self, row: int, batch) -> Seen:
        finished = bool(self.buffers.finished[row])
        after, last = self.buffers.observations, self.buffers.final_observations
        return Seen(
            reward=float(self.buffers.rewards[row]),
            finished=finished,
            observation=(last if finished else after)[row],
            state=self.arena.state,
            row=row,
            batch=batch,
        )

    def _next_episode(self, row: int, batch) -> None:
        index = list(batch.row).index(row)
        assert batch.order[index] == self.orders[row]
        assert batch.scenario[index] == self.numbers[row]
        assert batch.running_order[row] > max(self.orders[row], batch.order[index])
        assert batch.running_scenario[row] == self.newest
        self.numbers[row] = self.newest
        self.orders[row] = int(batch.running_order[row])
        assert len(set(self.orders)) == len(self.orders)
        last = self.episodes[row]
        self.episodes[row] = self._begun(row, (last.x, last.z, last.yaw))

    def _begun(self, row: int, before):
        rules, state = self.rules[self.newest], self.arena.state
        begun = begun_episode(rules, state, row)
        check_placement(rules, begun, state=state, row=row, before=before, presets=self.presets)
        target = {0: "free", 1: "goto", 2: "attack", 4: "stay"}[begun.target]
        assert self.drawn_from.targets[target] > 0
        weights = self.drawn_from.difficulty.get(target)
        assert weights is None or weights[begun.difficulty - 1] > 0
        check_observation(rules, begun, self.buffers.observations[row], self.tally)
        if self.strangers:
            put_strangers(state, row, self.strangers, hits=round(rules["enemy_hits_to_kill"]))
            begun = begun_episode(rules, state, row)
        return begun


def put_strangers(state, row: int, count: int, *, hits: int) -> None:
    """Stand enemies around the agent of a row, as a person might in test mode."""
    places = np.random.default_rng(int(state.order[row])).uniform(4.0, 43.0, (count, 2))
    far = np.abs(places - state.position[row]).max(axis=1) > 1.5
    state.enemy_count[row] = far.sum()
    state.enemies[row, : far.sum()] = places[far]
    state.enemy_hits_left[row, : far.sum()] = hits


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_number_of_every_step_is_the_oracles(case: Case) -> None:
    match = Match(case, seed=1000 + CASES.index(case))
    steps = math.ceil(STEPS / len(CASES) / len(KINDS))
    for count in range(steps):
        if count == steps // 2 and case.later is not None:
            match.set_scenario(case.later)
        match.step()
    tally = match.tally
    assert [event for event in case.met if not tally[event]] == []
    assert tally["grazing rays"] <= 1 + GRAZING_SHARE * tally["rays"]
    assert tally["grazing outcomes"] <= 1 + GRAZING_SHARE * tally["steps"]
