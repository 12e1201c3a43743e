"""Replays that a training keeps: of every lesson, true to what was played, and of no influence."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch as th

from aimbot_lab.curriculum.rules import CompletionCriteria
from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.replay.episode import Replay, load_replay, replay_steps
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.run_hooks import RunLinks
from aimbot_lab.training.settings import TrainingPlan
from aimbot_lab.training.training import Training
from aimbot_lab.worlds.arena.settings import ArenaSettings
from tests.training.tiny_training import learn, plan

EASY = CompletionCriteria(measure="progress", threshold=0.5, min_lesson_length=1)


class Texts:
    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def log_text(self, text: str, name: str) -> bool:
        self.kept[name] = text
        return True

    def replays(self, folder: Path) -> dict[str, Replay]:
        found = {}
        for name, text in self.kept.items():
            path = folder / Path(name).name
            path.write_text(text)
            found[name] = load_replay(path)
        return found


def two_lessons(algo: str) -> TrainingPlan:
    first = Lesson(name="near", targets={"goto": 1.0}, completion_criteria=EASY)
    env = ArenaSettings(num_envs=16, goto_win_radius=12.0, time_limit=2.0)
    tiny = plan(algo, total_steps=2048)
    return replace(tiny, env=env, lessons=(first, replace(tiny.lessons[0], name="far")))


@pytest.mark.parametrize("algo", ["hybrid_ppo", "dqn"])
def test_every_lesson_leaves_replays_that_play_as_recorded_hold_thoughts_and_change_nothing(
    tmp_path: Path, algo: str
) -> None:
    texts, training = Texts(), Training(two_lessons(algo))
    ended = learn(training, links=RunLinks(replays=texts))
    found = texts.replays(tmp_path)
    assert ended.state_sha256 == learn(Training(two_lessons(algo))).state_sha256
    assert {"replays/lesson-01-first.json", "replays/lesson-02-first.json"} <= found.keys()
    for name, replay in found.items():
        assert replay.about["lesson_name"] == ("near" if "-01-" in name else "far")
        assert int(replay.episode.start["scenario"][0]) == (1 if "-01-" in name else 2)
        if "first" not in name:
            assert ("-won" in name) == replay.episode.result.won
    assert len({replay.trajectory_sha256 for replay in found.values()}) > 2
    replay = found["replays/lesson-02-first.json"]
    assert replay.about["judged_at_step"] == training.model.num_timesteps
    if algo == "dqn":
        assert replay.mind is None
        return
    agent = Agent(training.model.policy, training.env.world.spec, two_lessons(algo).train)
    assert replay.mind is not None
    assert replay.mind.values is not None
    assert len(replay.mind.values) == len(replay.episode.actions)
    for decision, step in enumerate(replay_steps(replay.episode)):
        if decision in (0, len(replay.mind.values)):
            continue  # nothing was shown yet; nothing more is decided
        masks = np.ones((1, sum(agent.spec.branches)), np.bool_)
        step.world.action_masks(masks)
        mind = agent.mind(step.observations, masks)
        assert mind is not None
        assert mind.values is not None
        assert replay.mind.values[decision] == pytest.approx(mind.values[0], rel=1e-5)
        for kept, fresh in zip(replay.mind.choices, mind.choices, strict=True):
            np.testing.assert_allclose(kept[decision], fresh[0], atol=5e-4)
            assert kept[decision].sum() == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("algo", ["ppo", "hybrid_ppo"])
def test_a_network_of_nan_thinks_nothing(algo: str) -> None:
    training = Training(two_lessons(algo))
    spec, policy = training.env.world.spec, training.model.policy
    agent = Agent(policy, spec, two_lessons(algo).train)
    seen = np.zeros((2, len(spec.observation_names)), np.float32)
    masks = np.ones((2, sum(spec.branches)), np.bool_)
    assert agent.mind(seen, masks) is not None
    with th.no_grad():
        for weights in policy.parameters():
            weights.fill_(np.nan)
    assert agent.mind(seen, masks) is None
