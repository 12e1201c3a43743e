"""Gymnasium environments as worlds: what wins, columns, masks, parameters, own modules."""

import json
import sys
from pathlib import Path
from typing import Any

import corridor
import gymnasium
import numpy as np
import pytest
from corridor import TASK, corridors, results
from gymnasium import spaces

from aimbot_lab.foundation.samplers import MultiRangeUniform
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.spaces import action_columns
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld

TEN = {"kwargs": {"length": 10}}


@pytest.mark.parametrize(
    ("win", "given", "won"),
    [
        (WinRule(return_above=55), TEN, True),  # 1 + 2 + ... + 10
        (WinRule(return_above=56), TEN, False),
        (WinRule(length_above=10), TEN, True),
        (WinRule(length_above=11), TEN, False),
        (WinRule(info="is_success"), TEN, True),
        (WinRule(info="is_success"), {"kwargs": {"length": 10, "luck": False}}, False),
        (WinRule(terminated="win"), TEN, True),
        (WinRule(terminated="loss"), TEN, False),
        (WinRule(terminated="win"), {"max_episode_steps": 5}, False),
        (WinRule(terminated="loss"), {"max_episode_steps": 5}, True),
    ],
)
def test_what_counts_as_won(win: WinRule, given: dict[str, object], won: bool) -> None:
    found = results(corridors(win, **given))
    assert found
    assert {result.won for result in found} == {won}


def test_columns_have_names_and_bounds() -> None:
    spec = corridors(WinRule(terminated="win")).spec
    assert spec.observation_names == ("kind_is_1", "kind_is_2", "kind_is_3", "place_0")
    assert spec.branches == (2, 3)
    assert spec.action_names == ("action_0", "action_1")
    assert spec.max_steps == 20
    assert spec.can("masks")
    pendulum = GymnasiumWorld(
        GymnasiumSettings(id="Pendulum-v1", win=WinRule(return_above=0), num_envs=1)
    ).spec
    assert (pendulum.branches, pendulum.continuous) == ((), 1)


def test_masks_are_the_environments_own() -> None:
    world = corridors(WinRule(terminated="win"))
    masks = np.zeros((2, 5), np.bool_)
    world.action_masks(masks)
    np.testing.assert_array_equal(masks, [[True, False, True, True, True]] * 2)


def test_continuous_actions_reach_the_environments_bounds() -> None:
    world = GymnasiumWorld(
        GymnasiumSettings(id="Pendulum-v1", win=WinRule(return_above=0), num_envs=3)
    )
    world.set_scenario(TASK)
    buffers = new_step_buffers(3, 3)
    world.reset(0, buffers.observations)
    world.step(np.array([[-1.0], [0.0], [1.0]], np.float32), buffers)
    torques = [env.unwrapped.last_u for env in world._envs]  # type: ignore[attr-defined]
    assert torques == [-2.0, 0.0, 2.0]


FAR = np.iinfo(np.int64)
SPACES = [
    spaces.Discrete(3, start=5),
    spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, -1], [1, 0]]),
    spaces.MultiBinary((2, 2)),
    spaces.Box(np.array([-1e-3, 0.0]), np.array([1e-3, 5000.0]), dtype=np.float64),
    spaces.Box(np.float32([0.1, -0.3]), np.float32([0.7, 1e30])),
    spaces.Box(-1.7e308, 1.7e308, (2, 1), np.float64),
    spaces.Box(-2.0, 2.0, (), np.float32),
    spaces.Box(0.1, 0.3, (3,), np.float16),
    spaces.Box(0, 255, (2, 2), np.uint8),
    spaces.Box(-3, 4, (1,), np.int32),
    spaces.Box(FAR.min + 1, FAR.max - 1, (1,), np.int64),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_action_lies_in_the_space_and_reaches_its_bounds(space: spaces.Space[Any]) -> None:
    columns = action_columns(space)
    rows, random = 1000, np.random.default_rng(0)
    choices = [random.integers(0, size, rows) for size in columns.branches]
    numbers = random.uniform(-1.0, 1.0, (rows, len(columns.taken.low))).astype(np.float32)
    numbers[:4] = [[-1.0], [1.0], [-9.0], [9.0]]
    actions = columns.taken.of(np.column_stack([*choices, numbers]).astype(np.float32))
    assert all(space.contains(np.asarray(one) if space.shape == () else one) for one in actions)
    if isinstance(space, spaces.Box):
        np.testing.assert_array_equal(actions[:4], [space.low, space.high] * 2)
    else:
        assert len(np.unique(actions.reshape(rows, -1), axis=0)) == np.prod(columns.branches)


def test_numbers_go_evenly_from_bound_to_bound() -> None:
    taken = action_columns(spaces.Box(np.float32([-2.0, 0.0]), np.float32([2.0, 10.0]))).taken
    middle = taken.of(np.array([[0.0, 0.5], [-0.5, -1.0]], np.float32))
    np.testing.assert_allclose(middle, [[0.0, 7.5], [-1.0, 0.0]])
    whole = action_columns(spaces.Box(0, 3, (1,), np.int64)).taken
    found = whole.of(np.linspace(-1, 1, 5, dtype=np.float32)[:, None])
    assert found.ravel().tolist() == [0, 1, 2, 2, 3]  # to the nearest


def test_a_parameter_is_drawn_for_every_episode_and_holds_from_the_next_on() -> None:
    world = corridors(WinRule(terminated="win"), rows=1, max_episode_steps=100)
    intervals = {"intervals": ((3.0, 5.0), (30.0, 31.0)), "seed": 5}
    sampler = MultiRangeUniform(sampler_parameters=intervals)  # type: ignore[arg-type]
    world.set_scenario(Scenario({"task": 1.0}, {}, {"goal": sampler}))
    lengths = [result.steps for result in results(world, 600)]
    assert len(lengths) > 20
    assert {length for length in lengths if length is not None} <= {3, 4, 5, 30, 31}
    assert len(set(lengths)) > 2
    assert lengths == [result.steps for result in results(world, 600)]


def test_parameters_may_be_options_of_the_reset() -> None:
    world = corridors(WinRule(terminated="win"), via="options")
    world.set_scenario(Scenario({"task": 1.0}, {}, {"goal": 4.0}))
    assert {result.steps for result in results(world)} == {4.0}


def test_an_environment_of_the_users_own_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(corridor.__file__).read_text(encoding="utf-8")
    begin, end = source.index("class Corridor"), source.index("gymnasium.register(")
    registered = 'gymnasium.register("Mine-v0", Corridor, max_episode_steps=20)\n'
    text = f"import gymnasium\nimport numpy as np\n\n\n{source[begin:end]}{registered}"
    (tmp_path / "my_envs.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    win = WinRule(info="is_success")
    world = GymnasiumWorld(GymnasiumSettings(id="Mine-v0", module="my_envs", win=win, num_envs=1))
    world.set_scenario(TASK)
    assert all(result.won for result in results(world))
    gymnasium.registry.pop("Mine-v0")


def test_a_snapshot_is_plain_data() -> None:
    world = corridors(WinRule(terminated="win"))
    results(world, 5)
    kept = world.snapshot()
    assert {array.dtype for array in kept.values()} == {np.dtype(np.uint8)}
    assert json.loads(kept["kept"].tobytes())["scenario"] == 1


def test_the_entries_of_an_observation_are_named_blocks() -> None:
    blocks = corridors(WinRule(return_above=55)).spec.observation_blocks
    assert [(block.name, block.kind, block.shape) for block in blocks] == [
        ("kind", "vector", (3,)),
        ("place", "vector", (1,)),
    ]
