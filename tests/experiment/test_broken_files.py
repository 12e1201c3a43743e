"""Files that are no curriculum at all, or are too large to be one."""

from pathlib import Path

import pytest
from broken_curriculum import faults, faults_of

from aimbot_lab.experiment.config.yaml_reader import MAX_BYTES

FORM = (
    "must be a mapping with name and lessons, and perhaps seed, env, forgetting, evaluation, "
    "self_play, environment_parameters, train, tracking"
)

# Whole files and what follows.
WHOLE = {
    "empty": (b"", f"1:1: {FORM} (the file is empty)"),
    "only comments": (b"# one\n\n# two\n", f"1:1: {FORM} (the file is empty)"),
    "a list": (b"\n- a\n", f"2:1: {FORM} (got a list)"),
    "a text": (b"hello\n", f"1:1: {FORM} (got 'hello')"),
    "nothing": (b"~\n", f"1:1: {FORM} (got nothing)"),
    "not UTF-8": (b"name: g\nseed: \xe9\xff\n", "2:7: not valid UTF-8: byte 0xe9"),
    "UTF-16": ("name: g\n".encode("utf-16"), "1:1: not valid UTF-8: byte 0xff"),
    "two documents": (
        b"name: g\n---\nname: h\n",
        "2:1: not valid YAML: expected a single document in the stream, but found another document",
    ),
    "an open bracket": (
        b"[",
        "1:2: not valid YAML: while parsing a flow node, expected the node content,"
        " but found '<stream end>'",
    ),
    "deep nesting": (b"[" * 5000, "1:41: is nested deeper than 40 levels"),
    "a circle": (b"&a [*a]", "1:1: is nested deeper than 40 levels, or contains itself"),
    "an alias bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        b"b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
        b"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        b"d: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n",
        "1:24: holds more than 5000 values",
    ),
    "a future YAML": (
        b"%YAML 3.0\n---\nname: g\n",
        "1:1: not valid YAML: found incompatible YAML document (version 1.* is required)",
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("content", "line"), WHOLE.values(), ids=WHOLE)
def test_what_is_no_curriculum_gives_its_one_line(content: bytes, line: str) -> None:
    assert faults(content) == [f"c.yaml:{line}"]


@pytest.mark.parametrize("name", ["missing.yaml", "no/such/folder.yaml", "nul\0.yaml"])
def test_a_file_that_is_not_there_gives_its_one_line(name: str) -> None:
    (line,) = faults_of(name)
    assert line.endswith((": can't be read: No such file or directory", "embedded null byte"))


def test_a_folder_gives_its_one_line(folder: Path) -> None:
    (line,) = faults_of(folder)
    assert line == f"{folder}: can't be read: Is a directory"


def test_a_file_without_end_is_refused() -> None:
    assert faults("#" * (MAX_BYTES + 1)) == [f"c.yaml: is larger than {MAX_BYTES} bytes"]


def test_a_curriculum_that_could_not_be_read_again_is_refused() -> None:
    lessons = "".join(
        f"  - {{name: l{number}, targets: {{goto: 1}}, completion_criteria: {{threshold: 0.5}}}}\n"
        for number in range(450)
    )
    (line,) = faults(f"name: g\nlessons:\n{lessons}")
    assert "is too large: with all defaults" in line
