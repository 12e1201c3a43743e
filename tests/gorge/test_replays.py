"""Recorded games: they play as they were in any batch, and broken files are refused in a line."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.evaluation.episodes import endless, first_episodes
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.replay.episode import (
    SEAL,
    Replay,
    ReplayError,
    _seal,
    as_replay,
    load_replay,
    recorded_episodes,
    replay_steps,
    replay_text,
)
from aimbot_lab.replay.film import FrameStyle, frames
from aimbot_lab.replay.terminal import Screen, screens
from aimbot_lab.worlds.gorge.settings import GorgeSettings
from aimbot_lab.worlds.gorge.world_type import GORGE


@pytest.fixture(scope="module")
def replay() -> Replay:
    """A game that was played by the explorer."""
    settings = GorgeSettings(num_envs=1, random_start=True, max_steps=140)
    world = GORGE.make(settings)
    world.set_scenario(Scenario({"walk": 1.0, "collect": 1.0, "score": 1.0}))
    buffers = step_buffers(world)
    world.reset(5, buffers.observations)
    act = GORGE.baselines(settings)["explorer"](world, 1)
    error = endless(Cell("explore", 0), world.num_envs, 1_000)
    steps = first_episodes(world, act, buffers, limit=1_000, error=error)
    ((_, episode),) = recorded_episodes(world, steps)
    return as_replay(episode, {"name": "explorer"})


def test_pictures_and_terminals_show_a_game_to_its_end(replay: Replay) -> None:
    pictures = list(frames(replay, FrameStyle(size=64)))
    assert len(pictures) == len(replay.episode.actions) + 1
    assert (pictures[0] != pictures[-1]).any()
    *_, last = screens(replay, Screen(54, 16, true_colour=True))
    assert f"{len(replay.episode.actions)} of 140 steps" in last
    assert "after" in last
    assert replay.episode.frame_seconds < 1
    events = [step.scene.events for step in replay_steps(replay.episode)]
    assert set(events[0]) == {"bumps", "treasures"}


def mutated(document: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """`document` with one value of its beginning changed, and sealed again."""
    changed = json.loads(json.dumps(document))
    start = changed["start"]
    name = chance.choice(sorted(start))
    value = chance.choice([-1, 0, 3, 70, 2**40, 1e300, float("nan"), "x", None, [], [[1, 2]]])
    if chance.random() < 0.3:
        start[name] = value
    elif isinstance(start[name], list) and start[name]:
        start[name][0] = value
    del changed[SEAL]
    return {**changed, SEAL: _seal(changed)}


def test_a_beginning_that_was_altered_plays_or_is_refused_in_a_line(
    tmp_path: Path, replay: Replay
) -> None:
    document = json.loads(replay_text(replay))
    chance, refused = random.Random(3), list[str]()
    for _ in range(60):
        path = tmp_path / "altered.json"
        path.write_text(json.dumps(mutated(document, chance)), encoding="utf-8")
        try:
            load_replay(path)
        except ReplayError as error:
            refused.append(str(error))
    assert len(refused) > 30
    assert not any("\n" in line for line in refused)
