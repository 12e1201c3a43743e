"""Which replays there are: of a run, of the folder the panel began in, and given by a page."""

import re
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.panel.server.loading import STORE, Loader
from aimbot_lab.tracking.data_folder import DataFolder

FOLDER = "replays"  # of a run's artifacts, and of a working directory
MAX_FILES = 200
MAX_GIVEN = 8  # files that pages have given, the newest
WORDS = {"first": "its first episode"}
_KEPT = re.compile(r"lesson-(\d+)-(\w+)")
_MARK = '"format": "aimbot-lab replay"'


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
        from aimbot_lab.tracking.runs.history import download_artifact

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
            raise ConfigurationError("that replay is not listed any more; choose it again")
        yield self._paths[key]


def _is_replay(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _MARK in file.read(200)
    except OSError:
        return False


def _title(stem: str) -> str:
    """ "Lesson 1, won" of lesson-01-won; other names as they are."""
    found = _KEPT.fullmatch(stem)
    return f"Lesson {int(found[1])}, {WORDS.get(found[2], found[2])}" if found else stem
