"""A session carried by gRPC, in which the trainer is the server and the build calls."""

import logging
from contextlib import suppress
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.mlagents.session import MAX_MESSAGE, PlayerSession

LOG = logging.getLogger(__name__)
METHOD = "/communicator_objects.UnityToExternalProto/Exchange"
FAREWELL = 5.0  # seconds that a trainer has to answer the last message
OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # trainers are on this machine
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
)


def play(session: PlayerSession, port: int, *, wait_s: float) -> None:
    """Talk to the trainer on `port` of this machine until it wants no more, or is gone.

    Raises LabError where within `wait_s` seconds there is none, UnityException for messages that
    can't be read or carried out; the trainer is told before.
    """
    grpc = grpc_module()
    with grpc.insecure_channel(f"localhost:{port}", options=OPTIONS) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=wait_s)
        except grpc.FutureTimeoutError:
            raise LabError(
                f"no trainer listens on port {port}: start it first, or give its --mlagents-port"
            ) from None
        _talk(session, channel.unary_unary(METHOD), grpc)


def _talk(session: PlayerSession, exchange: Any, grpc: Any) -> None:
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
                f"the trainer took no message of {len(message or b'') / 2**20:.1f} MiB; it takes "
                f"{MAX_MESSAGE // 2**20} MiB: play fewer agents"
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
