"""A trainer's end of the wire: a server of gRPC, which one build calls."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.mlagents.grpc_link import METHOD, OPTIONS, grpc_module

CLOSED = b""  # answers a build that waits while the link closes
LOOK = 0.25  # seconds between two looks whether the build still runs


class TrainerLink:
    """Takes the messages of a build on `port` of this machine, by turns with what is sent.

    A context manager. `port` 0 is a free one, which `port` is then. Raises ConfigurationError
    without gRPC, LabError where the port is taken.
    """

    def __init__(self, port: int = 0) -> None:
        grpc = grpc_module()
        self._received: SimpleQueue[bytes] = SimpleQueue()
        self._answers: SimpleQueue[bytes] = SimpleQueue()
        self._server = grpc.server(
            ThreadPoolExecutor(2), options=(*OPTIONS, ("grpc.so_reuseport", 0))
        )
        self._server.add_generic_rpc_handlers((_Handlers(grpc, self._exchange),))
        try:
            self.port = int(self._server.add_insecure_port(f"localhost:{port}"))
        except RuntimeError:
            raise LabError(f"port {port} of this machine is taken: choose another") from None
        self._server.start()

    def _exchange(self, message: bytes, _context: Any) -> bytes:
        self._received.put(message)
        return self._answers.get()

    def receive(self, *, running: Callable[[], bool], wait_s: float) -> bytes:
        """The build's next message.

        Raises LabError where it doesn't come in `wait_s` seconds, or the build is not `running`.
        """
        for _ in range(max(1, round(wait_s / LOOK))):
            try:
                return self._received.get(timeout=LOOK)
            except Empty:
                if not running():
                    raise LabError("the build ended before it was told to") from None
        raise LabError(f"the build sent nothing for {wait_s:g} s")

    def send(self, message: bytes) -> None:
        """Answer the message that was received last."""
        self._answers.put(message)

    def __enter__(self) -> "TrainerLink":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._answers.put(CLOSED)
        self._server.stop(grace=None).wait()


class _Handlers:
    """What gRPC asks for who answers a method; bytes go through as they are."""

    def __init__(self, grpc: Any, exchange: Callable[[bytes, Any], bytes]) -> None:
        self._exchange = grpc.unary_unary_rpc_method_handler(exchange)

    def service(self, details: Any) -> Any:
        """The handler of the one method that there is."""
        return self._exchange if details.method == METHOD else None
