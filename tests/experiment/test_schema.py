"""The JSON Schema: what is fit to run it accepts, what is wrong in form it refuses."""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from broken_curriculum import GOOD, with_parameters
from jsonschema import Draft7Validator
from test_broken_curricula import REPLACED
from test_environment_parameters import CONSTANTS, COURSE, ONE_LESSON, SECOND, TWO_LESSONS
from yaml_mutations import changed_bytes

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.schema import document_schema, schema_text
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.config.yaml_reader import read_yaml
from aimbot_lab.foundation.errors import ConfigurationError

SHIPPED = Path(__file__).parents[2] / "curricula"
SCHEMA = document_schema(CurriculumFile, title="aimbot-lab: a curriculum")
VALIDATOR = Draft7Validator(SCHEMA)

# What hangs together between keys, or is a text that only the check understands.
NO_CRITERIA = "# no criteria\n"
SEEN_BY_THE_CHECK_ALONE = {
    *("{goto: 0}", "{attack: [1, 0, 0, 0, 0]}", NO_CRITERIA, "name: first", "1000"),
    *("rays: {middle_count: 4}", "seed: ${nope}", "seed: ${seed}", "name: '${${seed}:HOME}'"),
}


def accepts(text: str) -> bool:
    tree = read_yaml(text)
    assert tree.faults == []
    return bool(VALIDATOR.is_valid(tree.data))


def test_the_shipped_schema_is_the_one_that_the_classes_give_and_obeys_its_own_dialect() -> None:
    shipped = (SHIPPED / "curriculum.schema.json").read_text(encoding="utf-8")
    assert shipped == schema_text(SCHEMA), "run: aimbot-lab schema -o curricula/..."
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_curriculum_names_the_schema_and_is_accepted(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    hint, folder = "# yaml-language-server: $schema=", path.parent
    assert text.startswith(hint)
    assert (folder / text.splitlines()[0].removeprefix(hint)).is_file()
    assert accepts(text)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("1024", "'1_024'"),  # as an editor reads it
        GOOD.replace("[1, 0, 0, 0, 0]", "'${lessons.1.difficulty.goto}'"),
        with_parameters(
            "{rewards.win: {sampler_type: multirangeuniform,"
            " sampler_parameters: {intervals: [[1, 2], [4, 5]], seed: 7}}}"
        ),
        TWO_LESSONS + CONSTANTS,  # as ML-Agents writes them
        ONE_LESSON + COURSE + SECOND,
    ],
)
def test_every_way_to_write_a_value_is_accepted(text: str) -> None:
    assert accepts(text)


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new, _ in REPLACED])
def test_what_is_wrong_in_form_is_refused(old: str, new: str) -> None:
    new = NO_CRITERIA if "completion_criteria" in old else new
    text = GOOD.replace(old, new, 1)
    if not read_yaml(text).faults:
        assert accepts(text) == (new in SEEN_BY_THE_CHECK_ALONE)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("here")
def test_what_the_check_accepts_the_schema_accepts(seed: int) -> None:
    source, content = random.Random(seed), (SHIPPED / "mix.yaml").read_bytes()
    for _ in range(40):
        Path("c.yaml").write_bytes(changed_bytes(content, source))
        with suppress(ConfigurationError):
            load_curriculum("c.yaml")
            assert accepts(Path("c.yaml").read_text(encoding="utf-8-sig"))


def test_every_key_says_what_it_is() -> None:
    kinds = {"the file": SCHEMA, **SCHEMA["$defs"]}
    silent = {
        f"{name}.{key}"
        for name, kind in kinds.items()
        for key, value in kind.get("properties", {}).items()
        if not value.get("description")
    }
    assert silent == set()
