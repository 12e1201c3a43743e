"""Episodes played by a script in a small batch, recorded."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.replay.episode import SEAL, RecordedEpisode, Replay, RowRecorder, _seal, as_replay
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.arena.world_type import GreedyAgent

ABOUT = {"lesson": 2, "lesson_name": "walls", "name": "goto"}


@dataclass
class Seen:
    """An episode and what the batch showed of it, decision by decision."""

    episode: RecordedEpisode
    observations: np.ndarray  # [N, D]
    rewards: np.ndarray  # [N]
    terms: np.ndarray  # [T]


def played(*targets: str, rows: int = 5, seed: int = 7, **settings: object) -> list[Seen]:
    """The first episode of each row of an arena in which a script plays `targets`."""
    arena = Arena(ArenaSettings(num_envs=rows, **{"time_limit": 6.0, **settings}))
    arena.set_scenario(Scenario(dict.fromkeys(targets, 1.0)))
    buffers = new_step_buffers(rows, len(arena.spec.observation_names))
    arena.reset(seed, buffers.observations)
    script = GreedyAgent(arena.spec, rays=arena.settings.rays, turn_per_unit=0.08)
    recording, shown = [RowRecorder(arena, row) for row in range(rows)], [[] for _ in range(rows)]
    seen: dict[int, Seen] = {}
    while len(seen) < rows:
        actions = script(buffers.observations)
        batch = arena.step(actions, buffers)
        for row in range(rows):
            last = buffers.final_observations if buffers.finished[row] else buffers.observations
            shown[row].append((last[row].copy(), buffers.rewards[row].copy()))
            episode = recording[row].add(actions, batch)
            if episode is not None and row not in seen:
                observations, rewards = map(np.stack, zip(*shown[row], strict=True))
                terms = batch.terms[list(batch.row).index(row)].copy()
                seen[row] = Seen(episode, observations, rewards, terms)
    return [seen[row] for row in range(rows)]


def replay_of(target: str, **settings: object) -> Replay:
    """A short replay."""
    return as_replay(played(target, rows=1, **settings)[0].episode, ABOUT)


def resealed(text: str, **changes: Any) -> str:
    """The replay `text` with other parts, and the seal that fits them."""
    document = json.loads(text) | changes
    del document[SEAL]
    return json.dumps({**document, SEAL: _seal(document)})
