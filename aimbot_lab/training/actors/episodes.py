"""Episodes of actors' own worlds, ranked among those of all actors in the order they began."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.episodes import NONE_RUNNING, EpisodeBatch, joined, oldest
from aimbot_lab.foundation.world import Int64Array
from aimbot_lab.training.actors.block import Block
from aimbot_lab.training.callbacks.agreement import NONE, episodes_of_all

COUNT_BITS = 29  # of a rank, for the episodes that an actor begins by one version


def first_rank(version: int, actor: int, actors: int) -> int:
    """Rank of the first episode that `actor`, one of `actors`, begins with weights of `version`."""
    return (version * actors + actor) << COUNT_BITS


class GlobalNumbers:
    """Ranks (version at the beginning, actor, count) and the learner's numbers of scenarios."""

    def __init__(self, actor: int, actors: int) -> None:
        self._actor, self._actors = actor, actors
        self.scenarios: dict[int, int] = {}  # the learner's number by the world's
        self._next = 0  # own rank of the next episode that begins
        self._firsts: list[int] = []  # own rank of the first that began by each of the versions
        self._versions: list[int] = []

    def begin(self, version: int) -> None:
        """What begins from now on does so by `version`."""
        if not self._versions or version > self._versions[-1]:
            self._firsts.append(self._next)
            self._versions.append(version)

    def ranks(self, own: Int64Array) -> Int64Array:
        """Ranks among all of the world's `own` ones."""
        if own.size:
            self._next = max(self._next, int(own.max()) + 1)
        return np.array([self._rank(one) for one in own.tolist()], np.int64)

    def _rank(self, own: int) -> int:
        at = bisect_right(self._firsts, own) - 1
        return first_rank(self._versions[at], self._actor, self._actors) + own - self._firsts[at]

    def of_scenarios(self, own: Int64Array) -> Int64Array:
        """The learner's numbers of the world's `own` ones."""
        return np.array([self.scenarios.get(one, one) for one in own.tolist()], np.int64)


class SettledEpisodes:
    """Gives episodes out only once no older one of the same actor runs any more.

    So an actor that dies takes every episode from its oldest unfinished one on with it: the later
    ones that had ended would be short ones, and in many worlds wins.
    """

    def __init__(self, numbers: GlobalNumbers, rows: int) -> None:
        self.numbers, self._rows = numbers, rows
        self._first: int | None = None
        self._held: EpisodeBatch | None = None
        self._running = NONE_RUNNING, NONE_RUNNING  # ranks and scenarios

    @property
    def running(self) -> int | None:
        """Rank of the oldest episode that runs and counts, as far as it is known."""
        return oldest(*self._running, self._first)

    @property
    def unsettled(self) -> int:
        """Episodes that run, and those that wait for them."""
        return self._rows + (0 if self._held is None else len(self._held.cell))

    def begin(self, version: int, first: int | None) -> None:
        """A block by `version` begins, in which episodes count from the scenario `first` on."""
        self.numbers.begin(version)
        self._first = first

    def add(self, ended: EpisodeBatch) -> EpisodeBatch:
        """What is settled once the episodes `ended` in a step of the world."""
        numbers = self.numbers
        order = numbers.ranks(ended.order)
        scenario = numbers.of_scenarios(ended.scenario)
        self._running = (
            numbers.ranks(ended.running_order),
            numbers.of_scenarios(ended.running_scenario),
        )
        new = ended._replace(order=order, scenario=scenario, unread=(), untold=())
        waiting = new if self._held is None else joined([self._held, new])
        oldest_rank = self.running
        settled = waiting.order < (np.inf if oldest_rank is None else oldest_rank)
        by_beginning = np.argsort(waiting.order, kind="stable")
        is_settled = settled[by_beginning]
        self._held = waiting.some(by_beginning[~is_settled]).beside(None, None)
        return waiting.some(by_beginning[is_settled]).beside(oldest_rank, self._first)


class RunningEpisodes:
    """Puts the episodes of blocks together, so that none overtakes an older one of any actor.

    An actor whose blocks are still to come has one under way, too: at the latest the first that it
    began by the version by which it was heard of last.
    """

    def __init__(self, actors: int, version: int) -> None:
        self._actors = actors
        self._oldest = [first_rank(version, actor, actors) for actor in range(actors)]

    def ended(self, blocks: Sequence[Block], first: int | None, since: int) -> list[EpisodeBatch]:
        """What ended in each step of `blocks` in which episodes did.

        Episodes count from the scenario `first` on, which is in force since the version `since`.
        """
        before, parts = [], []
        for block in blocks:
            least = first_rank(since, block.actor, self._actors)
            running = block.episodes["running"]
            known = np.maximum(np.where(running == NONE, least, running), least)
            parts.append({**block.episodes, "running": known})
            before.append(max(self._oldest[block.actor], least))
            self._oldest[block.actor] = int(known[-1]) if len(known) else before[-1]
        played = {block.actor for block in blocks}
        absent = set(range(self._actors)) - played
        for actor in absent:
            before.append(max(self._oldest[actor], first_rank(since, actor, self._actors)))
        return episodes_of_all(parts, before, first)
