"""The aimbot: the strongest scripted player, which sees what an agent sees and no more."""

from collections.abc import Mapping, Sequence

import numpy as np

from aimbot_lab.foundation.world import BatchWorld, BoolArray, Float32Array, WorldSpec
from aimbot_lab.foundation.world_type import Act, MakePlayer, RandomAgent
from aimbot_lab.worlds.arena.world_type import PLAYER, GreedyAgent
from aimbot_lab.worlds.duel.core.state import ACTION_COLUMNS
from aimbot_lab.worlds.duel.settings import DuelSettings

FORWARD, BACK = 1, 2  # indices of the vertical branch
RIGHT, LEFT = 1, 2  # of the horizontal branch
VERTICAL, HORIZONTAL, ATTACK, MOUSE = range(4)  # columns of an action
SURE = 0.8  # share of the disc's half angle within which it shoots
STRAFE = 7  # decisions to one side
PATROL = 60  # decisions along one hand's walls
CHASE = 15.0  # decisions that it goes on to where it saw the opponent last
NEAR, FAR = 4.0, 9.0  # m: it backs off below, and comes nearer beyond
FREE_AHEAD = 2.0  # m of floor ahead from which it walks on
KEPT_OFF, LOST = 1.6, 3.0  # m: nearer to the wall at its hand it turns off, farther towards it
TURN_OFF, TURN_TO = 0.25, 0.12  # rad a decision
TO_TURN, TO_CHASE, LAST_CLOCK, PHASE = range(4)  # columns of the memory
MEMORY = 4
HASH = 2_654_435_761  # Knuth's multiplicative hash, the low 32 bits of which it uses
Floats = np.ndarray


class Aimbot:
    """Turns to the middle of the opponent by the rays that hit it, and shoots when it is on it.

    It strafes to and fro while it fights. It turns towards where it was hit from, goes on to where
    it saw the opponent last, else patrols along walls. What it remembers of a match lies in
    `memory` [N, 4]: rad that it still turns, decisions that it still chases, the clock it saw last,
    and a number that is drawn from where the match began and the seed. Which way it goes next
    depends on that number and the clock.
    """

    def __init__(self, spec: WorldSpec, settings: DuelSettings, seed: int) -> None:
        column = {name: index for index, name in enumerate(spec.observation_names)}
        angles = np.array(settings.rays.angles)
        rays = range(len(angles))
        one_hot = settings.rays.tags == "one_hot"
        self._label = 1.0 if one_hot else PLAYER.label
        tag = PLAYER.one_hot if one_hot else "tag"
        self._tags = [column[f"ray_{ray}_{tag}"] for ray in rays]
        self._distances = [column[f"ray_{ray}_distance"] for ray in rays]
        self._along = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # [R, 2] ahead, right
        self._hit = [column["hit_ahead"], column["hit_right"]]
        self._clock, self._ready = column["time_left"], column["gun_ready"]
        self._radius, self._step = settings.agent_radius, spec.decision_seconds
        self._stride = settings.move_speed * self._step  # m
        self._limit = spec.continuous_limit
        self._turn = settings.mouse_factor
        self._seed = seed
        self._place = [column[name] for name in ("agent_x", "agent_z", "cos_yaw")]
        self.memory = np.zeros((0, MEMORY))

    def __call__(
        self, observations: Float32Array, _starts: BoolArray | None = None
    ) -> Float32Array:
        """Actions [N, 4] for raw `observations` [N, D]; a clock that rises begins a match."""
        if len(self.memory) != len(observations):
            self.memory = np.zeros((len(observations), MEMORY))
        self._begin(observations)
        sight, actions = self._look(observations), np.zeros((len(observations), 4), np.float32)
        seen = sight[0]
        turns = np.where(seen, self._fight(observations, sight, actions), 0.0)
        lost = ~seen
        turns[lost] = self._seek(observations, actions)[lost]
        reach = self._limit * self._turn
        done = turns.clip(-reach, reach)
        self.memory[:, TO_TURN] = np.where(seen, 0.0, turns - done)
        self.memory[:, TO_CHASE] = np.where(
            seen, CHASE, np.maximum(self.memory[:, TO_CHASE] - 1.0, 0.0)
        )
        actions[:, MOUSE] = done / self._turn
        return actions

    def _begin(self, observations: Float32Array) -> None:
        """Forget the last match where a new one has begun."""
        clock = observations[:, self._clock]
        starts = clock > self.memory[:, LAST_CLOCK]
        place = (observations[starts][:, self._place] * 1024.0).astype(np.int64)
        primes = np.array([7919, 104_729, 1_299_709])
        drawn = (place @ primes + self._seed % 2**31) * HASH % 2**32
        self.memory[starts] = 0.0
        self.memory[starts, PHASE] = drawn >> 8
        self.memory[:, LAST_CLOCK] = clock

    def _look(self, observations: Float32Array) -> tuple[BoolArray, Floats, Floats]:
        """[N] whether the opponent is seen, and metres ahead and to the right to its middle.

        That is on the far side of the points that rays hit.
        """
        hit = observations[:, self._tags] == self._label
        seen = hit.any(axis=1)
        first = hit.argmax(axis=1)
        last = hit.shape[1] - 1 - hit[:, ::-1].argmax(axis=1)
        rows = np.arange(len(hit))
        distances = observations[:, self._distances].astype(np.float64)
        one = distances[rows, first, None] * self._along[first]
        two = distances[rows, last, None] * self._along[last]
        middle = (one + two) / 2
        chord = np.hypot(*(two - one).T) / 2
        depth = np.sqrt(np.maximum(self._radius**2 - chord**2, 0.0))
        away = np.maximum(np.hypot(*middle.T), 1e-9)
        ahead, right = (middle * (1.0 + depth / away)[:, None]).T
        return seen, ahead, right

    def _fight(
        self,
        observations: Float32Array,
        sight: tuple[BoolArray, Floats, Floats],
        actions: Float32Array,
    ) -> Floats:
        """Turns [N] in rad to the opponent as it will be seen after a step aside; writes the rest.

        The gun shoots after the walk, so the own step is allowed for.
        """
        seen, ahead, right = sight
        side = np.where(self._coin(observations, STRAFE), 1.0, -1.0)
        away = np.hypot(ahead, right)
        turns: Floats = np.arctan2(right - side * self._stride, ahead)
        reach = self._limit * self._turn
        off = np.abs(turns - turns.clip(-reach, reach))
        disc = np.arcsin(np.minimum(self._radius / np.maximum(away, self._radius), 1.0))
        on_it = seen & (off <= SURE * disc) & (observations[:, self._ready] > 0)
        actions[:, HORIZONTAL] = np.where(seen, np.where(side > 0, RIGHT, LEFT), 0)
        closer = np.where(away > FAR, FORWARD, np.where(away < NEAR, BACK, 0))
        actions[:, VERTICAL] = np.where(seen & ~on_it, closer, 0)
        actions[:, ATTACK] = on_it
        return turns

    def _seek(self, observations: Float32Array, actions: Float32Array) -> Floats:
        """Turns [N] in rad of agents that see no opponent; writes their walk until they see one."""
        hit_ahead, hit_right = observations[:, self._hit].T.astype(np.float64)
        was_hit = (hit_ahead != 0.0) | (hit_right != 0.0)
        turns = np.where(was_hit, np.arctan2(hit_right, hit_ahead), self.memory[:, TO_TURN])
        idle = np.abs(turns) < 1e-6
        distances = observations[:, self._distances]
        free = distances[:, len(self._tags) // 2] > FREE_AHEAD
        hand = np.where(self._coin(observations, PATROL), 1.0, -1.0)  # right or left
        beside = np.where(hand > 0, distances[:, -1], distances[:, 0])
        along = np.where(beside < KEPT_OFF, -TURN_OFF, np.where(beside > LOST, TURN_TO, 0.0)) * hand
        along = np.where(free, along, -hand * self._limit * self._turn)
        chasing = (self.memory[:, TO_CHASE] > 0) & free
        along = np.where(chasing, 0.0, along)
        walks = np.where(free & idle, FORWARD, 0)
        actions[:, VERTICAL] = np.where(actions[:, HORIZONTAL] == 0, walks, actions[:, VERTICAL])
        found: Floats = np.where(idle, along, turns)
        return found

    def _coin(self, observations: Float32Array, decisions: int) -> BoolArray:
        """[N] A side that each keeps for `decisions` decisions."""
        phase = self.memory[:, PHASE].astype(np.int64)
        made = np.rint(observations[:, self._clock] / self._step).astype(np.int64)
        word = ((made + phase % 1009) // decisions + phase) * HASH % 2**32
        sides: BoolArray = (word >> 16) % 2 == 0
        return sides


def stand_still(observations: Float32Array, _starts: BoolArray | None = None) -> Float32Array:
    """Actions [N, 4] of who does nothing."""
    return np.zeros((len(observations), ACTION_COLUMNS), np.float32)


class EachAgent:
    """A player of its own for each agent of a world, so that two of a kind do not play alike."""

    def __init__(self, players: Sequence[Act]) -> None:
        self._players = players

    def __call__(self, observations: Float32Array, starts: BoolArray) -> Float32Array:
        """Actions [N, 4], agent by agent."""
        parts = np.split(observations, len(self._players))
        made = zip(self._players, parts, strict=True)
        return np.concatenate([player(seen, starts) for player, seen in made])


def make_players(settings: DuelSettings) -> Mapping[str, MakePlayer]:
    """Who makes each player of a duel with `settings`, from the weakest to the strongest."""

    def greedy(world: BatchWorld, _seed: int) -> Act:
        rays, turn = settings.rays, settings.mouse_factor
        return GreedyAgent(world.spec, rays=rays, turn_per_unit=turn, enemy=PLAYER)

    def aimbot(world: BatchWorld, seed: int) -> Act:
        own = [Aimbot(world.spec, settings, seed + 7 * k) for k in range(world.spec.agents)]
        return own[0] if len(own) == 1 else EachAgent(own)

    return {
        "still": lambda _world, _seed: stand_still,
        "random": lambda world, seed: RandomAgent(world.spec, seed),
        "greedy": greedy,
        "aimbot": aimbot,
    }
