"""Maps by the names that settings give them: shipped ones, files of a user's, kept texts.

The form of a file is described in `data/README.md`.
"""

from pathlib import Path

import yaml
from yaml.nodes import Node

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.yaml_nodes import (
    NodeLoader,
    Position,
    TooDeepError,
    position_after,
    position_of,
)
from aimbot_lab.worlds.gorge.maps.document import MapDocument
from aimbot_lab.worlds.gorge.maps.grid import GorgeMap
from aimbot_lab.worlds.gorge.maps.source import MapText, Source, as_source, name_of, read_source

FOLDER = Path(__file__).parent / "data"
SHIPPED_FILES = tuple(sorted(FOLDER.glob("*.yaml")))
SHIPPED = tuple(path.stem for path in SHIPPED_FILES)
MAX_LEVELS = 20  # of lists and mappings in each other; a map has two


class _Loader(NodeLoader):
    max_levels = MAX_LEVELS


def load_map(entry: str | Path) -> GorgeMap:
    """The map that `entry` names: a shipped one, a file, or the text that a run keeps of one.

    Raises ConfigurationError with every fault of the file, each `file:line:column: what`; where
    there is no such map without a place.
    """
    return read_map(source_of(entry))


def source_of(entry: str | Path) -> Source:
    """The file or text that `entry` names. Raises ConfigurationError where there is none."""
    if str(entry) in SHIPPED:
        return FOLDER / f"{entry}.yaml"
    source = as_source(entry)
    if not isinstance(source, MapText) and not (str(entry) and _exists(source)):
        shipped = ", ".join(SHIPPED)
        raise ConfigurationError(f"no shipped map and no file {_shown(entry)} (shipped: {shipped})")
    return source


def read_map(source: Source) -> GorgeMap:
    """The map of `source`. Raises ConfigurationError as `load_map` does."""
    faults: list[str] = []
    path = name_of(source)
    text, root = _text_and_root(source, faults)
    if not faults:
        document = MapDocument(root, text)
        grid = document.read()
        faults += [_line(path, fault.position, fault.text) for fault in document.faults]
        if grid is not None and not faults:
            return grid
    raise ConfigurationError(*faults)


def _text_and_root(source: Source, faults: list[str]) -> tuple[str, Node | None]:
    """The text of `source` and its YAML tree; adds a line to `faults` where it has none."""
    text, path, root = "", name_of(source), None
    try:
        text = read_source(source)
        root = yaml.compose(text, Loader=_Loader)
    except OSError as error:
        faults.append(_line(path, Position(1, 1), f"cannot be read: {error.strerror or error}"))
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        faults.append(_line(path, position_after(before), "not UTF-8 text"))
    except yaml.reader.ReaderError as error:
        place = position_after(text[: error.position])
        faults.append(_line(path, place, f"not YAML: {error.reason}"))
    except yaml.MarkedYAMLError as error:
        place = position_of(error.problem_mark)
        faults.append(_line(path, place, f"not YAML: {error.problem}"))
    except TooDeepError as error:
        faults.append(_line(path, error.position, "not a map file: nested too deeply"))
    except ValueError as error:
        faults.append(_line(path, Position(1, 1), f"cannot be read: {error}"))
    return text, root


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long a name, or one that holds a NUL
        return False


def _shown(entry: str | Path) -> str:
    """A name that nothing is called by, on one short line."""
    text = str(entry)[:200]
    return text if text.isprintable() and text else ascii(text)


def _line(path: Path, position: Position, text: str) -> str:
    return f"{path}:{position.line}:{position.column}: {text}"
