"""The oldest episode that each actor has under way, as far as its learner knows."""

from collections.abc import Sequence

import numpy as np

from aimbot_lab.foundation.episodes import EpisodeBatch
from aimbot_lab.training.actors.block import Block
from aimbot_lab.training.actors.settled import first_rank
from aimbot_lab.training.callbacks.agreement import NONE, episodes_of_all


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
