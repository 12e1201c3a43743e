"""The connection to a cluster of Ray."""

import logging
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any
from urllib.parse import urlsplit

from aimbot_lab.foundation.errors import ConfigurationError, RunFailedError
from aimbot_lab.foundation.shown_text import one_line

ADDRESS = "RAY_ADDRESS"  # of a cluster, in the environment
PATIENCE = 60.0  # s that a cluster has to answer
FAILURES = (OSError, RuntimeError, ValueError, SystemExit)  # Ray ends the process for some


class HeadLostError(RunFailedError):
    """The head of the cluster is gone, and with it whatever Ray was to do."""


@contextmanager
def connected(processes: int) -> Iterator[Any]:
    """Ray's module, connected to the cluster of RAY_ADDRESS, else to a Ray of our own.

    That has room for `processes`, which may be more than there are cores. Raises
    ConfigurationError where Ray is not installed or no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray reports on its users unless told not to
    address = os.environ.get(ADDRESS)
    if address is None:
        _protect()
    ray = _ray()
    # To which Ray would write of its own accord, pages of it where a machine is lost.
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
        try:
            if address is None:
                ray.init(address="local", num_cpus=processes, include_dashboard=False, **quiet)
            else:
                _require_answer(address)
                ray.init(address=address, **quiet)
        except FAILURES as error:
            where = "Ray can't be started" if address is None else f"{ADDRESS}={address}: no answer"
            why = one_line(str(error).strip().partition("\n")[0])
            raise ConfigurationError(f"--on ray: {where}: {why}") from error
        try:
            yield ray
        except HeadLostError:
            raise  # Ray would wait for its head for a minute, and then end our process
        except BaseException:
            _leave(ray)
            raise
        _leave(ray)


def _leave(ray: Any) -> None:
    with suppress(*FAILURES):  # a cluster that is gone
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ConfigurationError("--on ray: needs Ray: pip install 'aimbot-lab[ray]'") from error
    return ray


def _protect() -> None:
    """Have a Ray of our own listen to no other host: its ports are open to the network.

    Comes before Ray is imported, which reads it then.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if os.environ["RAY_AUTH_MODE"] == "token":
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _require_answer(address: str) -> None:
    """Raise OSError unless a server listens there: Ray itself would wait for minutes."""
    if address == "auto":
        return
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.hostname is None or parts.port is None:
        raise ValueError("must be HOST:PORT, ray://HOST:PORT or auto")
    socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE).close()
