"""What an agent is judged by: the cells of a curriculum's last lesson in its world."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aimbot_lab.curriculum.cells import lesson_cells
from aimbot_lab.evaluation.episodes import CellEpisodes, play, traced
from aimbot_lab.evaluation.temperature import COOLER, LIKELIEST, SAMPLED, Temperature
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.samplers import ParameterValue
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import closing
from aimbot_lab.foundation.world_type import MakePlayer, WorldSettings
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.worlds.registry import evaluated, make_world, spec_of, type_of

TRACED_EPISODES = 8


@dataclass(frozen=True)
class EvaluationTask:
    """Cells to be played in a world, so many episodes of each."""

    env: WorldSettings
    cells: tuple[Cell, ...]
    parameters: Mapping[str, ParameterValue]
    episodes: int  # of each cell
    seed: int
    max_steps: int | None = None  # of an episode, beyond which it is an error; None: the world's


def last_lesson(
    config: CurriculumFile, *, episodes: int, seed: int, max_steps: int | None = None
) -> EvaluationTask:
    """The cells and parameters of the last lesson, in the curriculum's world.

    Without `max_steps` what the curriculum says of its own evaluation counts.
    """
    lesson = config.lessons[-1]
    cells = lesson_cells(lesson, spec_of(config.env).difficulties)
    parameters, limit = dict(lesson.parameters), max_steps_of(config, max_steps)
    return EvaluationTask(evaluated(config.env), cells, parameters, episodes, seed, limit)


def max_steps_of(config: CurriculumFile, asked: int | None) -> int | None:
    """Steps of an episode beyond which it is an error, if `asked` or the curriculum says."""
    if asked is not None or config.evaluation is None:
        return asked
    return config.evaluation.max_steps


def play_task(
    task: EvaluationTask, make_player: MakePlayer, *, on_cell: Callable[[Cell], None]
) -> tuple[CellEpisodes, ...]:
    """The episodes of every cell in order; `on_cell` is called after each.

    Each cell has a player of its own, which remembers nothing of the cell before.
    """
    played = []
    with closing(make_world(task.env, task.episodes)) as world:
        for cell in task.cells:
            player = make_player(world, derive_seed(task.seed, "player", *cell))
            parameters, limit = task.parameters, task.max_steps
            played.append(
                play(world, player, cell, seed=task.seed, parameters=parameters, max_steps=limit)
            )
            on_cell(cell)
    return tuple(played)


def trace(task: EvaluationTask, make_player: MakePlayer) -> tuple[bytes, ...]:
    """Hashes of how a few episodes of each cell begin; see `evaluation.episodes.traced`."""
    world = make_world(task.env, min(task.episodes, TRACED_EPISODES))
    found = []
    for cell in task.cells:
        player = make_player(world, derive_seed(task.seed, "player", *cell))
        found.append(traced(world, player, cell, seed=task.seed, parameters=task.parameters))
    return tuple(found)


def player_at(saved: SavedAgent, temperature: Temperature) -> MakePlayer:
    """The agent as it plays at `temperature`."""
    return lambda world, seed: saved.agent.player(world, temperature=temperature, seed=seed)


def policies(saved: SavedAgent, asked: Temperature | None = None) -> dict[str, MakePlayer]:
    """The agent's ways to play by their labels, first the one at the temperature `asked`.

    Where none is asked for that is the one it is advised to play at. The others are actions
    sampled as in training, those at a lower temperature, and the likeliest each time. Agents of
    algorithms that only rank actions have but the last; ConfigurationError where they are asked
    for another.
    """
    first = saved.agent.temperature(asked)
    others = (SAMPLED, COOLER, LIKELIEST) if saved.agent.samples else (LIKELIEST,)
    return {way.label: player_at(saved, way) for way in (first, *others)}


def baselines(env: WorldSettings) -> Mapping[str, MakePlayer]:
    """The scripted players of the world."""
    return type_of(env).baselines(env)
