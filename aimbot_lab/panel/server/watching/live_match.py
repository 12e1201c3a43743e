"""Matches of a watched agent against those that its training has it meet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aimbot_lab.evaluation.episodes import cell_scenario
from aimbot_lab.evaluation.matches import MatchPlayer, Sides, script_player
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.replays import ReplayRow
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.foundation.world_type import Act
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.self_play.seated_agent import agent_player
from aimbot_lab.worlds.registry import make_world, type_of

ITSELF = "itself"


class PastAgents(Protocol):
    """Past selves of an agent, by their names."""

    def names(self) -> list[str]:
        """What they are called, the first first."""
        ...

    def agent(self, name: str) -> Agent:
        """One of them. Raises LabError where it can't be read."""
        ...


class NoPastAgents:
    """Nobody."""

    def names(self) -> list[str]:
        """None."""
        return []

    def agent(self, name: str) -> Agent:
        """Never asked."""
        raise KeyError(name)


@dataclass(frozen=True)
class OpenedRow:
    """An episode that is about to begin, and who plays it."""

    row: ReplayRow
    player: Act
    settings: Any  # of the row's world
    buffers: StepBuffers
    names: tuple[str, ...] = ()  # of the agents of a match


def opened_match(
    config: CurriculumFile, saved: SavedAgent, mix: Scenario, past: PastAgents, *, seed: int
) -> OpenedRow:
    """A match of `saved` at home against an opponent drawn from `mix` by `seed`."""
    kind, random = type_of(config.env), np.random.default_rng(seed)
    replays = kind.replays
    assert replays is not None
    target, level = drawn_cell(mix, random)
    opponent = _opponent(config, saved, target, past, random=random)
    settings = replays.row_settings(config.env)
    world = make_world(settings, 1, one_thread=True)
    own, levels = next(iter(kind.targets(settings).items()))
    world.set_scenario(cell_scenario(Cell(own, level), levels, mix.parameters))
    buffers = step_buffers(world)
    world.reset(seed, buffers.observations)
    start = replays.row_start(world, 0)
    assert start is not None
    row = replays.replay_row(settings, start, make_world)
    home = agent_player("home", saved.agent, step=0, run="").sit(derive_seed(seed, "home"))
    sides = Sides(row.world, home, opponent.sit(derive_seed(seed, "away")))
    step = int(saved.about.get("step", 0))
    return OpenedRow(row, sides, settings, buffers, (f"agent, step {step:,}", opponent.name))


def drawn_cell(mix: Scenario, random: np.random.Generator) -> tuple[str, int]:
    """A target and a difficulty, as often as `mix` weighs them."""
    target = _drawn(mix.targets, random)
    weights = mix.difficulty.get(target, (1.0,))
    return target, _drawn(dict(enumerate(weights, start=1)), random)


def _drawn(weights: Mapping[Any, float], random: np.random.Generator) -> Any:
    shares = np.array([*weights.values()], np.float64)
    return [*weights][int(random.choice(len(shares), p=shares / shares.sum()))]


def _opponent(
    config: CurriculumFile,
    saved: SavedAgent,
    target: str,
    past: PastAgents,
    *,
    random: np.random.Generator,
) -> MatchPlayer:
    """Who sits opposite in a match of `target`; in the share of mirrored ones it is itself."""
    kind, own = type_of(config.env), config.self_play
    scripts = kind.baselines(config.env)
    mirrored = own is not None and random.random() < own.play_against_latest_model_ratio
    if target in scripts and not mirrored:
        single = make_world(kind.single_settings(config.env), 1)
        return script_player(target, scripts[target], single)
    names = [] if mirrored else past.names()
    if not names:
        return agent_player(ITSELF, saved.agent, step=0, run="")
    name = names[int(random.integers(len(names)))]
    return agent_player(name, past.agent(name), step=0, run="")
