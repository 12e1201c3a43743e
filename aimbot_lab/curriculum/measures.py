"""What lessons are judged by: the measures by name, and how they differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from aimbot_lab.curriculum.outcomes import Outcome


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure that `completion_criteria.measure` names."""

    name: str
    value: Callable[[Outcome], bool | float | None]
    """What an episode brings; None where it did not say."""
    noun: str  # what it is, for a person
    of_wins: bool = False  # whether it is a win rate
    of_rewards: bool = False  # whether it has no bounds but those that are declared
    of_episodes: bool = True  # whether episodes are evidence for it, in each cell by themselves
    zero_is_exceeded: bool = False  # whether exceeding 0 asks for anything
    of_points: bool = False  # whether it is in rating points, which an expected score stands for
    of_opponents: bool = False  # whether one of the lesson's targets may be named as the opponent

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1."""
        return not self.of_rewards and not self.of_points


WIN_RATE = Measure(name="win_rate", value=lambda one: one.won, noun="win rate", of_wins=True)
REWARD = Measure(name="reward", value=lambda one: one.reward, noun="reward", of_rewards=True)
SCORE = Measure(
    name="score", value=lambda one: one.score, noun="score, a draw being half", of_opponents=True
)
ELO = Measure(
    name="elo",
    value=lambda one: one.score,
    noun="rating above the opponent",
    of_points=True,
    of_opponents=True,
)
PROGRESS = Measure(
    name="progress",
    value=lambda one: one.won,
    noun="share of steps that are taken",
    of_episodes=False,
    zero_is_exceeded=True,
)
MEASURES: Mapping[str, Measure] = MappingProxyType(
    {one.name: one for one in (WIN_RATE, REWARD, PROGRESS, SCORE, ELO)}
)
