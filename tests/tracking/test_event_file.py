"""A TensorBoard event file has what MLflow has: the same names, steps and values, each once."""

import math
import struct
from dataclasses import replace

import pytest
from fake_store import FakeStore

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking.journal import GrowingFiles, MetricsEntry, growing_file
from aimbot_lab.tracking.journal_tracker import (
    EVENTS_NAME,
    RunDescription,
    crc32c,
    metrics_record,
    open_run,
    reopen_run,
)
from aimbot_lab.tracking.settings import TrackingSettings

ON = TrackingSettings(tensorboard=True)
# Written by RecordWriter and Event of tensorboard 2.21.
GOLDEN = (
    "2400000000000000422b804d09000010c00b5ad64110ac022a160a140a0d6576616c2f77696e5f72"
    "617465150000003fa83d8fa7"
)


def test_checksums_have_their_published_values_and_a_record_is_tensorboards_own():
    assert crc32c(b"123456789") == 0xE3069283  # the check value in catalogues of such codes
    assert crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, appendix B.4
    assert crc32c(bytes(range(32))) == 0x46DD794E
    entry = MetricsEntry(300, 1_500_000_000_250, {"eval/win_rate": 0.5})
    assert metrics_record(entry).hex() == GOLDEN


def open_tracker(data_folder, settings=ON):
    tracker = open_run(data_folder, settings, RunDescription("drawn"))
    data_folder.run_folder(tracker.run_id).joinpath("checkpoints").mkdir()
    return tracker


def drawn(store, run_id):
    return [one[1:] for one in scalars(store.download(run_id, EVENTS_NAME).read_bytes())]


def test_it_has_the_names_steps_and_values_that_mlflow_has_also_while_the_run_goes_on(
    data_folder, store
):
    tracker = open_tracker(data_folder)
    path = growing_file(data_folder.run_folder(tracker.run_id), EVENTS_NAME)
    assert not [folder for folder in path.parents if "tfevents" in folder.name]  # or it reads none
    assert scalars(path.read_bytes()) == []
    tracker.log_metrics(64, {"eval/win_rate/goto/3": 0.25, "train/loss": -2.0})
    first = (64, "eval/win_rate/goto/3", 0.25), (64, "train/loss", -2.0)
    assert [one[1:] for one in scalars(path.read_bytes())] == [*first]
    tracker.log_metrics(2**40, {"train/loss": 1e300})
    tracker.log_metrics(2**40 + 1, {"train/loss": math.inf})
    assert tracker.finish("FINISHED").complete
    *begins, third, fourth = drawn(store, tracker.run_id)
    assert begins == [*first]
    assert (third[:2], fourth[:2]) == ((2**40, "train/loss"), (2**40 + 1, "train/loss"))
    assert math.isnan(third[2])
    assert math.isnan(fourth[2])
    times = store.client.get_metric_history(tracker.run_id, "eval/win_rate/goto/3")
    found = scalars(store.download(tracker.run_id, EVENTS_NAME).read_bytes())
    assert [one.timestamp for one in times] == [round(found[0][0] * 1000)]


def test_without_the_setting_there_is_none(data_folder, store):
    tracker = open_tracker(data_folder, replace(ON, tensorboard=False))
    tracker.log_metrics(10, {"a": 1.0})
    assert tracker.finish("KILLED").complete
    again = reopen_run(data_folder, tracker.run_id)
    again.log_metrics(20, {"a": 1.0})
    assert again.finish("KILLED").complete
    names = [one.path for one in store.client.list_artifacts(tracker.run_id)]
    assert EVENTS_NAME not in names


@pytest.mark.parametrize("damage", ["torn", "lost"])
def test_a_resumed_run_draws_each_number_once_whatever_a_crash_left(data_folder, store, damage):
    tracker = open_tracker(data_folder)
    tracker.log_metrics(10, {"a": 1.0, "b": 2.0})
    tracker.log_metrics(20, {"a": 3.0})
    assert tracker.finish("KILLED").complete
    path = growing_file(data_folder.run_folder(tracker.run_id), EVENTS_NAME)
    whole = path.read_bytes()
    path.write_bytes({"torn": whole[:-5], "lost": b""}[damage])
    again = reopen_run(data_folder, tracker.run_id)
    again.log_metrics(20, {"a": 3.0, "b": 4.0})
    again.log_metrics(30, {"a": 5.0})
    assert again.finish("FINISHED").complete
    assert drawn(store, tracker.run_id) == [
        *((10, "a", 1.0), (10, "b", 2.0), (20, "a", 3.0)),
        *((20, "b", 4.0), (30, "a", 5.0)),
    ]


def test_a_disk_that_refuses_it_fails_nothing_and_what_follows_can_be_read(
    begin, monkeypatch, tmp_path
):
    real = GrowingFiles.write
    full = {"full": True}

    def write(self, name, data, *, place):
        if full["full"]:
            raise StoreError("no room")
        real(self, name, data, place=place)

    monkeypatch.setattr(GrowingFiles, "write", write)
    tracker = begin(FakeStore(), events=True)
    tracker.log_metrics(10, {"a": 1.0})
    full["full"] = False
    tracker.log_metrics(20, {"a": 2.0})
    path = growing_file(tmp_path / "run", EVENTS_NAME)
    assert [one[1:] for one in scalars(path.read_bytes())] == [(20, "a", 2.0)]
    assert tracker.finish("FINISHED").dropped == 2


def plain_crc32c(data):
    """Bit by bit, as the definition says: the reflected polynomial 0x1EDC6F41."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def records(data):
    """The data of all records; whoever reads a broken one ends there, so this fails."""
    found = []
    while data:
        (length,), (first,) = struct.unpack("<Q", data[:8]), struct.unpack("<I", data[8:12])
        body, (second,) = data[12 : 12 + length], struct.unpack("<I", data[12 + length :][:4])
        assert (unmasked(first), unmasked(second)) == (plain_crc32c(data[:8]), plain_crc32c(body))
        found.append(body)
        data = data[16 + length :]
    return found


def unmasked(crc):
    rotated = (crc - 0xA282EAD8) % 2**32
    return (rotated >> 17 | rotated << 15) % 2**32


def fields(message):
    """The fields of a protocol buffer: (number, value) in their order."""
    found = []
    while message:
        key, message = varint(message)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, message = varint(message)
        elif kind == 2:
            length, message = varint(message)
            value, message = message[:length], message[length:]
        else:
            form, size = {1: ("<d", 8), 5: ("<f", 4)}[kind]
            (value,), message = struct.unpack(form, message[:size]), message[size:]
        found.append((number, value))
    return found


def varint(data):
    number = shift = 0
    for place, byte in enumerate(data):
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, data[place + 1 :]
    raise AssertionError("a torn number")


def scalars(data):
    """(wall time, step, tag, value) of each number in an event file, which begins as it must."""
    first, *rest = map(fields, records(data))
    assert dict(first)[3] == b"brain.Event:2"
    found = []
    for event in map(dict, rest):
        for number, value in fields(event[5]):
            assert number == 1
            tag_and_value = dict(fields(value))
            found.append((event[1], event[2], tag_and_value[1].decode(), tag_and_value[2]))
    return found
