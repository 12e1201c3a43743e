"""Where the elastic agents of a training meet; with one machine, on its loopback interface."""

import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.rendezvous import RendezvousHandler
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler

LOOPBACK = "127.0.0.1"
SECONDS_BETWEEN_LOOKS = 0.1


@contextmanager
def on_this_machine() -> Iterator[RendezvousHandler]:
    """A rendezvous of one agent, at a free port that no other machine can reach."""
    listener, run_id = socket.create_server((LOOPBACK, 0)), uuid.uuid4().hex
    port = listener.getsockname()[1]
    store = TCPStore(
        LOOPBACK,
        port,
        is_master=True,
        multi_tenant=True,
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )
    backend = C10dRendezvousBackend(store, run_id)
    handler = DynamicRendezvousHandler.from_backend(
        run_id, store, backend, 1, 1, local_addr=LOOPBACK
    )
    try:
        yield handler
    finally:
        handler.shutdown()


def worker_spec(
    command: Sequence[str], processes: int, *, meeting: RendezvousHandler, max_restarts: int
) -> WorkerSpec:
    """What an agent starts on its machine."""
    return WorkerSpec(
        role="training",
        local_world_size=processes,
        rdzv_handler=meeting,
        entrypoint=command[0],
        args=tuple(command[1:]),
        max_restarts=max_restarts,
        monitor_interval=SECONDS_BETWEEN_LOOKS,
    )
