"""A curriculum or sweep is found by its name: the user's own first, then the shipped one."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.document import load_sweep

ROOT = Path(__file__).parents[2]
OWN = "name: own\nlessons:\n  - {name: a, targets: {goto: 1}}\n"


pytestmark = pytest.mark.usefixtures("here")


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, words, standalone_mode=False)


@pytest.mark.parametrize("path", sorted((ROOT / "curricula").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_curriculum_is_found_by_its_name(path: Path) -> None:
    assert load_curriculum(path.stem).config == load_curriculum(path).config


@pytest.mark.parametrize("path", sorted((ROOT / "sweeps").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_shipped_sweep_is_found_by_its_name_and_finds_its_base(path: Path) -> None:
    found, given = load_sweep(path.stem), load_sweep(path)
    assert (found.config, found.base.config) == (given.config, given.base.config)


@pytest.mark.parametrize("place", ["goto", "goto.yaml", "curricula/goto.yaml"])
def test_a_file_of_that_name_in_the_working_directory_comes_first(here: Path, place: str) -> None:
    (here / "curricula").mkdir()
    (here / place).write_text(OWN, encoding="utf-8")
    assert load_curriculum("goto").name == "own"
    assert load_curriculum("free").name == "free"


def test_a_folder_of_that_name_hides_no_shipped_file(here: Path) -> None:
    (here / "goto").mkdir()
    assert load_curriculum("goto").name == "goto"


def test_an_unknown_name_is_refused_in_one_line_with_the_nearest_or_all_shipped_names() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum("gotto")
    assert str(caught.value) == (
        "no curriculum 'gotto': there is no curricula/gotto.yaml or gotto.yaml in the working "
        "directory, and no shipped one (nearest valid name: goto); a path works, too"
    )
    with pytest.raises(ConfigurationError, match=r"\(valid names: .*goto, .*short\);"):
        load_curriculum("zzz")
    with pytest.raises(
        ConfigurationError, match=r"^no sweep 'reward': .*nearest valid name: rewards\)"
    ):
        load_sweep("reward")
    assert len(call("run", "\x1b" + "z" * 10_000).exception.args[0]) < 600


@pytest.mark.parametrize("place", ["point_ppo.yaml", "curricula/point_ppo.yaml"])
def test_a_name_that_is_nearly_that_of_an_own_file_is_told_it(here: Path, place: str) -> None:
    (here / "curricula").mkdir()
    (here / place).write_text(OWN, encoding="utf-8")
    with pytest.raises(
        ConfigurationError, match=r"or point_pp\.yaml in .*\(nearest valid name: point_ppo\)"
    ):
        load_curriculum("point_pp")


def test_names_do_for_run_and_check_and_nothing_is_created(here: Path) -> None:
    plan = call("run", "goto", "--dry-run", "--seed", "3")
    assert plan.return_value == 0, plan.exception
    assert "lesson 6/6 'all levels'" in plan.output
    assert call("check", "mix", "rewards").stdout == "2 files are valid\n"
    assert call("run", "nothing").exception.exit_code == 2
    assert call("check", "nothing").exception.exit_code == 2
    assert list(here.iterdir()) == []


def test_check_without_a_file_checks_the_projects_own(here: Path) -> None:
    assert str(call("check").exception) == (
        "name a file: the working directory has no curricula/*.yaml and no sweeps/*.yaml"
    )
    for folder, name in (("curricula", "short"), ("sweeps", "rewards")):
        (here / folder).mkdir()
        text = (ROOT / folder / f"{name}.yaml").read_text(encoding="utf-8")
        (here / folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert call("check").stdout == "2 files are valid\n"
    (here / "sweeps" / "worse.yaml").write_text("search:\n", encoding="utf-8")
    assert call("check").return_value == 2


def test_the_path_of_a_shipped_file_that_is_not_here_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum("curricula/goto.yaml")
    assert str(caught.value) == (
        "curricula/goto.yaml: there is no such file here; the shipped curriculum is found by its "
        "name: goto"
    )
    with pytest.raises(ConfigurationError, match=r"can't be read: No such file"):
        load_curriculum("curricula/other.yaml")
