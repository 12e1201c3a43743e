"""`run --on ray` of a training with actors, and what does not go with it."""

from pathlib import Path

import pytest
from tiny_runs import invoke_plainly

ACTORS = ("--set", "train.actors.number=2")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--seeds", 2), "--seeds can't be used with several processes for one training"),
        (("--processes", 2), "--processes 2 --on ray: train.actors feed one learner"),
    ],
)
def test_what_does_not_go_with_actors_on_ray_is_refused(
    tmp_path: Path, words: tuple[object, ...], told: str
) -> None:
    place = ("--data-dir", tmp_path / "data")
    result = invoke_plainly("run", "goto", "--on", "ray", *place, *ACTORS, *words, wanted=2)
    assert told in result.said
    assert not (tmp_path / "data").exists()
