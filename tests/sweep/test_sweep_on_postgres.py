"""Several coordinators on one PostgreSQL share a sweep, and no trial is run twice."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from optuna.trial import TrialState
from postgres_server import NoServerError, postgres_server
from sweep_files import PLANTED, changed, write_sweep

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.sweep.record import find_record
from aimbot_lab.sweep.storage import check_storage, choose_storage, open_storage
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import list_runs
from tests.cli.tiny_runs import begin_in

SHARED = changed(
    PLANTED,
    ("trials: 8", "trials: 20"),
    ("workers: 3", "workers: 2"),
    ("parallel: 3", "parallel: 4"),
    ("  episodes: 500", "  episodes: 500\n  seconds: 0.3"),
)


@pytest.mark.parametrize(
    "given",
    ["postgresql://me:secret@host/db", "postgres://me:se/secret@x@host:1/db?sslmode=require"],
)
def test_the_password_of_a_storage_is_never_shown(given: str) -> None:
    address = choose_storage(DataFolder(Path()), "any", given)
    assert "secret" in address.url
    assert "secret" not in address.shown
    assert "host" in address.shown


@pytest.mark.parametrize(
    "given", ["mysql://me:secret/x@host/db", "postgresql:/me:secret@host", "me:secret@host"]
)
def test_a_storage_that_is_not_usable_is_named_without_its_password(given: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        choose_storage(DataFolder(Path()), "any", given)
    assert "secret" not in str(caught.value)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    try:
        with postgres_server() as address:
            yield address
    except NoServerError as error:
        pytest.skip(f"no PostgreSQL server could be started: {error}")


def test_a_database_of_mlflow_is_refused_and_left_as_it_is(server: str) -> None:
    address = server.replace("/postgres", "/taken")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE taken")
    with psycopg.connect(address) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num text)")
    storage = choose_storage(DataFolder(Path()), "any", address)
    with pytest.raises(ConfigurationError, match="is the database of another program, such as ML"):
        check_storage(storage)
    with psycopg.connect(address) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == [("alembic_version",)]
    check_storage(choose_storage(DataFolder(Path()), "any", server))


def waiting(address: str) -> int:
    """How many wait for a lock of a sweep."""
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
    assert found is not None
    return int(found[0])


def test_a_sweep_is_alone_until_it_ends_or_fails(server: str) -> None:
    address = choose_storage(DataFolder(Path()), "any", server)
    ours, theirs = open_storage(address), open_storage(address)
    entered = Event()

    def enter() -> None:
        with theirs.alone("sweep"):
            entered.set()

    thread = Thread(target=enter)

    def held() -> None:
        with ours.alone("sweep"), theirs.alone("another"):
            thread.start()
            while waiting(server) == 0:
                assert not entered.is_set()
            raise KeyError

    with pytest.raises(KeyError):
        held()
    thread.join(timeout=300)
    assert entered.is_set()
    with ours.alone("sweep") as now:  # by the server's clock, on the connection that it has
        assert now > 0
    ours.close()
    theirs.close()


def coordinator(folder: Path, *options: str) -> subprocess.Popen[str]:
    return begin_in(folder, "sweep", "sweep.yaml", "--json", *options)


@pytest.mark.campaign
def test_two_coordinators_share_a_sweep_without_a_double(tmp_path: Path, server: str) -> None:
    write_sweep(tmp_path, SHARED)
    folders = [tmp_path / "one", tmp_path / "two"]
    both = [
        coordinator(tmp_path, "--storage", server, "--data-dir", str(folder)) for folder in folders
    ]
    reports = []
    for one in both:
        out, err = one.communicate(timeout=900)
        assert one.returncode == 0, err
        reports.append(json.loads(out))
    assert reports[0]["trials"] == reports[1]["trials"]
    record = find_record(DataFolder(folders[0]), "planted", server)
    trials = record.study.get_trials()
    record.storage.close()
    assert [trial.number for trial in trials] == list(range(20))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    # Each data folder tracks the trials that its own workers ran: together, each trial once.
    runs = Counter(
        run.name
        for folder in folders
        for run in list_runs(DataFolder(folder))
        if run.name != "planted"
    )
    assert runs == {f"planted {number}": 1 for number in range(20)}
    alone = coordinator(tmp_path, "--data-dir", str(tmp_path / "alone"))
    out, err = alone.communicate(timeout=900)
    assert alone.returncode == 0, err
    worth = [
        [(trial["params"], trial["value"]) for trial in report["trials"]]
        for report in (reports[0], json.loads(out))
    ]
    assert worth[0] == worth[1]
