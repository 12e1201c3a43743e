"""Episodes of a tracked run's agent as a demonstration for ML-Agents."""

from collections.abc import Iterator

import numpy as np

from aimbot_lab.evaluation.episodes import cell_scenario, endless, evaluation_seed, longest_episode
from aimbot_lab.experiment.analysis.evaluation import max_steps_of
from aimbot_lab.experiment.analysis.recording import OnEpisode, RecordingRequest, wanted_cells
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import cell_name
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    StepBuffers,
    closing,
    step_buffers,
)
from aimbot_lab.mlagents.demonstration import Demonstrated, demonstration
from aimbot_lab.worlds.registry import make_world, spec_of


def demonstrate(agent: TrackedAgent, request: RecordingRequest, *, on_episode: OnEpisode) -> bytes:
    """A demonstration file of `agent` in the cells of its last lesson, one episode after another.

    They begin as those of an evaluation. Raises ConfigurationError where the lesson has no such
    cell, and for worlds with several agents a row.
    """
    spec = spec_of(agent.config.env)
    if spec.agents > 1:
        raise ConfigurationError(
            f"the world {agent.config.env.world} has {spec.agents} agents a row: a demonstration "
            "is of one"
        )
    cells = wanted_cells(agent, request.target, request.difficulty)
    counts = [len(range(place, request.episodes, len(cells))) for place in range(len(cells))]
    episodes = [
        episode
        for cell, count in zip(cells, counts, strict=True)
        if count
        for episode in _played(agent, request, cell, count=count, on_episode=on_episode)
    ]
    return demonstration(episodes, spec)


def _played(
    agent: TrackedAgent,
    request: RecordingRequest,
    cell: Cell,
    *,
    count: int,
    on_episode: OnEpisode,
) -> Iterator[Demonstrated]:
    """The first episode of each of `count` rows."""
    with closing(make_world(agent.config.env, count)) as world:
        levels = world.spec.difficulties[cell.target]
        parameters = dict(agent.config.lessons[-1].parameters)
        world.set_scenario(cell_scenario(cell, levels, parameters))
        seed = derive_seed(request.seed, "player", *cell)
        player = agent.saved.agent.player(world, temperature=request.temperature, seed=seed)
        buffers, starts = step_buffers(world), np.ones(count, np.bool_)
        world.reset(evaluation_seed(request.seed, cell), buffers.observations)
        running = {row: _Episode() for row in range(count)}
        limit = longest_episode(world.spec, max_steps_of(agent.config, request.max_steps))
        for _ in range(limit):
            forbidden, seen = _forbidden(world), buffers.observations.copy()
            actions = player(buffers.observations, starts)
            world.step(actions, buffers)
            starts = buffers.finished.copy()
            for row in list(running):
                running[row].add(seen[row], forbidden[row], actions[row], buffers.rewards[row])
                if starts[row]:
                    yield running.pop(row).ended(buffers, row)
                    on_episode(cell_name(*cell))
            if not running:
                return
        raise endless(cell, running=len(running), rows=count, steps=limit)


class _Episode:
    """What an agent observed and did so far."""

    def __init__(self) -> None:
        self._steps: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.float32]] = []

    def add(
        self, seen: np.ndarray, forbidden: np.ndarray, action: np.ndarray, reward: np.float32
    ) -> None:
        """Add a decision."""
        self._steps.append((seen, forbidden, action.copy(), reward))

    def ended(self, buffers: StepBuffers, row: int) -> Demonstrated:
        """The whole of it, which ended in row `row` of `buffers`."""
        seen, forbidden, actions, rewards = zip(*self._steps, strict=True)
        return Demonstrated(
            observations=np.stack([*seen, buffers.final_observations[row].copy()]),
            forbidden=np.stack(forbidden),
            actions=np.stack(actions).astype(np.float32),
            rewards=np.array(rewards, np.float32),
            truncated=bool(buffers.truncated[row]),
        )


def _forbidden(world: BatchWorld) -> BoolArray:
    """[N, choices of all branches]"""
    allowed = np.ones((world.num_envs, sum(world.spec.branches)), np.bool_)
    if world.spec.can("masks"):
        world.action_masks(allowed)
    return ~allowed
