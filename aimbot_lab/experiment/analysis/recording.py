"""Episodes of a tracked run's agent: recorded, as a demonstration for ML-Agents, or filmed."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aimbot_lab.evaluation.episodes import (
    cell_scenario,
    endless,
    evaluation_seed,
    first_episodes,
    longest_episode,
)
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.evaluation import last_lesson, max_steps_of
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import section_of, with_section
from aimbot_lab.foundation.episodes import Cell, EpisodeBatch, UnparsedLineError
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import allow, is_allowed
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Int64Array,
    StepBuffers,
    closing,
    step_buffers,
)
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.replay.episode import (
    About,
    RecordedEpisode,
    Replay,
    as_replay,
    recorded_episodes,
)
from aimbot_lab.tracking.history import Addition
from aimbot_lab.tracking.tracker import NOTE_TAG
from aimbot_lab.tracking.ui import page_of_artifact
from aimbot_lab.worlds.registry import code_of, make_world, rows_for, spec_of, type_of

if TYPE_CHECKING:
    from aimbot_lab.mlagents.demonstration import Demonstrated

Kind = TypeVar("Kind")
Episode = TypeVar("Episode")
OnEpisode = Callable[[str], None]  # what was played
FOLDER = "videos"  # among a run's artifacts
TITLE = "Films"
MAX_FILMS = 6  # in the note, which has little room; all are among the files
_ODD = re.compile(r"[^\w.-]+")  # what Markdown, addresses or stores may read as something else


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
    env = filmed(agent.config.env)
    if not spec_of(env).can("replay"):
        way_out = " unless its environment takes env.kwargs: {render_mode: rgb_array}"
        raise ConfigurationError(
            f"the world {env.world} has no replays: its episodes can't be recorded or filmed"
            f"{way_out if type_of(env).replays else ''}"
        )
    columns = []
    cells = wanted_cells(agent, request.target, request.difficulty)
    for cell, count in turns(cells, request.episodes):
        found: dict[int, RecordedEpisode] = {}
        with closing(make_world(env, rows_for(env, count))) as world:
            buffers = step_buffers(world)
            steps = _begun(agent, request, cell, world, episodes=count, buffers=buffers)
            first = recorded_episodes(world, steps, buffers.observations, episodes=count)
            for rank, episode in first:
                found[rank] = episode
                on_episode(cell.shown)
        # Only now, since each is played again in a copy of the environment of its own.
        judge = agent.saved.agent.mind
        replays = [
            as_replay(found[rank], _about(agent, request, rank), judge) for rank in range(count)
        ]
        columns.append(replays)
    return interleaved(columns)


def filmed(env: WorldSettings) -> WorldSettings:
    """`env` with what draws it, where it can be drawn, though a training has no need of that."""
    other: WorldSettings = type_of(env).filmed(env)
    if other != env and is_allowed(code_of(env)):
        allow(code_of(other))
    with suppress(ConfigurationError):  # it can't be drawn
        return other if spec_of(other).can("replay") else env
    return env


def turns(kinds: Sequence[Kind], episodes: int) -> list[tuple[Kind, int]]:
    """Each of `kinds` with its number of `episodes`, which take the kinds by turns."""
    return [
        (kind, len(range(place, episodes, len(kinds))))
        for place, kind in enumerate(kinds[:episodes])
    ]


def interleaved(columns: Sequence[Sequence[Episode]]) -> tuple[Episode, ...]:
    """The episodes of each kind in `columns`, one of each by turns."""
    longest = max(map(len, columns), default=0)
    return tuple(one[i] for i in range(longest) for one in columns if i < len(one))


def demonstrate(agent: TrackedAgent, request: RecordingRequest, *, on_episode: OnEpisode) -> bytes:
    """A demonstration file of `agent` in the cells of its last lesson, one episode after another.

    They begin as those of an evaluation. Raises ConfigurationError where the lesson has no such
    cell, and for worlds with several agents a row.
    """
    from aimbot_lab.mlagents.demonstration import Demonstrated, demonstration

    spec = spec_of(agent.config.env)
    if spec.agents > 1:
        raise ConfigurationError(
            f"the world {agent.config.env.world} has {spec.agents} agents a row: a demonstration "
            "is of one"
        )
    episodes: list[Demonstrated] = []
    env, cells = agent.config.env, wanted_cells(agent, request.target, request.difficulty)
    for cell, count in turns(cells, request.episodes):
        with closing(make_world(env, rows_for(env, count))) as world:
            for one in _demonstrated(agent, request, cell, world, episodes=count):
                episodes.append(one)
                on_episode(cell.shown)
    return demonstration(episodes, spec)


def _demonstrated(
    agent: TrackedAgent, request: RecordingRequest, cell: Cell, world: BatchWorld, *, episodes: int
) -> "Iterator[Demonstrated]":
    """The first `episodes` of `world`, in the order in which they end.

    Raises UnparsedLineError where a game's report of an episode can't be read.
    """
    from aimbot_lab.mlagents.demonstration import Demonstrated

    buffers, given = step_buffers(world), list[np.ndarray]()

    def note(observations: Float32Array, _starts: BoolArray) -> None:
        allowed = np.ones((world.num_envs, sum(world.spec.branches)), np.bool_)
        if world.spec.can("masks"):
            world.action_masks(allowed)
        given[:] = observations.copy(), ~allowed

    taken: list[list[tuple[Any, ...]]] = [[] for _ in range(world.num_envs)]
    steps = _begun(agent, request, cell, world, episodes=episodes, buffers=buffers, note=note)
    for actions, batch, places, _ in steps:
        if batch.unread:
            raise UnparsedLineError(batch.unread[0])
        for row, one in enumerate(taken):
            made = actions[row].astype(np.float32), buffers.rewards[row].copy()
            one.append((*(array[row].copy() for array in given), *made))
        for row, length in zip(batch.row[places], batch.length[places], strict=True):
            seen, forbidden, done, rewards = zip(*taken[row][-length:], strict=True)
            yield Demonstrated(
                observations=np.stack([*seen, buffers.final_observations[row].copy()]),
                forbidden=np.stack(forbidden),
                actions=np.stack(done),
                rewards=np.array(rewards, np.float32),
                truncated=bool(buffers.truncated[row]),
            )
        for row in batch.row.tolist():
            taken[row].clear()


def _begun(
    agent: TrackedAgent,
    request: RecordingRequest,
    cell: Cell,
    world: BatchWorld,
    *,
    episodes: int,
    buffers: StepBuffers,
    note: Callable[[Float32Array, BoolArray], None] = lambda _observations, _starts: None,
) -> Iterator[tuple[Float32Array, EpisodeBatch, Int64Array, Int64Array]]:
    """The steps of `agent` in the first `episodes` of `cell`; none is made yet.

    `note` is called with the observations and starts of each step before the agent acts on them.
    """
    lesson, levels = agent.config.lessons[-1], world.spec.difficulties[cell.target]
    world.set_scenario(cell_scenario(cell, levels, dict(lesson.parameters)))
    seed = derive_seed(request.seed, "player", *cell)
    player = agent.saved.agent.player(world, temperature=request.temperature, seed=seed)
    world.reset(evaluation_seed(request.seed, cell), buffers.observations)
    limit = longest_episode(world.spec, max_steps_of(agent.config, request.max_steps))

    def act(observations: Float32Array, starts: BoolArray) -> Float32Array:
        note(observations, starts)
        return player(observations, starts)

    error = endless(cell, episodes, limit)
    return first_episodes(world, act, buffers, episodes=episodes, limit=limit, error=error)


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
        there = ", ".join(cell.shown for cell in cells)
        raise ConfigurationError(f"the run's last lesson has no such cell; it has {there}")
    return wanted


def _about(agent: TrackedAgent, request: RecordingRequest, rank: int) -> About:
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
        "episode": rank,
    }


def film_record(
    film: Path, replays: Sequence[Replay], *, agent: TrackedAgent, note: str
) -> Addition:
    """What the run of `agent` is to keep; `note` is its note so far.

    A film of the same name is replaced, in the note as well, which names the newest.
    """
    name = f"{FOLDER}/{_ODD.sub('-', film.name)}"
    link = f"[{Path(name).name}]({page_of_artifact(agent.run, name)})"
    kept = section_of(note, TITLE).splitlines()
    won = sum(replay.episode.result.won for replay in replays)
    ways = " and ".join(sorted({str(replay.about["player"]) for replay in replays}))
    lines = [
        *(line for line in kept if not line.startswith(f"- {link}:")),
        f"- {link}: {agent.which} agent, saved at step {agent.step:,}; "
        f"won {won} of {len(replays)} episodes, {ways}",
    ]
    tags = {NOTE_TAG: with_section(note, TITLE, "\n".join(lines[-MAX_FILMS:]))}
    return Addition(files={name: film}, tags=tags)
