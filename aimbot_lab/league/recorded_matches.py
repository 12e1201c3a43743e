"""Matches of an agent against another, recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aimbot_lab.evaluation.episodes import cell_scenario, evaluation_seed
from aimbot_lab.evaluation.matches import Fixture, MatchPlayer, longest, seated
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.recording import wanted_cells
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.world import seats_of, step_buffers
from aimbot_lab.league.opponents import as_player, shown_name
from aimbot_lab.replay.episode import About, RecordedEpisode, Replay, as_replay, recorders
from aimbot_lab.worlds.registry import make_world, type_of


@dataclass(frozen=True)
class MatchRequest:
    """Which matches to record."""

    episodes: int  # in all; they take the difficulties by turns
    seed: int
    temperature: Temperature | None = None
    difficulty: int | None = None  # None: those of the last lesson


def match_levels(agent: TrackedAgent, difficulty: int | None) -> Sequence[int]:
    """The difficulties of the run's last lesson, or the one that is wanted.

    Raises ConfigurationError where there is none such.
    """
    env = agent.config.env
    count = next(iter(type_of(env).targets(env).values()))
    if difficulty is not None:
        if not 1 <= difficulty <= count:
            raise ConfigurationError(f"--difficulty: there is none {difficulty}: 1 to {count}")
        return [difficulty]
    return sorted({cell.difficulty for cell in wanted_cells(agent, None, None)})


def record_matches(
    agent: TrackedAgent,
    opponent: MatchPlayer,
    request: MatchRequest,
    *,
    on_episode: Callable[[str], None],
) -> tuple[Replay, ...]:
    """Matches of `agent` at home against `opponent`, under the parameters of its last lesson."""
    home = as_player(agent, temperature=request.temperature)
    levels = match_levels(agent, request.difficulty)
    counts = [len(range(place, request.episodes, len(levels))) for place in range(len(levels))]
    columns = []
    for level, count in zip(levels, counts, strict=True):
        if not count:
            continue
        played = _played(home, opponent, _fixture(agent, level, count=count, seed=request.seed))
        about = _about(agent, home, opponent, request=request)
        columns.append([as_replay(one, about) for one in played])
        for _ in played:
            on_episode(f"difficulty {level}")
    return tuple(columns[i % len(levels)][i // len(levels)] for i in range(request.episodes))


def _fixture(agent: TrackedAgent, level: int, *, count: int, seed: int) -> Fixture:
    """So many matches of a difficulty, about to begin."""
    kind, env = type_of(agent.config.env), agent.config.env
    settings = kind.match_settings(env)
    target, levels = next(iter(kind.targets(settings).items()))
    cell = Cell(target, level)
    world = make_world(settings, count)
    world.set_scenario(cell_scenario(cell, levels, dict(agent.config.lessons[-1].parameters)))
    return Fixture(world, evaluation_seed(seed, cell))


def _played(home: MatchPlayer, away: MatchPlayer, fixture: Fixture) -> Sequence[RecordedEpisode]:
    """The first match of each row, recorded. Raises RunFailedError where one does not end."""
    world, buffers = fixture.world, step_buffers(fixture.world)
    sides = seated(home, away, fixture)
    world.reset(fixture.seed, buffers.observations)
    running, found = dict(enumerate(recorders(world))), {}
    starts = np.ones(seats_of(world), np.bool_)
    for _ in range(longest(world)):
        actions = sides(buffers.observations, starts)
        batch = world.step(actions, buffers)
        starts = buffers.finished.copy()
        for row, recorder in list(running.items()):
            episode = recorder.add(actions, batch)
            if episode is not None:
                del running[row]
                found[row] = episode
        if not running:
            return [found[row] for row in range(world.num_envs)]
    raise RunFailedError(f"{home.name} and {away.name}: a match does not end")


def _about(
    agent: TrackedAgent, home: MatchPlayer, away: MatchPlayer, *, request: MatchRequest
) -> About:
    temperature = agent.saved.agent.temperature(request.temperature)
    return {
        "run": agent.run.run_id,
        "name": agent.run.name,
        "home": shown_name(home),
        "away": shown_name(away),
        "agent": agent.which,
        "step": agent.step,
        "player": temperature.label,
        "temperature": temperature,
        "seed": request.seed,
    }
