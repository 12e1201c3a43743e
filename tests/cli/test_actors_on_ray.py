"""`run --on ray` is for actors, and refused in a line elsewhere."""

from pathlib import Path

import pytest
from tiny_runs import invoke_plainly


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--on ray: needs train.actors in the curriculum"),
        (("--seeds", 2), "--on can't be used with --seeds or --processes"),
        (("--processes", 2), "--on can't be used with --seeds or --processes"),
    ],
)
def test_on_ray_is_refused_where_there_are_no_actors(
    tmp_path: Path, words: tuple[object, ...], told: str
) -> None:
    data = tmp_path / "data"
    result = invoke_plainly("run", "goto", "--on", "ray", "--data-dir", data, *words, wanted=2)
    assert told in result.said
    assert not data.exists()
