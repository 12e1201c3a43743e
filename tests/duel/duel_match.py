"""A duel and an oracle for each of its matches, compared decision by decision."""

import copy
import math
from collections import Counter

import numpy as np
from duel_oracle import SIDE, Fighter, Rules, decide, rays, wrapped

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.worlds.duel.core.state import OF_SEATS, REWARD_TERMS, SHARED
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.settings import DuelSettings

KINDS = ("random", "charger", "duelist")  # how the two of a match play
PLACE, RAY, AIM = 1e-9, 1e-4, 1e-6  # m, m, rad


class Comparison:
    """One duel whose every number is compared with the oracle's."""

    def __init__(self, settings, parameters, *, seed: int, tally: Counter) -> None:
        self.settings = DuelSettings(num_envs=2 * len(KINDS), **settings)
        self.duel, self.tally = Duel(self.settings), tally
        self.duel.set_scenario(Scenario({"duel": 1.0}, parameters=parameters))
        self.buffers = step_buffers(self.duel)
        self.random = np.random.default_rng(seed)
        self.duel.reset(seed, self.buffers.observations)
        self.matches = [self._begun(row) for row in range(self.duel.num_envs)]
        self.column = {n: k for k, n in enumerate(self.duel.spec.observation_names)}
        for row in range(self.duel.num_envs):
            self._check_seen(row, self.buffers.observations)

    def _begun(self, row: int):
        state = self.duel.state
        shared = dict(zip(SHARED, state.parameters[row], strict=False))
        rules = Rules(
            boxes=list(self.duel.layouts[state.layout[row]].all_boxes),
            weights={name: shared[f"rewards.{name}"] for name in REWARD_TERMS},
            period=int(shared["decision_period"]),
            timestep=shared["fixed_timestep"],
            time_limit=shared["time_limit"],
            window=self.settings.spin_window,
            middle_rays=self.settings.rays.middle_count,
            side_rays=self.settings.rays.side_count,
            health_decides=self.settings.on_timeout == "health",
        )
        return rules, [self._fighter(row, agent) for agent in range(2)]

    def _fighter(self, row: int, agent: int) -> Fighter:
        seat, state = row + agent * self.duel.num_envs, self.duel.state
        x, z = map(float, state.seats.position[seat])
        yaw = float(state.seats.yaw[seat])
        if agent:
            x, z, yaw = SIDE - x, SIDE - z, wrapped(yaw + math.pi)
        traits = dict(zip(OF_SEATS, map(float, state.traits[seat]), strict=True))
        return Fighter(x, z, yaw, int(traits["health"]), traits)

    def step(self) -> None:
        """Play and compare one decision of every match."""
        rows = self.duel.num_envs
        actions = np.zeros((2 * rows, 4), np.float32)
        for row, (_, fighters) in enumerate(self.matches):
            for agent in range(2):
                actions[row + agent * rows] = self._act(KINDS[row % len(KINDS)], fighters, agent)
        before = self.duel.state.seats.decisions.copy()
        self.duel.keep_endings = True
        batch = self.duel.step(actions, self.buffers)
        for row, (rules, fighters) in enumerate(self.matches):
            given = actions[[row, row + rows]]
            done = copy.deepcopy(fighters)
            result = decide(rules, done, given, int(before[row]))
            faults = self._faults(row, result, done)
            for error in (-AIM, AIM):
                if not faults:
                    break
                self.tally["grazing"] += 1
                done = copy.deepcopy(fighters)
                result = decide(rules, done, given, int(before[row]), error)
                faults = self._faults(row, result, done)
            ended = bool(self.buffers.finished[row])
            assert not faults, f"match {row}: {faults}"
            self._count(fighters, done, result)
            self.matches[row] = rules, done
            if not ended:
                self._put(row, done)  # who walks at a disc is in an unstable balance
            seen = self.buffers.final_observations if ended else self.buffers.observations
            self._check_seen(row, seen)
            if ended:
                self._check_end(row, result, batch)
                self.matches[row] = self._begun(row)
                self._check_seen(row, self.buffers.observations)

    def _act(self, kind: str, fighters, agent: int):
        one, other = fighters[agent], fighters[1 - agent]
        draw = self.random
        if kind == "random" or draw.random() < 0.1:
            return [*draw.integers(0, (3, 3, 2)), draw.uniform(-6, 6)]
        bearing = math.atan2(other.x - one.x, other.z - one.z) - one.yaw
        mouse = wrapped(bearing) / one.traits["mouse_factor"]
        if kind == "charger":
            return [1, draw.integers(0, 3) * (draw.random() < 0.3), 0, mouse]
        return [0, draw.integers(0, 3), 1, mouse + draw.normal(0, 0.3)]

    def _faults(self, row: int, result, fighters) -> list[str]:
        """What of poses, health, rewards and result is not the oracle's."""
        ended = bool(self.buffers.finished[row])
        state = self.duel.ended_state if ended else self.duel.state
        faults = [] if ended == (result is not None) else [f"ended {ended}, not {result}"]
        for agent, one in enumerate(fighters):
            seat, seats = row + agent * self.duel.num_envs, state.seats
            place, yaw = (one.x, one.z), one.yaw
            if agent:
                place, yaw = (SIDE - one.x, SIDE - one.z), wrapped(yaw + math.pi)
            if math.dist(place, seats.position[seat]) > PLACE:
                faults.append(f"agent {agent} at {seats.position[seat].tolist()}, not {place}")
            if abs(wrapped(yaw - seats.yaw[seat])) > PLACE:
                faults.append(f"yaw {seats.yaw[seat]} not {yaw}")
            if (one.health, one.gun_ticks) != (state.health[seat], seats.gun_ticks[seat]):
                faults.append(f"health {state.health[seat]} not {one.health}, or the gun")
            other = fighters[1 - agent]
            gained = [one.own[name] - other.own[name] for name in REWARD_TERMS]
            if abs(sum(gained) - self.buffers.rewards[seat]) > 1e-4:
                faults.append(f"reward {self.buffers.rewards[seat]} not {gained}")
        return faults

    def _put(self, row: int, fighters):
        """Those at the places of the duel's state, which are PLACE away at most."""
        state = self.duel.state
        for agent, one in enumerate(fighters):
            seat = row + agent * self.duel.num_envs
            x, z = map(float, state.seats.position[seat])
            one.x, one.z = (SIDE - x, SIDE - z) if agent else (x, z)
            one.health, one.gun_ticks = int(state.health[seat]), int(state.seats.gun_ticks[seat])
        return fighters

    def _check_seen(self, row: int, observations) -> None:
        """Fail where an observation is not what the oracle's agents see."""
        rules, fighters = self.matches[row]
        for agent in range(2):
            seat, one = row + agent * self.duel.num_envs, fighters[agent]
            seen = observations[seat]
            sign = -1.0 if agent else 1.0
            wanted = {
                "agent_x": SIDE - one.x if agent else one.x,
                "agent_z": SIDE - one.z if agent else one.z,
                "cos_yaw": sign * math.cos(one.yaw),
                "sin_yaw": sign * math.sin(one.yaw),
                "health": one.health / one.traits["health"],
                "gun_ready": float(one.gun_ticks <= 0),
                "hit_ahead": one.hit_from[0],
                "hit_right": one.hit_from[1],
            }
            for name, number in wanted.items():
                there = seen[self.column[name]]
                assert abs(there - number) < 1e-5, f"{name}: {there} not {number}"
            self._check_rays(rules, seen, fighters, agent)

    def _check_rays(self, rules, seen, fighters, agent: int) -> None:
        one, other = fighters[agent], fighters[1 - agent]
        for number, wanted in enumerate(rays(rules, one, other)):
            there = (
                float(seen[self.column[f"ray_{number}_tag"]]),
                float(seen[self.column[f"ray_{number}_distance"]]),
            )
            if there[0] == wanted[0] and abs(there[1] - wanted[1]) <= RAY:
                continue
            self.tally["grazing rays"] += 1
            near = [rays(rules, one, other, error)[number] for error in (-1e-5, 0.0, 1e-5)]
            tags, metres = {tag for tag, _ in near}, [away for _, away in near]
            edge = len(tags) > 1 or max(metres) - min(metres) > RAY
            assert edge, f"ray {number}: {there} not {wanted}"
            assert there[0] in tags, f"ray {number}: {there} not {near}"

    def _check_end(self, row: int, result, batch) -> None:
        ours = {int(batch.agent[k]): k for k in np.flatnonzero(batch.row == row)}
        assert [batch.outcome[ours[agent]] for agent in range(2)] == [result, -result]

    def _count(self, before, after, result) -> None:
        self.tally["decisions"] += 1
        reach = sum(one.traits["agent_radius"] for one in after)
        self.tally["touches"] += math.dist(after[0].place, after[1].place) < reach + 0.3
        for old, new in zip(before, after, strict=True):
            self.tally["hits"] += new.health < old.health
        if result is not None:
            self.tally[{1: "wins", 0: "draws", -1: "losses"}[result]] += 1
            self.tally["both fell"] += all(one.health <= 0 for one in after)
