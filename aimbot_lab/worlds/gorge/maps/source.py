"""Where a map comes from: a file, or the text that a run keeps of one."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from aimbot_lab.foundation.bounded_file import read_bounded

MAX_BYTES = 2**16  # of a file; a map has some 5,000
HASH_LINE = "# a map, kept with a run; SHA-256 of all lines below: "
_KEPT_NAME = re.compile(r"map-(?P<hash>[0-9a-f]{12})\.yaml")


class MapText(NamedTuple):
    """A map as text, and the name by which faults call it."""

    name: Path
    text: str


Source = Path | MapText


def as_source(entry: str | Path) -> Source:
    """What `env.map` names: text where it has several lines, a path otherwise."""
    if isinstance(entry, str) and "\n" in entry:
        return MapText(Path(kept_name(entry)), entry)
    return Path(entry)


def name_of(source: Source) -> Path:
    """The path by which faults call `source`."""
    return source.name if isinstance(source, MapText) else source


def read_source(source: Source) -> str:
    """The text of `source`. Raises OSError, UnicodeDecodeError, and ValueError for an altered one.

    Altered is a kept file that is not what its name or its first line says.
    """
    if isinstance(source, MapText):
        text = source.text
    else:
        text = read_bounded(source, MAX_BYTES).decode("utf-8")
    _check_hash(name_of(source).name, text)
    return text


def kept_name(text: str) -> str:
    """The file name under which a run keeps `text`: it holds the hash, to notice any change."""
    return f"map-{_body_hash(text)[:12]}.yaml"


def is_kept_name(name: str) -> bool:
    """Whether `name` is one that `kept_name` gives."""
    return _KEPT_NAME.fullmatch(name) is not None


def with_hash(body: str) -> str:
    """`body` under a line that holds its hash."""
    return f"{HASH_LINE}{_body_hash(body)}\n{body}"


def _body_hash(text: str) -> str:
    """The SHA-256 of `text` without a line of its own hash."""
    body = text.partition("\n")[2] if text.startswith(HASH_LINE) else text
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def _check_hash(name: str, text: str) -> None:
    found, match = _body_hash(text), _KEPT_NAME.fullmatch(name)
    said = text.partition("\n")[0].removeprefix(HASH_LINE) if text.startswith(HASH_LINE) else found
    if said != found or (match is not None and not found.startswith(match["hash"])):
        raise ValueError(
            "altered since a run kept it; to use it as a map of your own, delete its first line "
            "and give it another name"
        )
