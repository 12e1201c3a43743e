"""MLflow, the only file that imports it: stores, experiments, runs, and what is sent to them."""

import atexit
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath
from shlex import quote
from tempfile import TemporaryDirectory, mkdtemp
from typing import TypeVar

from aimbot_lab.foundation.errors import ConfigurationError, LabError, StoreError
from aimbot_lab.foundation.files import exclusive, sync_file, user_cache
from aimbot_lab.tracking.data_folder import (
    DataFolder,
    FilesHeldError,
    RunRefusedError,
    StoreRefusedError,
    TrackingAddress,
    file_error,
    sqlite_uri,
    store_error,
)
from aimbot_lab.tracking.journal import (
    EndEntry,
    Entry,
    FileEntry,
    MetricsEntry,
    ResumeEntry,
    TagsEntry,
)
from aimbot_lab.tracking.mlflow_app import EXPERIMENT_TAGS, quieten_mlflow
from aimbot_lab.tracking.run_folder import OWNER_TAG
from aimbot_lab.tracking.tracker import (
    METRICS_PER_CALL,
    PARAMS_PER_CALL,
    TAGS_PER_CALL,
    MetricPoint,
    RunSummary,
)

# MLflow reads its switches, telemetry's among them, while it is imported.
quieten_mlflow()

from mlflow import MlflowClient  # noqa: E402
from mlflow import __version__ as mlflow_version  # noqa: E402
from mlflow.entities import Experiment, Metric, Param, Run, RunInfo, RunTag  # noqa: E402
from mlflow.environment_variables import MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402
from mlflow.store.artifact.artifact_repo import ArtifactRepository  # noqa: E402
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository  # noqa: E402
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository  # noqa: E402
from mlflow.store.db.utils import create_sqlalchemy_engine  # noqa: E402
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: E402
from mlflow.system_metrics.system_metrics_monitor import SystemMetricsMonitor  # noqa: E402
from mlflow.utils.credentials import get_default_host_creds  # noqa: E402
from mlflow.utils.rest_utils import http_request_safe  # noqa: E402
from sqlalchemy import Engine, event  # noqa: E402

_REFUSALS = ("INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST")
MAX_PAGE = 50_000  # runs, as MLflow allows
ANSWER_SECONDS = 10.0  # in which a server must begin to answer
_T = TypeVar("_T")


def connect(data_folder: DataFolder, address: TrackingAddress) -> "MlflowStore":
    """The store at `address`, reachable now; the embedded one is made where it is missing.

    Any number of processes may come first at the same time. Raises StoreError.
    """
    with _translated(address):
        if address.is_server:
            # Real requests may take long; whether a server answers is known soon.
            http_request_safe(  # type: ignore[no-untyped-call]
                get_default_host_creds(address.uri),  # type: ignore[no-untyped-call]
                "/api/2.0/mlflow/experiments/search",
                "POST",
                json={"max_results": 1},
                timeout=ANSWER_SECONDS,
                max_retries=0,
            )
            client = MlflowClient(tracking_uri=address.uri)
        else:
            client = _database_client(data_folder, address)
            client.search_experiments(max_results=1)
        return MlflowStore(client, address, data_folder)


class MlflowStore:
    """Experiments and runs of one store; every method raises StoreError where it fails."""

    def __init__(
        self, client: MlflowClient, address: TrackingAddress, data_folder: DataFolder
    ) -> None:
        self.client = client
        self.address = address
        self._data_folder = data_folder

    def experiment_id(self, name: str) -> str:
        """The id of `name`, made where it is missing. ConfigurationError where it was deleted."""
        with _translated(self.address):
            experiment = self.client.get_experiment_by_name(name) or self._new_experiment(name)
            if experiment.lifecycle_stage != "active":
                raise ConfigurationError(
                    f"experiment {name!r} is deleted in {self.address.shown}; choose another name, "
                    f"or restore it: {self._restoring(experiment)}"
                )
            number = str(experiment.experiment_id)
            for key in EXPERIMENT_TAGS.keys() - experiment.tags.keys():
                self.client.set_experiment_tag(number, key, EXPERIMENT_TAGS[key])
            return number

    def _restoring(self, deleted: Experiment | RunInfo) -> str:
        """The command that restores it, for a shell."""
        what = f"experiments restore --experiment-id {deleted.experiment_id}"
        if isinstance(deleted, RunInfo):
            what = f"runs restore --run-id {deleted.run_id}"
        return f"MLFLOW_TRACKING_URI={quote(self.address.shown)} mlflow {what}"

    def _new_experiment(self, name: str) -> Experiment:
        location = None if self.address.is_server else self._data_folder.artifacts.as_uri()
        try:
            return self.client.get_experiment(self.client.create_experiment(name, location))
        except MlflowException:
            if existing := self.client.get_experiment_by_name(name):
                return existing  # another process was faster
            raise

    def create_run(self, experiment_id: str, name: str, *, tags: Mapping[str, str]) -> str:
        """The id of a new run with status RUNNING."""
        with _translated(self.address):
            made = self.client.create_run(experiment_id, tags=dict(tags), run_name=name)
            return str(made.info.run_id)

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        """Set a run's parameters, which never change afterwards."""
        with _translated(self.address):
            rows = [Param(key, value) for key, value in params.items()]
            for portion in _portions(rows, PARAMS_PER_CALL):
                self.client.log_batch(run_id, params=portion)

    def label(self, run_id: str, name: str | None, tags: Mapping[str, str | None]) -> None:
        """Rename a run where `name` is given, and set its tags; one whose value is None goes."""
        with _translated(self.address):
            known = self.client.get_run(run_id).data.tags
            if name is not None:
                self.client.update_run(run_id, name=name)
            for key, value in tags.items():
                if value is not None:
                    self.client.set_tag(run_id, key, value)
                elif key in known:
                    self.client.delete_tag(run_id, key)

    def discard_run(self, run_id: str) -> None:
        """Delete a run and its files; it stays among the store's deleted runs."""
        with self.files(run_id) as repository:  # first, so that it can be tried again
            place, here = self._own_place(repository, run_id), self._data_folder.artifacts.resolve()
            is_here = place is None or not place.exists() or place.is_relative_to(here)
            if self.address.embedded and not is_here:
                raise StoreError(
                    f"tracking store {self.address.shown}: files of run {run_id} lie in {place}, "
                    "outside this data folder, which may be a copy: delete the run where they lie"
                )
            repository.delete_artifacts()  # type: ignore[no-untyped-call]
        with _translated(self.address):
            self.client.delete_run(run_id)

    def experiment_of(self, run_id: str) -> str:
        """The id of a run's experiment. RunRefusedError where the run is deleted or unknown."""
        try:
            with _translated(self.address):
                info = self.client.get_run(run_id).info
                experiment = self.client.get_experiment(info.experiment_id)
        except StoreRefusedError as error:
            raise RunRefusedError(str(error)) from error
        if info.lifecycle_stage == experiment.lifecycle_stage == "active":
            return str(info.experiment_id)
        shown, way = f"run {run_id}", self._restoring(info)
        if experiment.lifecycle_stage != "active":  # its runs are deleted and restored with it
            shown, way = f"experiment {experiment.name!r}", self._restoring(experiment)
        raise RunRefusedError(f"{shown} is deleted in {self.address.shown}; restore it: {way}")

    def find_run(self, token: str) -> str | None:
        """The id of the run whose owner has `token`, None if missing."""
        found = self.runs(1, f"tags.`{OWNER_TAG}` LIKE '%:{token}'")
        return found[0].run_id if found else None

    def runs(self, max_results: int, condition: str = "") -> list[RunSummary]:
        """The newest runs of all experiments that fulfil a filter of MLflow's, newest first."""
        return next(self.pages(max_results, condition), [])

    def pages(
        self,
        size: int,
        condition: str = "",
        *,
        order: str = "attributes.start_time DESC",
        experiments: Callable[[str], bool] = lambda _: True,
    ) -> Iterator[list[RunSummary]]:
        """The runs of experiments with such names that fulfil a filter of MLflow's, in `order`.

        The first page has `size` runs, and each further one twice as many as the one before.
        Reading a run takes some milliseconds: a page that isn't needed is better not asked for.
        """
        with _translated(self.address):
            there = self.client.search_experiments()
        names = {one.experiment_id: one.name for one in there if experiments(one.name)}
        token, size = None, min(size, MAX_PAGE)
        while names:
            with _translated(self.address):
                page = self.client.search_runs(
                    [*names],
                    filter_string=condition,
                    max_results=size,
                    order_by=[order],
                    page_token=token,
                )
            yield [_summary(run, names.get(run.info.experiment_id, "")) for run in page]
            if (token := page.token) is None:
                return
            size = min(2 * size, MAX_PAGE)

    def metric_history(self, run_id: str, key: str) -> list[MetricPoint]:
        """Every value of a metric, in the order of steps and, within a step, of time."""
        with _translated(self.address):
            found = self.client.get_metric_history(run_id, key)
        return sorted(MetricPoint(m.step, m.timestamp, m.value) for m in found)

    def download(self, run_id: str, name: str) -> Path:
        """Where the artifact `name` of a run, a file or a folder, can be read.

        In place, or as a copy that lasts as long as this process; the next call renews it.
        """
        with self.files(run_id) as repository:
            # The client's own download copies even what lies on this machine.
            if isinstance(repository, LocalArtifactRepository):
                return Path(repository.download_artifacts(name))  # type: ignore[no-untyped-call]
            copies = _copies()
            copies.mkdir(exist_ok=True)
            with TemporaryDirectory(dir=copies) as fresh:
                repository.download_artifacts(name, fresh)  # type: ignore[no-untyped-call]
                for path in [path for path in Path(fresh).rglob("*") if path.is_file()]:
                    copy = copies / run_id / path.relative_to(fresh)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(copy)  # as a whole: another thread may be reading the last one
            return copies / run_id / name

    @contextmanager
    def files(self, run_id: str) -> Iterator[ArtifactRepository]:
        """The store of a run's files. Raises FilesHeldError where it fails, and the rest works."""
        with _translated(self.address):
            place = self.client.get_run(run_id).info.artifact_uri
        try:
            repository = get_artifact_repository(place, tracking_uri=self.address.uri)
            if (moved := self._moved_to(run_id, repository)) is not None:
                repository = LocalArtifactRepository(moved.as_uri())
            yield repository
        except Exception as error:
            raise file_error(error, self.address, place) from error

    def _moved_to(self, run_id: str, noted: ArtifactRepository) -> Path | None:
        """Where a run's files lie in a data folder that was moved since the store noted where."""
        if not (self.address.embedded and isinstance(noted, LocalArtifactRepository)):
            return None
        here, there = self._data_folder.artifacts / run_id, Path(noted.artifact_dir).parent
        if there.parent.name != here.parent.name or there.exists():  # of no data folder, or its own
            return None
        return here / "artifacts" if here.exists() or not there.parent.exists() else None

    def add_file(self, run_id: str, path: Path, folder: str) -> None:
        """Store the file at `path` with a run, in a folder of its files."""
        with self.files(run_id) as repository:
            self._own_place(repository, run_id, *PurePosixPath(folder).parts, path.name)
            repository.log_artifact(str(path), folder or None)  # type: ignore[no-untyped-call]

    def _own_place(self, repository: ArtifactRepository, run_id: str, *below: str) -> Path | None:
        """Where files of a run lie on this machine; None: elsewhere.

        Raises FilesHeldError where that is not the run's own: others may have written the store, or
        put links there, and nothing of this account's may be overwritten or deleted for them.
        """
        if not isinstance(repository, LocalArtifactRepository):
            return None
        place, own = Path(repository.artifact_dir, *below).resolve(), (run_id, "artifacts", *below)
        if place.parts[-len(own) :] != own:
            raise FilesHeldError(
                f"tracking store {self.address.shown}: files of run {run_id} lie in {place}, which "
                "is not a folder of that run: nothing is written or deleted there"
            )
        return place

    def monitor_system(self, run_id: str, *, resumed: bool) -> Callable[[], None]:
        """Have MLflow log the machine's load to a run, if the environment says so; what ends that.

        MLflow's monitor knows no journal: the first outage ends it.
        """
        with _translated(self.address):
            if not MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING.get():  # type: ignore[no-untyped-call]
                return lambda: None
            monitor = SystemMetricsMonitor(  # type: ignore[no-untyped-call]
                run_id, resume_logging=resumed, tracking_uri=self.address.uri
            )
            monitor.start()  # type: ignore[no-untyped-call]
            return monitor.finish

    def run(self, run_id: str, folder: Path) -> "MlflowRun":
        """The sink for the journal of a run, whose kept files lie under `folder`."""
        return MlflowRun(self, run_id, folder)


class MlflowRun:
    """One run of a store, as the journal's deliverer sees it."""

    def __init__(self, store: MlflowStore, run_id: str, folder: Path) -> None:
        self._store, self._client = store, store.client
        self._run_id = run_id
        self._folder = folder

    def send(self, entries: Sequence[Entry]) -> None:
        """Store `entries`, all of one kind; sending an entry again changes nothing."""
        try:
            with _translated(self._store.address):
                self._send(entries)
        except StoreRefusedError:
            # Which says so where the run is what it refuses.
            self._store.experiment_of(self._run_id)
            raise

    def _send(self, entries: Sequence[Entry]) -> None:
        rows: list[Metric] = []
        tags: dict[str, str] = {}
        for entry in entries:
            if isinstance(entry, MetricsEntry):
                at = entry.time_ms, entry.step
                rows += [Metric(key, value, *at) for key, value in entry.values.items()]
            elif isinstance(entry, TagsEntry):
                tags |= entry.tags
            elif isinstance(entry, FileEntry):
                path = self._folder / entry.kept
                # Gone means that it was uploaded before, and only the note of that was lost. A
                # link to somewhere else is not what a run keeps.
                if path.is_file() and path.resolve().is_relative_to(self._folder.resolve()):
                    self._store.add_file(self._run_id, path, entry.folder)
            elif isinstance(entry, EndEntry):
                self._client.set_terminated(self._run_id, entry.status, entry.time_ms)
            elif isinstance(entry, ResumeEntry):
                self._client.update_run(self._run_id, "RUNNING")
        for metrics in _portions(rows, METRICS_PER_CALL):
            self._client.log_batch(self._run_id, metrics=metrics)
        for portion in _portions([RunTag(*tag) for tag in tags.items()], TAGS_PER_CALL):
            self._client.log_batch(self._run_id, tags=portion)


@cache
def _copies() -> Path:
    """The folder of this process's copies of artifacts, which ends with the process."""
    folder = Path(mkdtemp(prefix="aimbot-lab-copies-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _database_client(data_folder: DataFolder, address: TrackingAddress) -> MlflowClient:
    if not address.embedded or data_folder.database.exists():
        # MLflow itself would try for minutes to reach a database that is not there.
        engine = create_sqlalchemy_engine(address.uri)  # type: ignore[no-untyped-call]
        try:
            with engine.connect() as connection:
                engine.dialect.has_table(connection, "experiments")
        finally:
            engine.dispose()
    data_folder.create()
    # MLflow makes and migrates tables without a lock: processes that come together would fail.
    with exclusive(data_folder.lock):
        if address.embedded and not data_folder.database.exists():
            # Made elsewhere and renamed: a crash in between leaves no half-made store.
            nursery = data_folder.root / "store.new"
            shutil.rmtree(nursery, ignore_errors=True)
            nursery.mkdir()
            path = nursery / data_folder.database.name
            artifacts = data_folder.artifacts.as_uri()
            if not _copied(path, artifacts):
                event.listen(Engine, "connect", _write_without_waiting)
                try:
                    store = SqlAlchemyStore(sqlite_uri(path), artifacts)  # type: ignore[no-untyped-call]
                    store.engine.dispose()
                finally:
                    event.remove(Engine, "connect", _write_without_waiting)
                _keep_copy(path)
            sync_file(path)
            path.replace(data_folder.database)
            shutil.rmtree(nursery)
        return MlflowClient(tracking_uri=address.uri)


def _kept_copy() -> Path:
    """An empty store of this MLflow: its migrations take over a second, and a copy none."""
    return user_cache() / f"mlflow-{mlflow_version}.db"


def _copied(path: Path, artifacts: str) -> bool:
    """Whether a store could be made at `path` from the copy that was kept."""
    try:
        shutil.copyfile(_kept_copy(), path)
        with closing(sqlite3.connect(path)) as database, database:
            now = int(datetime.now(UTC).timestamp() * 1000)
            changed = database.execute(
                "UPDATE experiments SET artifact_location = ?, creation_time = ?, "
                "last_update_time = ?",
                (f"{artifacts}/0", now, now),
            )
            is_whole = database.execute("PRAGMA quick_check").fetchone() == ("ok",)
        if changed.rowcount == 1 and is_whole:
            return True
    except (OSError, sqlite3.Error):
        pass
    path.unlink(missing_ok=True)
    return False


def _keep_copy(path: Path) -> None:
    kept = _kept_copy()
    with suppress(OSError):  # then the next store takes as long
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as folder:  # other processes may be at the same
            copy = shutil.copyfile(path, Path(folder) / kept.name)
            sync_file(copy)  # else a power cut could leave every later project a damaged store
            copy.replace(kept)


def _write_without_waiting(connection: object, _record: object) -> None:
    # The schema's hundred steps would each wait for the disk; one wait at the end does.
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


def _summary(run: Run, experiment: str) -> RunSummary:
    info = run.info
    return RunSummary(
        run_id=info.run_id,
        name=info.run_name,
        experiment=experiment,
        experiment_id=info.experiment_id,
        status=info.status,
        started=_utc(info.start_time),
        # A run that goes on still has the time at which it had ended.
        ended=_utc(info.end_time) if info.end_time and info.status != "RUNNING" else None,
        metrics=run.data.metrics,
        tags=run.data.tags,
    )


def _utc(time_ms: int) -> datetime:
    """That time; 1970 for what is none, so that a damaged run is listed, too."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC)
    except (TypeError, ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)


def _portions(rows: list[_T], size: int) -> Iterator[list[_T]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


@contextmanager
def _translated(address: TrackingAddress) -> Iterator[None]:
    """Turn whatever MLflow and what lies under it raise into one-line StoreErrors."""
    try:
        yield
    except LabError:
        raise
    except Exception as error:
        refused = isinstance(error, MlflowException) and error.error_code in _REFUSALS
        raise store_error(error, address, refused=refused) from error
