"""Parameters of the environment: values, and samplers that draw them."""

import uuid
from enum import IntEnum

from aimbot_lab.mlagents.exception import UnityCommunicationException
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

ENVIRONMENT_PARAMETERS = uuid.UUID("534c891e-810f-11ea-a9d0-822485860400")


class EnvironmentParametersChannel(SideChannel):
    """Sets parameters of the environment for the episodes that begin from then on."""

    class EnvironmentDataTypes(IntEnum):
        """A value or a sampler."""

        FLOAT = 0
        SAMPLER = 1

    class SamplerTypes(IntEnum):
        """Kinds of samplers."""

        UNIFORM = 0
        GAUSSIAN = 1
        MULTIRANGEUNIFORM = 2

    def __init__(self) -> None:
        super().__init__(ENVIRONMENT_PARAMETERS)

    def on_message_received(self, msg: IncomingMessage) -> None:
        """Raise UnityCommunicationException: an environment never sends one."""
        raise UnityCommunicationException(
            f"the environment sent {len(msg.buffer)} bytes over EnvironmentParametersChannel, "
            "which goes to the environment only"
        )

    def set_float_parameter(self, key: str, value: float) -> None:
        """Set parameter `key` to `value`."""
        message = OutgoingMessage()
        message.write_string(key)
        message.write_int32(self.EnvironmentDataTypes.FLOAT)
        message.write_float32(value)
        self.queue_message_to_send(message)

    def set_uniform_sampler_parameters(
        self, key: str, min_value: float, max_value: float, seed: int
    ) -> None:
        """Draw parameter `key` evenly between the two; -1: without a seed."""
        message = self._sampler(key, self.SamplerTypes.UNIFORM, seed=seed)
        message.write_float32(min_value)
        message.write_float32(max_value)
        self.queue_message_to_send(message)

    def set_gaussian_sampler_parameters(
        self, key: str, mean: float, st_dev: float, seed: int
    ) -> None:
        """Draw parameter `key` from a normal distribution; -1: without a seed."""
        message = self._sampler(key, self.SamplerTypes.GAUSSIAN, seed=seed)
        message.write_float32(mean)
        message.write_float32(st_dev)
        self.queue_message_to_send(message)

    def set_multirangeuniform_sampler_parameters(
        self, key: str, intervals: list[tuple[float, float]], seed: int
    ) -> None:
        """Draw parameter `key` evenly from all intervals; -1: without a seed."""
        message = self._sampler(key, self.SamplerTypes.MULTIRANGEUNIFORM, seed=seed)
        message.write_float32_list([bound for interval in intervals for bound in interval])
        self.queue_message_to_send(message)

    def _sampler(self, key: str, kind: SamplerTypes, *, seed: int) -> OutgoingMessage:
        message = OutgoingMessage()
        message.write_string(key)
        message.write_int32(self.EnvironmentDataTypes.SAMPLER)
        message.write_int32(seed)
        message.write_int32(kind)
        return message
