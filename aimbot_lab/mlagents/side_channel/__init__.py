"""Side channels: messages to and from an environment beside observations and actions.

The modules are named as in ML-Agents' `mlagents_envs.side_channel`.
"""

from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.outgoing_message import OutgoingMessage
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel

__all__ = ["IncomingMessage", "OutgoingMessage", "SideChannel"]
