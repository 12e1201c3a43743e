"""Recorded matches hold what both agents did, whoever they were, and play to the same bits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aimbot_lab.foundation.world import Scenario, step_buffers
from aimbot_lab.replay.episode import Replay, RowRecorder, as_replay, replay_steps
from aimbot_lab.replay.files import load_replay, replay_text
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.world_type import DUEL

MATCHES, MIRRORED = 5, 2


class PastSelf:
    """An opponent that nobody could play again: it draws by numbers that no replay holds."""

    needs_masks = False

    def __init__(self) -> None:
        self._random = np.random.default_rng(5)

    def begin(self, *_: object) -> None:
        """Nobody is told anything."""

    seat = ended = begin

    def act(self, observations: np.ndarray, masks: np.ndarray, actions: np.ndarray) -> None:
        actions[:, :3] = self._random.integers(0, (3, 3, 2), (len(actions), 3))
        actions[:, 3] = self._random.uniform(-5, 5, len(actions))


def self_played() -> OpposedWorld:
    settings = DUEL.self_play_settings(
        DuelSettings(num_envs=MATCHES, time_limit=2.0), MIRRORED / MATCHES
    )
    return DUEL.make_opposed(settings, PastSelf())


def recorded(world: OpposedWorld | Duel, targets: dict[str, float], row: int) -> Replay:
    """The first match of `row`, in which the learner draws its actions."""
    world.set_scenario(Scenario(targets))
    buffers, random = step_buffers(world), np.random.default_rng(row)
    world.reset(3, buffers.observations)
    recorder = RowRecorder(world, row)
    while True:
        actions = np.zeros((len(buffers.rewards), 4), np.float32)
        actions[:, :3] = random.integers(0, (3, 3, 2), (len(actions), 3))
        actions[:, 3] = random.uniform(-5, 5, len(actions))
        episode = recorder.add(actions, world.step(actions, buffers))
        if episode is not None:
            return as_replay(episode, {})


@pytest.mark.parametrize(
    ("make", "targets", "row"),
    [
        (self_played, {"self": 1.0}, MIRRORED),
        (self_played, {"self": 1.0, "greedy": 1.0}, 0),
        (
            lambda: OpposedWorld(DuelSettings(num_envs=3, time_limit=2.0, learner="home")),
            {"aimbot": 1.0},
            1,
        ),
        (lambda: Duel(DuelSettings(num_envs=3, time_limit=2.0)), {"duel": 1.0}, 2),
    ],
    ids=["past self", "mirrored", "script", "both"],
)
def test_a_match_is_kept_with_both_agents_actions_and_plays_to_the_bit(
    tmp_path: Path, make, targets: dict[str, float], row: int
) -> None:
    made = recorded(make(), targets, row)
    path = tmp_path / "match.json"
    path.write_text(replay_text(made))
    replay = load_replay(path)  # refused where it does not play as recorded
    actions = replay.episode.actions.reshape(-1, 2, 4)
    np.testing.assert_array_equal(actions, made.episode.actions.reshape(-1, 2, 4))
    assert len(actions) == 20
    assert actions.any(axis=(0, 2)).all()  # of home, and of away
    assert (replay.episode.result.target in targets) or row < MIRRORED
    *_, last = replay_steps(replay.episode)
    np.testing.assert_array_equal(last.rewards[0], -last.rewards[1])


def test_a_replay_of_home_alone_still_plays(tmp_path: Path) -> None:
    """Older files hold the actions of home; the script that sat opposite plays anew."""
    settings = DuelSettings(num_envs=1, time_limit=1.0, learner="home")
    world = OpposedWorld(settings)
    world.set_scenario(Scenario({"aimbot": 1.0}))
    buffers = step_buffers(world)
    world.reset(3, buffers.observations)
    start = {name: array.copy() for name, array in world.arrays().items()}
    made = recorded(OpposedWorld(settings), {"aimbot": 1.0}, 0)
    home = np.ascontiguousarray(made.episode.actions[:, :4])
    older = as_replay(replace(made.episode, settings=settings, start=start, actions=home), {})
    path = tmp_path / "old.json"
    path.write_text(replay_text(older))
    assert load_replay(path).episode.line == made.episode.line


def test_the_away_rows_of_mirrored_matches_are_not_kept_twice() -> None:
    world = self_played()
    world.set_scenario(Scenario({"self": 1.0}))
    world.reset(3, step_buffers(world).observations)
    starts = [DUEL.replays.row_start(world, row) is not None for row in range(world.num_envs)]
    assert starts == [True] * MATCHES + [False] * MIRRORED
    assert DUEL.replays.kept_row(world) == MIRRORED
