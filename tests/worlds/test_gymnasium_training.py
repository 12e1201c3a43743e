"""Trainings in Gymnasium environments: algorithms, cut-off episodes, resuming."""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from corridor import corridors
from pole_curriculum import planned

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.validation import always
from aimbot_lab.foundation.samplers import Uniform
from aimbot_lab.foundation.world import new_step_buffers
from aimbot_lab.training.observer import SilentObserver
from aimbot_lab.training.training import Training, TrainingPlan
from aimbot_lab.worlds.gymnasium.settings import WinRule
from tests.training.tiny_training import Sink


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
    env._codec.to_world = lambda _given, _out, _seen: None  # type: ignore[method-assign]
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


def test_the_example_of_the_page_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "aimbot_lab" / "worlds" / "README.md").read_text("utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    text = page.split("```yaml\n")[1].split("```")[0]
    (tmp_path / "my_envs.py").write_text(code, encoding="utf-8")
    (tmp_path / "reach.yaml").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_envs", raising=False)
    try:
        config = load_curriculum(tmp_path / "reach.yaml", may_run=always).config
        training = Training(TrainingPlan(1, config.env, config.lessons, config.train))
        training.learn(Sink(), SilentObserver(), lambda: False)
        assert training.progress.finished
    finally:
        gymnasium.registry.pop("Reach-v0", None)
