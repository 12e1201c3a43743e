"""Agents that play by kernels: in leagues, as players, and as past selves that act in one call."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch as th

from aimbot_lab.evaluation.matches import (
    EachAlone,
    MatchPlayer,
    pair_seed,
    play_pairs,
    script_player,
)
from aimbot_lab.evaluation.temperature import SAMPLED, Temperature
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.kernels.jit import COMPILED
from aimbot_lab.foundation.world import BatchWorld, Float32Array, Scenario, WorldSpec, step_buffers
from aimbot_lab.league import play_all
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.fused.actor import ActorStack, Past
from aimbot_lab.training.fused.engine import FusedEngine
from aimbot_lab.training.networks.settings import MemorySettings, UnitsSettings
from aimbot_lab.training.self_play.players import (
    FIRST_PLACES,
    AllByKernel,
    EachByTorch,
    agent_player,
    by_kernels,
    new_players,
)
from aimbot_lab.training.self_play.pool import SnapshotPool
from aimbot_lab.training.self_play.session import PastSelves
from aimbot_lab.training.settings import MAX_FUSED_UNITS, NetworkSettings, TrainSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import WORLDS, make_world, spec_of, type_of

GAMES, SEED = 24, 11
ENV = WORLDS["duel"].settings(num_envs=GAMES, learner="home", time_limit=4.0, health=1)
SPEC: WorldSpec = spec_of(ENV)
SMALL = NetworkSettings(layers=(8,))
PLAIN = TrainSettings(algo="hybrid_ppo", network=SMALL, torch_threads=2)
MEMORY = MemorySettings(size=6, sequence_length=4)
KINDS: Mapping[str, TrainSettings] = {
    "plain": PLAIN,
    "masks": replace(PLAIN, masks=True, aim="hybrid", objective="per_branch"),
    "memory": replace(PLAIN, network=replace(SMALL, memory=MEMORY)),
    "wide": replace(PLAIN, network=replace(SMALL, layers=(MAX_FUSED_UNITS + 1,))),
}


def agent_of(kind: str, seed: int) -> Agent:
    with th.random.fork_rng(devices=[]):
        th.manual_seed(seed)
        policy = new_policy(KINDS[kind], SPEC)
        for weight in policy.parameters():
            weight.data += 0.3 * th.randn(weight.shape)
    policy.set_training_mode(False)
    return Agent(policy, SPEC, KINDS[kind])


def player(kind: str, seed: int, **given: Any) -> MatchPlayer:
    return agent_player(f"{kind} {seed}", agent_of(kind, seed), step=seed, run="r", **given)


def script(name: str) -> MatchPlayer:
    kind = type_of(ENV)
    return script_player(name, kind.baselines(ENV)[name], make_world(ENV, GAMES))


def new_world() -> BatchWorld:
    world = make_world(type_of(ENV).match_settings(ENV), GAMES, one_thread=True)
    world.set_scenario(Scenario({"duel": 1.0}, {"duel": (1.0, 0.0, 0.0, 0.0, 0.0)}))
    return world


def league(players: Sequence[MatchPlayer]) -> np.ndarray:
    return play_all(players, new_world, SEED, on_pair=lambda _: None)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Torch's own threads only wait for each other where other tests run beside."""
    before = th.get_num_threads()
    th.set_num_threads(1)
    yield
    th.set_num_threads(before)


@pytest.fixture(scope="module")
def players() -> list[MatchPlayer]:
    kinds = (("plain", 1), ("plain", 2), ("masks", 1), ("memory", 1), ("masks", 2), ("wide", 1))
    return [*(player(*one) for one in kinds), script("random"), script("aimbot")]


@pytest.fixture(scope="module")
def counts(players: Sequence[MatchPlayer]) -> np.ndarray:
    return league(players)


def test_a_league_played_twice_is_the_same_to_the_bit(
    players: Sequence[MatchPlayer], counts: np.ndarray
) -> None:
    np.testing.assert_array_equal(league(players), counts)
    played = counts.sum(axis=2)
    assert (played == GAMES * (1 - np.eye(len(players), dtype=np.int64))).all()
    assert (counts[:, -1, 2] > counts[:, -1, 0])[:-1].all()  # the aimbot beats each of these
    assert len(np.unique(counts[:-2, :-2, 0])) > 3  # agents differ


def test_neither_others_nor_the_size_of_batches_change_what_comes_of_a_pair(
    players: Sequence[MatchPlayer], counts: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [0, 1, 3, 5, 7]
    monkeypatch.setattr("aimbot_lab.league.MOST", 3 * GAMES)
    found = league([players[k] for k in some])
    np.testing.assert_array_equal(found, counts[np.ix_(some, some)])


class Recorder:
    """A world that keeps what it was shown and told."""

    def __init__(self, world: BatchWorld) -> None:
        self._world, self.told = world, list[np.ndarray]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def step(self, actions: np.ndarray, buffers: Any) -> Any:
        self.told.append(actions.copy())
        return self._world.step(actions, buffers)


def first_actions(pair: tuple[MatchPlayer, MatchPlayer]) -> np.ndarray:
    """[2, G, A] what both do first."""
    world: Any = Recorder(new_world())
    play_pairs([pair], [world], seed=SEED, seat=by_kernels)
    return world.told[0].reshape(2, GAMES, -1)


@pytest.mark.parametrize("kind", ["plain", "masks", "memory"])
def test_kernels_choose_what_torchs_probabilities_say_for_the_same_draws(kind: str) -> None:
    pair = player(kind, 1), player(kind, 2)
    done, world = first_actions(pair), new_world()
    seen = np.zeros((2 * GAMES, len(SPEC.observation_names)), np.float32)
    masks = np.ones((2 * GAMES, sum(SPEC.branches)), np.bool_)
    world.reset(SEED, seen)
    world.action_masks(masks)
    for k, (one, side) in enumerate(zip(pair, ("home", "away"), strict=True)):
        agent: Agent = one.agent  # type: ignore[attr-defined]
        own = slice(k * GAMES, (k + 1) * GAMES)
        likely = agent.likely(seen[own], starts=np.ones(GAMES, np.bool_), branch_masks=masks[own])
        random = th.Generator().manual_seed(pair_seed(SEED, pair[0].name, pair[1].name, side))
        uniform = th.rand(GAMES, len(likely[0].choices), generator=random).numpy()
        for branch, shares in enumerate(likely[0].choices):
            ends, chance = shares.cumsum(axis=1), uniform[:, branch, None]
            clear = (np.abs(ends - chance) > 1e-5).all(axis=1)
            chosen = (ends <= chance).sum(axis=1)
            if branch == len(SPEC.branches):
                taken = np.abs(agent.bins[0] - done[k, :, branch, None]).argmin(axis=1)
            else:
                taken = done[k, :, branch]
            assert clear.mean() > 0.9
            np.testing.assert_array_equal(taken[clear], chosen[clear])
        if likely[0].means is not None:
            normal = th.randn(GAMES, 1, generator=random).numpy()[:, 0]
            mouse = likely[0].means[:, 0] + likely[0].deviation * normal
            limit = SPEC.continuous_limit
            np.testing.assert_allclose(
                done[k, :, -1].clip(-limit, limit), mouse.clip(-limit, limit), atol=1e-4
            )


@pytest.mark.parametrize("kind", ["wide", "cooler"])
def test_who_is_nothing_for_the_kernels_plays_by_torch(kind: str) -> None:
    given = {"temperature": Temperature(0.5)} if kind == "cooler" else {}
    one = player("plain" if kind == "cooler" else kind, 1, **given)
    (players,) = by_kernels([(one, 0)])
    assert isinstance(players, EachAlone)
    pair = one, script("aimbot")
    alone = play_pairs([pair], [new_world()], seed=SEED)
    assert play_pairs([pair], [new_world()], seed=SEED, seat=by_kernels) == alone


def test_a_network_without_an_answer_is_refused_in_a_line() -> None:
    broken = player("plain", 1)
    for weight in broken.agent.policy.parameters():  # type: ignore[attr-defined]
        weight.data[:] = float("nan")
    with pytest.raises(LabError, match="network outputs NaN or infinity"):
        league([broken, player("plain", 2)])


TRAIN = TrainSettings(network=NetworkSettings(layers=(8,)))


@pytest.fixture(scope="module")
def world() -> BatchWorld:
    world = make_world(ArenaSettings(num_envs=8))
    world.set_scenario(Scenario({"free": 1.0}))
    return world


@pytest.fixture(scope="module")
def agent(world: BatchWorld) -> Agent:
    th.manual_seed(1)
    return Agent(new_policy(TRAIN, world.spec), world.spec, TRAIN)


def actions(agent: Agent, world: BatchWorld, *, seed: int) -> Float32Array:
    player = agent.player(world, temperature=SAMPLED, seed=seed)
    buffers, taken = step_buffers(world), []
    world.reset(5, buffers.observations)
    buffers.finished[:] = True  # where episodes begin
    for _ in range(5):
        taken.append(player(buffers.observations, buffers.finished.copy()))
        world.step(taken[-1], buffers)
    return np.stack(taken)


def test_sampled_actions_follow_from_the_players_seed_and_leave_torchs_numbers_to_the_training(
    agent: Agent, world: BatchWorld
) -> None:
    th.manual_seed(3)
    undisturbed = th.rand(4)
    th.manual_seed(3)
    one, again, other = (actions(agent, world, seed=seed) for seed in (1, 1, 2))
    assert th.equal(th.rand(4), undisturbed)
    np.testing.assert_array_equal(one, again)
    assert len(np.unique(one[:, 0], axis=0)) > 1  # each step draws anew
    assert not np.array_equal(one, other)


ROWS, DRAWN = 150, 7  # seed
SEEING: WorldSpec = spec_of(
    WORLDS["duel"].settings(num_envs=ROWS, learner="home", observation={"units": True})
)
STACKED: Mapping[str, TrainSettings] = {
    "plain": PLAIN,
    "hybrid with masks": KINDS["masks"],
    "everything": replace(
        KINDS["masks"],
        target="attention",
        network=replace(
            SMALL, scalars=(8,), units=UnitsSettings(layers=(8,)), scaling="running", memory=MEMORY
        ),
    ),
}


def pool_of(train: TrainSettings, count: int) -> SnapshotPool:
    """Snapshots that differ in weights and, if they have any, in statistics."""
    pool, random = SnapshotPool(), th.Generator().manual_seed(3)
    for number in range(count):
        with th.random.fork_rng(devices=[]):
            th.manual_seed(number)
            weights = new_policy(train, SEEING).state_dict()
        changed = {
            name: 0.3 * th.rand(one.shape, generator=random, dtype=one.dtype) + 0.1
            if "statistics" in name
            else one + 0.3 * th.randn(one.shape, generator=random)
            for name, one in weights.items()
        }
        pool.take(changed, step=number)
    return pool


def seen() -> tuple[Float32Array, np.ndarray]:
    """Observations within their ranges, and masks that leave the first choice of each branch."""
    random = np.random.default_rng(5)
    low, high = np.clip((SEEING.observation_low, SEEING.observation_high), -30.0, 30.0)
    observations = random.uniform(low, high, (ROWS, len(low))).astype(np.float32)
    masks = random.random((ROWS, sum(SEEING.branches))) < 0.6
    masks[:, np.cumsum([0, *SEEING.branches[:-1]])] = True
    return observations, masks


def past_of(train: TrainSettings) -> Past:
    """A third of the rows begin; the others remember what a network without a memory ignores."""
    size = train.network.memory.size if train.network.memory else 1
    memory = np.random.default_rng(4).normal(size=(ROWS, 2, size)).astype(np.float32)
    return Past(memory, np.arange(ROWS) % 3 == 0)


def alone(
    train: TrainSettings, pool: SnapshotPool, number: int, rows: np.ndarray
) -> tuple[Float32Array, Float32Array | None]:
    """What the learner's engine does in `rows` with the noise of a step of all; its memory."""
    policy: Any = new_policy(train, SEEING)
    policy.load_state_dict(dict(pool.snapshots[number].weights))
    actor = FusedEngine(policy).actor
    actor._weights.load()
    actor.begin(1, len(rows))
    observations, masks = seen()
    shown = np.concatenate([observations, masks], axis=1, dtype=np.float32)
    shown = shown if train.masks else observations
    random, step = th.Generator().manual_seed(DRAWN), actor._fitting_task().step
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
    return Agent(policy, SEEING, train).world_actions(chosen, observations[rows]), memory


def acted(
    train: TrainSettings, pool: SnapshotPool, sits: np.ndarray, steps: int = 1
) -> tuple[Float32Array, Float32Array]:
    """The actions of the last of some steps, -1 where no snapshot sits; the memory after it."""
    players = new_players(pool.weights, SEEING, train, engine="fused")
    assert isinstance(players, AllByKernel)
    players.seat(sits, ())
    return actions_of(players, train, steps=steps), players.memory


def actions_of(players: AllByKernel, train: TrainSettings, *, steps: int = 1) -> Float32Array:
    """What `players` do in the last of some steps, -1 where no snapshot sits."""
    (observations, masks), past = seen(), past_of(train)
    players.memory, players.random = past.memory, th.Generator().manual_seed(DRAWN)
    for _ in range(steps):
        actions = np.full((ROWS, 4), -1.0, np.float32)
        players.act(observations, masks, past.begins, actions)
    return actions


def assert_same(one: np.ndarray, other: np.ndarray) -> None:
    """To the bit; numpy's products, which are used without the compiler, depend on rows beside."""
    np.testing.assert_allclose(one, other, rtol=0.0, atol=0.0 if COMPILED else 1e-5)


def some_sits() -> np.ndarray:
    """70 rows of one snapshot, more than a piece, 30 of another, one of a third, 49 of nobody."""
    return np.random.default_rng(1).permutation(np.repeat([0, 2, 1, -1], [70, 30, 1, 49]))


@pytest.mark.parametrize("kind", STACKED)
def test_each_does_in_one_call_what_it_does_alone_to_the_bit(kind: str) -> None:
    train, sits = STACKED[kind], some_sits()
    pool = pool_of(train, 3)
    together, remembered = acted(train, pool, sits)
    for number in range(3):
        rows = np.flatnonzero(sits == number)
        expected, memory = alone(train, pool, number, rows)
        assert len(np.unique(expected, axis=0)) > len(rows) // 3
        assert_same(together[rows], expected)
        if memory is not None:
            assert_same(remembered[rows], memory)
    assert (together[sits < 0] == -1.0).all()


def test_the_number_of_threads_makes_no_difference() -> None:
    kind = STACKED["everything"]
    pool, sits = pool_of(kind, 3), some_sits()
    one, two = (
        acted(replace(kind, torch_threads=threads), pool, sits, steps=100) for threads in (1, 2)
    )
    for ours, theirs in zip(one, two, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_there_is_room_for_more_and_places_are_taken_over() -> None:
    train, count = STACKED["everything"], FIRST_PLACES + 4
    pool = pool_of(train, count)
    players = AllByKernel(pool.weights, SEEING, train)
    for first, last in ((0, 5), (4, 10), (2, count), (8, 10)):
        sits = np.arange(ROWS) % (last - first) + first
        players.seat(sits, ())
        np.testing.assert_array_equal(actions_of(players, train), acted(train, pool, sits)[0])


def past_selves(pool: SnapshotPool) -> PastSelves:
    found = PastSelves(pool, SEEING, PLAIN, played=("self",), seed=1)
    found.engine = "fused"
    found.begin(ROWS)
    return found


def test_a_step_is_one_call_however_many_snapshots_sit(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, act = list[int](), ActorStack.act
    monkeypatch.setattr(
        ActorStack,
        "act",
        lambda me, *a, **named: calls.append(len(me.rows)) or act(me, *a, **named),
    )
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
        players = new_players(pool_of(train, 1).weights, SEEING, train, engine=engine)
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
    train, sits = STACKED["everything"], some_sits()
    pool = pool_of(train, 4)
    players = AllByKernel(pool.weights, SEEING, train)
    players.seat(sits, ())
    twin = copy.deepcopy(players)
    for place in range(3):
        players._stack.put(place, pool.weights(3))
    np.testing.assert_array_equal(actions_of(twin, train), acted(train, pool, sits)[0])
