"""Requests to a training that runs: to change its difficulty weights, or what else is asked."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from aimbot_lab.curriculum.progress import CurriculumProgress
from aimbot_lab.curriculum.weights import WeightChange
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BatchWorld
from aimbot_lab.training.run_hooks import Requests

Answer = Callable[[Mapping[str, Any]], dict[str, Any]]
"""What is asked to its answer."""


class StopRequest:
    """Whether the training was asked to stop."""

    def __init__(self) -> None:
        self.made = False

    def answer(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Note the request."""
        del document
        self.made = True
        return {"stopping": True}


class LiveWeights:
    """The difficulty weights of a training: to be read and moved where a rollout begins.

    `others` answers requests of other kinds, by the `kind` that they bear; one without any is
    about weights.
    """

    def __init__(
        self,
        progress: CurriculumProgress,
        world: BatchWorld,
        others: Mapping[str, Answer] | None = None,
    ) -> None:
        self._progress = progress
        self._world = world
        self._others = others or {}
        self._again: list[tuple[int, Any]] = []  # what is to be done once more, and when

    def change(self, change: WeightChange) -> None:
        """Make `change`: each row draws its next block by it.

        The weights belong to the present lesson; the next one begins with its own. Raises
        ConfigurationError, with nothing changed, where the change is impossible.
        """
        self._progress.change_weights(change, self._world.set_scenario)

    def answer(
        self, requests: Requests | None, asked: Sequence[tuple[str, Any]] | None = None
    ) -> None:
        """Do what is asked, which is kept; what is impossible is refused with a reason.

        `asked` is what `requests` ask where that is known already; without any `requests` another
        process keeps and answers it.
        What was done at this very step before the run was broken off is done first, once more.
        """
        self._do_again()
        if asked is None:
            asked = () if requests is None else requests.requests()
        for key, document in asked:
            found = self._answered(document, requests)
            if requests is not None:
                requests.answer(key, found)

    def resume(self, changes: Sequence[tuple[int, Any]]) -> None:
        """Do again, each at its step, those of `changes` that came after the present one."""
        now = self._progress.step
        self._again = [change for change in changes if change[0] > now]

    def _do_again(self) -> None:
        while self._again and self._again[0][0] <= self._progress.step:
            with suppress(ConfigurationError):
                self.change(WeightChange.from_json(self._again.pop(0)[1]))

    def _answered(self, document: Any, requests: Requests | None) -> dict[str, Any]:
        kind = document.get("kind", "weights") if isinstance(document, Mapping) else "weights"
        if isinstance(kind, str) and (answer := self._others.get(kind)) is not None:
            return answer(document)
        try:
            change = WeightChange.from_json(document)
            if change.moves or change.lock or change.unlock:
                self.change(change)
                if requests is not None:
                    requests.keep_change(self._progress.step, change.as_json())
            weights = self._progress.mix.described(change.target)
        except ConfigurationError as error:
            return {"error": str(error)}
        place = {"step": self._progress.step, "lesson": self._progress.lesson + 1}
        return {**place, **{key: value for key, value in weights.items() if key != "kind"}}
