"""A match: one arena and an oracle for each of its rows, compared decision by decision.

Its players meet every rule of the arena between them.
"""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from oracle_cases import Case
from oracle_comparison import Seen, check_mask, check_observation, count_events, judge
from oracle_episode import Episode, rules_of
from oracle_placement import begun_episode, check_placement

from aimbot_lab.foundation.settings import MultiRangeUniform, ParameterValue, Uniform
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import Preset
from aimbot_lab.worlds.arena.settings import ArenaSettings

KINDS = ("jitterer", "drifter", "spinner", "wall walker", "hunter", "seeker", "hunter", "seeker")


class Player:
    """One row's player; `act` gives its next action."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self._random = random.Random(seed)
        self._keys = (0, 0)
        self._mouse = 0.0
        self._held = 0  # decisions for which keys and mouse stay as they are

    def act(self, rules, episode) -> tuple[int, int, int, float]:
        """Vertical move, horizontal move, attack, mouse."""
        goal = self._goal(episode)
        if goal is not None:
            return self._towards(goal, rules, episode)
        if self._held == 0:
            self._choose(rules["mouse_limit"])
        self._held -= 1
        return *self._keys, self._random.randrange(2), self._mouse

    def _choose(self, limit: float) -> None:
        roll = self._random
        self._keys = roll.randrange(3), roll.randrange(3)
        if self.kind == "jitterer":
            self._held, self._mouse = 1, roll.gauss(0.0, 1.5 * limit)
        elif self.kind == "spinner":
            self._held = roll.randint(10, 70)
            self._mouse = roll.choice([-1.0, -0.9, 0.0, 0.7, 1.0, 3.0]) * limit
        elif self.kind == "wall walker":
            turn = roll.random() < 0.3
            self._keys = roll.choice([1, 1, 1, 2]), roll.choice([0, 0, 1, 2])
            self._held, self._mouse = (4, roll.uniform(-1, 1) * limit) if turn else (30, 0.0)
        else:
            self._held, self._mouse = roll.randint(1, 20), roll.gauss(0.0, 0.2 * limit)

    def _goal(self, episode):
        here = (episode.x, episode.z)
        alive = [
            place
            for place, hits in zip(episode.enemies, episode.hits_left, strict=True)
            if hits > 0
        ]
        if self.kind == "hunter" and alive:
            return min(alive, key=lambda place: math.dist(here, place))
        if self.kind == "seeker" and episode.fire_base is not None:
            return episode.fire_base[:2]
        return None

    def _towards(self, goal, rules, episode) -> tuple[int, int, int, float]:
        roll = self._random
        bearing = math.atan2(goal[0] - episode.x, goal[1] - episode.z) - episode.yaw
        turn = math.remainder(bearing, 2 * math.pi) / rules["mouse_factor"]
        if self._held == 0:
            stray = roll.random() < 0.4
            self._held = roll.randint(5, 20)
            self._keys = (roll.randrange(3), roll.randrange(3)) if stray else (1, 0)
        self._held -= 1
        return *self._keys, int(roll.random() < 0.8), turn + roll.gauss(0.0, 0.2)


class Match:
    """One arena and an oracle for each of its rows."""

    def __init__(self, case: Case, seed: int, *, presets: Sequence[Preset], tally: Counter) -> None:
        rows = len(KINDS)
        self.settings = ArenaSettings(num_envs=rows, **case.settings)
        self.presets = presets
        self.arena = Arena(self.settings, presets)
        self.tally = tally
        self.strangers = case.strangers
        self.players = [Player(kind, seed + row) for row, kind in enumerate(KINDS)]
        self.set_scenario(case.scenario)
        self.buffers = new_step_buffers(rows, len(self.arena.spec.observation_names))
        self.masks = np.zeros((rows, 8), np.bool_)
        self.arena.reset(seed, self.buffers.observations)
        self.numbers = [self.newest] * rows  # of the scenario of each running episode
        self.orders = [int(order) for order in self.arena.state.order]
        first = (*self.settings.start_position, math.radians(self.settings.start_yaw))
        self.rules, self.episodes = map(
            list, zip(*(self._begun(row, first) for row in range(rows)), strict=True)
        )

    def set_scenario(self, scenario: Scenario) -> None:
        """Let the next episodes be drawn from a scenario."""
        self.newest = self.arena.set_scenario(scenario)
        self.drawn_from = scenario

    def step(self) -> None:
        """Play and compare one decision of every row."""
        pairs = zip(self.players, self.rules, self.episodes, strict=True)
        actions = np.array([player.act(rules, ep) for player, rules, ep in pairs], np.float32)
        batch = self.arena.step(actions, self.buffers)
        assert sorted(batch.row) == list(np.flatnonzero(self.buffers.finished))
        for row, (rules, before) in enumerate(zip(self.rules, self.episodes, strict=True)):
            outcome = judge(rules, before, actions[row], self._seen(row, batch), self.tally)
            count_events(before, outcome, rules, self.tally)
            self.episodes[row] = self._resumed(outcome.episode, row)
            if outcome.finished:
                self._next_episode(row, batch)
        self.arena.action_masks(self.masks)
        row = self.tally["steps"] // len(KINDS) % len(KINDS)  # one a step: they take long
        check_mask(self.rules[row], self.episodes[row], self.masks[row])
        self.tally["blocked moves"] += 6 - int(self.masks[row, :6].sum())

    def _resumed(self, episode: Episode, row: int) -> Episode:
        """The oracle's episode at the arena's place, which is PLACE away at most.

        Who walks straight at a disc is in an unstable balance: a difference in the last bit grows
        by a tenth with every tick that it lasts.
        """
        if self.buffers.finished[row]:
            return episode
        x, z = map(float, self.arena.state.position[row])
        return replace(episode, x=x, z=z)

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
        assert batch.running_order[row] > self.orders[row]
        assert batch.running_scenario[row] == self.newest
        self.numbers[row] = self.newest
        self.orders[row] = int(batch.running_order[row])
        assert len(set(self.orders)) == len(self.orders)
        last = self.episodes[row]
        self.rules[row], self.episodes[row] = self._begun(row, (last.x, last.z, last.yaw))

    def _begun(self, row: int, before):
        state, scenario = self.arena.state, self.drawn_from
        there = dict(zip(self.arena.spec.parameters, state.parameters[row], strict=True))
        rules = rules_of(self.settings, there, drawn_parameters(scenario.parameters, there))
        assert rules.numbers == there
        begun = begun_episode(rules, state, row)
        begun = check_placement(
            rules, begun, state=state, row=row, before=before, presets=self.presets
        )
        target = {0: "free", 1: "goto", 2: "attack", 4: "stay"}[begun.target]
        assert scenario.targets[target] > 0
        weights = scenario.difficulty.get(target)
        assert weights is None or weights[begun.difficulty - 1] > 0
        check_observation(rules, begun, self.buffers.observations[row], self.tally)
        if self.strangers:
            put_strangers(state, row, self.strangers, hits=round(rules["enemy_hits_to_kill"]))
            begun = begun_episode(rules, state, row)
        return rules, begun


def drawn_parameters(given: Mapping[str, ParameterValue], there: Mapping[str, float]):
    """The parameters of an episode: constants as given, sampled ones as the arena drew them."""
    drawn = {}
    for name, value in given.items():
        drawn[name] = value if isinstance(value, float) else there[name]
        if isinstance(value, Uniform):
            limits = value.sampler_parameters
            assert limits.min_value <= there[name] <= limits.max_value
        if isinstance(value, MultiRangeUniform):
            intervals = value.sampler_parameters.intervals
            assert any(low <= there[name] <= high for low, high in intervals)
    return drawn


def put_strangers(state, row: int, count: int, *, hits: int) -> None:
    """Stand enemies around the agent of a row, as a person might in test mode."""
    places = np.random.default_rng(int(state.order[row])).uniform(4.0, 43.0, (count, 2))
    far = np.abs(places - state.position[row]).max(axis=1) > 1.5
    state.enemy_count[row] = far.sum()
    state.enemies[row, : far.sum()] = places[far]
    state.enemy_hits_left[row, : far.sum()] = hits
