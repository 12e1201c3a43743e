"""Wrong arguments from Python: an error of one line, before anything is looked up."""

from collections.abc import Callable
from pathlib import Path

import pytest

import aimbot_lab
from aimbot_lab.foundation.errors import LabError


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda to: aimbot_lab.train("goto", "seed=2", data_dir=to), "overrides: must be a list"),
        (lambda to: aimbot_lab.compare(["a"], data_dir=to), "runs: must be at least two (got 1)"),
        (
            lambda to: aimbot_lab.compare(["a", "b"], by="seed", data_dir=to),
            "by: must be 'run' or 'config' (got 'seed')",
        ),
        (
            lambda to: aimbot_lab.compare(["a", "b"], episodes=0, data_dir=to),
            "episodes: must be a whole number from 1 to 65536 (got 0)",
        ),
        (
            lambda to: aimbot_lab.evaluate("a", agent="first", data_dir=to),
            "agent: must be best, last, or step-N for an agent that was saved on request at step N "
            "(got 'first')",
        ),
        (
            lambda to: aimbot_lab.train("goto", tags=["a"], data_dir=to),  # type: ignore[arg-type]
            "tags: must be a mapping of names to texts (got ['a'])",
        ),
        (
            lambda to: aimbot_lab.train({"name": "x"}, data_dir=to),  # type: ignore[arg-type]
            "file: must be a path or a name (got {'name': 'x'})",
        ),
    ],
)
def test_a_wrong_argument_is_one_line_and_creates_nothing(
    tmp_path: Path, call: Callable[[Path], object], what: str
) -> None:
    with pytest.raises(LabError) as caught:
        call(tmp_path / "data")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()
