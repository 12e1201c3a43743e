"""Places on Ray for a training's processes and actors; the leader stays on this machine.

Each place is an actor of Ray that starts a process of the training on its machine and watches it.
The training is a process of its own, not the actor: signals come to its main thread, what it
writes is its alone, and an error in it ends nothing of Ray. It is tied to the actor: where that
dies, the kernel ends the process too.
"""

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, NamedTuple

import psutil

from aimbot_lab.cluster.connection import HeadLostError
from aimbot_lab.foundation.errors import ConfigurationError, LabError, reason
from aimbot_lab.training.actors.actor import ActorHost, Answer
from aimbot_lab.training.actors.block import ActorPlan, BlockRequest
from aimbot_lab.training.processes.cores import one_thread
from aimbot_lab.training.processes.exchange import INTERFACE
from aimbot_lab.training.processes.supervisor import ProcessEnd, Worker, free_port, start_worker

STDOUT, STDERR = 1, 2
CHUNK = 65536  # bytes read at once
SECONDS_TO_SETTLE = 5.0  # until Ray's count of free processors can be trusted
SECONDS_TO_ANSWER = 60.0  # of an actor that was placed
SECONDS_TO_PIN = 10.0  # for a place on our own machine, while there is room on others
SECONDS_BETWEEN_LOOKS = 0.5
MAX_FAILURES = 3  # of places in a row; Ray may not know yet that a machine died

Said = tuple[tuple[int, bytes], ...]
"""What a process wrote, in the order in which it came: descriptor and bytes."""


class ProcessStatus(NamedTuple):
    """What became of a process since the last look."""

    said: Said
    ended: ProcessEnd | None


class ProcessActor:
    """Starts a process of a training on its machine, and tells what becomes of it."""

    def __init__(self) -> None:
        self._worker: Worker | None = None
        self._streams = selectors.DefaultSelector()

    def machine(self, folder: str) -> tuple[str, str]:
        """Ray's id of its machine and that one's address, with `folder` as the working directory.

        Raises ConfigurationError where there is no such folder.
        """
        import ray

        util: Any = ray.util
        address = str(util.get_node_ip_address())
        try:
            os.chdir(folder)
        except OSError as error:
            raise ConfigurationError(
                f"--on ray: machine {address}: {folder}: {error.strerror}; every machine needs the "
                "project's folder at the same path"
            ) from error
        return ray.get_runtime_context().get_node_id(), address

    def free_port(self) -> int:
        """A free port."""
        return free_port()

    def start(self, words: Sequence[str], environment: Mapping[str, str], *, address: str) -> None:
        """Start `aimbot-lab` with `words`; the others reach it at `address`."""
        own = dict(environment)
        if INTERFACE not in os.environ and (interface := interface_of(address)) is not None:
            own[INTERFACE] = interface
        command = [sys.executable, "-P", "-m", "aimbot_lab", *words]
        worker = start_worker(command, own, leader_output=subprocess.PIPE)
        self._worker = worker
        for descriptor, stream in _streams(worker):
            os.set_blocking(stream.fileno(), False)
            self._streams.register(stream, selectors.EVENT_READ, descriptor)

    def look(self, seconds: float) -> ProcessStatus:
        """What the process wrote, and whether it ended; waits for news at most so long."""
        assert self._worker is not None
        self._wait(seconds)
        code = self._worker.code  # before the last look at what it wrote
        said = self._read()
        return ProcessStatus(said, None if code is None else self._worker.ended)

    def send_signal(self, number: int) -> None:
        """Send the process a signal, if it still runs."""
        if self._worker is not None:
            self._worker.process.send_signal(number)

    def kill(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.kill()
            for _, stream in _streams(self._worker):
                with suppress(KeyError):  # closed before
                    self._streams.unregister(stream)
                stream.close()
            self._worker = None

    def _wait(self, seconds: float) -> None:
        assert self._worker is not None
        if self._streams.get_map():
            self._streams.select(seconds)
            return
        with suppress(subprocess.TimeoutExpired):
            self._worker.process.wait(seconds)

    def _read(self) -> Said:
        said = []
        while ready := self._streams.select(0):
            for key, _ in ready:
                if data := os.read(key.fd, CHUNK):
                    said.append((key.data, data))
                else:
                    self._streams.unregister(key.fileobj)
        return tuple(said)


def interface_of(address: str) -> str | None:
    """The name of this machine's interface with that address, if one has it."""
    interfaces = psutil.net_if_addrs().items()
    return next(
        (name for name, found in interfaces if address in {one.address for one in found}), None
    )


def _streams(worker: Worker) -> list[tuple[int, IO[bytes]]]:
    """What the leader writes to."""
    pipes = (STDOUT, worker.process.stdout), (STDERR, worker.process.stderr)
    return [(descriptor, stream) for descriptor, stream in pipes if stream is not None]


class PlacedRank(NamedTuple):
    """An actor, and where it is."""

    actor: Any
    node: str  # Ray's id of its machine
    address: str


@contextmanager
def machines_asked_for(span: tuple[int, int]) -> Iterator[None]:
    """Have the autoscaler, if the cluster has one, keep room for the most processes of `span`.

    Fewer would do for a beginning, so Ray would not know of the rest.
    """
    least, most = span
    if least == most:
        yield
        return
    from ray.autoscaler.sdk import request_resources

    request_resources(num_cpus=most)
    try:
        yield
    except HeadLostError:
        raise  # no process is left to ask
    except BaseException:
        request_resources(num_cpus=0)
        raise
    request_resources(num_cpus=0)


class Places:
    """As many places as the cluster has room for, at least and at most `span`; a processor each."""

    def __init__(
        self,
        ray: Any,
        span: tuple[int, int],
        folder: str,
        *,
        check_stop: Callable[[], None],
        report: Callable[[str], None],
    ) -> None:
        self._ray, self._folder = ray, folder
        self._least, self._most = span
        self._check_stop, self._report = check_stop, report
        self._actor = ray.remote(num_cpus=1, max_restarts=0)(ProcessActor)
        self._node = ray.get_runtime_context().get_node_id()
        self._group: Any = None
        self._warned, self._failures = False, 0
        self.all: list[PlacedRank] = []

    def room(self) -> int:
        """Processors of the cluster that are free now."""
        return int(self._ray.available_resources().get("CPU", 0))

    def fill(self, lost: Collection[int]) -> None:
        """Have a place for every process, those in `lost` anew, fewer or more where need be.

        Raises StoppedAtOnceError, and ConfigurationError where a machine can't take part.
        """
        if self._group is None or not self._mended(lost):
            self.drop()
            while not self._taken():
                self._check_stop()
        if self.all[0].node != self._node and not self._warned:
            self._warned = True
            self._report(
                f"the leader is on {self.all[0].address}: --data-dir must be a folder "
                "that all machines see"
            )

    def drop(self) -> None:
        """Give all places back; what runs there ends."""
        for place in self.all:
            self._ray.kill(place.actor)
        if self._group is not None:
            self._ray.util.remove_placement_group(self._group)
        self._group, self.all = None, []

    def _mended(self, lost: Collection[int]) -> bool:
        """Whether all `lost` places could be had again where they were."""
        anew = {number: self._placed(number) for number in lost}
        try:
            for number, actor in anew.items():
                self.all[number] = PlacedRank(actor, *self._asked([actor])[0])
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError):
            for actor in anew.values():
                self._ray.kill(actor)
            return False
        return True

    def _taken(self) -> bool:
        """Whether as many places as there is room for could be had."""
        number = self._number()
        if not (self._reserved(number, pinned=self._can_lead_here) or self._reserved(number)):
            return False
        actors = [self._placed(one) for one in range(number)]
        try:
            found = zip(actors, self._asked(actors), strict=True)
            self.all = [PlacedRank(actor, *where) for actor, where in found]
        except (self._ray.exceptions.RayActorError, self._ray.exceptions.GetTimeoutError) as error:
            for actor in actors:
                self._ray.kill(actor)
            self.drop()
            self._failures += 1
            if self._failures == MAX_FAILURES:
                what = f"--on ray: can't start a process: {reason(error)}"
                raise ConfigurationError(what) from error
            return False
        self._failures = 0
        return True

    def _number(self) -> int:
        """How many places to ask for."""
        end = time.monotonic() + SECONDS_TO_SETTLE
        while (room := self.room()) < self._most and time.monotonic() < end:
            self._check_stop()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        if room < self._least:
            self._report(f"waiting until Ray has room for {self._least} processes")
        return min(max(room, self._least), self._most)

    @property
    def _can_lead_here(self) -> bool:
        return any(
            node["NodeID"] == self._node and node["Resources"].get("CPU", 0) >= 1
            for node in self._ray.nodes()
        )

    def _reserved(self, number: int, *, pinned: bool = False) -> bool:
        """Whether there are that many places, the first one on our own machine if `pinned`."""
        bundles = [{"CPU": 1.0} for _ in range(number)]
        if pinned:
            bundles[0][f"node:{self._address}"] = 0.001
        self._group = self._ray.util.placement_group(bundles, strategy="PACK")
        since = time.monotonic()
        while not self._group.wait(SECONDS_BETWEEN_LOOKS):
            self._check_stop()
            if not pinned or self.room() < number:  # machines may still come
                since = time.monotonic()
            elif time.monotonic() - since > SECONDS_TO_PIN:
                self.drop()
                return False
        return True

    @property
    def _address(self) -> str:
        nodes = self._ray.nodes()
        address: str = next(
            node["NodeManagerAddress"] for node in nodes if node["NodeID"] == self._node
        )
        return address

    def _placed(self, number: int) -> Any:
        strategy = self._ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
            placement_group=self._group, placement_group_bundle_index=number
        )
        return self._actor.options(scheduling_strategy=strategy).remote()

    def _asked(self, actors: list[Any]) -> list[tuple[str, str]]:
        """Machine and address of each of the actors. Raises Ray's errors where they do not come."""
        try:
            machines: list[tuple[str, str]] = self._ray.get(
                [actor.machine.remote(self._folder) for actor in actors], timeout=SECONDS_TO_ANSWER
            )
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, LabError):
                raise error.cause from error
            raise ConfigurationError(f"--on ray: can't start a process: {reason(error)}") from error
        return machines


class RayHost:
    """An `ActorHost` as an actor of Ray; the weights of a request come by themselves."""

    def __init__(self, plan: ActorPlan) -> None:
        one_thread()
        self._host = ActorHost(plan)

    def answer(self, what: str, given: tuple[Any, ...], weights: bytes | None) -> Answer:
        """What the actor's method `what` gives."""
        if weights is not None:
            given = (given[0]._replace(weights=weights), *given[1:])
        return self._host.answer(what, given)


class RayActors:
    """An actor of Ray for each plan, with a core of its own.

    Blocks lie in the object store of the machine where they were played until they are fetched. The
    weights of a version are put there once, and reach each machine once.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._kind = ray.remote(num_cpus=1)(RayHost)
        self._hosts: dict[int, Any] = {}
        self._asked: dict[Any, int] = {}  # whose answer each reference is
        self._weights: tuple[int, Any] = -1, None  # the newest version, and where it lies

    def start(self, plan: ActorPlan) -> None:
        """Have Ray place the actor where there is room."""
        self._hosts[plan.number] = self._kind.remote(plan)

    def ask(self, actor: int, what: str, *given: Any) -> None:
        """Send the question."""
        weights = None
        if given and isinstance(given[0], BlockRequest) and given[0].weights is not None:
            weights = self._put(given[0])
            given = (given[0]._replace(weights=None), *given[1:])
        self._asked[self._hosts[actor].answer.remote(what, given, weights)] = actor

    def _put(self, request: BlockRequest) -> Any:
        """Where the weights of `request` lie."""
        if request.version != self._weights[0]:
            self._weights = request.version, self._ray.put(request.weights)
        return self._weights[1]

    def answers(self, seconds: float) -> Sequence[Answer]:
        """What has been answered; an actor that Ray can't reach any more is lost."""
        if not self._asked:
            return []
        ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=seconds)
        return [self._answer(self._asked.pop(one), one) for one in ready]

    def _answer(self, actor: int, reference: Any) -> Answer:
        try:
            answer: Answer = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            self._ray.kill(self._hosts.pop(actor))
            return Answer(actor, is_lost=True)
        return answer

    def end(self, actor: int) -> None:
        """Have Ray kill it."""
        self._ray.kill(self._hosts[actor])

    def close(self) -> None:
        """End all actors."""
        for host in self._hosts.values():
            self._ray.kill(host)
        self._hosts, self._asked = {}, {}
