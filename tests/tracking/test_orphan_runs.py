import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from dead_runs import leave_folder

from aimbot_lab.foundation.errors import StoreError
from aimbot_lab.tracking import history as reaper
from aimbot_lab.tracking.durable import exclusive
from aimbot_lab.tracking.history import close_orphan_runs, list_runs
from aimbot_lab.tracking.journal import EndEntry, GrowingFiles, Journal
from aimbot_lab.tracking.ownership import OWNER_TAG, this_process
from aimbot_lab.tracking.run_folder import create_run_folder

DEAD = this_process("deadbeef", None)


def test_a_dead_run_is_delivered_and_killed(data_folder, store, dead_run):
    assert close_orphan_runs(data_folder) == [dead_run.run_id]
    run = store.client.get_run(dead_run.run_id)
    assert run.info.status == "KILLED"
    assert run.info.end_time >= run.info.start_time
    assert run.data.metrics["a"] == 1.0
    assert run.data.tags["lab.lesson"] == "3"
    assert store.download(dead_run.run_id, "notes/a.txt").read_text() == "x"
    assert list(data_folder.runs.iterdir()) == []
    assert close_orphan_runs(data_folder) == []


def test_what_a_kill_left_of_an_artifact_goes(data_folder, dead_run):
    artifacts = data_folder.artifacts / dead_run.run_id / "artifacts"
    (artifacts / "notes").mkdir(parents=True)
    (artifacts / "notes" / ".artifact.uploading.x1y2").write_text("hal")
    close_orphan_runs(data_folder)
    assert [path.name for path in (artifacts / "notes").iterdir()] == ["a.txt"]


def test_what_grew_in_a_dead_run_is_delivered(data_folder, store, dead_run):
    growing = GrowingFiles(dead_run.path)
    growing.write("episodes.csv", b"1\n2\n", place=0)
    growing.close()
    close_orphan_runs(data_folder)
    assert store.download(dead_run.run_id, "episodes.csv").read_bytes() == b"1\n2\n"


def test_replaying_a_journal_stores_nothing_twice(data_folder, store, dead_run, tmp_path):
    before = tmp_path / "before"
    shutil.copytree(dead_run.path, before)
    close_orphan_runs(data_folder)
    first = store.client.get_run(dead_run.run_id)
    shutil.copytree(before, dead_run.path)
    close_orphan_runs(data_folder)
    again = store.client.get_run(dead_run.run_id)
    for key in ("a", "nan"):
        assert len(store.client.get_metric_history(dead_run.run_id, key)) == 1
    assert again.data.tags == first.data.tags
    assert again.info.status == "KILLED"


def test_a_note_of_delivery_that_lags_behind_doubles_nothing(data_folder, store, dead_run):
    journal = Journal(dead_run.path)
    sink = store.run(dead_run.run_id, dead_run.path)
    sink.send(journal.pending(2).entries[:1])
    journal.close()
    close_orphan_runs(data_folder)
    assert len(store.client.get_metric_history(dead_run.run_id, "a")) == 1


def test_a_status_given_before_the_death_stays(data_folder, store, dead_run):
    journal = Journal(dead_run.path)
    journal.append(EndEntry("FINISHED", 2_000_000_000_000))
    journal.close()
    assert close_orphan_runs(data_folder) == []
    info = store.client.get_run(dead_run.run_id).info
    assert (info.status, info.end_time) == ("FINISHED", 2_000_000_000_000)


def test_living_runs_and_those_of_other_machines_are_left_alone(data_folder, store):
    create_run_folder(data_folder, this_process("living", None))
    leave_folder(data_folder, replace(DEAD, token="elsewhere", host="another", boot="another"))
    before = sorted(data_folder.runs.rglob("*"))
    assert close_orphan_runs(data_folder) == []
    assert sorted(data_folder.runs.rglob("*")) == before


def test_a_death_between_the_store_and_the_folders_name_leaves_no_running_run(data_folder, store):
    leave_folder(data_folder, DEAD)
    run_id = store.create_run(store.experiment_id("x"), "dead", tags={OWNER_TAG: DEAD.label})
    assert close_orphan_runs(data_folder) == [run_id]
    assert [run.status for run in list_runs(data_folder)] == ["KILLED"]


def test_a_death_before_the_store_had_a_run_leaves_nothing(data_folder, store):
    leave_folder(data_folder, DEAD)
    assert close_orphan_runs(data_folder) == []
    assert list(data_folder.runs.iterdir()) == []
    assert list_runs(data_folder) == []


def test_a_half_deleted_folder_is_never_taken_for_a_dead_run(data_folder, store, dead_run):
    dead_run.path.rename(data_folder.runs / f"done-{dead_run.run_id}")
    assert close_orphan_runs(data_folder) == []
    assert store.client.get_run(dead_run.run_id).info.status == "RUNNING"
    assert list(data_folder.runs.iterdir()) == []


def test_what_cannot_be_delivered_now_is_delivered_later(data_folder, dead_run, monkeypatch):
    def down(*_):
        raise StoreError("the store is down")

    with monkeypatch.context() as patch:
        patch.setattr(reaper, "_connect", down)
        assert close_orphan_runs(data_folder) == []
    assert dead_run.path.is_dir()
    assert close_orphan_runs(data_folder) == [dead_run.run_id]


def test_several_reapers_at_once_close_a_run_once(data_folder, dead_run):
    with ThreadPoolExecutor(4) as pool:
        reaped = pool.map(lambda _: close_orphan_runs(data_folder), range(4))
    assert sorted(reaped) == [[], [], [], [dead_run.run_id]]


def test_who_comes_while_another_reaps_does_not_wait(data_folder, dead_run):
    with ThreadPoolExecutor(1) as pool, exclusive(data_folder.orphan_lock):
        assert pool.submit(close_orphan_runs, data_folder).result(timeout=10) == []
    assert close_orphan_runs(data_folder) == [dead_run.run_id]
