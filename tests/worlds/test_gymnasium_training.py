"""Trainings in Gymnasium environments: algorithms, cut-off episodes, resuming."""

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from corridor import Corridor, corridors, register
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.envs.registration import EnvSpec
from pole_curriculum import agent_of, planned, trained
from sb3_contrib.common.wrappers import ActionMasker

from aimbot_lab.evaluation.episodes import play
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.settings import Uniform
from aimbot_lab.foundation.world import new_step_buffers
from aimbot_lab.training.settings import EvaluationSettings
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.registry import make_world, type_of
from tests.training.tiny_training import Sink, learn


class Strict(Corridor):
    """Refuses what its masks forbid, which change with its place."""

    def action_masks(self) -> list[np.ndarray]:
        raise AssertionError("these are not the masks of the wrapper")

    def step(self, action: np.ndarray) -> Any:
        first, second = allowed(self)
        if not (first[action[0]] and second[action[1]]):
            raise ValueError(f"forbidden: {action} at {self.place}")
        return super().step(action)


def allowed(env: Any) -> list[np.ndarray]:
    place = env.unwrapped.place
    return [np.arange(2) == place % 2, np.arange(3) != place % 3]


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EnvSpec("Strict-v0", lambda: ActionMasker(Strict(), allowed), disable_env_checker=True)
    monkeypatch.setitem(gymnasium.registry, "Strict-v0", spec)


STRICT = """
name: strict
env: {world: gymnasium, id: Strict-v0, num_envs: 8, win: {terminated: win}}
lessons: [{name: one}]
train: {algo: ALGO, total_steps: 1024, n_steps: 32, batch_size: 64, n_epochs: 2, learning_rate: 1}
"""


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("algo", ["maskable_ppo", "hybrid_ppo, masks: true"])
def test_the_masks_of_a_wrapper_are_heeded_in_training_and_in_evaluation(
    tmp_path: Path, algo: str
) -> None:
    plan = planned(tmp_path / "c.yaml", algo, STRICT)
    world, agent = make_world(plan.env), agent_of(trained(plan))
    random = type_of(plan.env).baselines(plan.env)["random"]
    for player in (agent.player(world), random(world, 1)):
        assert play(world, player, Cell("task", 0), seed=1).won.all()


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize(
    ("algo", "told"), [("ppo", 1), ("hybrid_ppo", 1), ("maskable_ppo", 0), ("dqn", 1)]
)
def test_masks_that_nothing_heeds_are_told_of(tmp_path: Path, algo: str, told: int) -> None:
    text = STRICT.replace("n_epochs: 2, ", "") if algo == "dqn" else STRICT
    notes = notes_of(tmp_path / "c.yaml", text.replace("ALGO", algo))
    what = f"{algo} does not heed the environment's action_masks"
    assert sum(what in note for note in notes) == told


def notes_of(path: Path, text: str) -> Sequence[str]:
    path.write_text(text, encoding="utf-8")
    return load_curriculum(path).notes


@pytest.mark.parametrize(
    ("algo", "what"),
    [("maskable_ppo", "algo: maskable_ppo needs"), ("hybrid_ppo, masks: true", "masks: needs")],
)
def test_what_needs_masks_is_refused_where_there_are_none(
    tmp_path: Path, algo: str, what: str
) -> None:
    words = rf"^[^\n]*train.{what} action masks, and there are none[^\n]*ActionMasker[^\n]*$"
    with pytest.raises(ConfigurationError, match=words):
        planned(tmp_path / "c.yaml", algo)


def test_a_lesson_of_a_world_with_one_target_needs_no_targets(tmp_path: Path) -> None:
    plan = planned(tmp_path / "c.yaml", "ppo")
    assert dict(plan.lessons[0].targets) == {"task": 1.0}
    assert isinstance(plan.lessons[0].parameters["length"], Uniform)


def test_a_cut_off_episode_is_bootstrapped(tmp_path: Path) -> None:
    """stable-baselines3 adds gamma V(last observation) where an episode was truncated."""
    training = Training(planned(tmp_path / "c.yaml", "ppo"))
    env = training.env
    env.world = corridors(rows=8, max_episode_steps=5)
    env.world.reset(0, new_step_buffers(8, 4).observations)
    env._actions = np.zeros((8, 2), np.float32)
    env._buffers = [new_step_buffers(8, 4) for _ in range(2)]
    env._codec.to_world = lambda _given, _out, _seen: None  # type: ignore[method-assign]
    for _ in range(5):
        _, _, done, infos = env.step(np.zeros((8, 1)))
    assert done.all()
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert infos[0]["terminal_observation"][3] == pytest.approx(0.05)


def test_the_example_of_the_page_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "aimbot_lab" / "worlds" / "README.md").read_text("utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    text = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "my_envs.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    try:
        assert trained(planned(tmp_path / "reach.yaml", "", text)).progress.finished
    finally:
        gymnasium.registry.pop("Reach-v0", None)


def test_processes_without_copies_of_their_own_are_told_of(tmp_path: Path) -> None:
    text = "name: c\nenv: {world: gymnasium, id: CartPole-v1, processes: 4}\ntrain: {algo: ALGO}\n"
    for algo, told in (("a2c", True), ("hybrid_ppo", False)):  # which have one copy, and 16
        notes = notes_of(tmp_path / "c.yaml", text.replace("ALGO", algo))
        assert any("4 step 1 of env.num_envs, so that 3" in note for note in notes) == told


def test_an_agent_is_judged_the_same_in_one_copy_beside_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = list[int]()

    class Counted(CartPoleEnv):
        def __init__(self) -> None:
            made.append(made[-1] + 1 if made else 1)
            super().__init__()

        def close(self) -> None:
            made.append(made[-1] - 1)
            super().close()

    register(monkeypatch, Counted, max_episode_steps=200)
    usual = planned(tmp_path / "pole.yaml", "dqn")
    evaluation = EvaluationSettings(every=1024, episodes=30)
    found, most = [], []
    for copies in (None, 1):
        env = replace(usual.env, id="Counted-v0", num_envs=1, num_eval_envs=copies)
        made.clear()
        sink = Sink()
        with closing(Training(replace(usual, env=env, evaluation=evaluation))) as training:
            ended = learn(training, sink)
        judged = [(step, one) for step, one in sink.logged if "eval/win_rate" in one]
        found.append((ended.state_sha256, judged))
        most.append(max(made))
    assert len(found[0][1]) == 3
    assert found[0] == found[1]
    assert most == [31, 2]
