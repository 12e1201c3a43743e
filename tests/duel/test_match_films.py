"""Recorded matches play to the same bits, and films show what happened."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from duel_stage import reset, scenario

from aimbot_lab.foundation.display import Fighter, Mind
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.replay.episode import (
    Replay,
    RowRecorder,
    as_replay,
    load_replay,
    replay_steps,
    replay_text,
)
from aimbot_lab.replay.film import FrameStyle, frames
from aimbot_lab.worlds.duel.draw import AGENT_COLOURS
from aimbot_lab.worlds.duel.duel import Duel
from aimbot_lab.worlds.duel.film import DRAWN, PAPER, cast_walls, seen_picture
from aimbot_lab.worlds.duel.opposed import OpposedWorld
from aimbot_lab.worlds.duel.settings import DuelSettings
from aimbot_lab.worlds.duel.spec import seat_names, verdict
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
    buffers, random = reset(world, Scenario(targets)), np.random.default_rng(row)
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
    reset(world, Scenario({"aimbot": 1.0}))
    start = {name: array.copy() for name, array in world.arrays().items()}
    made = recorded(OpposedWorld(settings), {"aimbot": 1.0}, 0)
    home = np.ascontiguousarray(made.episode.actions[:, :4])
    older = as_replay(replace(made.episode, settings=settings, start=start, actions=home), {})
    path = tmp_path / "old.json"
    path.write_text(replay_text(older))
    assert load_replay(path).episode.line == made.episode.line


def test_the_away_rows_of_mirrored_matches_are_not_kept_twice() -> None:
    world = self_played()
    reset(world, Scenario({"self": 1.0}))
    starts = [DUEL.replays.row_start(world, row) is not None for row in range(world.num_envs)]
    assert starts == [True] * MATCHES + [False] * MIRRORED
    assert DUEL.replays.kept_row(world) == MIRRORED


SMALL = FrameStyle(size=120)
BLUE, RED = AGENT_COLOURS
BOTH = ("one", "two")


def fighter(x: float, z: float, yaw: float = 0.0, health: int = 3) -> Fighter:
    return Fighter(x, z, yaw, 0.5, 90.0, health, 3, True, 0.0, False, False, ())


def shot_down(time_limit: float = 6.0) -> Replay:
    """A match in which home turns to away, who stands still in the open, and shoots it down."""
    duel = Duel(DuelSettings(num_envs=1, health=2, time_limit=time_limit))
    buffers = reset(duel, scenario(1), 11)
    recorder = RowRecorder(duel, 0)
    while True:
        seats = duel.state.seats
        to_x, to_z = seats.enemies[0, 0] - seats.position[0]
        missing = np.arctan2(to_x, to_z) - seats.yaw[0]
        missing = np.arctan2(np.sin(missing), np.cos(missing))
        actions = np.zeros((2, 4), np.float32)
        actions[0] = 0, 0, abs(missing) < 0.3, missing / duel.settings.mouse_factor
        episode = recorder.add(actions, duel.step(actions, buffers))
        if episode is not None:
            return as_replay(episode, {"home": "last agent, step 7", "away": "greedy"})


@pytest.fixture(scope="module")
def won() -> Replay:
    return shot_down()


@pytest.fixture(scope="module")
def drawn() -> Replay:
    return shot_down(time_limit=0.2)


def test_the_foot_of_a_film_says_what_home_thought(won: Replay) -> None:
    decisions = len(won.episode.actions)
    choices = tuple(np.full((decisions, count), 1 / count) for count in (3, 3, 2))
    thoughtful = replace(won, mind=Mind(np.linspace(0.0, 2.0, decisions), choices))
    pairs = list(zip(frames(won, SMALL), frames(thoughtful, SMALL), strict=True))
    other = [(one != two).any(axis=2) for one, two in pairs]
    rows = sorted({int(row) for one in other for row in np.flatnonzero(one.any(axis=1))})
    assert not other[0].any()  # before the first decision
    assert all(one.any() for one in other[1:-1])
    assert not other[-1].any()  # which tells who won
    assert rows[0] > 0.85 * len(other[0])


def test_a_ray_meets_the_nearest_wall_where_it_stands() -> None:
    boxes = np.array([[9.0, 14.0, 11.0, 16.0]])
    bearings = np.array([0.0, np.pi / 2, np.pi, -np.pi / 2, np.arctan2(20.0, 25.0)])
    hits = cast_walls(fighter(10.0, 5.0), boxes, bearings, size=30.0)
    np.testing.assert_allclose(hits.distance, [9.0, 20.0, 5.0, 10.0, np.hypot(20.0, 25.0)])
    assert hits.box.tolist() == [0, -1, -1, -1, -1]
    assert hits.along_x.tolist()[:4] == [True, False, True, False]


def test_the_other_stands_where_it_is_seen_and_no_wall_hides_it() -> None:
    def columns(other: Fighter, boxes: list[list[float]]) -> np.ndarray:
        shape, walls = (90, 161), np.array(boxes).reshape(-1, 4)
        me = fighter(10.0, 5.0)
        pictures = [
            seen_picture(me, one, walls, colour=RED, size=30.0, shape=shape)
            for one in (other, fighter(10.0, 1.0))  # which is behind
        ]
        return np.flatnonzero((pictures[0] != pictures[1]).any(axis=(0, 2)))

    ahead = columns(fighter(10.0, 15.0), [])
    assert ahead.mean() == pytest.approx(80.0, abs=0.5)
    assert len(ahead) == pytest.approx(80 * 2 * 0.5 / 10.0, abs=2)  # its disc, 10 m away
    assert columns(fighter(14.0, 15.0), []).mean() > 80 + 25
    assert len(columns(fighter(10.0, 15.0), [[9.0, 9.0, 11.0, 10.0]])) == 0
    assert len(columns(fighter(10.0, 2.0), [])) == 0  # behind


def test_frames_show_both_healths_and_only_the_last_the_winner(won: Replay, drawn: Replay) -> None:
    for replay, ground in ((won, BLUE), (drawn, DRAWN)):
        shown = list(frames(replay, SMALL))
        assert len(shown) == 1 + len(replay.episode.actions)
        assert {picture.shape for picture in shown} == {(*SMALL.shape_of(replay), 3)}
        foot = [tuple(picture[-2, 2]) for picture in shown]
        assert foot[-1] == ground
        assert set(foot[:-1]) == {PAPER}
    first, last = next(iter(frames(won, SMALL))), shown[-1]
    assert tuple(first[2, 2]) == BLUE
    assert tuple(last[2, -2]) == RED


def test_a_hit_is_marked_for_both_when_it_lands(won: Replay) -> None:
    pictures = list(frames(won, SMALL))
    hits = [step.scene.events["hits"] for step in replay_steps(won.episode)]
    bar, eyes = 10, 68  # pixels of the bar and of the views
    framed = [tuple(picture[bar + eyes - 2, -2]) == (255, 40, 40) for picture in pictures]
    assert framed == [bool(one) for one in hits]
    assert sum(hits) == 2


def test_the_verdict_says_who_won_and_why(won: Replay, drawn: Replay) -> None:
    *_, last = replay_steps(won.episode)
    state = last.scene.state
    why = "two was shot down; one has 2 of 2 health left"
    assert verdict(state, names=BOTH, decides=False) == (1, "one wins", why)
    both = state._replace(health=np.array([0, 0]))
    why = "each shot the other down in the same moment"
    assert verdict(both, names=BOTH, decides=False)[1:] == ("A draw", why)
    time = state._replace(health=np.array([1, 2]))
    why = "the time is up: health 1 of 2 against 2 of 2"
    assert verdict(time, names=BOTH, decides=False) == (0, "A draw", why)
    assert verdict(time, names=BOTH, decides=True) == (-1, "two wins", why)
    *_, last = replay_steps(drawn.episode)
    assert verdict(last.scene.state, names=BOTH, decides=False)[1] == "A draw"


def test_seats_are_called_by_what_the_replay_says_else_by_the_kind_of_match() -> None:
    assert seat_names({"home": "a", "away": "b"}, "duel") == ("a", "b")
    assert seat_names({}, "duel") == ("home", "away")
    assert seat_names({"player": "as in training"}, "greedy") == ("the learner", "greedy")
