"""A run by self-play, watched: its agent meets those that its training has it meet."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from aimbot_lab.experiment.config.document import parse_curriculum
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.panel.server.watched_agent import LivePlay, PastAgents, drawn_cell, shown_mix
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.worlds.registry import spec_of

FILE = """\
name: match
env: {world: duel, num_envs: 8, time_limit: 0.5}
self_play: {play_against_latest_model_ratio: RATIO}
lessons:
  - {name: one, targets: {self: 1, greedy: 1}, completion_criteria: {threshold: 0.5}}
  - {name: two, targets: {self: 1}}
train: {algo: hybrid_ppo, n_steps: 16, batch_size: 64, network: {layers: [4]}}
"""


def configured(ratio: float = 0.5) -> Any:
    return parse_curriculum(FILE.replace("RATIO", str(ratio)), "file.yaml").config


def status(lesson: int, **weights: float) -> dict[str, Any]:
    levels = {name: {"weights": [1.0, 0, 0, 0, 0]} for name in weights}
    mixed = {"targets": list(weights), "weights": list(weights.values())}
    return {"lesson": lesson, "targets": mixed, "difficulty": levels}


def test_what_is_shown_is_what_the_run_draws_past_selves_among_it() -> None:
    mix = shown_mix(configured(), status(0, self=0.5, greedy=0.5))
    assert mix is not None
    assert dict(mix.targets) == {"self": 0.5, "greedy": 0.5}
    assert mix.difficulty["self"] == (1.0, 0, 0, 0, 0)
    assert shown_mix(configured(), None) is None


def opponents(ratio: float, weights: Mapping[str, float], *, past: bool = True) -> set[str]:
    """Who sits opposite in the first matches that are watched; each is looked at to its end."""
    config = configured(ratio)
    spec = spec_of(config.env)
    agent = Agent(new_policy(config.train, spec), spec, config.train)
    saved = SavedAgent(agent, config.env, config.train, {"step": 1234})
    given = shown_mix(config, status(0, **weights))
    own = PastAgents(["snapshot-000000", "snapshot-000001"], lambda _: agent) if past else None
    shown = LivePlay(config, lambda: saved, lambda: given, lambda _: own, seed=3)
    found: set[str] = set()
    for _ in range(8 * 31):  # 5 decisions, and how it ended for a while
        told = shown.decide()
        home, away = told["names"]
        assert home == "agent, step 1,234"
        assert len(told["scene"]["fighters"]) == 2
        assert told["scene"]["target"] == "Duel, difficulty 1"
        if told["ended"] is not None:
            assert told["ended"]["line"] == "Warning|Result|Draw"
            found.add(away)
    return found


@pytest.mark.parametrize(
    ("weights", "met"),
    [({"self": 1.0}, {"snapshot-000000", "snapshot-000001"}), ({"greedy": 1.0}, {"greedy"})],
)
def test_the_agent_meets_itself_past_selves_and_scripts_as_in_training(
    weights: dict[str, float], met: set[str]
) -> None:
    assert opponents(0.0, weights) == met
    assert "itself" in opponents(0.5, weights)


def test_a_run_that_has_kept_no_snapshot_yet_shows_its_agent_against_itself() -> None:
    assert opponents(0.0, {"self": 1.0}, past=False) == {"itself"}


def test_cells_are_drawn_as_often_as_they_weigh() -> None:
    mix = Scenario({"self": 3.0, "greedy": 1.0}, {"self": (0.0, 1.0)})
    random = np.random.default_rng(0)
    drawn = [drawn_cell(mix, random) for _ in range(400)]
    assert set(drawn) == {("self", 2), ("greedy", 1)}
    assert drawn.count(("self", 2)) == pytest.approx(300, abs=30)
