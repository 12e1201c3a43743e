"""Past selves that act in one call of a kernel: each does what it would do alone."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch as th

from aimbot_lab.foundation.kernels.jit import COMPILED
from aimbot_lab.foundation.world import Float32Array, WorldSpec
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.fused.actor import ActorStack, Past
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.networks.settings import MemorySettings, UnitsSettings
from aimbot_lab.training.self_play.players import (
    FIRST_PLACES,
    AllByKernel,
    EachByTorch,
    new_players,
)
from aimbot_lab.training.self_play.pool import SnapshotPool
from aimbot_lab.training.self_play.session import PastSelves
from aimbot_lab.training.settings import MAX_FUSED_UNITS, NetworkSettings, TrainSettings
from aimbot_lab.worlds.registry import WORLDS, spec_of

ROWS = 150
SPEC: WorldSpec = spec_of(
    WORLDS["duel"].settings(num_envs=ROWS, learner="home", observation={"units": True})
)
SMALL = NetworkSettings(layers=(16,), activation="relu")
PARTS = replace(SMALL, scalars=(8,), units=UnitsSettings(layers=(8,)))
PLAIN = TrainSettings(algo="hybrid_ppo", network=SMALL)
KINDS: Mapping[str, TrainSettings] = MappingProxyType(
    {
        "plain": PLAIN,
        "hybrid with masks": replace(PLAIN, aim="hybrid", masks=True, objective="per_branch"),
        "everything": replace(
            PLAIN,
            aim="hybrid",
            masks=True,
            objective="per_branch",
            target="attention",
            network=replace(
                PARTS, scaling="running", memory=MemorySettings(size=6, sequence_length=4)
            ),
        ),
    }
)


def pool_of(train: TrainSettings, count: int) -> SnapshotPool:
    """Snapshots that differ in weights and, if they have any, in statistics."""
    pool, random = SnapshotPool(), th.Generator().manual_seed(3)
    for number in range(count):
        with th.random.fork_rng(devices=[]):
            th.manual_seed(number)
            weights = new_policy(train, SPEC).state_dict()
        changed = {
            name: 0.3 * th.rand(one.shape, generator=random, dtype=one.dtype) + 0.1
            if "statistics" in name
            else one + 0.3 * th.randn(one.shape, generator=random)
            for name, one in weights.items()
        }
        pool.take(changed, step=number)
    return pool


def seen(rows: int = ROWS, seed: int = 5) -> tuple[Float32Array, np.ndarray]:
    """Observations within their ranges, and masks that leave the first choice of each branch."""
    random = np.random.default_rng(seed)
    low, high = np.clip((SPEC.observation_low, SPEC.observation_high), -30.0, 30.0)
    observations = random.uniform(low, high, (rows, len(low))).astype(np.float32)
    masks = random.random((rows, sum(SPEC.branches))) < 0.6
    masks[:, np.cumsum([0, *SPEC.branches[:-1]])] = True
    return observations, masks


def past_of(train: TrainSettings) -> Past:
    """A third of the rows begin; the others remember what a network without a memory ignores."""
    size = train.network.memory.size if train.network.memory else 1
    memory = np.random.default_rng(4).normal(size=(ROWS, 2, size)).astype(np.float32)
    return Past(memory, np.arange(ROWS) % 3 == 0)


def alone(
    train: TrainSettings, pool: SnapshotPool, number: int, rows: np.ndarray, seed: int
) -> tuple[Float32Array, Float32Array | None]:
    """What the learner's engine does in `rows` with the noise of a step of all; its memory."""
    policy: Any = new_policy(train, SPEC)
    policy.load_state_dict(dict(pool.snapshots[number].weights))
    actor = FusedEngine(policy).actor
    actor._weights.load()
    actor.begin(1, len(rows))
    observations, masks = seen()
    shown = np.concatenate([observations, masks], axis=1, dtype=np.float32)
    shown = shown if train.masks else observations
    random, step = th.Generator().manual_seed(seed), actor._fitting_task().step
    actor.look(th.from_numpy(shown[rows]))
    for noise, draw in ((step.noise.uniform, th.rand), (step.noise.normal, th.randn)):
        noise[:] = draw(ROWS, noise.shape[1], generator=random).numpy()[rows]
    memory = None
    if train.network.memory:
        past, size = past_of(train), train.network.memory.size
        step.states.before[:, :, :size] = past.memory[rows]
        step.states.kept[:] = ~past.begins[rows]
    actor.choose(0)
    if train.network.memory:
        memory = step.states.after[:, :, :size]
    chosen = step.sampled.actions.astype(policy.action_space.dtype)
    return Agent(policy, SPEC, train).world_actions(chosen, observations[rows]), memory


def acted(
    train: TrainSettings, pool: SnapshotPool, sits: np.ndarray, seed: int, steps: int = 1
) -> tuple[Float32Array, Float32Array]:
    """The actions of the last of some steps, -1 where no snapshot sits; the memory after it."""
    players = new_players(pool.weights, SPEC, train, engine="fused")
    assert isinstance(players, AllByKernel)
    players.seat(sits, ())
    observations, masks = seen(len(sits))
    past = past_of(train)
    players.memory, players.random = past.memory, th.Generator().manual_seed(seed)
    for _ in range(steps):
        actions = np.full((len(sits), 4), -1.0, np.float32)
        players.act(observations, masks, past.begins, actions)
    return actions, players.memory


def assert_same(one: np.ndarray, other: np.ndarray) -> None:
    """To the bit; numpy's products, which are used without the compiler, depend on rows beside."""
    np.testing.assert_allclose(one, other, rtol=0.0, atol=0.0 if COMPILED else 1e-5)


def some_sits() -> np.ndarray:
    """70 rows of one snapshot, more than a piece, 30 of another, one of a third, 49 of nobody."""
    return np.random.default_rng(1).permutation(np.repeat([0, 2, 1, -1], [70, 30, 1, 49]))


@pytest.mark.parametrize("kind", KINDS)
def test_each_does_in_one_call_what_it_does_alone_to_the_bit(kind: str) -> None:
    train, sits = KINDS[kind], some_sits()
    pool = pool_of(train, 3)
    together, remembered = acted(train, pool, sits, seed=7)
    for number in range(3):
        rows = np.flatnonzero(sits == number)
        expected, memory = alone(train, pool, number, rows, seed=7)
        assert len(np.unique(expected, axis=0)) > len(rows) // 3
        assert_same(together[rows], expected)
        if memory is not None:
            assert_same(remembered[rows], memory)
    assert (together[sits < 0] == -1.0).all()


def test_the_number_of_threads_makes_no_difference() -> None:
    kind = KINDS["everything"]
    pool, sits = pool_of(kind, 3), some_sits()
    one, two = (
        acted(replace(kind, torch_threads=threads), pool, sits, seed=7, steps=100)
        for threads in (1, 2)
    )
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_there_is_room_for_more_and_places_are_taken_over() -> None:
    train, count = KINDS["everything"], FIRST_PLACES + 4
    pool = pool_of(train, count)
    players = AllByKernel(pool.weights, SPEC, train)
    observations, masks = seen()
    for first, last in ((0, 5), (4, 10), (2, count), (8, 10)):
        sits = np.arange(ROWS) % (last - first) + first
        players.seat(sits, ())
        actions = np.zeros((ROWS, 4), np.float32)
        past = past_of(train)
        players.memory, players.random = past.memory, th.Generator().manual_seed(7)
        players.act(observations, masks, past.begins, actions)
        np.testing.assert_array_equal(actions, acted(train, pool, sits, seed=7)[0])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    run = ActorStack.act

    def counted(self: ActorStack, *arguments: Any, **named: Any) -> Any:
        made.append(len(self.rows))
        return run(self, *arguments, **named)

    monkeypatch.setattr(ActorStack, "act", counted)
    return made


def past_selves(pool: SnapshotPool) -> PastSelves:
    found = PastSelves(pool, SPEC, PLAIN, played=("self",), seed=1)
    found.engine = "fused"
    found.begin(ROWS)
    return found


def test_a_step_is_one_call_however_many_snapshots_sit(calls: list[int]) -> None:
    found = past_selves(pool_of(PLAIN, 5))
    found.prepare()
    calls.clear()  # without what compiled the kernels
    found.line_up = (0, 1, 2, 3, 4)
    found.seat(np.arange(10, ROWS), ["self"] * (ROWS - 10))
    observations, masks = seen()
    for _ in range(3):
        found.act(observations, masks, np.zeros((ROWS, 4), np.float32))
    assert calls == [ROWS - 10] * 3


def test_other_networks_and_engines_act_by_torch() -> None:
    wide = replace(PLAIN, network=replace(SMALL, layers=(MAX_FUSED_UNITS + 1,)))
    for train, engine in ((wide, "fused"), (PLAIN, "torch")):
        players = new_players(pool_of(train, 1).weights, SPEC, train, engine=engine)
        assert isinstance(players, EachByTorch)


def test_a_copy_acts_by_memory_of_its_own() -> None:
    found = past_selves(pool_of(PLAIN, 2))
    found.line_up = (0, 1)
    found.seat(np.arange(ROWS), ["self"] * ROWS)
    observations, masks = seen()
    actions = np.zeros((2, ROWS, 4), np.float32)
    found.act(observations, masks, actions[0])
    twin = copy.deepcopy(found)
    for one, into in zip((found, twin), actions, strict=True):
        one.act(observations, masks, into)
    np.testing.assert_array_equal(*actions)


def test_a_copy_of_players_keeps_the_snapshots_that_the_original_gives_up() -> None:
    train, sits = KINDS["everything"], some_sits()
    pool = pool_of(train, 4)
    players = AllByKernel(pool.weights, SPEC, train)
    players.seat(sits, ())
    twin = copy.deepcopy(players)
    for place in range(3):
        players._stack.put(place, pool.weights(3))
    observations, masks = seen()
    past, actions = past_of(train), np.full((ROWS, 4), -1.0, np.float32)
    twin.memory, twin.random = past.memory, th.Generator().manual_seed(7)
    twin.act(observations, masks, past.begins, actions)
    np.testing.assert_array_equal(actions, acted(train, pool, sits, seed=7)[0])
