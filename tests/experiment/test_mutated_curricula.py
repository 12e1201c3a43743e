"""Whatever is done to a curriculum: it can be planned, or is refused in lines of the agreed form.

AIMBOT_LAB_MUTATIONS=5000 tries as many files in place of 100.
"""

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from test_conversion import TRAINER
from yaml_mutations import mutated

from aimbot_lab.experiment.config.document import LoadedCurriculum, load_curriculum
from aimbot_lab.experiment.conversion.ml_agents import convert
from aimbot_lab.experiment.runs.plan import Forecaster, plan_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import is_seen

CURRICULA = sorted((Path(__file__).parents[2] / "curricula").glob("*.yaml"))
PLACED = re.compile(r"c\.yaml:[1-9]\d*:[1-9]\d*: \S.*")
WHOLE = re.compile(r"c\.yaml: is (too large|larger than) .*")  # of which no place can be named
SEEDS = 2
FILES = int(os.environ.get("AIMBOT_LAB_MUTATIONS", "100")) // SEEDS


def loaded(path: str) -> LoadedCurriculum:
    """The curriculum; only code that a shipped one names is run, none that a mutation names."""
    return load_curriculum(path, may_run=lambda code: code.shown == "module minigrid")


def attempt(make: Any) -> Any:
    """What `make` makes of c.yaml, or the lines in which that is refused."""
    try:
        return make("c.yaml")
    except ConfigurationError as error:
        return tuple(error.faults) or ("refused without a reason",)


def accepted(found: LoadedCurriculum | tuple[str, ...]) -> bool:
    """Whether it was fit to run; then it can be planned, and its resolved text says the same."""
    if isinstance(found, tuple):
        assert all(PLACED.fullmatch(line) or WHOLE.match(line) for line in found), found
        assert all(map(is_seen, found))
        return False
    try:
        plan_curriculum(found, Forecaster(most_episodes=20)).as_json()
    except ConfigurationError:  # presets that are not there
        return False
    Path("again.yaml").write_text(found.resolved_text, encoding="utf-8")
    assert loaded("again.yaml").config == found.config
    return True


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.usefixtures("here")
def test_no_mutation_gets_past_the_agreed_lines(seed: int) -> None:
    source, fit = random.Random(seed), 0
    for _ in range(FILES):
        content = source.choice(CURRICULA).read_bytes()
        Path("c.yaml").write_bytes(mutated(content, source))
        fit += accepted(attempt(loaded))
    assert 0 < fit < FILES  # else the mutations were too wild or too tame to say anything


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("here")
def test_no_mutated_trainer_file_gets_past_them(seed: int) -> None:
    source, fit = random.Random(100 + seed), 0
    for _ in range(FILES):
        Path("c.yaml").write_bytes(mutated(TRAINER.encode(), source))
        found = attempt(lambda file: [*convert(file)])
        if isinstance(found, list):
            text, notes = found
            assert all(map(is_seen, notes))
            Path("c.yaml").write_text(text, encoding="utf-8")
            found = attempt(loaded)
            assert isinstance(found, LoadedCurriculum), found
        fit += accepted(found)
    assert 0 < fit < FILES
