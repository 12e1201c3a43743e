"""The exchange over torch.distributed's gloo, and where processes meet: all travels as bytes.

Nothing is pickled, and nothing is reduced by gloo: its ring adds in an order that depends on the
number of processes. Gloo's messages are neither encrypted nor authenticated, so on one machine
everything listens on its loopback interface alone.

Each process sends the sums of its largest whole nodes of the tree. Where every process holds one
node of the same level, and their number is a power of two, the tree's upper levels are swaps
between two processes, log2 W of them (a + b is b + a to the bit). Elsewhere every process gets all
nodes, and adds them up by itself.
"""

import atexit
import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch as th
import torch.distributed as dist
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]

from aimbot_lab.foundation.errors import MAX_REASON, ConfigurationError
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.training.processes.cores import OwnCores, yielding_threads
from aimbot_lab.training.processes.exchange import (
    ADDRESS,
    AGENT_STORE,
    INTERFACE,
    PORT,
    RESTART,
    RUN_ID,
    Alone,
    Exchange,
    Float32s,
    Float64s,
    Fold,
    LostError,
    Node,
    Rank,
    Summed,
    Values,
    add_up,
    fold,
    leaf_nodes,
    share,
    whole_nodes,
)

SWAP, GATHERING = 0, 1  # tags, so that neither receives what the other sends
SOURCE = re.compile(r"^\[[^]]*\] ")  # where in gloo's own code
PATIENCE_SECONDS = 120.0  # that a silent process is waited for


def connect(place: Rank, *, patience_s: float = PATIENCE_SECONDS) -> Exchange:
    """The exchange of the process at `place`, once all others are there.

    `patience_s` is how long a silent process is waited for, now and later. Raises
    ConfigurationError where the environment names no meeting point, LostError where not all come.
    """
    return Alone() if place.count == 1 else Gloo(place, patience_s=patience_s)


class Gloo:
    """Processes that meet where the environment says; see `Exchange`."""

    def __init__(self, place: Rank, *, patience_s: float) -> None:
        self.place = place
        self._wire = GlooWire(place, Meeting.from_environment(), patience_s)
        self._sums: NodeSums | None = None
        self._shape: tuple[int, Widths] | None = None

    def sum_up(self, gradients: Float32s, terms: Float64s, *, shards: int) -> Summed:
        """The root of the tree over all shards; the arrays are used up."""
        shape = shards, Widths(gradients.shape[1], terms.shape[1])
        if self._sums is None or shape != self._shape:
            self._sums = node_sums(self._wire, self.place, shards=shards, widths=shape[1])
            self._shape = shape
        return self._sums.up(gradients, terms)

    def gather(self, data: bytes) -> list[bytes]:
        """What every process gave: first the sizes, then all padded to the largest."""
        sizes = self.gather_arrays(np.array([len(data)], np.int64))[:, 0]
        padded = np.zeros(int(sizes.max()), np.uint8)
        padded[: len(data)] = np.frombuffer(data, np.uint8)
        rows = self.gather_arrays(padded)
        return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]

    def gather_arrays(self, array: Values) -> Values:
        """[W, ...] in the order of ranks."""
        everyones: Values = np.empty((self.place.count, *array.shape), array.dtype)
        if array.nbytes:
            self._wire.all_gather(_as_bytes(array), _as_bytes(everyones))
        return everyones

    def close(self) -> None:
        """Leave the others; what they still wait for is a LostError for them."""
        self._sums = None
        self._wire.close()


class GlooWire:
    """Bytes to and from the other processes; see `node_sums.Wire`."""

    def __init__(self, place: Rank, meeting: "Meeting", patience_s: float) -> None:
        self._place = place
        with self._waiting_for("all processes to come, as many as WORLD_SIZE says"):
            store = meeting.store(place, patience_s)
            self._cores = OwnCores(store, place)  # gloo's threads inherit them
            try:
                with yielding_threads():
                    dist.init_process_group(
                        "gloo",
                        store=store,
                        rank=place.rank,
                        world_size=place.count,
                        timeout=timedelta(seconds=patience_s),
                    )
            except BaseException:
                self._cores.give_back()
                raise
        # At the end of the interpreter gloo would abort a process that has not left the others.
        atexit.register(self.close)
        self._group: Any = dist.group.WORLD  # its own calls: those of `dist` take twice the time

    def swap(self, other: int, mine: th.Tensor, theirs: th.Tensor) -> None:
        """Send `mine` to the process `other`, and receive `theirs` from it."""
        with self._waiting_for(f"rank {other}"):
            self._swap({other: theirs}, mine, tag=SWAP)

    def all_gather(self, mine: th.Tensor, everyones: th.Tensor) -> None:
        """Receive what every process sent, in the order of ranks."""
        own, count = self._place.rank, self._place.count
        rows = everyones.view(count, -1)
        rows[own].numpy()[:] = mine.view(-1).numpy()  # torch would wake up its threads for it
        others = [(own + distance) % count for distance in range(1, count)]
        with self._waiting_for("all ranks"):
            self._swap({other: rows[other] for other in others}, rows[own], tag=GATHERING)

    def _swap(self, theirs: Mapping[int, th.Tensor], mine: th.Tensor, *, tag: int) -> None:
        begun = [self._group.recv([row], other, tag) for other, row in theirs.items()]
        begun += [self._group.send([mine], other, tag) for other in theirs]
        for one in begun:
            one.wait()

    def all_reduce(self, numbers: Float32s) -> None:
        """Make `numbers` everyone's sum, in gloo's own order: for `bench scale` to compare with."""
        with self._waiting_for("all ranks"):
            self._group.allreduce([th.from_numpy(numbers)]).wait()

    def close(self) -> None:
        """Leave the others."""
        if self._group is not None:
            self._group = None
            self._cores.give_back()
            atexit.unregister(self.close)
            dist.destroy_process_group()

    @contextmanager
    def _waiting_for(self, what: str) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise LostError(
                f"rank {self._place.rank} of {self._place.count} lost another process "
                f"while it waited for {what}: {_reason(error)}"
            ) from error


class Meeting(NamedTuple):
    """A host, a port, and whether a launcher chose them."""

    host: str
    port: int
    by_agent: bool  # torchrun or the supervisor chose the port
    held_by_agent: bool  # which also listens there, also for later beginnings
    attempt: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Meeting":
        """What torchrun, or whatever started this process, wrote into the environment.

        Raises ConfigurationError where it is missing or no port.
        """
        host, port = environment.get(ADDRESS, ""), environment.get(PORT, "")
        if not host or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ConfigurationError(
                f"environment: {ADDRESS}={host} {PORT}={port}: a host's name or address and a port "
                "from 1 to 65535 are needed for more than one process"
            )
        return cls(
            host,
            int(port),
            by_agent=RUN_ID in environment,
            held_by_agent=environment.get(AGENT_STORE) == "True",
            attempt=environment.get(RESTART, "0"),
        )

    @property
    def is_loopback(self) -> bool:
        """Whether all processes are on this machine."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).version == 4 and ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def _is_own_address(self) -> bool:
        try:
            ip_address(self.host)  # a name may mean the loopback interface on this machine alone
            socket.create_server((self.host, 0)).close()
        except (ValueError, OSError):
            return False
        return True

    def store(self, place: Rank, patience_s: float) -> Store:
        """The store, once all are there; on one machine it is reachable from that machine alone."""
        if self.is_loopback:
            os.environ[INTERFACE] = loopback_interface()
        holds = place.leads and not self.held_by_agent
        store = TCPStore(
            self.host,
            self.port,
            place.count,
            is_master=holds,
            timeout=timedelta(seconds=patience_s),
            wait_for_workers=not self.held_by_agent,
            multi_tenant=True,
            master_listen_fd=self._listener() if holds else None,
        )
        # Each of several torchruns counts its own attempts: elsewhere they need not agree.
        return PrefixStore(self.attempt, store) if self.held_by_agent else store

    def _listener(self) -> int:
        """A socket that listens at the port, on the interface with the address where there is one.

        Raises LostError for a port in use that an agent chose (it will choose another one), and
        ConfigurationError for one that the user chose.
        """
        host = self.host if self.is_loopback or self._is_own_address else ""
        try:
            return socket.create_server((host, self.port)).detach()
        except OSError as error:
            kind = LostError if self.by_agent else ConfigurationError
            raise kind(
                f"rank 0 can't listen at {self.host}:{self.port}: {error.strerror}"
            ) from error


def loopback_interface() -> str:
    """The name of the interface that only this machine reaches."""
    names = {name for _, name in socket.if_nameindex()}
    return "lo" if "lo" in names else "lo0"


def _as_bytes(array: Values) -> th.Tensor:
    return th.from_numpy(np.ascontiguousarray(array).reshape(-1).view(np.uint8))


def _reason(error: Exception) -> str:
    """What gloo says, without its path and advice."""
    text = SOURCE.sub("", str(error).strip().partition("\n")[0]).partition(". ")[0]
    return shortened(one_line(text), MAX_REASON)


ALIGNMENT = 64  # bytes, of a node's sums within a message


class Widths(NamedTuple):
    """How many numbers a node's sums hold."""

    gradient: int  # P, float32
    terms: int  # T, float64


class Wire(Protocol):
    """What carries bytes between the processes."""

    def swap(self, other: int, mine: th.Tensor, theirs: th.Tensor) -> None:
        """Send `mine` to the process `other`, and receive `theirs` from it."""

    def all_gather(self, mine: th.Tensor, everyones: th.Tensor) -> None:
        """Receive what every process sent, in the order of ranks."""


class NodeSums(Protocol):
    """A way up the tree."""

    def up(self, gradients: Float32s, terms: Float64s) -> Summed:
        """The root over all shards, from this process's own [k, P] and [k, T]."""


def node_sums(wire: Wire, place: Rank, *, shards: int, widths: Widths) -> NodeSums:
    """The shortest way up for this number of processes and shards."""
    if _is_one_level(_everyones(place, shards)):
        return _Doubling(wire, place, _own(place, shards), widths)
    return gathering(wire, place, shards=shards, widths=widths)


def gathering(wire: Wire, place: Rank, *, shards: int, widths: Widths) -> NodeSums:
    """The way for any number of processes and shards, on which everyone gets all nodes."""
    nodes = _everyones(place, shards)
    return _Gathering(wire, _own(place, shards), everyones=nodes, shards=shards, widths=widths)


def _everyones(place: Rank, shards: int) -> list[tuple[Node, ...]]:
    ranks = range(place.count)
    return [whole_nodes(share(rank, place.count, shards), shards) for rank in ranks]


def _own(place: Rank, shards: int) -> Fold:
    return fold(leaf_nodes(share(place.rank, place.count, shards)), shards)


def _is_one_level(nodes: list[tuple[Node, ...]]) -> bool:
    count, first = len(nodes), nodes[0]
    return count & (count - 1) == 0 and all(
        len(held) == 1 and held[0] == (first[0].level, rank) for rank, held in enumerate(nodes)
    )


class _Slot:
    """The sums of a node within a message: the terms, then the gradient."""

    def __init__(self, data: Values, widths: Widths) -> None:
        end = 8 * widths.terms
        self.terms: Float64s = data[:end].view(np.float64)
        self.gradient: Float32s = data[end : end + 4 * widths.gradient].view(np.float32)


class _Doubling:
    """Swaps with the process 1, 2, 4 ... away."""

    def __init__(self, wire: Wire, place: Rank, own: Fold, widths: Widths) -> None:
        self._wire, self._place, self._own = wire, place, own
        self._messages = [th.empty(_stride(widths), dtype=th.uint8) for _ in range(2)]
        self._mine, self._theirs = (_Slot(one.numpy(), widths) for one in self._messages)

    def up(self, gradients: Float32s, terms: Float64s) -> Summed:
        mine, theirs = self._mine, self._theirs
        _fold_into([mine], self._own, gradients, terms)
        rank, distance = self._place.rank, 1
        while distance < self._place.count:
            self._wire.swap(rank ^ distance, *self._messages)
            with np.errstate(over="ignore", invalid="ignore"):
                for own, other in (mine.terms, theirs.terms), (mine.gradient, theirs.gradient):
                    left, right = (other, own) if rank & distance else (own, other)
                    np.add(left, right, out=own)
            distance *= 2
        return Summed(mine.gradient, mine.terms)


class _Gathering:
    """Everyone's nodes go to everyone."""

    def __init__(
        self,
        wire: Wire,
        own: Fold,
        *,
        everyones: list[tuple[Node, ...]],
        shards: int,
        widths: Widths,
    ) -> None:
        self._wire, self._own = wire, own
        count, most = len(everyones), max(map(len, everyones))
        self._mine = th.zeros(most, _stride(widths), dtype=th.uint8)
        self._all = th.zeros(count, most, _stride(widths), dtype=th.uint8)
        self._sent = [_Slot(row, widths) for row in self._mine.numpy()]
        rows = [
            row
            for nodes, rows in zip(everyones, self._all.numpy(), strict=True)
            for row, _ in zip(rows, nodes, strict=False)
        ]
        self._received = [_Slot(row, widths) for row in rows]
        self._rest = fold(tuple(node for nodes in everyones for node in nodes), shards)

    def up(self, gradients: Float32s, terms: Float64s) -> Summed:
        _fold_into(self._sent, self._own, gradients, terms)
        self._wire.all_gather(self._mine, self._all)
        add_up([slot.gradient for slot in self._received], self._rest.additions)
        add_up([slot.terms for slot in self._received], self._rest.additions)
        root = self._received[self._rest.rows[0]]
        return Summed(root.gradient, root.terms)


def _fold_into(slots: list[_Slot], own: Fold, gradients: Float32s, terms: Float64s) -> None:
    """Add the leaves up as far as this process can, and put the nodes into a message."""
    add_up(list(gradients), own.additions)
    add_up(list(terms), own.additions)
    for slot, row in zip(slots, own.rows, strict=False):
        slot.gradient[:] = gradients[row]
        slot.terms[:] = terms[row]


def _stride(widths: Widths) -> int:
    """Bytes of a node's sums."""
    size = 4 * widths.gradient + 8 * widths.terms
    return -(-size // ALIGNMENT) * ALIGNMENT
