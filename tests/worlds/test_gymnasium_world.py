"""Gymnasium environments under curricula: what wins, parameters, cut-offs, resuming, refusals."""

import json
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.random_player import RandomAgent
from aimbot_lab.foundation.result_lines import EpisodeResult, parse_line
from aimbot_lab.foundation.samplers import MultiRangeUniform, Uniform
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings, WinRule
from aimbot_lab.worlds.gymnasium.world import GymnasiumWorld
from tests.training.tiny_training import Sink

TASK = Scenario({"task": 1.0})
TEN = {"kwargs": {"length": 10}}


class Corridor(gymnasium.Env):
    """Goes right by one each step; at `goal` it is terminated, with the info is_success."""

    observation_space = gymnasium.spaces.Dict(
        {
            "place": gymnasium.spaces.Box(0, 1, (1,), np.float32),
            "kind": gymnasium.spaces.Discrete(3, start=1),
        }
    )
    action_space = gymnasium.spaces.MultiDiscrete([2, 3])

    def __init__(self, length: int = 10, luck: bool = True) -> None:
        self.goal, self.luck = length, luck
        self.place = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        self.goal = (options or {}).get("goal", self.goal)
        return self.seen(), {}

    def seen(self):
        return {"place": np.array([self.place / 100], np.float32), "kind": np.int64(2)}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place += 1
        over = self.place >= self.goal
        info = {"is_success": self.luck} if over else {}
        return self.seen(), float(self.place), over, False, info

    def action_masks(self):
        return [np.array([True, False]), np.array([True, True, True])]


@pytest.fixture(autouse=True)
def corridor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        gymnasium.registry,
        "Corridor-v0",
        gymnasium.envs.registration.EnvSpec("Corridor-v0", Corridor, max_episode_steps=20),
    )


def corridors(win: WinRule, rows: int = 2, **given: object) -> GymnasiumWorld:
    settings = {"id": "Corridor-v0", "win": win, "num_envs": rows, **given}
    world = GymnasiumWorld(GymnasiumSettings(**settings))  # type: ignore[arg-type]
    world.set_scenario(TASK)
    return world


def results(world: GymnasiumWorld, steps: int = 60) -> list[EpisodeResult]:
    buffers = new_step_buffers(world.num_envs, len(world.spec.observation_names))
    world.reset(1, buffers.observations)
    act = RandomAgent(world.spec, 0)
    found = []
    for _ in range(steps):
        for line in world.step(act(buffers.observations), buffers).lines:
            result = parse_line(line)
            assert isinstance(result, EpisodeResult)
            found.append(result)
    return found


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


def test_a_parameter_is_drawn_for_every_episode_and_holds_from_the_next_on() -> None:
    world = corridors(WinRule(terminated="win"), rows=1, max_episode_steps=100)
    intervals = {"intervals": ((3.0, 5.0), (30.0, 31.0)), "seed": 5}
    sampler = MultiRangeUniform(sampler_parameters=intervals)  # type: ignore[arg-type]
    world.set_scenario(Scenario({"task": 1.0}, {}, {"goal": sampler}))
    lengths = [result.seconds for result in results(world, 600)]
    assert len(lengths) > 20
    assert {length for length in lengths if length is not None} <= {3, 4, 5, 30, 31}
    assert len(set(lengths)) > 2
    assert lengths == [result.seconds for result in results(world, 600)]


def test_parameters_may_be_options_of_the_reset() -> None:
    world = corridors(WinRule(terminated="win"), via="options")
    world.set_scenario(Scenario({"task": 1.0}, {}, {"goal": 4.0}))
    assert {result.seconds for result in results(world)} == {4.0}


CURRICULUM = """
name: corridor
env:
  world: gymnasium
  id: CartPole-v1
  num_envs: 8
  win: {return_above: 100}
lessons:
  - name: one
    parameters: {length: {sampler_type: uniform, sampler_parameters: {min_value: 0.4}}}
train: {algo: ALGO, total_steps: 2048, n_steps: 32, batch_size: 64, n_epochs: 2}
"""


def planned(path: Path, algo: str) -> TrainingPlan:
    path.write_text(CURRICULUM.replace("ALGO", algo), encoding="utf-8")
    config = load_curriculum(path).config
    return TrainingPlan(1, config.env, config.lessons, config.train)


@pytest.mark.parametrize("algo", ["hybrid_ppo", "ppo", "maskable_ppo", "dqn"])
def test_algorithms_train_on_it_and_repeat_themselves(tmp_path: Path, algo: str) -> None:
    plan = planned(tmp_path / "c.yaml", algo)
    hashes = []
    for _ in range(2):
        training = Training(plan)
        outcome = training.learn(Sink(), SilentObserver(), lambda: False)
        assert outcome.steps == 2048
        hashes.append(outcome.state_sha256)
    assert hashes[0] == hashes[1]


def test_a_lesson_of_a_world_with_one_target_needs_no_targets(tmp_path: Path) -> None:
    plan = planned(tmp_path / "c.yaml", "ppo")
    assert dict(plan.lessons[0].targets) == {"task": 1.0}
    assert isinstance(plan.lessons[0].parameters["length"], Uniform)


def test_a_cut_off_episode_is_bootstrapped(tmp_path: Path) -> None:
    """stable-baselines3 adds gamma V(last observation) where an episode was truncated."""
    training = Training(planned(tmp_path / "c.yaml", "ppo"))
    env = training.env
    env.world = corridors(WinRule(terminated="win"), rows=8, max_episode_steps=5)
    env.world.reset(0, new_step_buffers(8, 4).observations)
    env._actions = np.zeros((8, 2), np.float32)
    env._buffers = [new_step_buffers(8, 4) for _ in range(2)]
    env._codec.to_world = lambda _given, _out: None  # type: ignore[method-assign]
    for _ in range(5):
        _, _, done, infos = env.step(np.zeros((8, 1)))
    assert done.all()
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert infos[0]["terminal_observation"][3] == pytest.approx(0.05)


def test_it_goes_on_from_a_checkpoint_with_new_episodes(tmp_path: Path) -> None:
    plan = planned(tmp_path / "c.yaml", "hybrid_ppo")
    first = Training(plan)
    first.learn(Sink(), SilentObserver(), lambda: first.model.num_timesteps >= 1024)
    state = first.env.state()
    second = Training(plan)
    seen = second.env.resume(state)
    assert seen is not None
    assert seen.shape == (8, 4)
    assert second.env.world.scenario_number == first.env.world.scenario_number
    _, _, _, infos = second.env.step(np.zeros((8, 1)))
    assert len(infos) == 8


def refused(tmp_path: Path, old: str, new: str) -> list[str]:
    text = CURRICULUM.replace("ALGO", "ppo")
    assert old in text
    (tmp_path / "c.yaml").write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(tmp_path / "c.yaml")
    return [line.partition("c.yaml:")[2] for line in caught.value.faults]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("CartPole-v1", "CartPole-v99", "5:7: env.id: CartPole-v99 can't be made: "),
        ("gymnasium", "gymnasum", "4:10: env.world: must be 'arena' or 'gymnasium' (got"),
        ("{return_above: 100}", "{}", "7:8: env.win: must have exactly one of return_above, "),
        ("return_above: 100", "return_over: 9", "7:9: env.win.return_over: unknown key (nearest"),
        ("length:", "lenght:", "10:26: lessons.0.parameters.lenght: CartPoleEnv has no number"),
        ("num_envs: 8", "module: nowhere.at_all", "6:11: env.module: nowhere.at_all can't be"),
        ("num_envs: 8", "kwargs: {x: 1}", "5:7: env.id: CartPole-v1 can't be made: "),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, old: str, new: str, what: str) -> None:
    lines = refused(tmp_path, old, new)
    assert any(line.startswith(what) for line in lines), lines
    assert len([line for line in lines if "aim_bins" not in line and "batch" not in line]) == 1


def test_an_environment_of_the_users_own_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    begin, end = source.index("class Corridor"), source.index("@pytest.fixture(autouse")
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
    (array,) = world.snapshot().values()
    assert json.loads(array.tobytes())["scenario"] == 1


def test_the_example_of_the_page_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "aimbot_lab" / "worlds" / "README.md").read_text("utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    text = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "my_envs.py").write_text(code, encoding="utf-8")
    (tmp_path / "reach.yaml").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    try:
        config = load_curriculum(tmp_path / "reach.yaml").config
        training = Training(TrainingPlan(1, config.env, config.lessons, config.train))
        training.learn(Sink(), SilentObserver(), lambda: False)
        assert training.progress.finished
    finally:
        gymnasium.registry.pop("Reach-v0", None)


def test_a_world_with_several_targets_asks_for_targets(tmp_path: Path) -> None:
    text = "name: x\nlessons:\n  - name: one\n"
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(tmp_path / "c.yaml")
    assert [line.partition("c.yaml:")[2] for line in caught.value.faults] == [
        "3:5: lessons.0.targets: is missing"
    ]


def test_what_an_environment_raises_is_told_in_one_line() -> None:
    world = corridors(WinRule(terminated="win"), kwargs={"length": None})
    with pytest.raises(LabError, match=r"^Corridor-v0: its step raised TypeError: '>=' not"):
        results(world)
