"""What `train.actors` may not be is refused in a line, with its place."""

from pathlib import Path

import pytest
from own_actors import OwnActors
from test_shared_training import plan

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.training.checks import check_sharing
from aimbot_lab.training.settings import ActorSettings
from aimbot_lab.training.training import Training

CURRICULUM = """\
name: tiny
env: {num_envs: 64}
lessons: [{name: one, targets: {goto: 1}}]
train:
  algo: hybrid_ppo
  n_steps: 32
  batch_size: 1024
  actors: {number: 4}
"""
MEMORY = "  network: {memory: {size: 8, sequence_length: 8}}\n  actors"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("number: 4}", "number: 5}", "8:20: train.actors.number: must divide env.num_envs, 64"),
        ("number: 4}", "number: 4, rows: 8}", "8:11: train.actors: number * rows = 32"),
        ("number: 4}", "number: 4, lag: 2}", "8:28: train.actors.lag: must be at most 1"),
        ("number: 4}", "number: 0}", "8:20: train.actors.number: must be at least 1"),
        ("number: 4}", "number: 4, lag: 1, preload: 3}", "train.actors.preload: must be 4 to 8"),
        ("number: 4}", "number: 4, preload: 4}", "train.actors.preload: does nothing without a"),
        (
            "number: 4}",
            "number: 4, pool: 3}",
            "8:29: train.actors.pool: does nothing without a lag",
        ),
        (
            "number: 4}",
            "number: 4, correction: v}",
            "train.actors.correction: must be 'none' or 'vtrace'",
        ),
        ("hybrid_ppo", "ppo", "train.actors: does nothing with ppo: leave it out"),
        ("  actors", "  samples: {keep: 2}\n  actors", "train.samples.keep: must be 1 with actors"),
        ("  actors", "  reward_scale: running\n  actors", "must be a number with actors"),
        ("  actors", MEMORY, "train.actors: needs a network without memory"),
    ],
)
def test_what_actors_can_not_be_is_refused_in_a_line_with_its_place(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(CURRICULUM.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path)
    (line,) = str(caught.value).splitlines()
    assert f"{path}:" in line
    assert told in line


def test_actors_that_can_play_are_let_through(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    given = "{number: 4, rows: 16, lag: 2, correction: vtrace, pool: 3, preload: 12}"
    path.write_text(CURRICULUM.replace("{number: 4}", given), encoding="utf-8")
    assert load_curriculum(path).config.train.actors == ActorSettings(
        number=4, rows=16, lag=2, correction="vtrace", pool=3, preload=12
    )


def test_a_plan_of_ones_own_is_checked_as_a_file_is() -> None:
    with pytest.raises(ConfigurationError, match=r"train\.actors\.number: must divide"):
        Training(plan(actors=ActorSettings(number=5)), group=OwnActors())
    with pytest.raises(ConfigurationError, match="does nothing with ppo"):
        Training(plan(algo="ppo", engine="auto", actors=ActorSettings(number=2)))


def test_actors_feed_one_learner() -> None:
    with pytest.raises(ConfigurationError, match="actors feed one learner"):
        check_sharing(plan(actors=ActorSettings(number=2)), 2)
