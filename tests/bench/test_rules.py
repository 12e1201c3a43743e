"""Promotions in simulated lessons: the evidence keeps its word and the window does not."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from aimbot_lab.bench import simulations
from aimbot_lab.bench.simulations import RulesPlan, bench_rules, window_promotions
from aimbot_lab.cli.main import cli

SMALL = RulesPlan(
    thresholds=(0.6, 0.9),
    lessons=300,
    episodes=1500,
    climb_episodes=4000,
    climb_lessons=20,
    watched_agents=40,
    watched_episodes=3000,
)


def test_evidence_keeps_alpha_and_the_window_fails_the_same_test() -> None:
    found = bench_rules(SMALL, lambda line: None).document
    most = SMALL.alpha + 3 * np.sqrt(SMALL.alpha * (1 - SMALL.alpha) / SMALL.lessons)
    assert [(one["threshold"], one["rate"]) for one in found["false_promotions"]] == [
        (0.6, 0.6),
        (0.6, 0.55),
        (0.9, 0.9),
        (0.9, 0.85),
    ]
    for one in found["false_promotions"]:
        assert one["evidence"] <= most
        assert one["window"] > 0.5
    evidence = [one["evidence"] for one in found["delays"]]
    assert evidence == sorted(evidence[:3], reverse=True) + evidence[3:]
    assert found["watching"]["false_reports"] <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 40)


def test_the_window_promotes_at_its_first_mean_above_the_threshold() -> None:
    won = np.zeros((300, 2), np.bool_)
    won[40:, 0] = True
    assert window_promotions(won, 0.7).tolist() == [111, simulations.NEVER]


def test_the_command_tells_the_same_in_words_and_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = replace(SMALL, thresholds=(0.7,), lessons=50, episodes=400, watched_episodes=400)
    monkeypatch.setattr(simulations, "RulesPlan", lambda: tiny)
    document = json.loads(CliRunner().invoke(cli, ["bench", "rules", "--json"]).stdout)
    assert [one["threshold"] for one in document["false_promotions"]] == [0.7, 0.7]
    text = CliRunner().invoke(cli, ["bench", "rules"]).stdout
    assert f"{document['false_promotions'][0]['window']:.1%}" in text
