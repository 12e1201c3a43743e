"""A replay buffer keeps each observation once, and its samples are the library's to the bit."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.runs.crew import prepared
from aimbot_lab.experiment.runs.run_record import RunRequest
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training import checkpoint
from aimbot_lab.training.algorithms.replay import FollowingObservations, followings, keep_once
from aimbot_lab.training.processes.exchange import Alone
from aimbot_lab.training.run_hooks import SilentObserver

ROWS, PLACES = 3, 12
PICTURE = spaces.Box(0, 255, (4, 6, 6), np.uint8)
VECTOR = spaces.Box(-1, 1, (5,), np.float32)
ACTIONS = spaces.Box(-1, 1, (2,), np.float32)


def buffers(kind: type, space: Any, places: int = PLACES, **more: Any) -> tuple[Any, Any]:
    """(the library's, the same that keeps observations once)."""
    theirs, ours = (kind(places * ROWS, space, ACTIONS, n_envs=ROWS, **more) for _ in range(2))
    keep_once(SimpleNamespace(replay_buffer=ours))  # type: ignore[arg-type]
    return theirs, ours


class Steps:
    """Steps of environments: episodes end, and new ones begin unannounced, at random."""

    def __init__(self, space: Any) -> None:
        self._space, self._random = space, np.random.default_rng(0)
        self._seen = self._shown()

    def _shown(self) -> Any:
        if isinstance(self._space, spaces.Dict):
            return {name: self._of(one) for name, one in self._space.items()}
        return self._of(self._space)

    def _of(self, space: Any) -> np.ndarray:
        values = self._random.integers(0, 256, (ROWS, *space.shape))
        return (values if space.dtype == np.uint8 else values / 255).astype(space.dtype)

    def add(self, *kept: Any) -> None:
        seen, following, begun = self._seen, self._shown(), self._shown()
        done = self._random.random(ROWS) < 0.2
        restarted = self._random.random(ROWS) < 0.05  # as after a resumption
        action = self._random.uniform(-1, 1, (ROWS, 2)).astype(np.float32)
        infos = [{"TimeLimit.truncated": bool(one)} for one in self._random.random(ROWS) < 0.5]
        for buffer in kept:
            copy = {k: v.copy() for k, v in seen.items()} if isinstance(seen, dict) else seen.copy()
            buffer.add(copy, following, action, np.arange(ROWS), done, infos)
        ends = done | restarted
        if isinstance(seen, dict):
            for name, part in following.items():
                self._seen[name] = np.where(spread(ends, part), begun[name], part)
        else:
            self._seen = np.where(spread(ends, following), begun, following)


def spread(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    return rows.reshape(-1, *[1] * (values.ndim - 1))


def samples(buffer: Any, seed: int) -> list[Any]:
    np.random.seed(seed)
    found = buffer.sample(64)
    flat: list[Any] = []
    for one in found:
        flat += one.values() if isinstance(one, dict) else [one]
    return [None if one is None else one.numpy() for one in flat]


def assert_same_samples(one: Any, other: Any, seed: int) -> None:
    for mine, theirs in zip(samples(one, seed), samples(other, seed), strict=True):
        np.testing.assert_array_equal(mine, theirs)


KINDS: list[tuple[type, Any, dict[str, Any]]] = [
    (ReplayBuffer, PICTURE, {}),
    (ReplayBuffer, VECTOR, {}),
    (DictReplayBuffer, spaces.Dict({"image": PICTURE, "place": VECTOR}), {}),
    (NStepReplayBuffer, VECTOR, {"n_steps": 3, "gamma": 0.9}),
]


@pytest.mark.parametrize(
    ("kind", "space", "places", "more"),
    [*((kind, space, PLACES, more) for kind, space, more in KINDS), (ReplayBuffer, VECTOR, 1, {})],
)
def test_samples_are_those_of_the_library(
    kind: type, space: Any, places: int, more: dict[str, Any]
) -> None:
    steps, (theirs, ours) = Steps(space), buffers(kind, space, places, **more)
    for number in range(4 * PLACES):
        steps.add(theirs, ours)
        assert_same_samples(theirs, ours, number)


def test_a_signed_zero_is_kept_as_it_is() -> None:
    kept = np.zeros((3, 1, 1), np.float32)
    following = FollowingObservations(kept)
    following[0] = np.full((1, 1), -0.0, np.float32)
    following[1] = np.zeros((1, 1), np.float32)  # its step began with 0.0
    assert np.signbit(following[np.array([0]), np.array([0])]).all()


def test_only_what_no_step_begins_with_is_kept_apart() -> None:
    steps, (_, ours) = Steps(PICTURE), buffers(ReplayBuffer, PICTURE, places=1000)
    for _ in range(3000):
        steps.add(ours)
    (following,) = followings(ours).values()
    assert len(following._apart) == following._is_apart.sum()
    assert 0.15 < following._is_apart.mean() < 0.35  # a fifth of these steps ends an episode


@pytest.mark.parametrize("larger", [0, 7])
@pytest.mark.parametrize(("kind", "space", "more"), KINDS)
def test_parts_of_a_checkpoint_bring_the_samples_back(
    kind: type, space: Any, more: dict[str, Any], larger: int
) -> None:
    steps, (_, ours) = Steps(space), buffers(kind, space, **more)
    for _ in range(2 * PLACES + 5):
        steps.add(ours)
    end, (_, again) = 2 * PLACES + 5, buffers(kind, space, PLACES + larger, **more)
    first = end - PLACES
    spans = [range(first, first + 1), range(first + 1, first + 8), range(first + 8, end)]
    for span in spans:
        part = checkpoint._pack_span(ours, span)
        checkpoint._fill(again, span, checkpoint.unpack(part))
    taken, rows = np.arange(first, end), np.arange(ROWS)[None]
    for name, one in followings(ours).items():
        was = one[(taken % PLACES)[:, None], rows]
        now = followings(again)[name][(taken % (PLACES + larger))[:, None], rows]
        np.testing.assert_array_equal(was, now)
    if not larger:
        for number in range(PLACES):
            steps.add(ours, again)
            assert_same_samples(ours, again, number)


def test_parts_are_as_short_as_said_however_many_steps_came_at_once() -> None:
    parts = checkpoint.ReplayParts(SimpleNamespace(replay_buffer=None))  # type: ignore[arg-type]
    for end in (3, 50, 51, 52, 60, 200):
        parts._cover(max(0, end - 100), end, 8)
    spans = parts._spans
    assert max(span.stop - span.start for span in spans) == 8
    assert spans[0].start <= 100 < spans[0].stop
    assert [one.stop for one in spans] == [*(one.start for one in spans[1:]), 200]


class Seen(gymnasium.Env[Any, Any]):
    observation_space = spaces.Box(0, 255, (84, 84, 4), np.uint8)
    action_space = ACTIONS


FILE = """
name: seen
env: {world: gymnasium, id: Seen-v0, num_envs: 1}
train: {algo: sac, total_steps: 2000000, options: {buffer_size: STEPS}}
"""


def test_check_says_what_a_buffer_takes_and_refuses_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(gymnasium.registry, "Seen-v0", EnvSpec("Seen-v0", Seen))
    path = tmp_path / "seen.yaml"
    path.write_text(FILE.replace("STEPS", "100_000"), encoding="utf-8")
    loaded = load_curriculum(path)
    (note,) = [one for one in loaded.notes if "buffer_size" in one]
    assert "the replay buffer takes 2.8 GB of memory once it is full, and as much on the" in note
    request = RunRequest(loaded, DataFolder(tmp_path / "data"))
    room = SimpleNamespace(free=2e9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: room)
    with pytest.raises(ConfigurationError, match=r"buffer of 2.8 GB, and \S+ has room for 2.0:"):
        prepared(request, SilentObserver(), Alone())
    path.write_text(FILE.replace("STEPS", "1_500_000_000"), encoding="utf-8")
    wanted = r"^\S+seen.yaml:4:\d+: train.options.buffer_size: must be smaller: the replay buffer "
    with pytest.raises(ConfigurationError, match=wanted + "would take 42,[^\n]+ of memory$"):
        load_curriculum(path)
