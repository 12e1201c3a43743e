"""Files that several processes write, and that others may get at."""

import os
from pathlib import Path

import pytest

from aimbot_lab.foundation import files
from aimbot_lab.foundation.files import put_file, replace_file


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
