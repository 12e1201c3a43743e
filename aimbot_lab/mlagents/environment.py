"""Any world as an environment of ML-Agents, in this process."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.foundation.world import BatchWorld, Scenario, new_notices
from aimbot_lab.mlagents.base_env import (
    ActionTuple,
    BehaviorSpec,
    DecisionSteps,
    TerminalSteps,
    checked_action,
)
from aimbot_lab.mlagents.exception import UnityActionException, UnityEnvironmentException
from aimbot_lab.mlagents.player import BehaviorPlayer, PlayerChannels, ReceivedParameters, Steps
from aimbot_lab.mlagents.side_channel.side_channel import SideChannel, by_id, deliver, take_queued
from aimbot_lab.mlagents.side_channel.string_log_channel import STRING_LOG

LOG = logging.getLogger(__name__)


class LabEnvironment:
    """`world` with the methods of ML-Agents' `UnityEnvironment`.

    The agents of a row are the teams 0, 1 ... of behavior `name`, each a behavior of its own. An
    agent keeps its id; where its episode ended, it is among the terminal steps and, with the first
    observation of its next episode, among the decision steps. Episodes are drawn from `scenario`,
    without one from all targets of the world evenly. `log_channel` is the id under which result
    lines are sent. Raises ConfigurationError for a scenario that the world does not have.

    As in ML-Agents, a caller may keep steps, and every array and view of them, for as long as it
    likes, and write into them: later steps do not change them, nor they what is played.
    """

    def __init__(
        self,
        world: BatchWorld,
        scenario: Scenario | None = None,
        *,
        name: str = "AimbotLab",
        seed: int = 0,
        side_channels: Sequence[SideChannel] = (),
        log_channel: uuid.UUID = STRING_LOG,
    ) -> None:
        self._world, self._channels = world, by_id(side_channels)
        self._player = BehaviorPlayer(world, name=name, seed=seed)
        drawn = scenario or Scenario(dict.fromkeys(world.spec.targets, 1.0))
        parameters = ReceivedParameters(world, drawn)
        self._player_channels = PlayerChannels(world, parameters, log=log_channel)
        self._steps: Steps = {}
        self._actions: dict[str, ActionTuple] = {}
        self._open = True

    @property
    def behavior_specs(self) -> Mapping[str, BehaviorSpec]:
        """What each behavior observes and does; empty before the first `reset`."""
        return MappingProxyType(dict.fromkeys(self._steps, self._player.spec))

    def reset(self) -> None:
        """Begin an episode for every agent; running ones are dropped."""
        self._require_open()
        self._send()
        self._show(self._player.reset(), None)

    def step(self) -> None:
        """Act, by zeros where no action was set; the first time, reset.

        Raises UnityActionException, leaving all as it was, for NaN and choices that there are not.
        """
        if not self._steps:
            self.reset()
            return
        self._require_open()
        self._send()
        self._show(*self._player.step(self._actions))

    def close(self) -> None:
        """Give the world back. Afterwards nothing but `get_steps` works any more."""
        self._require_open()
        self._open = False

    def get_steps(self, behavior_name: str) -> tuple[DecisionSteps, TerminalSteps]:
        """What agents of the behavior observed: those that decide next, those that ended."""
        return self._steps[self._known(behavior_name)]

    def set_actions(self, behavior_name: str, action: ActionTuple) -> None:
        """Set the actions of all agents of the behavior, in the order of its decision steps.

        Raises UnityActionException for an unknown behavior and arrays of another shape.
        """
        agents = len(self._steps[self._known(behavior_name)][0])
        spec = self._player.spec.action_spec
        checked = checked_action(action, spec, agents=agents, name=behavior_name)
        self._actions[behavior_name] = checked

    def set_action_for_agent(self, behavior_name: str, agent_id: int, action: ActionTuple) -> None:
        """Set the action of one agent; those of the others are as set, or zeros.

        Raises UnityActionException as `set_actions` does, IndexError for an agent that does not
        decide now.
        """
        decisions = self._steps[self._known(behavior_name)][0]
        spec = self._player.spec.action_spec
        one = checked_action(action, spec, agents=1, name=behavior_name)
        place = decisions.agent_id_to_index.get(agent_id)
        if place is None:
            raise IndexError(f"agent_id {agent_id} did not request a decision in the last step")
        given = self._actions.get(behavior_name) or spec.empty_action(len(decisions))
        continuous, discrete = given.continuous.copy(), given.discrete.copy()
        continuous[place], discrete[place] = one.continuous[0], one.discrete[0]
        self._actions[behavior_name] = ActionTuple(continuous, discrete)

    def _require_open(self) -> None:
        if not self._open:
            raise UnityEnvironmentException("the environment is closed; make another one")

    def _known(self, behavior_name: str) -> str:
        if behavior_name not in self._steps:
            known = ", ".join(self._steps) or "none before the first reset()"
            raise UnityActionException(f"no behavior {behavior_name!a:.60}; there are: {known}")
        return behavior_name

    def _send(self) -> None:
        if self._channels:
            self._player_channels.receive(take_queued(self._channels.values()))

    def _show(self, steps: Steps, episodes: EpisodeBatch | None) -> None:
        """Show `steps`, forget the actions and pass messages on."""
        self._actions.clear()
        self._steps = steps
        if episodes and self._channels:
            for message in self._player_channels.reports(episodes, self._channels):
                deliver(message, self._channels)
        for notice in new_notices(self._world):
            LOG.warning("%s", notice)
