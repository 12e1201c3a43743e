"""Replay files: small, the same in another process, and refused where anything was altered."""

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aimbot_lab.foundation.display import Mind
from aimbot_lab.replay.episode import Replay, ReplayError, as_replay, load_replay, replay_text
from tests.replay.recorded_episodes import ABOUT, Seen, played, replay_of, resealed


@pytest.fixture(scope="module")
def text() -> str:
    return replay_text(replay_of("attack", stacked_vectors=2))


def file_of(folder: Path, document: str | bytes) -> Path:
    path = folder / "episode.json"
    path.write_bytes(document.encode() if isinstance(document, str) else document)
    return path


@pytest.mark.parametrize("target", ["free", "attack"])
def test_a_file_holds_the_replay_to_the_bit(tmp_path: Path, target: str) -> None:
    for seen in played(target, rows=3):
        replay = as_replay(seen.episode, ABOUT)
        back = load_replay(file_of(tmp_path, replay_text(replay)))
        np.testing.assert_array_equal(back.episode.actions, replay.episode.actions)
        for name, array in replay.episode.start.items():
            np.testing.assert_array_equal(back.episode.start[name], array)
            assert back.episode.start[name].dtype == array.dtype
        assert (back.about, back.trajectory_sha256) == (ABOUT, replay.trajectory_sha256)
        assert replay_text(back) == replay_text(replay)


def thinking(seen: Seen) -> Replay:
    """A replay with a mind that is told by what it saw, and by the place of the decision."""

    def judge(observations: np.ndarray, masks: np.ndarray) -> Mind:
        count = len(observations)
        assert masks.shape == (count, 8)
        shares = [np.full((count, choices), 1.0 / choices) for choices in (3, 3, 2)]
        return Mind(observations[:, 0].astype(np.float64), tuple(shares))

    first = np.full((1, seen.observations.shape[1]), 0.25, np.float32)
    return as_replay(replace(seen.episode, seen=first), ABOUT, judge)


def test_a_file_holds_what_the_agent_thought_of_every_decision(tmp_path: Path) -> None:
    seen = played("goto", rows=1, time_limit=30.0, goto_win_radius=0.01)[0]
    replay = thinking(seen)  # of more decisions than are judged at once
    back = load_replay(file_of(tmp_path, replay_text(replay))).mind
    assert back is not None
    assert back.values is not None
    np.testing.assert_array_equal(back.values[0], 0.25)
    np.testing.assert_array_equal(back.values[1:], seen.observations[:-1, 0])
    assert [one.shape for one in back.choices] == [(300, 3), (300, 3), (300, 2)]
    thought = back.at(7, seen.episode.actions[7], seen.episode.spec)
    assert thought.branches[0] == (
        "vertical",
        pytest.approx([1 / 3] * 3, abs=5e-4),
        int(seen.episode.actions[7, 0]),
    )


def test_a_mind_of_a_network_that_diverged_is_left_out(tmp_path: Path) -> None:
    seen = played("goto", rows=1, time_limit=0.8)[0]
    episode = replace(seen.episode, seen=seen.observations[:1])
    replay = as_replay(episode, ABOUT, lambda shown, _: Mind(np.full(len(shown), np.nan), ()))
    assert load_replay(file_of(tmp_path, replay_text(replay))).mind is None


@pytest.mark.parametrize(
    "mind",
    [
        7,
        {"choices": base64.b64encode(zlib.compress(bytes(12))).decode()},
        {"values": base64.b64encode(zlib.compress(np.full(8, np.nan, "<f4").tobytes())).decode()},
        {"choices": base64.b64encode(zlib.compress(np.full(64, -1, "<f2").tobytes())).decode()},
        {"choices": base64.b64encode(zlib.compress(np.full(64, 2, "<f2").tobytes())).decode()},
        {},
    ],
)
def test_a_mind_that_does_not_fit_is_refused_in_a_line(tmp_path: Path, mind: Any) -> None:
    text = replay_text(thinking(played("goto", rows=1, time_limit=0.8)[0]))
    assert json.loads(text)["decisions"] == 8
    with pytest.raises(ReplayError, match=r"episode\.json: "):
        load_replay(file_of(tmp_path, resealed(text, mind=mind)))


def test_a_whole_episode_takes_a_few_kilobytes() -> None:
    longest = played("goto", rows=1, time_limit=30.0, goto_win_radius=0.01)[0].episode
    assert len(longest.actions) == 300
    assert len(replay_text(as_replay(longest, ABOUT))) < 8_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("result", "Warning|Result|Win|target=attack|seconds=0.1|return=1.0"),
        ("start", {"yaw": [0.125]}),
        ("settings", {"stacked_vectors": 1}),
    ],
)
def test_an_altered_part_with_its_seal_made_anew_is_refused(
    tmp_path: Path, text: str, key: str, value: Any
) -> None:
    changed = json.loads(text)[key] | value if isinstance(value, dict) else value
    with pytest.raises(ReplayError, match=r"another episode|initial state is invalid"):
        load_replay(file_of(tmp_path, resealed(text, **{key: changed})))


def test_every_flipped_byte_is_refused(tmp_path: Path, text: str) -> None:
    data = text.encode()
    random = np.random.default_rng(1)
    for place in random.integers(0, len(data), 60):
        other = bytes([data[place] ^ 1])
        try:
            same = json.loads(data[:place] + other + data[place + 1 :]) == json.loads(data)
        except ValueError:
            same = False
        if not same:  # a line break may become another blank
            with pytest.raises(ReplayError):
                load_replay(file_of(tmp_path, data[:place] + other + data[place + 1 :]))


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe", b"{}", b"[" * 100_000, b'{"format": "aimbot-lab replay", "version": 2}'],
    ids=["empty", "bytes", "object", "deep", "version"],
)
def test_what_is_no_replay_is_told_in_one_line(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(ReplayError) as caught:
        load_replay(file_of(tmp_path, data))
    assert "\n" not in str(caught.value)
    assert "replay" in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("actions", "AAAA"),
        ("decisions", 10**12),
        ("settings", {"num_envs": 65536}),
        ("start", {"nothing": 1}),
        ("start", {"ray_cos": 1e308}),
        ("about", 3),
    ],
)
def test_a_hostile_part_is_refused_without_harm(
    tmp_path: Path, text: str, key: str, value: Any
) -> None:
    with pytest.raises(ReplayError):
        load_replay(file_of(tmp_path, resealed(text, **{key: value})))


def test_a_replay_of_another_version_is_taken_or_told_by_its_version_where_it_plays_otherwise(
    tmp_path: Path, text: str
) -> None:
    assert load_replay(file_of(tmp_path, resealed(text, simulator="0.0.9")))
    altered = resealed(text, simulator="9.1", trajectory_sha256="0" * 64)
    with pytest.raises(ReplayError, match=r"by aimbot-lab 9\.1, and this is .*: replay it"):
        load_replay(file_of(tmp_path, altered))
    assert altered.count('"9.1"') == 1
    foreign = {"world": "gymnasium", "module": "elsewhere", "id": "Walk-v0", "num_envs": 1}
    with pytest.raises(ReplayError, match="module elsewhere is not run"):
        load_replay(file_of(tmp_path, resealed(text, simulator="9.1", settings=foreign)))
    with pytest.raises(ReplayError, match="altered"):  # without its seal made anew
        load_replay(file_of(tmp_path, altered.replace('"9.1"', '"9.2"')))


@pytest.mark.parametrize("world", ["goto", "gorge", "duel"])
def test_replays_of_an_earlier_version_play_as_recorded(world: str) -> None:
    kept = load_replay(Path(__file__).parent / "of_0_1_0" / f"{world}.json")
    assert kept.episode.line.startswith("Warning|Result|")
