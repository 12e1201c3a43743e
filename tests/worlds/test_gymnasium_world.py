"""Gymnasium environments as worlds: what wins, columns, masks, parameters, own modules."""

import json
import sys
from pathlib import Path
from typing import Any

import corridor
import gymnasium
import numpy as np
import pytest
from corridor import BY_END, begun, corridors, register, results
from gymnasium import spaces

from aimbot_lab.adapters.spaces import LearnerActions, learner_codec
from aimbot_lab.foundation.argument_checks import checked_actions
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError
from aimbot_lab.foundation.settings import MultiRangeUniform
from aimbot_lab.foundation.world import Scenario, WorldSpec, step_buffers
from aimbot_lab.worlds.gymnasium.environments import environment_shape
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, MaskRule, WinRule
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
def test_what_counts_as_won(win: WinRule, given: dict[str, Any], won: bool) -> None:
    assert {result.won for result in results(corridors(win=win, **given))} == {won}


def test_columns_have_names_and_bounds() -> None:
    spec = corridors().spec
    assert spec.observation_names == ("kind_is_1", "kind_is_2", "kind_is_3", "place_0")
    blocks = [(block.name, block.kind, block.shape) for block in spec.observation_blocks]
    assert blocks == [("kind", "vector", (3,)), ("place", "vector", (1,))]
    assert spec.branches == (2, 3)
    assert spec.action_names == ("action_0", "action_1")
    assert spec.max_steps == 20
    assert spec.can("masks")
    pendulum = GymnasiumWorld(GymnasiumSettings(id="Pendulum-v1", win=BY_END)).spec
    assert (pendulum.branches, pendulum.continuous) == ((), 1)


FAR = np.iinfo(np.int64)
SPACES = [
    spaces.Discrete(3, start=5),
    spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, -1], [1, 0]]),
    spaces.MultiBinary((2, 2)),
    spaces.Box(np.array([-1e-3, 0.0]), np.array([1e-3, 5000.0]), dtype=np.float64),
    spaces.Box(np.float32([0.1, -0.3]), np.float32([0.7, 1e30])),
    spaces.Box(np.array([0.1, -0.7]), np.array([0.3, 0.7]), dtype=np.float64),
    spaces.Box(-1.7e308, 1.7e308, (2, 1), np.float64),
    spaces.Box(np.float32([-np.inf, 3.0]), np.float32([5.0, np.inf])),
    spaces.Box(-2.0, 2.0, (), np.float32),
    spaces.Box(0.1, 0.3, (3,), np.float16),
    spaces.Box(0, 255, (2, 2), np.uint8),
    spaces.Box(-3, 4, (1,), np.int32),
    spaces.Box(FAR.min + 1, FAR.max - 1, (1,), np.int64),
    spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (2,), np.float32))),
    spaces.Dict(
        {
            "aim": spaces.Box(-1e-3, 0.1, (2, 1), np.float64),
            "hands": spaces.Tuple((spaces.MultiBinary(2), spaces.Discrete(3, start=-1))),
            "steps": spaces.Box(-3, 4, (), np.int32),
        }
    ),
]
KINDS: tuple[LearnerActions, ...] = ("own", "bins", "hybrid")


def test_masks_are_the_environments_own() -> None:
    world = corridors()
    masks = np.zeros((2, 5), np.bool_)
    world.action_masks(masks)
    np.testing.assert_array_equal(masks, [[True, False, True, True, True]] * 2)


class Acted(gymnasium.Env[Any, Any]):
    """Takes anything."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.action_space = space


def acted(space: spaces.Space[Any]) -> WorldSpec:
    return environment_shape(Acted(space), GymnasiumSettings(id="Acted-v0", win=BY_END))


def taken(space: spaces.Space[Any], kind: LearnerActions, chosen: Any) -> Any:
    """What the environment is given for `chosen`, a batch of the learner's actions."""
    spec = acted(space)
    out = np.zeros((len(chosen), len(spec.branches) + spec.continuous), np.float32)
    learner_codec(spec, kind, None).to_world(chosen, out)
    assert spec.environment_actions is not None
    return spec.environment_actions.of(checked_actions(out, len(chosen), spec=spec))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_action_lies_in_the_space_and_reaches_its_bounds(
    space: spaces.Space[Any], kind: LearnerActions
) -> None:
    spec = acted(space)
    own: Any = learner_codec(spec, kind, None).space
    own.seed(1)
    chosen = np.array([own.sample() for _ in range(500)])
    ends = []
    if isinstance(own, spaces.Box):
        ends = [own.low, own.high]
        if kind == "hybrid":  # choices stand first, as they were drawn
            chosen[:, : len(spec.branches)] = chosen[:, : len(spec.branches)].round()
        chosen[:2] = ends
    actions = taken(space, kind, chosen)
    assert all(space.contains(np.asarray(one) if space.shape == () else one) for one in actions)
    if ends and isinstance(space, spaces.Box):
        within = np.abs(np.float64([space.low, space.high])) < 1e30
        np.testing.assert_array_equal(
            actions[:2][within], np.array([space.low, space.high])[within]
        )


def test_hybrid_ppo_goes_evenly_from_bound_to_bound_and_other_algorithms_by_the_units() -> None:
    space = spaces.Box(np.float32([-2.0, 0.0, -np.inf]), np.float32([2.0, 10.0, 7.0]))
    chosen = np.array([[0.0, 0.5, 0.5], [-0.5, -1.0, 9.0]], np.float32)
    np.testing.assert_allclose(taken(space, "hybrid", chosen), [[0, 7.5, 0.5], [-1, 0, 7]])
    np.testing.assert_allclose(taken(space, "own", chosen), [[0, 0.5, 0.5], [-0.5, 0, 7]])
    found = taken(spaces.Box(0, 3, (1,), np.int64), "hybrid", np.linspace(-1, 1, 5)[:, None])
    assert found.ravel().tolist() == [0, 1, 2, 2, 3]  # to the nearest


@pytest.mark.parametrize("space", [one for one in SPACES if isinstance(one, spaces.Box)], ids=str)
def test_a_library_is_shown_the_environments_own_numbers(space: spaces.Box) -> None:
    shown: Any = learner_codec(acted(space), "own", None).space
    assert (shown.shape, shown.dtype) == (space.shape, space.dtype)
    near = (np.abs(np.float64([space.low, space.high])) < 3e38).all(axis=0)
    np.testing.assert_array_equal(shown.low[near], space.low[near])
    np.testing.assert_array_equal(shown.high[near], space.high[near])
    assert np.abs(np.float64([shown.low, shown.high]))[:, ~near].max(initial=0.0) <= 1.0001e30


@pytest.mark.parametrize(
    ("space", "what"),
    [
        (spaces.Text(3), "actions of Text can't be used"),
        (spaces.Dict({"say": spaces.Text(3)}), "actions of Text in the entry say can't be used"),
        (spaces.Tuple(()), "an action of 0 choices and numbers"),
        (spaces.Discrete(10**9), "an action of 1,000,000,000 choices and numbers"),
    ],
)
def test_actions_that_can_not_be_columns_are_named(space: spaces.Space[Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^env.id: {what}[^\n]*$"):
        acted(space)


class Hinted(gymnasium.Env[Any, Any]):
    """The choice is right that its info allows; the last info of an episode allows none."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._right, self._steps = int(self.np_random.integers(3)), 0
        return np.zeros(1, np.float32), {} if self._silent else self._info()

    def _info(self) -> dict[str, Any]:
        return {"of": {"mask": np.arange(3) == self._right}}

    def step(self, action: Any) -> Any:
        assert action == self._right
        self._steps += 1
        over = self._steps == 4
        info = {"of": {"mask": np.zeros(3)}} if over else {}
        if self._steps == 2:
            self._right = (self._right + 1) % 3
            info = self._info()
        return np.zeros(1, np.float32), 1.0, over, False, info


def test_masks_of_an_info_hold_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Hinted)
    masked: Any = {"masks": MaskRule(info="of.mask")}
    world = begun("Hinted", 3, **masked)
    assert world.spec.can("masks")
    buffers, masks = step_buffers(world), np.zeros((3, 3), np.bool_)
    for _ in range(12):
        world.action_masks(masks)
        assert (masks.sum(axis=1) == 1).all()
        world.step(masks.argmax(axis=1)[:, None].astype(np.float32), buffers)
    words = r"gave no 'of.mask' in its info[^\n]*env.masks.info"
    with pytest.raises(ForeignCodeError, match=words):
        begun("Hinted", kwargs={"silent": True}, **masked)


@pytest.mark.parametrize("whole", [10, np.int64(10)])
def test_a_parameter_is_drawn_for_every_episode_and_holds_from_the_next_on(whole: Any) -> None:
    world = corridors(rows=1, max_episode_steps=100, kwargs={"length": whole})
    intervals = {"intervals": ((3.0, 5.0), (30.0, 31.0)), "seed": 5}
    sampler = MultiRangeUniform(sampler_parameters=intervals)  # type: ignore[arg-type]
    world.set_scenario(Scenario({"task": 1.0}, {}, {"goal": sampler}))
    lengths = [result.steps for result in results(world, 600)]
    assert len(lengths) > 20
    assert {3} < set(lengths) <= {3, 4, 5, 30, 31}  # whole as the attribute was
    assert lengths == [result.steps for result in results(world, 600)]


def test_parameters_may_be_options_of_the_reset() -> None:
    world = corridors(via="options")
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
    assert all(one.won for one in results(corridors("Mine", module="my_envs")))
    gymnasium.registry.pop("Mine-v0")


def test_a_snapshot_is_plain_data() -> None:
    world = corridors()
    results(world, 5)
    kept = world.snapshot()
    assert {array.dtype for array in kept.values()} == {np.dtype(np.uint8)}
    assert json.loads(kept["kept"].tobytes())["scenario"] == 1
