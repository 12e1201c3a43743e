import os
import shutil

import pytest

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import journal as journal_module
from aimbot_lab.tracking.journal import (
    EndEntry,
    FileEntry,
    Journal,
    MetricsEntry,
    TagsEntry,
    count_waiting,
    decode,
    encode,
)


def entry(step):
    return MetricsEntry(step, 1000 + step, {"a/b": step / 3})


@pytest.mark.parametrize(
    "original",
    [
        entry(7),
        TagsEntry({"größe": "日本\nzeile"}),
        FileEntry("files/x/a.txt", "notes"),
        EndEntry("KILLED", 5),
    ],
)
def test_an_entry_reads_back_as_it_was(original):
    line = encode(original)
    assert decode(line) == original
    assert line.count(b"\n") == 1


def test_a_reopened_journal_holds_what_was_appended(tmp_path):
    for step in range(3):
        journal = Journal(tmp_path)
        journal.append(entry(step))
        journal.close()
    assert Journal(tmp_path).pending(10).entries == [entry(0), entry(1), entry(2)]


@pytest.mark.parametrize("torn_bytes", [1, 20, len(encode(entry(1))) - 1])
def test_a_torn_last_line_is_cut_off_and_harms_nothing_later(tmp_path, torn_bytes):
    journal = Journal(tmp_path)
    journal.append(entry(0))
    journal.close()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(encode(entry(1))[:torn_bytes])
    again = Journal(tmp_path)
    again.append(entry(2))
    pending = Journal(tmp_path).pending(10)
    assert pending.entries == [entry(0), entry(2)]
    assert pending.unreadable == 0


def test_an_unreadable_line_is_counted_and_skipped(tmp_path):
    (tmp_path / "journal.jsonl").write_bytes(
        encode(entry(0)) + b'{"kind": "?"}\n\xff\n' + encode(entry(1))
    )
    pending = Journal(tmp_path).pending(10)
    assert pending.entries == [entry(0), entry(1)]
    assert pending.unreadable == 2


def test_delivery_goes_on_from_where_it_was(tmp_path):
    journal = Journal(tmp_path)
    for step in range(5):
        journal.append(entry(step))
    journal.mark_delivered(journal.pending(2))
    again = Journal(tmp_path)
    assert journal.waiting == again.waiting == count_waiting(tmp_path) - 1 == 3
    assert again.pending(2).entries == [entry(2), entry(3)]
    again.mark_delivered(again.pending(10))
    assert again.is_delivered
    assert again.waiting == 0


@pytest.mark.parametrize("content", [b"", b"nonsense", b"999999"])
def test_a_damaged_note_of_delivery_never_hides_later_entries(tmp_path, content):
    journal = Journal(tmp_path)
    journal.append(entry(0))
    (tmp_path / "delivered").write_bytes(content)
    again = Journal(tmp_path)
    again.append(entry(1))
    assert entry(1) in again.pending(10).entries


def test_nothing_can_follow_the_end(tmp_path):
    journal = Journal(tmp_path)
    journal.append(EndEntry("FINISHED", 1))
    for opened in (journal, Journal(tmp_path)):
        assert opened.ending == EndEntry("FINISHED", 1)
        with pytest.raises(RuntimeError):
            opened.append(entry(0))


def test_an_entry_is_on_the_disk_when_append_returns(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    journal = Journal(tmp_path)
    path = tmp_path / "journal.jsonl"
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(path.stat().st_size), real(fd)))
    journal.append(entry(0))
    assert synced == [len(encode(entry(0)))]


def test_a_full_disk_is_one_line_and_leaves_whole_lines(tmp_path, monkeypatch):
    journal = Journal(tmp_path)
    journal.append(entry(0))

    def half_then_full(descriptor, data):
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "append_whole", half_then_full)
        with pytest.raises(StoreError, match="No space left on device") as caught:
            journal.append(entry(1))
    assert "\n" not in str(caught.value)
    journal.append(entry(2))
    assert Journal(tmp_path).pending(10).entries == [entry(0), entry(2)]


def test_a_line_that_a_full_disk_tore_is_never_delivered(tmp_path, monkeypatch):
    journal = Journal(tmp_path)

    def half_then_full(descriptor, data):
        os.write(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    def refused(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "append_whole", half_then_full)
        patch.setattr(os, "ftruncate", refused)
        for step in range(2):
            with pytest.raises(StoreError):
                journal.append(entry(step))
    assert journal.is_delivered
    journal.append(entry(2))
    assert journal.pending(10).entries == Journal(tmp_path).pending(10).entries == [entry(2)]


def test_a_journal_whose_folder_is_gone_is_still_delivered(tmp_path):
    (tmp_path / "run").mkdir()
    journal = Journal(tmp_path / "run")
    journal.append(entry(0))
    shutil.rmtree(tmp_path / "run")
    journal.append(entry(1))
    pending = journal.pending(10)
    assert pending.entries == [entry(0), entry(1)]
    journal.mark_delivered(pending)
    assert journal.is_delivered


def test_a_closed_journal_refuses_in_one_line(tmp_path):
    journal = Journal(tmp_path)
    journal.append(entry(0))
    journal.close()
    for call in (lambda: journal.pending(1), lambda: journal.append(entry(1))):
        with pytest.raises(StoreError, match="Bad file descriptor") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_counting_what_waits_needs_no_journal_and_changes_none(tmp_path):
    assert count_waiting(tmp_path) == 1  # the end of the run
    line = encode(entry(0))
    (tmp_path / "journal.jsonl").write_bytes(line + encode(EndEntry("KILLED", 5)) + b"torn")
    assert count_waiting(tmp_path) == 2
    (tmp_path / "delivered").write_text(str(len(line)))
    before = (tmp_path / "journal.jsonl").read_bytes()
    assert count_waiting(tmp_path) == 1
    assert (tmp_path / "journal.jsonl").read_bytes() == before
