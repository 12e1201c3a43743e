"""What ends a lesson, as a curriculum writes it."""

from collections.abc import Iterator
from typing import Annotated, Literal

from aimbot_lab.curriculum.measures import MEASURES
from aimbot_lab.curriculum.measures import Measure as MeasureEntry
from aimbot_lab.foundation.settings import STRICT, Bool, Float, Ge, Gt, Int, Le, dataclass

Measure = Literal["win_rate", "reward", "progress", "score", "elo"]
MAX_ELO = 4000.0
RuleName = Literal["evidence", "ml-agents"]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class CompletionCriteria:
    """What ends a lesson: a measure that exceeds a threshold, and how that is found out."""

    measure: Measure = "win_rate"
    """What is measured: the share of episodes won, the mean reward of an episode, the share of all
    training steps that are taken, the mean score (1 won, 0.5 drawn, 0 lost), or how many rating
    points (Elo) the agent is above the opponent `against`; under `ml-agents`, its running rating in
    self-play."""
    rule: RuleName = "evidence"
    """How it is found out. `evidence`: a test that may be looked at after every episode, wrong with
    a chance of at most `alpha`. `ml-agents`: the mean of the last episodes, as ML-Agents has it, by
    luck sooner or later."""
    against: str | None = None
    """For `score` and `elo`: the target whose episodes alone are counted; `elo` needs one."""
    threshold: Float
    """Value that the measure must exceed."""
    min_lesson_length: Annotated[Int, Ge(0)] = 100
    """Episodes that a lesson lasts at least; under `ml-agents`, the largest of all lessons is also
    the number of episodes in the mean."""
    alpha: Annotated[Float, Gt(0), Le(0.5)] = 0.05
    """Chance, at most, that the lesson ends although the threshold was never exceeded."""
    scope: Literal["pooled", "every_cell"] = "pooled"
    """Whether all episodes together must pass or every target at every difficulty."""
    greedy_proof: Bool = True
    """Whether an agent that explores while it learns (dqn, qrdqn, q_learning) must show the same
    evidence in episodes that it plays without exploration, learning nothing; until it does, the
    lesson goes on."""
    reward_range: tuple[Float, Float] | None = None
    """Lowest reward that an episode can bring, and one that counts as high: rewards above it count
    as it. `evidence` needs it for `reward`, because no test holds for values without a bound."""
    signal_smoothing: Bool | None = None
    """Under `ml-agents`: a quarter of the measure before and three quarters of the present one, as
    ML-Agents has it unless it is false."""

    def __post_init__(self) -> None:
        of_rule = {"evidence": self._evidence_faults, "ml-agents": self._ml_agents_faults}
        faults = [*self._opponent_faults(), *self._threshold_faults(), *of_rule[self.rule]()]
        if faults:
            raise ValueError("\n".join(faults))

    @property
    def smoothed(self) -> bool:
        """Whether ML-Agents' rule smooths its measure."""
        return self.signal_smoothing is not False

    @property
    def every_cell(self) -> bool:
        """Whether each cell must pass by itself."""
        return self.scope == "every_cell"

    @property
    def by_evidence(self) -> bool:
        """Whether a test decides, which passes at its bound; all else must exceed its threshold."""
        return self.rule == "evidence" and self.measured.of_episodes

    @property
    def by_running_rating(self) -> bool:
        """Whether the rating decides that is kept while the learner meets itself."""
        return self.rule == "ml-agents" and self.measured.of_points

    @property
    def measured(self) -> MeasureEntry:
        """What is measured."""
        return MEASURES[self.measure]

    def _opponent_faults(self) -> Iterator[str]:
        measure = self.measured
        if self.against is not None and not measure.of_opponents:
            yield f"against is for measure: score or elo (got {self.measure})"
        elif self.against is not None and self.rule != "evidence":
            yield "against is for rule: evidence"
        elif measure.of_points and self.rule == "evidence" and self.against is None:
            yield "against is missing: elo under evidence is points above one of the targets"

    def _threshold_faults(self) -> Iterator[str]:
        measure = self.measured
        if measure.of_points and self.rule == "evidence" and abs(self.threshold) > MAX_ELO:
            yield f"threshold must lie between {-MAX_ELO:g} and {MAX_ELO:g} (got {self.threshold})"
        if not measure.is_share:
            return
        if self.threshold >= 1:
            yield f"threshold must be less than 1.0 (got {self.threshold})"
        if self.threshold < 0 or (self.threshold == 0 and not measure.zero_is_exceeded):
            bound = "at least 0.0" if measure.zero_is_exceeded else "greater than 0.0"
            yield f"threshold must be {bound} (got {self.threshold})"

    def _ml_agents_faults(self) -> Iterator[str]:
        if self.every_cell:
            yield "scope must be pooled under rule: ml-agents, which knows no cells"
        if self.reward_range is not None:
            yield "reward_range is for rule: evidence; rule: ml-agents has no bounds"

    def _evidence_faults(self) -> Iterator[str]:
        if self.signal_smoothing is not None:
            yield "signal_smoothing is for rule: ml-agents; evidence smooths nothing"
        if self.every_cell and not self.measured.of_episodes:
            yield f"scope must be pooled for {self.measure}, which is the same in every cell"
        if not self.measured.of_rewards:
            if self.reward_range is not None:
                yield f"reward_range is for measure: reward (got {self.measure})"
        elif self.reward_range is None:
            yield (
                "reward_range is missing: evidence on a reward needs [lowest, high]; "
                "rule: ml-agents does without"
            )
        elif not self.reward_range[0] < self.threshold < self.reward_range[1]:
            low, high = self.reward_range
            yield (
                f"reward_range must hold the threshold, {self.threshold:g}, between its two "
                f"numbers (got {low:g} and {high:g})"
            )
