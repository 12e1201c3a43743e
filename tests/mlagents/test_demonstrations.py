"""Demonstrations for ML-Agents: what the file holds, and what `record --demo` refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.internal.decoder import _DecodeVarint32 as varint

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.mlagents.demonstration import HEADER, Demonstrated, demonstration
from aimbot_lab.mlagents.messages import parsed
from tests.cli.tiny_runs import invoke, train, write
from tests.mlagents.llapi_worlds import arena

SPEC = arena(1).spec
_, (HALF, *_) = SPEC.action_ranges  # the mouse goes as far to both sides


def episode(steps: int, *, truncated: bool = False) -> Demonstrated:
    random = np.random.default_rng(steps)
    actions = random.integers(0, 2, (steps, 4)).astype(np.float32)
    actions[:, 3] = random.uniform(-2 * HALF, 2 * HALF, steps)
    return Demonstrated(
        observations=random.normal(size=(steps + 1, 51)).astype(np.float32),
        forbidden=random.random((steps, 8)) < 0.2,
        actions=actions,
        rewards=random.normal(size=steps).astype(np.float32),
        truncated=truncated,
    )


def messages(data: bytes) -> tuple[Any, Any, list[Any]]:
    """Header, behavior and pairs of a demonstration, read as ML-Agents reads them."""
    size, start = varint(data, 0)
    meta = parsed("DemonstrationMeta", data[start : start + size])
    found, place = [], HEADER
    while place < len(data):
        size, start = varint(data, place)
        found.append(data[start : start + size])
        place = start + size
    behavior = parsed("BrainParameters", found[0])
    return meta, behavior, [parsed("AgentInfoActionPair", one) for one in found[1:]]


def test_every_decision_is_a_pair_of_what_was_seen_and_what_was_done() -> None:
    given = [episode(5), episode(3, truncated=True)]
    _, _, pairs = messages(demonstration(given, SPEC))
    for one in given:
        for step, pair in enumerate(pairs[: len(one.actions)]):
            info, action = pair.agent_info, pair.action_info
            (seen,) = info.observations
            np.testing.assert_array_equal(seen.float_data.data, one.observations[step])
            assert list(info.action_mask) == one.forbidden[step].tolist()
            assert info.reward == (one.rewards[step - 1] if step else 0.0)
            assert not info.done
            assert list(action.discrete_actions) == one.actions[step, :3].tolist()
            clipped = np.clip(one.actions[step, 3] / HALF, -1.0, 1.0)
            assert action.continuous_actions[0] == pytest.approx(clipped)
        pairs = pairs[len(one.actions) :]
        end = pairs.pop(0)
        np.testing.assert_array_equal(
            end.agent_info.observations[0].float_data.data, one.observations[-1]
        )
        assert end.agent_info.done
        assert end.agent_info.max_step_reached == one.truncated
        assert end.agent_info.reward == one.rewards[-1]
    assert not pairs


def test_the_header_counts_what_follows() -> None:
    given = [episode(5), episode(3)]
    meta, behavior, pairs = messages(demonstration(given, SPEC))
    assert (meta.api_version, meta.demonstration_name) == (1, "AimbotLab")
    assert (meta.number_steps, meta.number_episodes) == (len(pairs), 2) == (10, 2)
    assert meta.mean_reward == pytest.approx(sum(one.rewards.sum() for one in given) / 2, rel=1e-5)
    assert behavior.brain_name == "AimbotLab"
    assert list(behavior.action_spec.discrete_branch_sizes) == [3, 3, 2]
    assert behavior.action_spec.num_continuous_actions == 1


def test_a_name_without_room_in_the_header_and_no_episodes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="is too long a name for a demonstration"):
        demonstration([episode(2)], SPEC, name="a" * 20)
    with pytest.raises(ConfigurationError, match="needs an episode"):
        demonstration([], SPEC)


def test_a_run_is_demonstrated_by_as_many_episodes_as_are_asked_for(tmp_path: Path) -> None:
    data, demo = tmp_path / "data", tmp_path / "expert.demo"
    train(data, write(tmp_path))
    said = invoke(data, "record", "latest", "--demo", "-o", demo, "--episodes", 3).said
    assert f"written to {demo}" in said
    meta, _, pairs = messages(demo.read_bytes())
    assert meta.number_episodes == sum(pair.agent_info.done for pair in pairs) == 3
    assert not any(pair.agent_info.max_step_reached for pair in pairs)  # its time limit is a loss


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("latest", "-o", "film.mp4"), "ML-Agents reads files that end in .demo"),
        (("latest", "first", "-o", "a.demo"), "--demo: needs exactly one RUN"),
        (("latest", "-o", "a.demo", "--against", "first"), "--demo: needs exactly one RUN"),
        (("latest", "-o", "nowhere/a.demo"), "there is no such folder"),
    ],
)
def test_what_is_no_demonstration_is_refused(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    assert says in invoke(tmp_path, "record", "--demo", *words, wanted=2).said
    assert not list(tmp_path.iterdir())
