"""Own target blocks: found beside the curriculum, kept with the run, refused where useless."""

import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from aimbot_lab.cli.main import cli
from aimbot_lab.experiment.config.document import load_curriculum, with_overrides
from aimbot_lab.experiment.runs.resume import configuration_changes
from aimbot_lab.experiment.runs.run_record import write_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.arena import Arena
from aimbot_lab.worlds.arena.presets import FOLDER, FORM, SHIPPED_FILES, kept_presets, load_presets

STORY = "## In a curriculum"
BLOCKS = """\
goto:
  2:
    - {name: yard ä, fire_base: {center: [5, 5.25], diameter: 1.5}}
    - {name: second, fire_base: {center: [5, 5], diameter: 6}, obstacles: [[0, 0, 1, 1]]}
"""
CURRICULUM = """\
name: yard
env: {num_envs: 8, presets: [blocks/]}
lessons:
  - name: only
    targets: {goto: 1}
    difficulty: {goto: [0, 1, 0, 0, 0]}
    completion_criteria: {threshold: 0.99}
train: {total_steps: 64, n_steps: 8, batch_size: 64}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A curriculum with blocks of its own, seen from another working directory."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "blocks").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "blocks" / "yard.yaml").write_text(BLOCKS, encoding="utf-8")
    (project / "yard.yaml").write_text(CURRICULUM, encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    return project


def names(path: Path, *overrides: str) -> set[str]:
    (text,) = load_curriculum(path, overrides).config.env.presets
    return set(re.findall(r'"name": "([^"]+)"', text))


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_curriculum(path, overrides)
    (line,) = caught.value.faults
    return line


def test_paths_begin_at_the_folder_of_the_file_wherever_one_stands(project: Path) -> None:
    for path in (None, "blocks/yard.yaml", f"'{project}/blocks'"):
        override = [] if path is None else [f"env.presets=[{path}]"]
        assert names(project / "yard.yaml", *override) == {"yard ä", "second"}
    env = load_curriculum(project / "yard.yaml", ["env.shipped_presets=false"]).config.env
    assert {preset.name for preset in Arena(env).presets} == {"yard ä", "second"}
    with_shipped = load_curriculum(project / "yard.yaml").config.env
    assert len(Arena(with_shipped).presets) == 2 + len(load_presets())


@pytest.mark.parametrize(
    ("override", "place", "levels"),
    [
        ("lessons.0.difficulty={goto: [0, 1, 1, 0, 1]}", "goto", "3, 5"),
        ("lessons.0.targets={goto: 1, attack: 1}", "attack", "1, 2, 3, 4, 5"),
    ],
)
def test_a_lesson_that_draws_what_no_own_block_has_is_refused_before_it_starts(
    project: Path, override: str, place: str, levels: str
) -> None:
    line = refusal(project / "yard.yaml", "env.shipped_presets=false", override)
    assert f"lessons.0.difficulty.{place}: no {place} block of difficulty {levels} is there" in line
    assert "env.shipped_presets is false, and env.presets holds none" in line


def test_a_path_of_the_working_directory_is_refused_by_the_rule(project: Path) -> None:
    Path("here").mkdir()
    line = refusal(project / "yard.yaml", "env.presets=[blocks/, here]")
    assert line == (
        "--set env.presets=[blocks/, here]: env.presets.1: there is no file or folder "
        f"{project / 'here'}; a relative path begins at the folder of the curriculum's "
        "file, not at the working directory, where there is one"
    )
    (project / "yard.yaml").write_text(CURRICULUM.replace("blocks/", "nope/"), encoding="utf-8")
    line = refusal(project / "yard.yaml")
    assert line.startswith(f"{project}/yard.yaml:2:30: env.presets.0: there is no file or folder")


def test_a_kept_text_gives_the_same_arena(project: Path) -> None:
    text = kept_presets([project / "blocks"])
    assert kept_presets([text]) == text
    from_text = load_presets([*SHIPPED_FILES, *FORM.sources([text])])
    assert load_presets([*SHIPPED_FILES, project / "blocks" / "yard.yaml"]) == from_text
    settings = load_curriculum(project / "yard.yaml").config.env
    from_files = replace(settings, presets=(str(project / "blocks"),))
    tables = (Arena(one)._tables.presets for one in (settings, from_files))
    for of_text, of_files in zip(*tables, strict=True):
        assert np.array_equal(of_text, of_files)


def test_a_written_curriculum_is_read_back_whole_and_altered_blocks_are_refused_in_a_line(
    project: Path, tmp_path: Path
) -> None:
    begun = load_curriculum(project / "yard.yaml")
    kept = tmp_path / "kept"
    kept.mkdir()
    write_curriculum(kept, begun)
    (project / "blocks" / "yard.yaml").write_text(BLOCKS.replace("1.5", "2.5"), encoding="utf-8")
    assert load_curriculum(kept / "resolved.yaml").config == begun.config
    assert with_overrides(begun, ["seed=2"]).config.env == begun.config.env
    (change,) = configuration_changes(begun.config, load_curriculum(project / "yard.yaml").config)
    name = r"\['presets-\w{12}\.yaml'\]"
    assert re.fullmatch(rf"env\.presets: was {name}, is {name}", str(change))
    (file,) = kept.glob("presets-*.yaml")
    whole = file.read_text(encoding="utf-8")
    for altered in (whole.replace("1.5", "2.5"), whole.partition("\n")[2].replace("1.5", "2.5")):
        file.write_text(altered, encoding="utf-8")
        line = refusal(kept / "resolved.yaml")
        assert line.startswith(f"{file}:1:1: cannot be read: altered since a run kept it")
    file.unlink()
    assert "there is no file or folder" in refusal(kept / "resolved.yaml")


def test_the_pages_story_of_own_blocks(here: Path) -> None:
    story = (FOLDER / "README.md").read_text(encoding="utf-8").partition(STORY)[2]
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", story, re.DOTALL)
    for name, text in blocks:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    commands, *_ = re.findall(r"```sh\n(.*?)```", story, re.DOTALL)
    calls = [shlex.split(line, comments=True)[1:] for line in commands.splitlines()]
    for words in calls:
        given = [*words, "--data-dir", str(here / "data")]
        done = CliRunner().invoke(cli, given, catch_exceptions=False, standalone_mode=False)
        assert done.return_value in (None, 0, 1), done.output  # 1: its steps were spent
        if words[0] == "run":  # what the story says: the file is changed afterwards
            Path(blocks[0][0]).write_text(BLOCKS, encoding="utf-8")
    assert [words[0] for words in calls] == ["run", "evaluate", "record"]


def path_refusal(folder: Path, entry: str) -> str:
    path = folder / "yard.yaml"
    path.write_text(CURRICULUM.replace("blocks/", entry), encoding="utf-8")
    return refusal(path).replace(str(folder), "HERE")


def test_what_holds_no_presets_is_refused_by_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "nope").mkdir()
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop", target_is_directory=True)
    (tmp_path / "itself").symlink_to(tmp_path / "itself")
    os.mkfifo(tmp_path / "pipe")
    at = "HERE/yard.yaml:2:30: env.presets.0: "
    for path in ("nope", "loop"):
        found = path_refusal(tmp_path, path)
        assert found == f"{at}HERE/{path}: the folder holds no *.yaml or *.yml file"
    for path in ("/dev/zero", "/proc/self/status", "pipe"):  # kmsg would wait
        assert path_refusal(tmp_path, path) == f"{at}is not a regular file"
    assert path_refusal(tmp_path, "itself").startswith(f"{at}there is no file or folder")
    line = path_refusal(tmp_path, "k" * 10_000)
    assert line.startswith(f"{at}cannot be read: File name too long")
    assert len(line) < 500


def test_a_file_without_presets_is_refused_by_its_own_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "huge.yaml").write_bytes(b" " * (2**20 + 1))
    (tmp_path / "passwd").write_text("root:x:0:0\n", encoding="utf-8")
    (tmp_path / "deep.yaml").write_text("goto: " + "[" * 3000 + "]" * 3000, encoding="utf-8")
    assert path_refusal(tmp_path, "huge.yaml").startswith("HERE/huge.yaml:1:1: cannot be read")
    line = path_refusal(tmp_path, "passwd")
    assert line.startswith("HERE/passwd:1:1: the file: must be a mapping")
    assert "root" not in line
    assert "nested deeper than" in path_refusal(tmp_path, "deep.yaml")
