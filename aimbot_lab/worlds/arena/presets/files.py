"""Target blocks as data: YAML files of presets, shipped with the package or a user's own.

The form of a file is described in `data/README.md`.
"""

import math
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.yaml_nodes import (
    Position,
    TooDeepError,
    position_after,
    position_of,
)
from aimbot_lab.worlds.arena.core.state import DIFFICULTY_COUNT
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.presets.check import TARGETS, broken_rules
from aimbot_lab.worlds.arena.presets.source import (
    Source,
    compose,
    name_of,
    place_of,
    read_source,
    source_files,
)

FOLDER = Path(__file__).parent / "data"
SHIPPED_FILES = tuple(FOLDER / f"{target}.yaml" for target in TARGETS)
PRESET_KEYS = ("name", "fire_base", "obstacles", "enemies")
FIRE_BASE_KEYS = ("center", "diameter")
DIFFICULTIES = tuple(str(number + 1) for number in range(DIFFICULTY_COUNT))
MAX_NAME_LENGTH = 60
WHOLE = "the file"
SCENE = "scene"  # key of what a scene's file holds beside its block
NOT_ONE = "the scene does not hold one block, which could be a preset"
MAX_SHOWN = 40  # characters of a wrong value that a fault repeats


def load_presets(
    files: Sequence[Source] | None = None, *, beside: Sequence[Path] = ()
) -> tuple[Preset, ...]:
    """The presets of `files` in their order; without `files`, those shipped with the package.

    No preset may have the name of another one of its target, those of the files `beside` among
    them, which are not handed out.
    Raises ConfigurationError with every fault of every file, each `file:line:column: what`.
    """
    faults: list[str] = []
    places: dict[tuple[str, str], str] = {}
    presets: list[Preset] = []
    wanted = SHIPPED_FILES if files is None else tuple(files)
    own = [place_of(source) for source in wanted]
    others = [path for path in beside if place_of(path) not in own]
    for path in (*others, *wanted):
        for preset, place in FileReader(path, faults).presets():
            key = (preset.target, preset.name)
            if key in places:
                reason = f"another {preset.target} preset has this name, at {places[key]}"
                faults.append(f"{place}: preset {preset.name}: {reason}")
            places.setdefault(key, place)
            if path not in others:
                presets.append(preset)
    if faults:
        raise ConfigurationError(*faults)
    return tuple(presets)


def preset_files(entries: Sequence[Path | str]) -> tuple[Source, ...]:
    """The files and texts that `entries` name, each once; folders as their *.yaml and *.yml.

    A folder's files come in the order of their names. Raises ConfigurationError for a folder
    that holds none, and a name that no file can have.
    """
    faults: list[str] = []
    files = tuple(dict.fromkeys(source_files(entries, faults)))
    if faults:
        raise ConfigurationError(*faults)
    return files


class FileReader:
    """Reads one file and adds a line to `faults` for everything that is wrong with it."""

    def __init__(self, source: Source, faults: list[str]) -> None:
        self.source, self.path = source, name_of(source)
        self.faults = faults

    def presets(self) -> list[tuple[Preset, str]]:
        """The presets without a fault, each with its place, `file:line:column`."""
        faults_before = len(self.faults)
        root = self.root()
        found: list[tuple[Preset, str]] = []
        whole = self.fields(root, WHOLE, allowed=(*TARGETS, SCENE))
        scene = whole.pop(SCENE, None)
        for target, difficulties in whole.items():
            cells = self.fields(difficulties, target, allowed=DIFFICULTIES)
            for difficulty, listed in cells.items():
                for node in self.items(listed, f"{target}: {difficulty}"):
                    preset = self.preset(node, target, difficulty=int(difficulty))
                    if preset is not None:
                        found.append((preset, self.place(node)))
        if not found and len(self.faults) == faults_before:
            why = "the file holds no preset" if scene is None else NOT_ONE
            self.faults.append(f"{self.path}:1:1: {why}")
        return found

    def root(self) -> Node | None:
        """The YAML tree of the file, or None where there is none."""
        text = ""
        try:
            text = read_source(self.source)
            root = compose(text, trusted=self.path in SHIPPED_FILES)
        except OSError as error:
            self.faults.append(f"{self.path}:1:1: cannot be read: {error.strerror}")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8")
            self.faults.append(f"{self.at(position_after(before))}: not UTF-8 text")
        except yaml.reader.ReaderError as error:
            place = self.at(position_after(text[: error.position]))
            self.faults.append(f"{place}: not YAML: {error.reason}")
        except yaml.MarkedYAMLError as error:
            place = self.at(position_of(error.problem_mark))
            self.faults.append(f"{place}: not YAML: {error.problem}")
        except TooDeepError:
            self.faults.append(f"{self.path}:1:1: not a preset file: nested too deeply")
        except ValueError as error:
            self.faults.append(f"{self.path}:1:1: cannot be read: {error}")
        else:
            return root
        return None

    def preset(self, node: Node, target: str, *, difficulty: int) -> Preset | None:
        """The preset at `node`, or None where it has a fault."""
        faults_before = len(self.faults)
        label = f"preset {_name_in(node)}"
        fields = self.fields(node, label, allowed=PRESET_KEYS, required=PRESET_KEYS[:2])
        name = self.name(fields.get("name"), label)
        where = f"{label}: fire_base"
        base = self.fields(
            fields.get("fire_base"), where, allowed=FIRE_BASE_KEYS, required=FIRE_BASE_KEYS
        )
        centre = self.numbers(base.get("center"), f"{where}: center", count=2)
        diameter = self.number(base.get("diameter"), f"{where}: diameter")
        boxes = self.points(fields.get("obstacles"), f"{label}: obstacles", count=4)
        enemies = self.points(fields.get("enemies"), f"{label}: enemies", count=2)
        if len(self.faults) > faults_before:
            return None
        preset = Preset(
            name=name,
            target=target,
            difficulty=difficulty,
            fire_base=(centre[0], centre[1], diameter),
            obstacles=tuple((box[0], box[1], box[2], box[3]) for box in boxes),
            enemies=tuple((enemy[0], enemy[1]) for enemy in enemies),
        )
        for rule in broken_rules(preset):
            self.fault(fields.get(rule.field, node), f"{label}: {rule.reason}")
        return preset if len(self.faults) == faults_before else None

    def fields(
        self,
        node: Node | None,
        where: str,
        *,
        allowed: Sequence[str],
        required: Sequence[str] = (),
    ) -> dict[str, Node]:
        """The values at `node` by key; empty where there is no node."""
        found: dict[str, Node] = {}
        if node is None:
            return found
        if not isinstance(node, MappingNode):
            keys = ", ".join(allowed)
            # Of a file that is none of presets nothing is repeated: it may be anyone's.
            got = "text" if isinstance(node, ScalarNode) and where == WHOLE else _shown(node)
            self.fault(node, f"{where}: must be a mapping of {keys} (got {got})")
            return found
        for key, value in node.value:
            if not isinstance(key, ScalarNode) or key.value not in allowed:
                self.fault(key, f"{where}: unknown key {_shown(key)}, {_advice(key, allowed)}")
            elif key.value in found:
                self.fault(key, f"{where}: {key.value} is given twice")
            else:
                found[key.value] = value
        given = [key.value for key, _ in node.value]
        for name in required:
            if name not in given:
                self.fault(node, f"{where}: {name} is missing")
        return found

    def items(self, node: Node | None, where: str) -> list[Node]:
        """The entries of the list at `node`; none where there is no node."""
        if node is None:
            return []
        if not isinstance(node, SequenceNode):
            self.fault(node, f"{where}: must be a list (got {_shown(node)})")
            return []
        return list(node.value)

    def points(self, node: Node | None, where: str, *, count: int) -> list[tuple[float, ...]]:
        """The entries of the list at `node`, each `count` numbers."""
        return [
            self.numbers(item, f"{where}: number {index + 1}", count=count)
            for index, item in enumerate(self.items(node, where))
        ]

    def numbers(self, node: Node | None, where: str, *, count: int) -> tuple[float, ...]:
        """The `count` numbers at `node`."""
        items = self.items(node, where)
        if isinstance(node, SequenceNode) and len(items) != count:
            self.fault(node, f"{where}: must be {count} numbers (got {len(items)})")
        return tuple(self.number(item, where) for item in items)

    def number(self, node: Node | None, where: str) -> float:
        """The finite number at `node`; NaN where there is no node or no such number."""
        if node is None:
            return math.nan
        value = _as_float(node)
        if not math.isfinite(value):
            self.fault(node, f"{where}: must be a finite number (got {_shown(node)})")
        return value

    def name(self, node: Node | None, where: str) -> str:
        """The name at `node`, one short line that can be printed."""
        if node is None:
            return ""
        name = node.value if isinstance(node, ScalarNode) else ""
        if not (name.strip() and name.isprintable() and len(name) <= MAX_NAME_LENGTH):
            wanted = f"must be text of 1 to {MAX_NAME_LENGTH} printable characters"
            self.fault(node, f"{where}: name: {wanted} (got {_shown(node)})")
        return str(name)

    def fault(self, node: Node, text: str) -> None:
        """Add one fault at the place of `node`."""
        self.faults.append(f"{self.place(node)}: {text}")

    def place(self, node: Node) -> str:
        """`file:line:column` of `node`."""
        return self.at(position_of(node.start_mark))

    def at(self, position: Position) -> str:
        """`file:line:column` of `position`."""
        return f"{self.path}:{position.line}:{position.column}"


def _name_in(node: Node) -> str:
    """The name to blame in faults, also where the rest of the preset is broken."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == "name" and isinstance(value, ScalarNode) and value.value:
                text = value.value[:MAX_NAME_LENGTH]
                return text if text.isprintable() else ascii(text)
    return "without a name"


def _as_float(node: Node) -> float:
    """The number of a plain scalar, NaN for everything else."""
    if not isinstance(node, ScalarNode) or node.style:
        return math.nan
    try:
        return float(node.value)
    except ValueError:
        return math.nan


def _shown(node: Node) -> str:
    """A wrong value in the words of a fault: one short printable line."""
    if isinstance(node, ScalarNode):
        return ascii(node.value[:MAX_SHOWN]) if node.value else "nothing"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def _advice(key: Node, allowed: Sequence[str]) -> str:
    text = key.value if isinstance(key, ScalarNode) else ""
    guess = "".join(f"did you mean {name}? " for name in get_close_matches(text, allowed, n=1))
    return f"{guess}allowed: {', '.join(allowed)}"
