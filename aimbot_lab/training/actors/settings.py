"""How many actors a training has, and how far they may fall behind; nothing heavy is loaded."""

from typing import Annotated, Literal

from aimbot_lab.foundation.settings import STRICT, Ge, Int, Le, dataclass

MAX_ACTORS = 1024
MAX_UNCORRECTED_LAG = 1  # updates, beyond which PPO's clip alone is no correction
USUAL_POOL = 2


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ActorSettings:
    """Processes that step the world's rows and act by themselves, for a world that is slow."""

    number: Annotated[Int, Ge(1), Le(MAX_ACTORS)]
    """Actors, each a process with a world of its own."""
    rows: Annotated[Int, Ge(1)] | None = None
    """Rows of each; number times rows must be env.num_envs. Left out, an equal share of them."""
    lag: Annotated[Int, Ge(0), Le(20)] = 0
    """Updates by which the weights that an actor acted by may be older than those that learn from
    it. 0: in step, the learner waits for all actors, and they for it. More: nobody waits, and what
    is older is dropped."""
    correction: Literal["none", "vtrace"] = "none"
    """`vtrace` works advantages, values and log-probabilities out again, for the present policy,
    before each update; a lag beyond 1 needs it."""
    pool: Annotated[Int, Ge(1), Le(64)] = USUAL_POOL
    """With a lag: rollouts of each actor that may wait to be learned from; then actors wait. Fewer,
    down to one, where the learner never has to wait."""
    preload: Annotated[Int, Ge(1)] | None = None
    """With a lag: rollouts that must wait before the first update. Left out, one of each actor."""

    def __post_init__(self) -> None:
        if self.lag > MAX_UNCORRECTED_LAG and self.correction == "none":
            raise ValueError(
                f"lag must be at most {MAX_UNCORRECTED_LAG} without correction: vtrace "
                f"(got {self.lag})"
            )
        for key, usual in ("pool", USUAL_POOL), ("preload", None):
            if not self.lag and getattr(self, key) != usual:
                raise ValueError(f"{key} does nothing without a lag: leave it out")
        if self.preload is not None and not self.number <= self.preload <= self.room:
            raise ValueError(
                f"preload must be {self.number} to {self.room}, number to number * pool "
                f"(got {self.preload})"
            )

    @property
    def room(self) -> int:
        """Rollouts of all actors that may wait to be learned from."""
        return self.number * self.pool
