"""Replays and scenes as documents for the page."""

import base64
import io
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from aimbot_lab.foundation.display import Scene, SceneView, Thought
from aimbot_lab.foundation.episodes import PREFIX
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.files import read_start
from aimbot_lab.foundation.named_code import UntrustedCodeError
from aimbot_lab.foundation.world import Picture
from aimbot_lab.panel.server.messages import STORE, Loader
from aimbot_lab.replay.episode import (
    Replay,
    ReplayStep,
    cell_words,
    lesson_title,
    load_replay,
    player_words,
    replay_steps,
)
from aimbot_lab.tracking.data_folder import DataFolder

PICTURE_SIZE = 480  # pixels a side
Show = Callable[[Scene], dict[str, Any]]


def floor_document(view: SceneView, scene: Scene) -> dict[str, Any]:
    """`view` as plain values, and what only the episode's `scene` knows."""
    return {
        "kind": "floor",
        **asdict(view),
        "fired": view.fired if view.fighters else view.hit >= 0 or any(scene.events.values()),
        "seconds": round(scene.seconds, 2),  # since the episode began
    }


def picture_document(picture: Picture) -> dict[str, Any]:
    """A picture as the address of its own content."""
    from PIL import Image

    memory = io.BytesIO()
    Image.fromarray(picture).save(memory, "PNG")
    return {
        "kind": "picture",
        "picture": "data:image/png;base64," + base64.b64encode(memory.getvalue()).decode(),
    }


def shower(settings: Any) -> Show:
    """What shows the scenes of one episode of the world of `settings`, in their order."""
    from aimbot_lab.worlds.registry import spec_of, type_of

    world = type_of(settings)
    if (scenes := world.scenes) is not None:
        return lambda scene: floor_document(scenes.replayed(settings, scene.state), scene)
    if not spec_of(settings).can("draw"):
        return lambda _: {"kind": "nothing"}
    if world.replays is None:
        return lambda scene: picture_document(scene.state())
    renderer = world.replays.renderer(settings)
    return lambda scene: picture_document(renderer.picture(scene, size=PICTURE_SIZE))


def thought_document(thought: Thought, settings: Any) -> dict[str, Any]:
    """`thought` as plain values, each choice of the world of `settings` with its word, if any."""
    from aimbot_lab.worlds.registry import type_of

    replays = type_of(settings).replays
    words = () if replays is None else replays.choice_words
    return {
        "value": None if thought.value is None else round(thought.value, 3),
        "choices": [
            [name, [round(one, 4) for one in shares], taken, *words[place : place + 1]]
            for place, (name, shares, taken) in enumerate(thought.branches)
        ],
    }


MANY = 10_000.0  # from here on whole numbers are shown


@dataclass(frozen=True)
class ResultLine:
    """A line that a game sends, and what this project's own simulator adds to it."""

    line: str  # as Unity sends it: Warning|Result|Win
    detail: str = ""
    words: str = ""  # the same for a person: Won after 9.3 s


OUTCOMES = {"Win": "Won", "Lose": "Lost", "Draw": "Drawn"}


def readable(full: str) -> ResultLine:
    """A whole result line in its parts; another line as it is."""
    if not full.startswith(PREFIX):
        return ResultLine(full, words=full)
    outcome, *fields = full.removeprefix(PREFIX).split("|")
    words, values = (
        OUTCOMES.get(outcome, outcome),
        dict(one.split("=", 1) for one in fields if "=" in one),
    )
    with suppress(KeyError, ValueError):
        words += f" after {float(values['seconds']):.1f} s"
    return ResultLine(PREFIX + outcome, ", ".join(map(_rounded, fields)), words)


def in_one(full: str) -> str:
    """A whole result line as one text, in words."""
    found = readable(full)
    return f"{found.words} ({found.detail})" if found.detail else found.words


def _rounded(field: str) -> str:
    """`return=1.2345678` as return=1.235."""
    name, _, value = field.partition("=")
    try:
        number = float(value)
    except ValueError:
        return field
    return f"{name}={number:.0f}" if abs(number) >= MANY else f"{name}={number:.4g}"


FOLDER = "replays"  # of a run's artifacts, and of a working directory
MAX_FILES = 200
MAX_GIVEN = 8  # files that pages have given, the newest
WORDS = {"first": "its first episode"}
_KEPT = re.compile(r"lesson-(\d+)-(\w+)")
_MARK = b'"format": "aimbot-lab replay"'
PORTION = 50  # moments
LASTING = ("kind", "size", "boxes", "plots", "circle", "radius", "view_angle", "target")
"""Parts of a scene that are left out where they are as in the moment before."""


@dataclass(frozen=True)
class ReplayLine:
    """A replay as the page lists it."""

    key: str
    title: str


class ReplayList:
    """Replays by keys that were listed; nothing else is ever opened."""

    def __init__(
        self, data_folder: DataFolder, *, here: Path, tracking_uri: str | None, loader: Loader
    ) -> None:
        self._loader = loader
        self._data_folder, self._here, self._tracking_uri = data_folder, here, tracking_uri
        self._paths: dict[str, Path] = {}
        self._given: OrderedDict[str, str] = OrderedDict()  # key to text
        self._count = 0

    def of_folder(self) -> list[ReplayLine]:
        """Those of the folder the panel was started in."""
        found = [*self._here.glob("*.json"), *(self._here / FOLDER).glob("*.json")]
        names = sorted(path.relative_to(self._here).as_posix() for path in found)
        lines = [
            ReplayLine(f"file:{name}", name) for name in names if _is_replay(self._here / name)
        ]
        self._paths |= {line.key: self._here / line.title for line in lines}
        return lines[:MAX_FILES]

    def of_run(self, run_id: str) -> list[ReplayLine]:
        """Those that a run has kept: of each lesson a few."""
        from aimbot_lab.tracking.history import download_artifact

        self._loader.need(*STORE)
        try:
            folder = download_artifact(
                self._data_folder, run_id, name=FOLDER, tracking_uri=self._tracking_uri
            )
        except LabError:
            return []
        paths = sorted(path for path in folder.glob("*.json") if path.is_file())[:MAX_FILES]
        lines = [ReplayLine(f"run:{run_id}:{path.name}", _title(path.stem)) for path in paths]
        self._paths |= {line.key: path for line, path in zip(lines, paths, strict=True)}
        return lines

    def give(self, text: str) -> str:
        """The key of the replay in `text`, kept until others have come."""
        self._count += 1
        key = f"given:{self._count}"
        self._given[key] = text
        while len(self._given) > MAX_GIVEN:
            self._given.popitem(last=False)
        return key

    @contextmanager
    def path(self, key: str) -> Iterator[Path]:
        """Where the replay of `key` can be read while the caller is at it.

        Raises ConfigurationError for a key that was not listed.
        """
        if key in self._given:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "the file"
                path.write_text(self._given[key], encoding="utf-8")
                yield path
            return
        if key not in self._paths:
            raise ConfigurationError("that replay is no longer listed; choose it again")
        yield self._paths[key]


def _is_replay(path: Path) -> bool:
    try:
        return _MARK in read_start(path, 200)
    except OSError:
        return False


def _title(stem: str) -> str:
    """ "Lesson 1, won" of lesson-01-won; other names as they are."""
    found = _KEPT.fullmatch(stem)
    return f"Lesson {int(found[1])}, {WORDS.get(found[2], found[2])}" if found else stem


class PlayedReplay:
    """The moments of one replay, in their order. Raises LabError where it can't be played."""

    def __init__(self, path: Path) -> None:
        try:
            self.replay: Replay = load_replay(path)
        except LabError as error:
            if isinstance(error.__cause__, UntrustedCodeError):
                what = "it plays code of your own, which the panel does not load"
                raise LabError(f"{path.name}: {what}; aimbot-lab replay plays it") from error
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
            "judged": self.replay.about.get("judged_at_step"),
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
        for number, step in enumerate(replay_steps(self.replay.episode, alone=False)):
            document, scene = self._moment(step, show)
            if (thought := self.replay.thought(number - 1)) is not None:
                document["mind"] = thought_document(thought, self.replay.episode.settings)
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
