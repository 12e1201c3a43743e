"""Actions of learners: choices, masks, and numbers in their bounds."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces
from played_envs import ROWS, new_adapter
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

from aimbot_lab.adapters.gymnasium_env import WorldEnv
from aimbot_lab.adapters.sb3 import WorldVecEnv
from aimbot_lab.adapters.spaces import AIM_SHARES
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.foundation.argument_checks import checked_actions
from aimbot_lab.foundation.errors import ActionError
from aimbot_lab.foundation.world_type import RandomAgent
from aimbot_lab.training.run_hooks import SilentObserver
from aimbot_lab.training.settings import NetworkSettings, TrainingPlan, TrainSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds import registry
from tests.installed import install
from tests.training.tiny_training import Sink
from tests.worlds.tank import SPEC, Tanks, TankSettings, tanks


def reset_adapter(actions: str) -> WorldVecEnv:
    adapter = new_adapter("attack", actions=actions)
    adapter.reset()
    return adapter


def test_a_flat_choice_is_every_combination_once() -> None:
    adapter = reset_adapter("flat")
    assert adapter.action_space == spaces.Discrete(3 * 3 * 2 * 5)
    seen = set()
    for start in range(0, 90, ROWS):
        adapter.step_async(np.minimum(np.arange(start, start + ROWS), 89))
        seen |= {tuple(row) for row in adapter._actions.tolist()}
    assert len(seen) == 90
    adapter.step_async(np.full(ROWS, 89))
    assert adapter._actions[0].tolist() == [2.0, 2.0, 1.0, 5.0]
    with pytest.raises(ActionError, match="environment 0: action is 90; allowed is one of 0 to 89"):
        adapter.step_async(np.full(ROWS, 90))


def test_hybrid_columns_are_the_worlds_own() -> None:
    adapter = reset_adapter("hybrid")
    assert adapter.action_space.low.tolist() == [0, 0, 0, -5]
    assert adapter.action_space.high.tolist() == [2, 2, 1, 5]
    actions = np.tile(np.float32([2, 1, 1, -0.37]), (ROWS, 1))
    adapter.step_async(actions)
    np.testing.assert_array_equal(adapter._actions, actions)


@pytest.mark.parametrize(("actions", "width"), [("bins", 13), ("flat", 90), ("hybrid", 8)])
def test_masks_are_rows_of_one_array(actions: str, width: int) -> None:
    adapter = reset_adapter(actions)
    assert is_masking_supported(adapter)
    masks = get_action_masks(adapter)
    assert masks.shape == (ROWS, width)
    rows = adapter.env_method("action_masks", indices=[5, 2])
    np.testing.assert_array_equal(rows, masks[[5, 2]])


def test_masks_follow_the_gun_and_bins_stay_free() -> None:
    adapter = reset_adapter("bins")
    assert get_action_masks(adapter)[:, 7].all()
    adapter.step(np.tile([0, 0, 1, 2], (ROWS, 1)))
    masks = get_action_masks(adapter)
    assert not masks[:, 7].any()
    assert masks[:, 8:].all()


def test_a_flat_mask_is_the_conjunction_of_its_parts() -> None:
    flat, bins = reset_adapter("flat"), reset_adapter("bins")
    flat.step(np.full(ROWS, 7))
    bins.step(np.tile([0, 0, 1, 2], (ROWS, 1)))
    parts, whole = get_action_masks(bins), get_action_masks(flat)
    np.testing.assert_array_equal(flat._actions, bins._actions)
    for choice in range(90):
        v, h, attack, aim = np.unravel_index(choice, (3, 3, 2, 5))
        wanted = parts[:, v] & parts[:, 3 + h] & parts[:, 6 + attack] & parts[:, 8 + aim]
        np.testing.assert_array_equal(whole[:, choice], wanted)


INF = np.inf


def world(rows: int) -> Tanks:
    made = Tanks(TankSettings(num_envs=rows))
    made.set_scenario(tanks().scenario)
    return made


def test_both_adapters_show_the_bounds_of_each_column() -> None:
    mouse = WorldEnv(world(1), action="hybrid").action_space["mouse"]  # type: ignore[index]
    assert (mouse.low.tolist(), mouse.high.tolist()) == ([0.0, -INF], [2.0, INF])
    box = WorldVecEnv(world(2), actions="hybrid").action_space
    assert box.low.tolist() == pytest.approx([0.0, 0.0, -1e30])  # type: ignore[attr-defined]
    assert box.high.tolist() == pytest.approx([1.0, 2.0, 1e30])  # type: ignore[attr-defined]


def test_bins_are_shares_of_each_column() -> None:
    env = WorldVecEnv(world(2))
    chosen = np.array([[0, 0, 10], [1, 10, 0]])
    env.step_async(chosen)
    np.testing.assert_allclose(env.world_actions, [[0, 0, 1], [1, 2, -1]])
    env.step_async(np.array([[0, 5, 5], [0, 6, 7]]))
    wanted = [[1 + AIM_SHARES[5], AIM_SHARES[5]], [1 + AIM_SHARES[6], AIM_SHARES[7]]]
    np.testing.assert_allclose(env.world_actions[:, 1:], wanted, rtol=1e-6)


def test_a_step_cuts_numbers_at_their_bounds() -> None:
    cut = checked_actions(np.array([[0, -3.0, -1e9], [0, 7.0, 5.0]]), 2, spec=SPEC)
    np.testing.assert_array_equal(cut, np.array([[0, 0, -1e9], [0, 2, 5]], np.float32))


def test_random_play_fills_the_bounds_and_goes_to_the_limit_where_there_is_none() -> None:
    drawn = RandomAgent(SPEC, 0)(np.zeros((4000, 3), np.float32))[:, 1:]
    np.testing.assert_allclose(drawn.min(axis=0), [0, -1], atol=0.01)
    np.testing.assert_allclose(drawn.max(axis=0), [2, 1], atol=0.01)


@pytest.mark.parametrize(("bounds", "wanted"), [
    ((-INF, 5.0), (3.0, 5.0)), ((4.0, INF), (4.0, 6.0)), ((-INF, INF), (-1.0, 1.0)),
])  # fmt: skip
def test_a_single_bound_is_an_end_of_the_range(
    bounds: tuple[float, float], wanted: tuple[float, float]
) -> None:
    spec = replace(SPEC, continuous_bounds=(bounds, (0.0, 1.0)))
    assert tuple(float(ends[0]) for ends in spec.action_ranges) == wanted


def test_an_agent_learns_with_columns_bounds_and_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "worlds", "tank", "tests.worlds.tank:TANK")
    train = TrainSettings(
        algo="hybrid_ppo",
        total_steps=1024,
        n_steps=32,
        batch_size=64,
        aim="hybrid",
        engine="torch",
        masks=True,
        network=NetworkSettings(layers=(8,), features="scaled", scaling="running"),
    )
    lesson = Lesson(name="one", targets={"fill": 1.0})
    training = Training(TrainingPlan(1, TankSettings(num_envs=4), (lesson,), train))
    outcome = training.learn(Sink(), SilentObserver(), lambda: False)
    assert outcome.steps == 1024
    assert registry.spec_of(training.plan.env).can("masks")
