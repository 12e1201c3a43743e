"""What can be trained: the shipped curricula, and those of the folder the panel was started in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError, reason_and_place
from aimbot_lab.shipped.named_files import CURRICULUM, SHIPPED, SUFFIXES, shipped_names
from aimbot_lab.worlds.registry import DEFAULT, default_type

MAX_OWN = 60  # files of the folder
_COMMENTS = re.compile(r"(?:^#.*\n)+", re.MULTILINE)
_SENTENCE = re.compile(r"(?:[\w ]{1,30}: )?(.+?)(?:\.(?= |$)|$)")
_IS_CURRICULUM = re.compile(r"^lessons\s*:", re.MULTILINE)


@dataclass(frozen=True)
class OfferedCurriculum:
    """A curriculum as the start page offers it."""

    key: str  # the name in the list that the server made
    title: str
    about: str
    shipped: bool
    main: bool  # of the world that is meant where none is named
    world: str = ""
    lessons: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    total_steps: int = 0
    code: str = ""  # that its world is made of, and that a training runs; empty: none is named
    faults: list[str] = field(default_factory=list)  # line by line, as `check` gives them


class Curricula:
    """The curricula that `here` offers, by keys; checked anew at each look."""

    def __init__(self, here: Path) -> None:
        self._here = here
        self._paths: dict[str, Path] = {}

    def look(self) -> list[OfferedCurriculum]:
        """All of them: the shipped ones of the main world first, by their targets."""
        self._paths = dict(self._found())
        choices = [_choice(key, path) for key, path in self._paths.items()]
        return sorted(choices, key=_rank)

    def path(self, key: str) -> Path:
        """The file of a key that was listed. Raises ConfigurationError for another."""
        if key not in self._paths:
            raise ConfigurationError("that curriculum is not offered; load the page again")
        return self._paths[key]

    def _found(self) -> Iterator[tuple[str, Path]]:
        own = [*self._own(self._here / CURRICULUM.folder), *self._own(self._here)]
        shipped = SHIPPED / CURRICULUM.folder
        known = {path.resolve() for path in shipped.glob("*.yaml")}
        for name in shipped_names(CURRICULUM):
            yield f"shipped:{name}", shipped / f"{name}.yaml"
        for path in [one for one in own if one.resolve() not in known][:MAX_OWN]:
            yield f"own:{path.relative_to(self._here)}", path

    def _own(self, folder: Path) -> list[Path]:
        """Files of `folder` that look like curricula."""
        found = sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
        return [path for path in found if path.is_file() and _IS_CURRICULUM.search(_text(path))]


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(65_536)
    except OSError:
        return ""


def _choice(key: str, path: Path) -> OfferedCurriculum:
    shipped = key.startswith("shipped:")
    name = path.stem if shipped else key.removeprefix("own:")
    # The first sentence of the first comment of a file, without the name that it begins with.
    comments = _COMMENTS.search(_text(path))
    lines = [line.lstrip("# ").rstrip() for line in (comments[0] if comments else "").splitlines()]
    prose = " ".join(line for line in lines if not line.startswith("yaml-language-server"))
    sentence = _SENTENCE.match(prose)
    found = sentence[1] if sentence else ""
    about = found[:1].upper() + found[1:]
    try:
        loaded = load_curriculum(path)
    except ConfigurationError as error:
        faults = [*error.faults] or [str(error)]
    except BaseException as error:  # noqa: BLE001  # of a module that it names: others are offered
        faults = [f"{path}: can't be read: {reason_and_place(error)}"]
    else:
        config = loaded.config
        targets = dict.fromkeys(target for one in config.lessons for target in one.targets)
        return OfferedCurriculum(
            key,
            title=f"Train-{_capital(loaded.name)}" if shipped else key.removeprefix("own:"),
            about=about,
            shipped=shipped,
            main=shipped and config.env.world == DEFAULT,
            world=config.env.world,
            lessons=[one.name for one in config.lessons],
            targets=[*targets],
            total_steps=config.train.total_steps,
            code="" if loaded.unasked is None else loaded.unasked.shown,
        )
    return OfferedCurriculum(key, name, about, shipped, main=False, faults=faults)


def _capital(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:]


def _rank(choice: OfferedCurriculum) -> tuple[object, ...]:
    """Shipped ones of the main world by their targets, then the others.

    Those that bear a target's name come first, then those of all targets.
    """
    order = {target: place for place, target in enumerate(default_type().targets(None))}
    places = [order.get(target, len(order)) for target in choice.targets]
    is_plain = [choice.key] == [f"shipped:{target}" for target in choice.targets]
    is_whole = order.keys() <= {*choice.targets}
    first = min(places, default=0) if is_plain else len(order) + (not is_whole)
    return not choice.shipped, not choice.main, first, choice.title
