"""Optuna's storage, a SQLite file here or PostgreSQL for many machines, and a lock over it.

Optuna numbers trials and keeps their states; what must not happen twice happens under the lock,
which the system or the database frees when its holder dies.
"""

import os
import re
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from sqlalchemy import Engine, create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from aimbot_lab.foundation.errors import ConfigurationError, StoreError, reason
from aimbot_lab.foundation.files import exclusive
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.tracking.data_folder import DataFolder, sqlite_uri, without_login, without_password
from aimbot_lab.tracking.run_folder import Owner, this_process

FOLDER = "sweeps"
STUDY_FILE = "study.db"
BUSY_SECONDS = 60.0  # that a writer waits for another one
CONNECT_SECONDS = 10
_VERSIONS = "alembic_version"  # a table that Optuna and MLflow both want for themselves
_FORMS = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
STORAGE_ERRORS = (SQLAlchemyError, OptunaError, sqlite3.Error)  # of an open storage
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)
_POSTGRES = re.compile(r"postgres(ql)?(\+psycopg)?://")

COORDINATORS = "coordinators"  # attribute of a study: leases by token
RENEWALS = 4  # in the time of a lease


@dataclass(frozen=True)
class StorageAddress:
    """Where a sweep's trials are kept; `url` may hold a password, `shown` never does."""

    url: str

    @property
    def shown(self) -> str:
        """The address as it may be printed."""
        return without_password(make_url(self.url).render_as_string(hide_password=True))

    @property
    def file(self) -> Path | None:
        """The SQLite file, None for a server."""
        url = make_url(self.url)
        return Path(url.database or "") if url.drivername.startswith("sqlite") else None

    @property
    def is_shared(self) -> bool:
        """Whether other machines may work on it too."""
        return self.file is None


def sweep_folder(folder: DataFolder, name: str) -> Path:
    """The folder of a sweep's own files; it need not exist."""
    return folder.root / FOLDER / name


def choose_storage(folder: DataFolder, name: str, given: str | None) -> StorageAddress:
    """The storage at the address `given`, else the sweep's own file.

    Raises ConfigurationError for an address that can't be used. Connects to nothing.
    """
    if given is None:
        return StorageAddress(sqlite_uri(sweep_folder(folder, name) / STUDY_FILE))
    found = _POSTGRES.match(given)
    url = "postgresql+psycopg://" + given[found.end() :] if found else given
    try:
        kind = make_url(url).get_backend_name()
    except (ArgumentError, ValueError):
        kind = ""
    database = make_url(url).database if kind == "sqlite" else None
    if database and database != ":memory:":  # which other processes could not see
        return StorageAddress(sqlite_uri(Path(os.path.abspath(database))))
    if kind != "postgresql":
        raise ConfigurationError(
            f"--storage {without_login(given)}: is not usable; it must be {_FORMS}"
        )
    return StorageAddress(url)


def check_storage(address: StorageAddress) -> None:
    """Raise ConfigurationError where the storage can't be reached; nothing is created."""
    file = address.file
    if file is not None:
        reason = _file_fault(file)
        if reason is not None:
            raise ConfigurationError(f"--storage {address.shown}: {reason}")
        return
    try:
        with _engine(address).connect() as connection:
            tables = set(inspect(connection).get_table_names())
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"--storage {address.shown}: needs psycopg: pip install 'aimbot-lab[postgres]'"
        ) from error
    except SQLAlchemyError as error:
        reason = _reason(error)
        raise ConfigurationError(
            f"--storage {address.shown}: can't be reached: {reason}"
        ) from error
    if _VERSIONS in tables and "studies" not in tables:
        raise ConfigurationError(
            f"--storage {address.shown}: is the database of another program, such as MLflow; "
            "sweeps need one of their own: createdb sweeps"
        )


def _file_fault(file: Path) -> str | None:
    """Why no trials can be kept in `file`, None where they can; nothing is created."""
    if file.is_dir():
        return "is a folder, not a file"
    if not file.exists():
        parent = next(parent for parent in file.parents if parent.exists())
        is_open = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
        return None if is_open else f"{parent} can't be written to"
    if not file.is_file():
        return "is not a regular file"
    if not os.access(file, os.R_OK | os.W_OK):
        return "can't be read and written"
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name for (name,) in found}
    except sqlite3.Error as error:
        return str(error)
    is_ours = not tables or {"studies", "version_info"} <= tables
    return None if is_ours else "is a database of something else"


class Storage:
    """An open storage."""

    def __init__(self, address: StorageAddress, optuna_storage: RDBStorage) -> None:
        self.address = address
        self.optuna = optuna_storage
        self._locks = None if address.file else _engine(address, kept=True)

    def close(self) -> None:
        """Let go of connections."""
        self.optuna.remove_session()
        self.optuna.engine.dispose()
        if self._locks is not None:
            self._locks.dispose()

    @contextmanager
    def alone(self, sweep: str) -> Iterator[float]:
        """Hold the sweep's lock; gives the storage's own time in seconds since 1970.

        Not re-entrant. Machines' clocks differ, so a server is asked for the time.
        """
        if self._locks is None:
            with exclusive(_lock_file(self.address.file or Path())):
                yield time.time()
            return
        with self._locks.begin() as connection:
            key = {"key": derive_seed(0, "sweep", sweep)}
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), key)
            now = connection.execute(text("SELECT extract(epoch FROM clock_timestamp())"))
            yield float(now.scalar_one())


def open_storage(address: StorageAddress) -> Storage:
    """The storage at `address`, made where it is missing. Raises StoreError where it can't be.

    Any number of processes may come first at the same time.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    waits = {"timeout": BUSY_SECONDS} if address.file else {"connect_timeout": CONNECT_SECONDS}
    try:
        with _creation_lock(address):
            return Storage(address, RDBStorage(address.url, engine_kwargs={"connect_args": waits}))
    except (*STORAGE_ERRORS, RuntimeError) as error:  # RuntimeError: made by another Optuna
        raise StoreError(f"storage {address.shown}: {_reason(error)}") from error


def storage_error(error: Exception) -> StoreError | None:
    """The error to report if an open storage failed with `error`; None for other errors."""
    if not isinstance(error, STORAGE_ERRORS):
        return None
    return StoreError(f"the sweep's storage failed: {_reason(error)}; resume with --resume")


@contextmanager
def damage_reported() -> Iterator[None]:
    """Raise StoreError, in a line, for records that no sweep wrote: others may have altered them.

    Also decorates functions that read them.
    """
    try:
        yield
    except DAMAGE as error:
        raise StoreError(
            f"the sweep's records are damaged ({reason(error)}): restore its storage, or begin "
            "another sweep with --name"
        ) from error


@contextmanager
def _creation_lock(address: StorageAddress) -> Iterator[None]:
    # Optuna makes its tables without a lock: processes that come together would fail.
    file = address.file
    if file is None:
        with _engine(address).connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": 0})
            yield
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{file.parent}: {error.strerror}") from error
    with exclusive(_lock_file(file)):
        # Readers then never wait for writers. The setting stays with the file.
        with closing(sqlite3.connect(file, timeout=BUSY_SECONDS)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        yield


def _lock_file(file: Path) -> Path:
    return file.with_name(file.name + ".lock")


def _engine(address: StorageAddress, *, kept: bool = False) -> Engine:
    """Connections to a server, `kept` for the next time: one takes 20 ms of processor to make."""
    arguments = {"connect_timeout": CONNECT_SECONDS}
    if kept:
        return create_engine(address.url, pool_pre_ping=True, connect_args=arguments)
    return create_engine(address.url, poolclass=NullPool, connect_args=arguments)


def _reason(error: Exception) -> str:
    """The first line of what the database said, without SQLAlchemy's additions."""
    origin = getattr(error, "orig", None) or error.__cause__ or error
    lines = [line.strip() for line in without_password(str(origin)).splitlines() if line.strip()]
    return lines[0] if lines else type(origin).__name__


@dataclass(frozen=True)
class Lease:
    """A trial's holder; the lease ends by itself unless it is renewed."""

    owner: Owner
    until: float  # s since 1970, by the storage's clock

    def is_over(self, now: float) -> bool:
        """Whether the holder is dead, or has been silent for too long."""
        return self.until < now or self.owner.is_gone()

    def as_attribute(self) -> dict[str, Any]:
        """Plain values for the storage."""
        return {**asdict(self.owner), "until": self.until}


def read_lease(attribute: Mapping[str, Any] | None) -> Lease | None:
    """The lease in a trial's attribute, None if missing."""
    if not attribute:
        return None
    values = dict(attribute)
    until = values.pop("until")
    return Lease(Owner(**values), until)


def is_worked_at(study: optuna.Study) -> bool:
    """Whether any coordinator works at the sweep, by this machine's clock."""
    return bool(_living(study, time.time()))


class Presence:
    """A coordinator's sign that it is at work; it ends with the process, or when it is silent."""

    def __init__(self, storage: Storage, study: optuna.Study, *, lease: float) -> None:
        self._storage, self._study, self._lease = storage, study, lease
        self._owner = this_process(uuid.uuid4().hex, None)
        self._due = 0.0

    def show(self) -> None:
        """Say it again where that is due."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._lease / RENEWALS
            self._put(self._lease)

    def leave(self) -> None:
        """Say that the work is over."""
        self._put(None)

    def _put(self, seconds: float | None) -> None:
        with self._storage.alone(self._study.study_name) as now:
            found = _living(self._study, now)
            found.pop(self._owner.token, None)
            if seconds is not None:
                found[self._owner.token] = Lease(self._owner, now + seconds).as_attribute()
            self._study.set_user_attr(COORDINATORS, found)


def _living(study: optuna.Study, now: float) -> dict[str, Mapping[str, Any]]:
    kept: Mapping[str, Mapping[str, Any]] = study.user_attrs.get(COORDINATORS, {})
    leases = {token: read_lease(lease) for token, lease in kept.items()}
    return {t: kept[t] for t, lease in leases.items() if lease and not lease.is_over(now)}
