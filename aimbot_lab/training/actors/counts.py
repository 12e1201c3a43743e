"""What a training counts of its actors; a checkpoint keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from aimbot_lab.foundation import metric_names as names
from aimbot_lab.training.actors.block import Block


@dataclass
class ActorCounts:
    """Numbers since the training began, and what is new since they were last asked for."""

    version: int = 0  # updates
    orders: int = 0
    made: int = 0  # blocks
    taken: int = 0
    dropped: int = 0  # blocks that were too old
    restarts: int = 0
    lives: int = 1  # of all actors; none has the random numbers of an earlier one
    lost_episodes: int = 0  # with actors, and in worlds of actors that are lost
    logged_errors: int = 0  # by programs that played worlds of actors that are lost
    save_commands: int = 0  # of these programs
    of_worlds: dict[int, dict[str, int]] = field(default_factory=dict)  # the same now, by actor
    notices: list[str] = field(default_factory=list)
    _ages: list[int] = field(default_factory=list)
    _since: tuple[float, int] = field(default_factory=lambda: (monotonic(), 0))

    def new_life(self) -> int:
        """A number that no actor's life had before."""
        self.lives += 1
        return self.lives - 1

    def lose(self, actor: int, episodes: int) -> None:
        """`actor` is lost, and so many episodes with it."""
        self.restarts += 1
        self.lost_episodes += episodes
        for name, count in self.of_worlds.pop(actor, {}).items():
            setattr(self, name, getattr(self, name) + count)
        self.notices.append(f"actor {actor} was lost and begins again; {episodes} episodes dropped")

    def learn(self, blocks: Sequence[Block]) -> None:
        """`blocks` are learned from, in the next update."""
        self._ages += [self.version - one.version for one in blocks]
        for one in blocks:
            self.notices += one.notices
            self.of_worlds[one.actor] = {name: getattr(one, name) for name in OF_WORLDS}
        self.taken += len(blocks)
        self.version += 1

    @property
    def episodes_dropped(self) -> int:
        """Episodes that were lost with actors, and with programs of their worlds."""
        return self.so_far("lost_episodes")

    def so_far(self, name: str) -> int:
        """The count of that name, of `OF_WORLDS`, with that of the actors' present worlds."""
        before: int = getattr(self, name)
        return before + sum(one[name] for one in list(self.of_worlds.values()))

    def take_metrics(self) -> dict[str, float]:
        """What is tracked, of the time since this was last asked."""
        now, (then, made) = monotonic(), self._since
        ages, self._ages, self._since = self._ages, [], (now, self.made)
        found = {
            names.BLOCKS_PER_SECOND: (self.made - made) / max(now - then, 1e-9),
            names.BLOCKS_DROPPED: float(self.dropped),
            names.ACTOR_RESTARTS: float(self.restarts),
        }
        if ages:
            found[names.BLOCK_AGE] = sum(ages) / len(ages)
        if self.taken:
            found[names.BLOCKS_MADE_TO_TAKEN] = self.made / self.taken
        return found

    def state(self) -> dict[str, int]:
        """The numbers since the training began."""
        kept = {name: getattr(self, name) for name in KEPT}
        return {
            **kept,
            "lost_episodes": self.episodes_dropped,
            "logged_errors": self.so_far("logged_errors"),
        }

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave, with new lives."""
        for name in KEPT:
            setattr(self, name, int(state[name]))
        self.lost_episodes, self.of_worlds = int(state["lost_episodes"]), {}
        self.logged_errors = int(state.get("logged_errors", 0))
        self._since = monotonic(), self.made


OF_WORLDS = ("lost_episodes", "logged_errors", "save_commands")
KEPT = ("version", "orders", "made", "taken", "dropped", "restarts", "lives")
