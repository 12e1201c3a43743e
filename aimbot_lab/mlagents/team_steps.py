"""What the agents of one behavior have observed, as ML-Agents' steps."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.mlagents.behaviors import Sensor
from aimbot_lab.mlagents.player import Moment, Team
from aimbot_lab.mlagents.steps import DecisionSteps, TerminalSteps


def team_steps(
    moment: Moment, team: Team, branches: Sequence[int], sensors: Sequence[Sensor]
) -> tuple[DecisionSteps, TerminalSteps]:
    """The steps of `team`, whose actions have `branches`, in `moment`, as `sensors` show it.

    An agent that ended has both: its last step, and the first one of its next episode.
    """
    finished, rewards = moment.finished[team.seats], moment.rewards[team.seats]
    ids = np.arange(team.seats.start, team.seats.stop, dtype=np.int32)
    ended = finished.nonzero()[0]
    # `take` is twice as fast as an index of places.
    last = moment.final_observations[team.seats].take(ended, axis=0)
    terminals = TerminalSteps(
        [sensor.of(last) for sensor in sensors],
        rewards.take(ended),
        moment.truncated[team.seats].take(ended),
        ids.take(ended),
        np.zeros(len(ended), np.int32),
        np.zeros(len(ended), np.float32),
    )
    rewards[ended] = 0.0  # of the next episode, in which nothing has happened
    masks, first = [], 0
    for size in branches:
        masks.append(moment.forbidden[team.seats, first : first + size])
        first += size
    decisions = DecisionSteps(
        [sensor.of(moment.observations[team.seats]) for sensor in sensors],
        rewards,
        ids,
        masks if branches else None,
        np.zeros(len(ids), np.int32),
        np.zeros(len(ids), np.float32),
    )
    return decisions, terminals
