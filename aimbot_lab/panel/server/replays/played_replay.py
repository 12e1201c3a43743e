"""A replay as a page plays it: every moment of it, in portions."""

import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.panel.server.result_words import in_one
from aimbot_lab.panel.server.scene_document import Show, shower
from aimbot_lab.replay.captions import cell_words, lesson_title, player_words
from aimbot_lab.replay.episode import Replay
from aimbot_lab.replay.files import load_replay
from aimbot_lab.replay.playback import ReplayStep, replay_steps

PORTION = 50  # moments
LASTING = ("kind", "size", "boxes", "plots", "circle", "radius", "view_angle", "target")
"""Parts of a scene that are left out where they are as in the moment before."""


class PlayedReplay:
    """The moments of one replay, in their order. Raises LabError where it can't be played."""

    def __init__(self, path: Path) -> None:
        try:
            self.replay: Replay = load_replay(path)
        except LabError as error:
            raise LabError(str(error).replace(str(path), path.name)) from error
        except OSError as error:
            raise LabError(f"{path.name}: {error.strerror or error}") from error
        self._next, self._moments = 0, self._play()  # the moment that comes next, and all from it
        self._playing = threading.Lock()  # each request comes in a thread of its own

    def about(self) -> dict[str, Any]:
        """What a person reads above it."""
        episode, spec = self.replay.episode, self.replay.episode.spec
        return {
            "title": lesson_title(self.replay),
            "player": player_words(self.replay),
            "cell": cell_words(self.replay),
            "result": in_one(episode.line),
            "moments": len(episode.actions) + 1,
            "period": episode.frame_seconds,
            "terms": [*spec.reward_terms],
            "names": [*episode.world.seat_names(self.replay.about, episode.result.target or "")],
            "time_unit": spec.time_unit,
            "details": {str(key): str(value) for key, value in self.replay.about.items()},
        }

    def portion(self, first: int) -> list[dict[str, Any]]:
        """Some moments, beginning with `first`; none after the last."""
        with self._playing:
            if self._next > first:
                self._next, self._moments = 0, self._play()
            for _ in islice(self._moments, first - self._next):
                pass
            found = [*islice(self._moments, PORTION)]
            self._next = first + len(found)
            return found

    def _play(self) -> Iterator[dict[str, Any]]:
        show = shower(self.replay.episode.settings)
        before: dict[str, Any] = {}
        for number, step in enumerate(replay_steps(self.replay.episode)):
            document, scene = self._moment(step, show)
            is_whole = number % PORTION == 0
            document["scene"] = scene if is_whole else _changed(scene, before)
            before = scene
            yield document

    def _moment(self, step: ReplayStep, show: Show) -> tuple[dict[str, Any], dict[str, Any]]:
        episode, scene = self.replay.episode, step.scene
        document = {
            "seconds": round(scene.seconds, 2),
            "goal": scene.goal,
            "words": episode.world.action_words(episode.spec, step.action, scene),
            "terms": [round(float(total), 3) for total in scene.terms],
            "earned": [round(float(one), 3) for one in step.earned],
            "reward": round(float(step.rewards[0]), 3),
            "line": None if step.line is None else in_one(step.line),
        }
        return document, show(scene)


def _changed(scene: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in scene.items()
        if key not in LASTING or key not in before or before[key] != value
    }
