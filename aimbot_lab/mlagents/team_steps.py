"""What the agents of one behavior have observed, as ML-Agents' steps."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.mlagents.behaviors import Sensor
from aimbot_lab.mlagents.player import Moment, Player, Team
from aimbot_lab.mlagents.steps import DecisionSteps, TerminalSteps


class TeamSteps:
    """The steps of `team`, whose actions have `branches`, as `sensors` show them."""

    def __init__(self, team: Team, branches: Sequence[int], sensors: Sequence[Sensor]) -> None:
        self._seats, self._sensors = team.seats, sensors
        ends = np.cumsum(branches, dtype=int).tolist()
        self._choices = [slice(end - size, end) for end, size in zip(ends, branches, strict=True)]
        # A copy of an array at hand takes half the time of a new one, and it is wanted each step.
        self._ids = np.arange(team.seats.start, team.seats.stop, dtype=np.int32)

    def of(self, moment: Moment) -> tuple[DecisionSteps, TerminalSteps]:
        """Who decides, and who ended. An agent that ended is in both.

        It has its last step, and the first one of its next episode.
        """
        rewards = moment.rewards[self._seats]
        ended = moment.finished[self._seats].nonzero()[0]
        # `take` is twice as fast as an index of places.
        last = moment.final_observations[self._seats].take(ended, axis=0)
        terminals = TerminalSteps(
            [sensor.of(last) for sensor in self._sensors],
            rewards.take(ended),
            moment.truncated[self._seats].take(ended),
            self._ids.take(ended),
        )
        rewards[ended] = 0.0  # of the next episode, in which nothing has happened
        observations = moment.observations[self._seats]
        masks = [moment.forbidden[self._seats, choices] for choices in self._choices]
        decisions = DecisionSteps(
            [sensor.of(observations) for sensor in self._sensors],
            rewards,
            self._ids.copy(),
            masks or None,
        )
        return decisions, terminals


def steps_of_teams(player: Player) -> dict[str, TeamSteps]:
    """The steps of each of `player`'s teams, by behavior."""
    branches = player.spec.action_spec.discrete_branches
    return {team.behavior: TeamSteps(team, branches, player.sensors) for team in player.teams}
