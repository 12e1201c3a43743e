"""Agents that play: by kernels for leagues, and as players."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
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
from aimbot_lab.foundation.world import (
    BatchWorld,
    Float32Array,
    Scenario,
    WorldSpec,
    new_step_buffers,
)
from aimbot_lab.league.league import play_all
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.networks.settings import MemorySettings
from aimbot_lab.training.self_play.players import agent_player, by_kernels
from aimbot_lab.training.settings import MAX_FUSED_UNITS, NetworkSettings, TrainSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import WORLDS, make_world, spec_of, type_of

GAMES, SEED = 24, 11
ENV = WORLDS["duel"].settings(num_envs=GAMES, learner="home", time_limit=4.0, health=1)
SPEC: WorldSpec = spec_of(ENV)
SMALL = NetworkSettings(layers=(8,))
PLAIN = TrainSettings(algo="hybrid_ppo", network=SMALL, torch_threads=2)
KINDS: Mapping[str, TrainSettings] = MappingProxyType(
    {
        "plain": PLAIN,
        "masks": replace(PLAIN, masks=True, aim="hybrid", objective="per_branch"),
        "memory": replace(
            PLAIN, network=replace(SMALL, memory=MemorySettings(size=6, sequence_length=4))
        ),
        "wide": replace(PLAIN, network=replace(SMALL, layers=(MAX_FUSED_UNITS + 1,))),
    }
)


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
    monkeypatch.setattr("aimbot_lab.league.league.MOST", 3 * GAMES)
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


def actions(
    agent: Agent, world: BatchWorld, *, seed: int, temperature: Temperature
) -> Float32Array:
    player = agent.player(world, temperature=temperature, seed=seed)
    buffers = new_step_buffers(world.num_envs, len(world.spec.observation_names))
    world.reset(5, buffers.observations)
    taken = []
    starts = np.ones(world.num_envs, np.bool_)
    for _ in range(5):
        taken.append(player(buffers.observations, starts))
        world.step(taken[-1], buffers)
        starts = buffers.finished.copy()
    return np.stack(taken)


def test_sampled_actions_follow_from_the_players_seed(agent: Agent, world: BatchWorld) -> None:
    one, again, other = (actions(agent, world, seed=s, temperature=SAMPLED) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert len(np.unique(one[:, 0], axis=0)) > 1  # each step draws anew
    assert not np.array_equal(one, other)


def test_a_player_leaves_torchs_random_numbers_to_the_training(
    agent: Agent, world: BatchWorld
) -> None:
    th.manual_seed(3)
    undisturbed = th.rand(4)
    th.manual_seed(3)
    actions(agent, world, seed=1, temperature=SAMPLED)
    assert th.equal(th.rand(4), undisturbed)
