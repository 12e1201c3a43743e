"""The Gymnasium faces over the arena, one row and the whole batch."""

import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as check_with_gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from stable_baselines3.common.env_checker import check_env as check_with_sb3

from aimbot_lab.adapters.gymnasium_env import WorldEnv
from aimbot_lab.adapters.gymnasium_ids import register_ids
from aimbot_lab.adapters.registered_envs import RegisteredEnv, RegisteredVectorEnv
from aimbot_lab.foundation.errors import ActionError, ConfigurationError
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.registry import default_type

IDS = sorted(default_type().gymnasium_ids)
GOTO = {"targets": {"goto": 1.0}}
MIX = {"targets": {"free": 1.0, "goto": 1.0, "attack": 1.0}}
STAND = np.array([0, 0, 0, 5])  # aim bin 5 of 11 is 0

register_ids()


def held_actions(vector: VectorEnv, steps: int, *, seed: int = 0):
    """Random actions that are held for some steps, so that agents get somewhere."""
    random = np.random.default_rng(seed)
    sizes = vector.single_action_space.nvec
    for step in range(steps):
        if step % 10 == 0:
            actions = random.integers(0, sizes, (vector.num_envs, len(sizes)))
        yield actions


def play(env: gymnasium.Env, actions) -> list[tuple[Any, ...]]:
    """What `env` returns for each of `actions`, reset where an episode ended."""
    told = []
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        first = env.reset()[0] if terminated else observation
        told.append((first, reward, terminated, truncated, observation, info))
    return told


# What the checkers of the libraries say


@pytest.mark.parametrize("name", IDS)
def test_gymnasiums_checker_has_no_complaint(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_with_gymnasium(gymnasium.make(name).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_stable_baselines3s_checker_has_no_complaint(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(name, render_mode="rgb_array")
        check_with_sb3(env, warn=True, skip_render_check=False)


@pytest.mark.parametrize("tags", ["label", "one_hot"])
def test_the_hybrid_action_passes_gymnasiums_checker(tags: str) -> None:
    # The mouse limit of 1 makes the box normalised, which the checker recommends.
    options = {"action": "hybrid", "mouse_limit": 1.0, "rays": {"tags": tags}}
    check_with_gymnasium(gymnasium.make("aimbot_lab/Mix-v0", **options).unwrapped)


# Random play


@pytest.mark.parametrize("target", ["goto", "attack", "free"])
def test_random_play_keeps_every_promise(target: str) -> None:
    vector = RegisteredVectorEnv(64, {"targets": {target: 1.0}})
    low, high = vector.single_observation_space.low, vector.single_observation_space.high
    vector.reset(seed=1)
    state = vector.unwrapped.world.state
    ended = 0
    for actions in held_actions(vector, 1600):
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        assert ((observations >= low) & (observations <= high)).all()  # false for NaN as well
        assert np.isfinite(rewards).all()
        assert not truncated.any()
        assert not overlaps_an_obstacle(state).any()
        if terminated.any():
            ended += int(terminated.sum())
            last = np.stack(list(infos["final_obs"][terminated]))
            assert ((last >= low) & (last <= high)).all()
            assert infos["final_info"]["seconds"].max() <= 30.0
    assert ended >= 64 * 5  # 1600 decisions are at least five episodes of 30 s


def overlaps_an_obstacle(state) -> np.ndarray:
    """Where [B] the agent's disc is in an obstacle or off the floor."""
    at = state.position[:, None]
    nearest = np.clip(at, state.obstacles[..., :2], state.obstacles[..., 2:])
    near = np.hypot(*np.moveaxis(nearest - at, 2, 0)) < 0.5 - 1e-6
    counted = np.arange(near.shape[1]) < state.obstacle_count[:, None]
    off = ((state.position < 0.5) | (state.position > 46.5)).any(axis=1)
    return (near & counted).any(axis=1) | off


# One row and many


def test_a_single_environment_is_row_0_of_the_batch_with_the_same_seed() -> None:
    vector = RegisteredVectorEnv(5, MIX, time_limit=3.0)
    single = RegisteredEnv(MIX, time_limit=3.0)
    first, _ = vector.reset(seed=7)
    np.testing.assert_array_equal(single.reset(seed=7)[0], first[0])
    ended = 0
    for actions in held_actions(vector, 200):
        observations, rewards, terminated, _, infos = vector.step(actions)
        (told,) = play(single, [actions[0]])
        np.testing.assert_array_equal(told[0], observations[0])
        assert told[1:3] == (rewards[0], terminated[0])
        if terminated[0]:
            ended += 1
            np.testing.assert_array_equal(told[4], infos["final_obs"][0])
            for key, value in told[5].items():
                np.testing.assert_array_equal(value, infos["final_info"][key][0], err_msg=key)
    assert ended > 3


def test_every_row_of_the_batch_goes_on_as_a_single_environment_would() -> None:
    vector = RegisteredVectorEnv(3, MIX, time_limit=2.0)
    vector.reset(seed=3)
    snapshot, fields = vector.world.snapshot(), vector.world.state._fields
    singles = [RegisteredEnv(MIX, time_limit=2.0) for _ in range(3)]
    for row, single in enumerate(singles):
        single.reset(seed=0)
        one_row = {
            name: array[row : row + 1] if len(array) == 3 and name in fields else array
            for name, array in snapshot.items()
        }
        single.world.restore(one_row)
    for actions in held_actions(vector, 100):
        observations, rewards, *_ = vector.step(actions)
        for row, single in enumerate(singles):
            (told,) = play(single, [actions[row]])
            np.testing.assert_array_equal(told[0], observations[row])
            assert told[1] == rewards[row]


def test_infos_have_the_form_of_gymnasiums_own_vector_environments() -> None:
    ours = RegisteredVectorEnv(1, GOTO, time_limit=1.0)
    make = [lambda: RegisteredEnv(GOTO, time_limit=1.0)]
    theirs = gymnasium.vector.SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    for vector in (ours, theirs):
        vector.reset(seed=2)
    for _ in range(10):
        *mine, my_infos = ours.step(STAND[None])
        *other, other_infos = theirs.step(STAND[None])
        for one, two in zip(mine, other, strict=True):
            np.testing.assert_array_equal(one, two)
        assert set(my_infos) == set(other_infos)
    assert my_infos["_final_obs"].tolist() == [True]
    np.testing.assert_array_equal(my_infos["final_obs"][0], other_infos["final_obs"][0])
    for key, value in other_infos["final_info"].items():
        np.testing.assert_array_equal(my_infos["final_info"][key], value, err_msg=key)
        assert my_infos["final_info"][key].dtype == value.dtype, key


def test_gymnasiums_vector_wrappers_work() -> None:
    vector = DictInfoToList(RecordEpisodeStatistics(RegisteredVectorEnv(4, GOTO, time_limit=1.0)))
    vector.reset(seed=0)
    for _ in range(10):
        *_, infos = vector.step(np.tile(STAND, (4, 1)))
    assert [info["episode"]["l"] for info in infos] == [10] * 4
    for info in infos:
        returned = info["final_info"]["episode_return"]
        assert info["episode"]["r"] == pytest.approx(returned, rel=1e-6)


# Episodes and resets


def test_a_time_out_is_a_terminated_loss_with_its_result() -> None:
    env = RegisteredEnv(
        {"targets": {"goto": 1.0}, "difficulty": {"goto": (0, 0, 0, 1, 0)}}, time_limit=1
    )
    env.reset(seed=4)
    *_, (_, _, terminated, truncated, last, info) = play(env, [STAND] * 10)
    assert (terminated, truncated) == (True, False)
    assert last[env.world.spec.observation_names.index("time_left")] == 0.0
    assert (info["won"], info["is_success"]) == (False, False)
    assert (info["target"], info["difficulty"], info["seconds"]) == ("goto", 4, 1.0)
    assert info["line"].startswith("Warning|Result|Lose|target=goto|difficulty=4|")
    terms = dict(zip(env.world.spec.reward_terms, info["reward_terms"], strict=True))
    assert terms["lose"] == -999.0
    assert info["episode_return"] == pytest.approx(sum(terms.values()))


def test_a_win_is_terminated_and_free_has_no_difficulty() -> None:
    env = RegisteredEnv({"targets": {"free": 1.0}}, free_enemies=1)
    env.reset(seed=0)
    state = env.world.state
    state.position[0], state.yaw[0], state.enemies[0, 0] = (10.0, 10.0), 0.0, (10.0, 15.0)
    _, reward, terminated, _, info = env.step(np.array([0, 0, 1, 5]))
    assert terminated
    assert reward > 999.0
    assert (info["won"], info["is_success"]) == (True, True)
    assert (info["target"], info["difficulty"], info["seconds"]) == ("free", 0, 0.1)


def test_a_reset_after_an_episode_keeps_the_place_and_one_with_a_seed_does_not() -> None:
    env = RegisteredEnv(GOTO, time_limit=1.0)
    names = env.world.spec.observation_names
    place = [names.index("agent_x"), names.index("agent_z")]
    first, _ = env.reset(seed=5)
    forward = np.array([1, 0, 0, 5])
    for _ in range(10):
        last, _, terminated, _, _ = env.step(forward)
    assert terminated
    following, _ = env.reset()
    np.testing.assert_array_equal(following[place], last[place])
    assert following[place].tolist() != first[place].tolist()
    np.testing.assert_array_equal(env.reset(seed=5)[0], first)


def test_unseeded_resets_in_the_middle_go_on_by_the_seed_before() -> None:
    for env in (RegisteredEnv(GOTO), RegisteredVectorEnv(3, GOTO)):
        first, _ = env.reset(seed=6)
        second, third = env.reset()[0], env.reset()[0]
        assert not np.array_equal(first, second)
        assert not np.array_equal(second, third)
        np.testing.assert_array_equal(env.reset(seed=6)[0], first)
        np.testing.assert_array_equal(env.reset()[0], second)
        np.testing.assert_array_equal(env.reset()[0], third)


def test_a_step_without_an_episode_and_reset_options_are_refused() -> None:
    for env in (RegisteredEnv(GOTO, time_limit=0.1), RegisteredVectorEnv(1, GOTO)):
        with pytest.raises(ResetNeeded):
            env.step(STAND)
        with pytest.raises(ConfigurationError, match="reset_mask"):
            env.reset(options={"reset_mask": np.ones(1, bool)})
    env = RegisteredEnv(GOTO, time_limit=0.1)
    env.reset()
    assert env.step(STAND)[2]
    with pytest.raises(ResetNeeded):
        env.step(STAND)


def test_nothing_that_was_handed_out_changes_later() -> None:
    vector = RegisteredVectorEnv(4, GOTO, time_limit=0.5)
    kept = [vector.reset(seed=0)[0]]
    copies = [kept[0].copy()]
    for actions in held_actions(vector, 20):
        observations, rewards, terminated, truncated, infos = vector.step(actions)
        last = [seen for seen in infos.get("final_obs", []) if seen is not None]
        for array in (observations, rewards, terminated, truncated, *last):
            kept.append(array)
            copies.append(array.copy())
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


# Actions


def test_the_hybrid_action_is_the_worlds_own() -> None:
    bins, hybrid = RegisteredVectorEnv(6, GOTO), RegisteredVectorEnv(6, GOTO, action="hybrid")
    for vector in (bins, hybrid):
        vector.reset(seed=1)
    values = np.array(TrainSettings().aim_bins, np.float32)
    for actions in held_actions(bins, 40):
        ours = bins.step(actions)
        branches, mouse = actions[:, :3], values[actions[:, 3:]]
        same = hybrid.step({"branches": branches, "mouse": mouse})
        for one, two in zip(ours[:4], same[:4], strict=True):
            np.testing.assert_array_equal(one, two)
    hybrid.action_space.seed(0)
    hybrid.step(hybrid.action_space.sample())


def test_the_default_bins_are_those_of_training() -> None:
    env = RegisteredEnv(GOTO)
    np.testing.assert_array_equal(env._codec._bins, np.float32(TrainSettings().aim_bins))


@pytest.mark.parametrize("bad", [-1, 11, 0.5, np.nan])
def test_an_aim_bin_that_does_not_exist_is_refused_with_its_row(bad: float) -> None:
    vector = RegisteredVectorEnv(3, GOTO)
    vector.reset(seed=0)
    before = vector.world.snapshot()
    actions = np.tile(STAND, (3, 1)).astype(float)
    actions[1, 3] = bad
    with pytest.raises(ActionError, match=r"environment 1: aim bin is .*0 to 10"):
        vector.step(actions)
    for name, array in vector.world.snapshot().items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


def test_a_branch_that_does_not_exist_or_nan_is_refused_with_its_row() -> None:
    vector = RegisteredVectorEnv(3, GOTO, action="hybrid")
    vector.reset(seed=0)
    branches, mouse = np.zeros((3, 3)), np.zeros((3, 1))
    branches[2, 1] = 3
    with pytest.raises(ActionError, match="environment 2: horizontal move is 3"):
        vector.step({"branches": branches, "mouse": mouse})
    mouse[0, 0] = np.nan
    with pytest.raises(ActionError, match="environment 0: mouse is nan"):
        vector.step({"branches": np.zeros((3, 3)), "mouse": mouse})


def test_actions_of_a_wrong_shape_are_refused() -> None:
    vector = RegisteredVectorEnv(3, GOTO)
    vector.reset(seed=0)
    for shape in [(4,), (1, 4), (3, 5), (4, 3)]:
        with pytest.raises(ActionError, match="shape"):
            vector.step(np.zeros(shape, int))


# Making them


@pytest.mark.parametrize(
    "imports",
    ["import aimbot_lab.envs, gymnasium", "import gymnasium, aimbot_lab.envs"],
)
def test_the_ids_are_known_once_the_environments_are_imported(imports: str) -> None:
    assert _in_a_new_process(f"{imports}\nmake = lambda name: name")


@pytest.mark.parametrize("imports", ["import gymnasium", "import aimbot_lab, gymnasium"])
def test_an_id_with_the_module_in_front_needs_no_import(imports: str) -> None:
    assert _in_a_new_process(f"{imports}\nmake = lambda name: 'aimbot_lab.envs:' + name")


def test_the_package_itself_neither_loads_gymnasium_nor_changes_how_modules_are_found() -> None:
    code = """
import sys
before = list(sys.meta_path)
import aimbot_lab
print("gymnasium" in sys.modules, sys.meta_path == before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


def _in_a_new_process(head: str) -> bool:
    code = f"""{head}
env = gymnasium.make(make("aimbot_lab/Goto-v0"))
env.reset(seed=0)
many = gymnasium.make_vec(make("aimbot_lab/Mix-v0"), num_envs=64, time_limit=1.0)
many.reset(seed=0)
for _ in range(10):
    many.step(many.action_space.sample())
assert type(many).__name__ == "RegisteredVectorEnv", many
print(env.step(env.action_space.sample())[0].shape, many.num_envs)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.stdout == "(51,) 64\n"


def test_a_spec_that_went_through_json_makes_the_same_environment() -> None:
    settings = ArenaSettings(time_limit=2.0, mouse_limit=2.5)
    env = gymnasium.make("aimbot_lab/Attack-v0", settings=settings, render_mode="rgb_array")
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.world.settings == env.unwrapped.world.settings
    np.testing.assert_array_equal(env.reset(seed=9)[0], again.reset(seed=9)[0])


def test_a_pickled_environment_goes_on_where_it_was() -> None:
    env = RegisteredEnv(MIX, render_mode="rgb_array", time_limit=1.0)
    env.reset(seed=8)
    play(env, [STAND] * 5)
    again = pickle.loads(pickle.dumps(env))
    for one, two in zip(play(env, [STAND] * 30), play(again, [STAND] * 30), strict=True):
        np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(env.render(), again.render())


def test_keywords_win_over_settings_and_the_scenario_over_the_ids() -> None:
    settings = ArenaSettings(num_envs=9, time_limit=2.0, mouse_limit=3.0)
    scenario = Scenario({"attack": 1.0}, {"attack": (0.0, 0.0, 1.0, 0.0, 0.0)})
    options = {"settings": settings, "mouse_limit": 4.0, "scenario": scenario}
    vector = gymnasium.make_vec("aimbot_lab/Goto-v0", num_envs=2, **options)
    chosen = vector.unwrapped.world.settings
    assert (chosen.num_envs, chosen.time_limit, chosen.mouse_limit) == (2, 2.0, 4.0)
    vector.reset(seed=0)
    assert vector.unwrapped.world.state.difficulty.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"mouse_limt": 2.0}, "mouse_limt"),
        ({"rays": {"middle_count": 4}}, "rays.*odd"),
        ({"settings": {"time_limit": -1}}, "time_limit"),
        ({"action": "discrete"}, "bins or hybrid"),
        ({"aim_bins": (-9.0, 9.0)}, "mouse limit"),
        ({"aim_bins": ()}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": (0.0, np.nan)}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": [[0.0, 1.0]]}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": [[0.0], [1.0, 2.0]]}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": "far"}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": 1.0}, "aim_bins must be a list of finite numbers"),
        ({"aim_bins": (-1.0, 1.0), "action": "hybrid"}, "aim_bins: action=.hybrid."),
        ({"settings": 5}, "settings must be"),
        ({"settings": {"world": "mars"}}, "world: must be arena or gymnasium .got 'mars'."),
        ({"world": ["arena"]}, "world: must be arena or gymnasium"),
        ({"difficulty": {"goto": (1, 0, 0, 0, 0)}}, "difficulty: give it as scenario="),
        ({"autoreset_mode": AutoresetMode.NEXT_STEP}, "always SAME_STEP"),
        ({"presets": "mine.yaml"}, "^presets: must be a list of files"),
        ({"scenario": "goto"}, "scenario must be"),
        ({"scenario": {}}, "scenario.targets: is missing"),
        ({"scenario": {"targets": "goto"}}, "scenario.targets: must be a mapping"),
        ({"scenario": {"target": {"goto": 1.0}}}, "scenario.target: .*did you mean targets?"),
        ({"scenario": {**GOTO, "parameters": {"move_speed": {}}}}, "parameters.move_speed: "),
        ({"scenario": {**GOTO, "parameters": {"move_speed": "3"}}}, "a number or a sampler"),
        ({"render_mode": "human"}, "rgb_array"),
        ({"scenario": {"targets": {"defence": 1.0}}}, "defence"),
    ],
)
def test_what_the_arena_does_not_have_is_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        RegisteredEnv(**{"scenario": GOTO, **keywords})


def test_a_sampler_may_come_as_a_mapping_through_gymnasium() -> None:
    limits = {"min_value": 1, "max_value": 3.0}
    sampler = {"sampler_type": "uniform", "sampler_parameters": limits}
    parameters = {"move_speed": sampler, "gun_cooldown": np.float32(0.5)}
    scenario = {"targets": {"goto": np.float32(1)}, "parameters": parameters}
    for env in (
        gymnasium.make("aimbot_lab/Goto-v0", scenario=scenario).unwrapped,
        gymnasium.make_vec("aimbot_lab/Goto-v0", num_envs=50, scenario=scenario).unwrapped,
    ):
        env.reset(seed=0)
        drawn = env.world.state.parameters[:, env.world.spec.parameters.index("move_speed")]
        assert ((drawn > 1.0) & (drawn < 3.0)).all()
        assert len(np.unique(drawn)) == len(drawn)


def test_make_vec_says_why_another_autoreset_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="autoreset_mode: it is always SAME_STEP"):
        gymnasium.make_vec("aimbot_lab/Goto-v0", num_envs=2, autoreset_mode="NextStep")


def test_a_finite_mouse_of_any_size_is_clipped_and_an_endless_one_refused() -> None:
    turned = []
    for mouse in (1e300, 5.0):
        env = RegisteredEnv(GOTO, action="hybrid")
        env.reset(seed=0)
        env.step({"branches": np.zeros(3, int), "mouse": np.array([mouse])})
        turned.append(env.world.state.yaw[0])
    assert turned[0] == turned[1]
    with pytest.raises(ActionError, match="mouse is inf"):
        env.step({"branches": np.zeros(3, int), "mouse": np.array([np.inf])})


def test_a_world_of_many_rows_is_no_single_environment() -> None:
    with pytest.raises(ConfigurationError, match="one row"):
        WorldEnv(Arena(ArenaSettings(num_envs=2)))


# Pictures


def test_frames_are_pictures_of_the_rows() -> None:
    vector = RegisteredVectorEnv(3, GOTO, render_mode="rgb_array")
    vector.reset(seed=0)
    frames = vector.render()
    assert [(frame.shape, frame.dtype) for frame in frames] == [((480, 480, 3), np.uint8)] * 3
    assert not np.array_equal(frames[0], frames[1])
    assert vector.metadata["render_fps"] == 10.0
    assert RegisteredEnv(GOTO, decision_period=1).metadata["render_fps"] == 50.0


def test_the_frame_after_the_end_shows_how_the_episode_ended() -> None:
    env = RegisteredEnv(GOTO, render_mode="rgb_array", time_limit=0.5)
    twin = RegisteredEnv(GOTO, render_mode="rgb_array", time_limit=0.5)
    for one in (env, twin):
        one.reset(seed=3)
        play(one, [STAND] * 4)
    assert env.step(STAND)[2]
    ending = env.render()
    twin.world.state.decisions[:] = 5  # for an agent that stands still only time has passed
    np.testing.assert_array_equal(ending, twin.render())
    env.reset()
    assert not np.array_equal(ending, env.render())


def test_without_a_render_mode_there_is_a_warning_and_no_frame() -> None:
    for env in (RegisteredEnv(GOTO), RegisteredVectorEnv(2, GOTO)):
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="rgb_array"):
            assert env.render() is None


def test_another_world_is_made_from_keywords_too() -> None:
    options = {"world": "gymnasium", "id": "CartPole-v1", "win": {"return_above": 20}}
    env = RegisteredEnv({"targets": {"task": 1.0}}, **options)
    same = RegisteredEnv({"targets": {"task": 1.0}}, env.world.settings)
    first, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, same.reset(seed=3)[0])
    assert first.shape == (4,)
    many = RegisteredVectorEnv(3, {"targets": {"task": 1.0}}, **options)
    assert many.reset(seed=3)[0].shape == (3, 4)
