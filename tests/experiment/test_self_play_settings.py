"""The section self_play: what it makes of the world, and what is refused in one line."""

import pytest

from aimbot_lab.experiment.config.document import parse_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.registry import seats_in

FILE = """\
name: match
env: {world: WORLD, num_envs: 8}
lessons:
  - name: one
    targets: TARGETS
train: {algo: ALGO, n_steps: 16, batch_size: BATCH}
"""
USUAL = {"WORLD": "duel", "TARGETS": "{self: 1}", "ALGO": "hybrid_ppo", "BATCH": "96"}


def parsed(section: str = "self_play: {save_steps: 1000}\n", **changes: str):
    text = FILE
    for name, value in {**USUAL, **changes}.items():
        text = text.replace(name, value)
    return parse_curriculum(text + section, "file.yaml")


def test_the_learner_plays_home_and_mirrored_matches_are_rows_of_a_rollout() -> None:
    config = parsed().config
    assert config.env.learner == "home"
    assert seats_in(config.learned_env) == 12
    assert set(config.learned_env.__class__.__mro__) >= {type(config.env)}


def test_what_was_resolved_means_the_same_when_it_is_read_again() -> None:
    first = parsed()
    again = parse_curriculum(first.resolved_text, "resolved.yaml")
    assert again.config == first.config
    assert again.resolved_text == first.resolved_text


@pytest.mark.parametrize(
    ("section", "changes", "fault"),
    [
        (
            "",
            {"BATCH": "64"},
            "lessons.0.targets.self: a past self of the learner: needs the section self_play",
        ),
        (
            "",
            {"TARGETS": "{greedy: 1}", "BATCH": "64"},
            "lessons.0.targets.greedy: unknown target without the section self_play (valid keys: ",
        ),
        (
            "self_play: {}\n",
            {"WORLD": "arena", "TARGETS": "{goto: 1}", "BATCH": "128"},
            "self_play: needs env.world: duel (got arena)",
        ),
        (
            "self_play: {play_against_latest_model_ratio: 1}\n",
            {"TARGETS": "{self: 1, greedy: 1, aimbot: 1}", "BATCH": "128"},
            "self_play.play_against_latest_model_ratio: leaves no match for greedy, aimbot of "
            "lessons.0: all 8 are mirrored",
        ),
        (
            "self_play: {}\n",
            {"BATCH": "100"},
            "train.batch_size: must divide (env.num_envs + 4 mirrored) * train.n_steps = 192 "
            "(got 100; nearest that does: 96)",
        ),
        (
            "self_play: {}\n",
            {"ALGO": "trpo"},
            "train.algo: must be one of ppo, maskable_ppo, hybrid_ppo under self_play (got trpo)",
        ),
        (
            "",
            {
                "TARGETS": "{duel: 1}\n    completion_criteria: "
                "{rule: ml-agents, measure: elo, threshold: 1300}",
                "BATCH": "64",
            },
            "lessons.0.completion_criteria.measure: elo under rule: ml-agents is of "
            "self-play: needs the section self_play",
        ),
        ("self_play: {window: some}\n", {}, "window: must be a whole number or 'all' (got 'some')"),
        ("self_play: {save_step: 5}\n", {}, "nearest valid key: save_steps"),
        ("self_play: {save_steps: 0}\n", {}, "self_play.save_steps: must be at least 1 (got 0)"),
    ],
)
def test_what_self_play_can_not_do_is_refused_in_one_line(
    section: str, changes: dict[str, str], fault: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parsed(section, **changes)
    assert len(refused.value.faults) == 1
    assert fault in refused.value.faults[0]


def test_all_matches_may_be_mirrored_where_nobody_else_is_asked_for() -> None:
    config = parsed("self_play: {play_against_latest_model_ratio: 1}\n", BATCH="128").config
    assert seats_in(config.learned_env) == 16
