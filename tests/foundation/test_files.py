"""Files that several processes write, and that others may get at."""

import os
from pathlib import Path

import pytest

from aimbot_lab.foundation import files
from aimbot_lab.foundation.files import put_file, replace_file, replaced_whole


def test_two_processes_that_replace_a_file_at_once_both_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "a", files.append_whole

    def meanwhile(descriptor: int, data: bytes) -> None:
        if data == b"first":
            with monkeypatch.context() as other:
                other.setattr(os, "getpid", lambda: 1)
                replace_file(path, b"second")
            assert path.read_bytes() == b"second"
        write(descriptor, data)

    monkeypatch.setattr(files, "append_whole", meanwhile)
    replace_file(path, b"first")
    assert path.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [path]


def test_what_others_put_in_the_way_is_neither_written_to_nor_kept(tmp_path: Path) -> None:
    mine, path = tmp_path / "mine", tmp_path / "a"
    mine.write_text("precious")
    path.with_name(f".a.{os.getpid()}.new").symlink_to(mine)
    put_file(path, b"x")
    assert (mine.read_text(), path.is_symlink()) == ("precious", False)
    open_to_all = path.with_name(f".b.{os.getpid()}.new")
    open_to_all.touch(0o666)
    open_to_all.chmod(0o666)
    put_file(tmp_path / "b", b"token")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("before", [None, "kept"])
def test_a_file_that_a_user_names_is_written_whole_or_stays_as_it_was(
    tmp_path: Path, before: str | None
) -> None:
    path = tmp_path / "a.json"
    if before is not None:
        path.write_text(before)
        path.chmod(0o640)
    names = [one.name for one in tmp_path.iterdir()]

    def torn() -> None:
        with replaced_whole(path) as fresh:
            assert fresh.suffix == ".json"
            fresh.write_text("ha")
            raise OSError("torn")

    with pytest.raises(OSError, match="torn"):
        torn()
    assert [one.name for one in tmp_path.iterdir()] == names
    assert before is None or path.read_text() == before
    with replaced_whole(path) as fresh:
        fresh.write_text("whole")
    assert path.read_text() == "whole"
    assert before is None or path.stat().st_mode & 0o777 == 0o640


def test_links_and_pipes_are_written_to_themselves(tmp_path: Path) -> None:
    (link := tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(pipe := tmp_path / "pipe")
    for path in (link, pipe):
        with replaced_whole(path) as fresh:
            assert fresh == path
