"""Episodes of a tracked run's agent, recorded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from aimbot_lab.evaluation.episodes import (
    cell_scenario,
    endless,
    evaluation_seed,
    longest_episode,
)
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.evaluation import last_lesson, max_steps_of
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import cell_name
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import BatchWorld, closing, seats_of, step_buffers
from aimbot_lab.replay.episode import About, RecordedEpisode, Replay, as_replay, recorders
from aimbot_lab.worlds.registry import make_world, spec_of

OnEpisode = Callable[[str], None]  # what was played


@dataclass(frozen=True)
class RecordingRequest:
    """Which episodes to record."""

    episodes: int  # in all; they take the cells by turns
    seed: int
    temperature: Temperature | None = None  # None: the one that agents are advised to play at
    target: str | None = None  # of the last lesson's; None: all of them
    difficulty: int | None = None
    max_steps: int | None = None  # of an episode; see `evaluation.episodes.longest_episode`


def record_agent(
    agent: TrackedAgent, request: RecordingRequest, *, on_episode: OnEpisode
) -> tuple[Replay, ...]:
    """Episodes of `agent` in the cells of its last lesson, which begin as those of an evaluation.

    Raises ConfigurationError where the world has no replays, or the lesson no such cell.
    """
    env = agent.config.env
    if not spec_of(env).can("replay"):
        raise ConfigurationError(
            f"the world {env.world} has no replays: its episodes can't be recorded or filmed"
        )
    cells = wanted_cells(agent, request.target, request.difficulty)
    counts = [len(range(place, request.episodes, len(cells))) for place in range(len(cells))]
    columns = [
        _played(agent, request, cell, count=count, on_episode=on_episode)
        for cell, count in zip(cells, counts, strict=True)
        if count
    ]
    return tuple(columns[i % len(cells)][i // len(cells)] for i in range(request.episodes))


def wanted_cells(agent: TrackedAgent, target: str | None, difficulty: int | None) -> Sequence[Cell]:
    """Those of the cells of the run's last lesson that are of `target` and `difficulty`, if given.

    Raises ConfigurationError where there is none.
    """
    cells = last_lesson(agent.config, episodes=1, seed=0).cells
    wanted = [
        cell
        for cell in cells
        if target in (None, cell.target) and difficulty in (None, cell.difficulty)
    ]
    if not wanted:
        there = ", ".join(cell_name(*cell) for cell in cells)
        raise ConfigurationError(f"the run's last lesson has no such cell; it has {there}")
    return wanted


def _played(
    agent: TrackedAgent,
    request: RecordingRequest,
    cell: Cell,
    *,
    count: int,
    on_episode: OnEpisode,
) -> Sequence[Replay]:
    lesson = agent.config.lessons[-1]
    recorded: dict[int, Replay] = {}
    with closing(make_world(agent.config.env, count)) as arena:
        levels = arena.spec.difficulties[cell.target]
        arena.set_scenario(cell_scenario(cell, levels, dict(lesson.parameters)))
        for row, episode in _first_episodes(agent, request, cell, arena=arena):
            recorded[row] = as_replay(episode, _about(agent, request, row))
            on_episode(cell_name(*cell))
    return [recorded[row] for row in range(count)]


def _first_episodes(
    agent: TrackedAgent, request: RecordingRequest, cell: Cell, *, arena: BatchWorld
) -> Iterator[tuple[int, RecordedEpisode]]:
    player = agent.saved.agent.player(
        arena,
        temperature=request.temperature,
        seed=derive_seed(request.seed, "player", *cell),
    )
    buffers = step_buffers(arena)
    starts = np.ones(seats_of(arena), np.bool_)
    arena.reset(evaluation_seed(request.seed, cell), buffers.observations)
    running = dict(enumerate(recorders(arena)))
    limit = longest_episode(arena.spec, max_steps_of(agent.config, request.max_steps))
    steps = 0
    while running:
        if steps == limit:
            raise endless(cell, running=len(running), rows=arena.num_envs, steps=limit)
        steps += 1
        actions = player(buffers.observations, starts)
        ended = arena.step(actions, buffers)
        starts = buffers.finished.copy()
        for row, recorder in list(running.items()):
            episode = recorder.add(actions, ended)
            if episode is not None:
                del running[row]
                yield row, episode


def _about(agent: TrackedAgent, request: RecordingRequest, row: int) -> About:
    temperature = agent.saved.agent.temperature(request.temperature)
    return {
        "run": agent.run.run_id,
        "name": agent.run.name,
        "lesson": len(agent.config.lessons),
        "lesson_name": agent.config.lessons[-1].name,
        "agent": agent.which,
        "step": agent.step,
        "player": temperature.label,
        "temperature": temperature,
        "seed": request.seed,
        "episode": row,
    }
