"""Runs compared: with agents that have learned nothing, so that all is known beforehand."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium.envs.classic_control import CartPoleEnv

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.evaluation.temperature import SAMPLED
from aimbot_lab.experiment.analysis.comparison import Comparison, ComparisonRequest, compare_agents
from aimbot_lab.experiment.analysis.comparison_page import (
    comparison_page,
    difference_head,
    lesson_rows,
    method,
    verdicts,
)
from aimbot_lab.experiment.analysis.configurations import compare_configurations
from aimbot_lab.experiment.analysis.learning_curve import LearningCurve, LessonPassed
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import settings_that_differ
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.tracker import RunSummary
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.networks.settings import MemorySettings, UnitsSettings
from aimbot_lab.training.settings import NetworkSettings, TrainSettings
from aimbot_lab.worlds.arena.settings import ArenaSettings, ObservationSettings, RaySettings
from aimbot_lab.worlds.gymnasium.settings import GymnasiumSettings
from aimbot_lab.worlds.registry import spec_of

TRAIN = TrainSettings(batch_size=1024, network=NetworkSettings(layers=(8,)))
EASY = ArenaSettings(num_envs=8, goto_win_radius=12.0, time_limit=4.0)
REQUEST = ComparisonRequest(episodes=60, seed=1, temperature=SAMPLED, margin=0.05)
FEW = replace(REQUEST, episodes=8)
CURVE = LearningCurve(((10, 0.2), (20, 0.7)), (LessonPassed("<only>", None, None),))


def tracked(name: str, env: Any, train: TrainSettings, policy: Any, *lessons: Lesson) -> Any:
    config = CurriculumFile(name=name, env=env, train=train, lessons=lessons)
    run = RunSummary(f"{name}-id", name, "e", "1", "FINISHED", datetime.now(UTC), None, {}, {})
    saved = SavedAgent(Agent(policy, spec_of(env), train), env, train, {"step": 5})
    return TrackedAgent(run, "last", config, saved)


def agent(
    name: str,
    env: ArenaSettings = EASY,
    *,
    always: int | None = None,
    train: TrainSettings = TRAIN,
    **lesson: Any,
) -> TrackedAgent:
    """An agent with random weights, or one that always makes the move `always`."""
    th.manual_seed(3)
    policy = new_policy(train, spec_of(env))
    if always is not None:
        with th.no_grad():
            policy.action_net.weight.zero_()
            policy.action_net.bias.zero_()
            policy.action_net.bias[always] = 50.0
    only = Lesson(**{"name": "<only>", "targets": {"goto": 1.0}, **lesson})
    return tracked(name, env, train, policy, only)


class Begun(CartPoleEnv):
    """A pole whose beginning no seed decides."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(options=options)


class Windy(CartPoleEnv):
    """A pole that begins from its seed, in wind that no seed decides."""

    def step(self, action: Any) -> Any:
        seen, *rest = super().step(action)
        wind = np.random.default_rng().normal(0, 0.01)  # of the system, not of its own generator
        self.state = (*self.state[:3], self.state[3] + wind)
        return (seen, *rest)


def poles(env_id: str, count: int, *, win: int = 15) -> list[TrackedAgent]:
    """Agents with random weights that balance a pole."""
    env = GymnasiumSettings(id=env_id, num_envs=4, win={"length_above": win})
    train = replace(TRAIN, algo="ppo", n_steps=8, batch_size=32)
    found = []
    for number in range(count):
        th.manual_seed(number)
        policy = new_policy(train, spec_of(env))
        found.append(tracked(f"pole {number}", env, train, policy, Lesson(name="up")))
    return found


@pytest.fixture
def registered() -> Iterator[None]:
    """Poles of few steps that heed their seeds, or ignore them, each in its way."""
    made = {"Seeded-v0": CartPoleEnv, "Begun-v0": Begun, "Windy-v0": Windy}
    for name, pole in made.items():
        gymnasium.register(name, pole, max_episode_steps=20)
    yield
    for name in made:
        del gymnasium.registry[name]


def compared(agents: Sequence[TrackedAgent], request: ComparisonRequest = REQUEST) -> Comparison:
    return compare_agents(agents, [CURVE] * len(agents), request, on_cell=lambda *_: None)


@pytest.fixture(scope="module")
def still_and_walking() -> Comparison:
    return compared([agent("still & quiet", always=0), agent("walking", always=1)])


def test_a_run_against_itself_differs_in_nothing_and_has_its_id_in_its_columns() -> None:
    one = agent("walker")
    found = compared([one, one], FEW)
    assert found.settings == {}
    for row in found.differences[0]:
        assert (row.first_only, row.second_only, row.adjusted_p_value) == (0, 0, 1.0)
    assert found.runs[0].scores == found.runs[1].scores
    assert difference_head(found, found.runs[1])[1:3] == ("walker (walker-i)",) * 2


@pytest.mark.usefixtures("registered")
def test_episodes_from_their_seeds_are_paired() -> None:
    found = compared(poles("Seeded-v0", 2), FEW)
    assert found.unpaired == ""
    assert found.differences[0][0].first_only is not None
    assert "every run met the same episodes" in method(found)


@pytest.mark.parametrize(
    ("env_id", "why"),
    [
        ("Begun-v0", "8 of 8 began with another observation"),
        ("Windy-v0", "the same seeds do not bring the same episodes again"),
    ],
)
@pytest.mark.usefixtures("registered")
def test_an_environment_that_ignores_its_seed_is_compared_unpaired_and_that_is_told(
    env_id: str, why: str
) -> None:
    agents = poles(env_id, 2)
    found = compared(agents, FEW)
    assert found.unpaired == found.as_json()["unpaired"] == why
    assert [row.first_only for row in found.differences[0]] == [None, None]
    assert f"because {why}" in method(found)
    assert "Fisher" in method(found)
    if env_id == "Begun-v0":  # which is found out at once
        assert "McNemar" not in comparison_page(found)
        alike = poles(env_id, 2, win=1)  # whose episodes are all won
        by_config = compare_configurations(alike, FEW, on_cell=lambda *_: None)
        assert by_config.unpaired == why


def test_two_agents_known_to_differ_are_told_apart(still_and_walking: Comparison) -> None:
    together = still_and_walking.differences[0][0]
    assert together.verdict == "better"
    assert together.lower > 0
    assert verdicts(still_and_walking)[0].startswith(
        "walking (walking-) against still & quiet (still & ): better over all cells by"
    )
    head = difference_head(still_and_walking, still_and_walking.runs[1])
    assert head[1:3] == ("still & quiet", "walking")


def test_the_second_plays_in_the_arena_of_the_first_with_its_own_rays() -> None:
    """A radius of 30 m is won by standing still; the second's own radius would not be."""
    wide = replace(EASY, goto_win_radius=60.0)
    own_rays = replace(EASY, goto_win_radius=0.1, rays=RaySettings(tags="one_hot", side_count=2))
    found = compared([agent("first", wide, always=0), agent("second", own_rays, always=0)], FEW)
    assert [run.scores.overall.win_rate for run in found.runs] == [1.0, 1.0]
    assert found.settings["env.goto_win_radius"] == ("60.0", "0.1")
    assert found.settings["env.rays.tags"] == ("label", "one_hot")


def test_an_agent_with_encoders_target_and_memory_is_compared_with_one_without() -> None:
    network = NetworkSettings(layers=(8,), units=UnitsSettings(), memory=MemorySettings(size=6))
    parts = replace(TRAIN, algo="hybrid_ppo", network=network, target="attention", masks=True)
    shown = replace(EASY, observation=ObservationSettings(units=True))
    found = compared([agent("plain", always=1), agent("parts", shown, train=parts)], FEW)
    assert [run.scores.overall.episodes for run in found.runs] == [40, 40]
    assert found.settings["env.observation.units"] == ("False", "True")
    assert found.settings["train.target"] == ("none", "attention")
    again = compared([agent("parts", shown, train=parts), agent("plain", always=1)], FEW)
    assert again.runs[1].scores == found.runs[0].scores


def test_only_cells_that_all_end_on_are_compared() -> None:
    some = agent("some", difficulty={"goto": [1, 1, 0, 0, 0]})
    found = compared([agent("all"), some], FEW)
    assert [row.cell for row in found.differences[0]] == [None, ("goto", 1), ("goto", 2)]
    assert found.left_out == ("goto 3", "goto 4", "goto 5")


def test_lessons_that_one_run_lacks_are_counted_and_not_listed() -> None:
    run, config = (one := agent("one")).run, one.config
    more = [Lesson(name=name, targets={"goto": 1.0}) for name in ("second", "third")]
    longer = replace(config, lessons=(*config.lessons, *more))
    assert settings_that_differ([(run, config), (run, longer)]) == {"lessons": ("1", "3")}


def test_runs_with_nothing_in_common_are_one_line() -> None:
    with pytest.raises(ConfigurationError, match=r"nothing in common.*goto 1.*free") as caught:
        compared([agent("one"), agent("two", targets={"free": 1.0})])
    assert "\n" not in str(caught.value)


def test_the_document_is_plain_json(still_and_walking: Comparison) -> None:
    document = json.loads(json.dumps(still_and_walking.as_json(), allow_nan=False))
    rows, runs = document["differences"][0], document["runs"]
    assert [(row["target"], row["difficulty"]) for row in rows[:2]] == [(None, None), ("goto", 1)]
    assert runs[1]["mean_win_rate"] == pytest.approx(0.2)
    assert runs[0]["lessons"][0]["step"] is None


TAG = re.compile(r"<(/?)([a-z]\w*)\b[^>]*?(/?)>")


def test_the_page_stands_by_itself_and_shows_names_as_they_are(
    still_and_walking: Comparison,
) -> None:
    page, open_tags = comparison_page(still_and_walking), list[str]()
    for closes, tag, alone in TAG.findall(page):
        if closes:
            assert open_tags.pop() == tag
        elif not alone and tag != "meta":
            open_tags.append(tag)
    assert open_tags == []
    assert not re.search(r"<script|<[^>]* (src|href)=", page)
    assert page.count("<svg ") == 2
    text = unescape(TAG.sub("", page))
    for words in ("still & quiet", "<only>", "goto 5", "Settings that differ", "not passed"):
        assert words in text


def test_lessons_that_one_run_lacks_are_one_row(still_and_walking: Comparison) -> None:
    passed = [LessonPassed(f"lesson {n}", 100 * n, 1.0 * n) for n in range(1, 5)]
    curves = LearningCurve((), tuple(passed[:1])), LearningCurve((), tuple(passed))
    both = zip(still_and_walking.runs, curves, strict=True)
    runs = tuple(replace(run, curve=way) for run, way in both)
    rows = lesson_rows(replace(still_and_walking, runs=runs))
    assert [row[0] for row in rows[1:]] == ["1 lesson 1", "lessons 2 to 4"]
    assert rows[2][1:] == ("no such lessons", "3 of 3 passed, the last at 400 steps, 4 s")
