"""Messages carried by gRPC: the trainer is the server, a build calls its one method.

`play` is a session of ours as a build; `BuildServer` takes the messages of one build.
"""

import logging
import threading
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.mlagents.exception import UnityWorkerInUseException
from aimbot_lab.mlagents.session import MAX_MESSAGE, PlayerSession

LOG = logging.getLogger(__name__)
SERVICE, METHOD = "communicator_objects.UnityToExternalProto", "Exchange"
FAREWELL = 5.0  # seconds that a trainer has to answer the last message
THREADS = 2  # a build has one call at a time; the other is for a last word
LENGTHS = (
    ("grpc.max_receive_message_length", -1),  # one that is too long would never be seen
    ("grpc.max_send_message_length", -1),
)
CALL_OPTIONS = (("grpc.enable_http_proxy", 0), *LENGTHS)  # trainers are on this machine
SERVER_OPTIONS = (("grpc.so_reuseport", 0), *LENGTHS)  # two servers on a port would share the calls
Task = Callable[[], None]


def play(session: PlayerSession, port: int, *, wait_s: float) -> None:
    """Talk to the trainer on `port` of this machine until it wants no more, or is gone.

    Raises LabError without a trainer within `wait_s` seconds, UnityException for messages that
    can't be read or carried out, after the trainer was sent a last message.
    """
    grpc = grpc_module()
    with grpc.insecure_channel(f"localhost:{port}", options=CALL_OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=wait_s)
        except grpc.FutureTimeoutError:
            raise LabError(
                f"no trainer listens on port {port}: start it first, or give its --mlagents-port"
            ) from None
        exchange = channel.unary_unary(f"/{SERVICE}/{METHOD}")
        message: bytes | None = session.begin()
        try:
            while message is not None:
                given = exchange(message)
                try:
                    message = session.answer(given)
                except LabError:
                    with suppress(grpc.RpcError):
                        exchange(session.end(), timeout=FAREWELL)
                    raise
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise LabError(
                    f"the trainer accepts no message of {len(message or b'') / 2**20:.1f} MiB; it "
                    f"takes {MAX_MESSAGE // 2**20} MiB: play fewer agents"
                ) from error
            LOG.info("the trainer is gone (%s)", error.code().name)


def grpc_module() -> Any:
    """The package `grpc`. Raises ConfigurationError where it is not installed."""
    try:
        import grpc
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            "builds and players of ML-Agents need gRPC: pip install 'aimbot-lab[unity]'"
        ) from error
    return grpc


class BuildServer:
    """Takes the messages of one build on a port of this machine.

    Any free port without `port`. Raises UnityWorkerInUseException where `port` is taken,
    ConfigurationError without gRPC.
    """

    def __init__(self, port: int | None = None) -> None:
        grpc = grpc_module()
        self._messages: SimpleQueue[bytes] = SimpleQueue()
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._threads = _DaemonThreads(THREADS)
        self._server = grpc.server(self._threads, options=SERVER_OPTIONS)
        handler = grpc.unary_unary_rpc_method_handler(self._exchange)
        service = grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})
        self._server.add_generic_rpc_handlers((service,))
        try:
            self.port: int = self._server.add_insecure_port(f"127.0.0.1:{port or 0}")
        except RuntimeError as error:
            self._threads.shutdown()
            raise UnityWorkerInUseException(
                f"port {port} is in use: choose another env.base_port, or leave it out for any "
                "that is free"
            ) from error
        with suppress(RuntimeError):  # a machine without IPv6
            self._server.add_insecure_port(f"[::1]:{self.port}")
        self._server.start()

    def _exchange(self, message: bytes, context: Any) -> bytes:
        del context
        self._messages.put(message)
        return self._answers.get()

    def message(self, wait_s: float) -> bytes | None:
        """The build's next message; None: it sends none within `wait_s` seconds."""
        try:
            return self._messages.get(timeout=wait_s)
        except Empty:
            return None

    def answer(self, message: bytes) -> None:
        """Answer the build's last message, once."""
        self._answers.put(message)

    def close(self, farewell: bytes, *, wait_s: float) -> None:
        """Answer calls that wait with `farewell`, and free the port within `wait_s` seconds."""
        for _ in range(THREADS):
            self._answers.put(farewell)
        self._server.stop(wait_s).wait(wait_s)
        self._threads.shutdown()


class _DaemonThreads(futures.Executor):
    """Threads that a call waits in without keeping the interpreter from its end.

    Those of ThreadPoolExecutor are joined there, before what they wait for could be answered.
    """

    def __init__(self, count: int) -> None:
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._count = count
        for _ in range(count):
            threading.Thread(target=self._work, daemon=True, name="build-server").start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "futures.Future[Any]":
        """What `fn` will have returned."""
        future: futures.Future[Any] = futures.Future()

        def task() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - which belongs to the future, not to this thread
                future.set_exception(error)

        self._tasks.put(task)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after what was submitted."""
        del wait, cancel_futures
        for _ in range(self._count):
            self._tasks.put(None)
