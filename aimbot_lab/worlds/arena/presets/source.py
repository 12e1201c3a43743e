"""Where presets come from: files, or the text that a run keeps of its own ones."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.nodes import Node

from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.yaml_nodes import NodeLoader

MAX_BYTES = 2**20  # of a file
MAX_LEVELS = 20  # of lists and mappings in each other; a preset file has seven
HASH_LINE = "# own target blocks, kept with a run; SHA-256 of all lines below: "
LAYOUTS_LINE = "# own layouts of the duel, kept with a run; SHA-256 of all lines below: "
HASH_LINES = (HASH_LINE, LAYOUTS_LINE)
_KEPT_NAME = re.compile(r"(presets|layouts)-(?P<hash>[0-9a-f]{12})\.yaml")
_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PresetText(NamedTuple):
    """Presets as text, and the name by which faults call it."""

    name: Path
    text: str


Source = Path | PresetText


class _Loader(NodeLoader):
    max_levels = MAX_LEVELS


def compose(text: str, *, trusted: bool) -> Node | None:
    """The YAML tree of `text`, None where it says nothing.

    Texts of others are read by PyYAML's slow parser: libyaml's crashes on deep nesting.
    Raises yaml.YAMLError, TooDeepError.
    """
    root: Node | None = yaml.compose(text, Loader=_FAST_LOADER if trusted else _Loader)
    return root


def read_source(source: Source) -> str:
    """The text of `source`. Raises OSError, UnicodeDecodeError, and ValueError for an altered one.

    Altered is a kept file that is not what its name or its first line says.
    """
    if isinstance(source, PresetText):
        text = source.text
    else:
        text = read_bounded(source, MAX_BYTES).decode("utf-8")
    _check_hash(name_of(source).name, text)
    return text


def name_of(source: Source) -> Path:
    """The path by which faults call `source`."""
    return source.name if isinstance(source, PresetText) else source


def as_source(entry: str | Path) -> Source:
    """What `env.presets` names: text where it has several lines, a path otherwise."""
    if isinstance(entry, str) and "\n" in entry:
        return PresetText(Path(kept_name(entry)), entry)
    return Path(entry)


def kept_name(text: str) -> str:
    """The file name under which a run keeps `text`: it holds the hash, to notice any change."""
    kind = "layouts" if text.startswith(LAYOUTS_LINE) else "presets"
    return f"{kind}-{body_hash(text)[:12]}.yaml"


def is_kept_name(name: str) -> bool:
    """Whether `name` is one that `kept_name` gives."""
    return _KEPT_NAME.fullmatch(name) is not None


def body_hash(text: str) -> str:
    """The SHA-256 of `text` without a line of its own hash."""
    body = text.partition("\n")[2] if text.startswith(HASH_LINES) else text
    return hashlib.sha256(body.encode()).hexdigest()


def _check_hash(name: str, text: str) -> None:
    found, match = body_hash(text), _KEPT_NAME.fullmatch(name)
    said = text.partition("\n")[0].rpartition(" ")[2] if text.startswith(HASH_LINES) else found
    if said != found or (match is not None and not found.startswith(match["hash"])):
        raise ValueError(
            "altered since a run kept it; to use it as a file of your own, delete its first line "
            "and give it another name"
        )


def source_files(entries: Sequence[Path | str], faults: list[str]) -> Iterator[Source]:
    """The sources that `entries` name: files, texts, and folders as their *.yaml and *.yml.

    A folder's files come in the order of their names. Adds a line to `faults` for a folder that
    holds none, and a name that no file can have.
    """
    for entry in entries:
        source = as_source(entry)
        if isinstance(source, PresetText):
            yield source
            continue
        if "\0" in str(source):
            faults.append(f"{str(source)!a}: a file's name cannot hold a NUL")
            continue
        found = sorted(_yaml_files(source)) if source.is_dir() else [source]
        if not found:
            faults.append(f"{source}: the folder holds no *.yaml or *.yml file")
        yield from found


def holds_presets(folder: Path) -> bool:
    """Whether a folder holds a file that could be one of presets."""
    return any(True for _ in _yaml_files(folder))


def place_of(source: Source) -> str:
    """What identifies a source."""
    return os.path.abspath(name_of(source))


def _yaml_files(folder: Path) -> Iterator[Path]:
    for pattern in ("*.yaml", "*.yml"):
        yield from folder.glob(pattern)
