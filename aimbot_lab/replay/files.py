"""Replays as files: JSON that a person can read, a few kilobytes, no code in it."""

import base64
import binascii
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.replays import RowArrays
from aimbot_lab.foundation.world import Float32Array
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.replay.episode import (
    OtherContentError,
    RecordedEpisode,
    Replay,
    ReplayError,
    ReplayFileError,
    replays_of,
    verify,
)
from aimbot_lab.version import full_version
from aimbot_lab.worlds.registry import (
    DEFAULT,
    WORLDS,
    as_dict,
    content_fault,
    content_of,
    make_world,
    spec_of,
)

FORMAT, VERSION = "aimbot-lab replay", 1
SEAL = "content_sha256"
KEYS = frozenset(
    {"format", "version", "simulator", "about", "result", "settings", "start", "actions"}
    | {"decisions", "trajectory_sha256", SEAL}
)
CONTENT = "content"  # what the settings name and do not hold, where they do so
MAX_BYTES = 2**22  # of a file
MAX_DECISIONS = 2**20
MAX_VERSION = 40  # characters of a version that a refusal repeats
FAULTS = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    FloatingPointError,
    RecursionError,
    zlib.error,
)


def replay_text(replay: Replay) -> str:
    """`replay` as a JSON document."""
    episode = replay.episode
    columns = np.ascontiguousarray(episode.actions.T, "<f4")  # by column, which packs best
    document = {
        "format": FORMAT,
        "version": VERSION,
        "simulator": full_version(),
        "about": dict(replay.about),
        "result": episode.line,
        "settings": as_dict(episode.settings),
        "start": {name: array.tolist() for name, array in episode.start.items()},
        "decisions": len(episode.actions),
        "actions": base64.b64encode(zlib.compress(columns.tobytes(), 9)).decode("ascii"),
        "trajectory_sha256": replay.trajectory_sha256,
    }
    document |= {CONTENT: content} if (content := content_of(episode.settings)) else {}
    sealed = {**document, SEAL: _seal(document)}
    # A line for each part: short, and still to be read.
    lines = [f"{json.dumps(key)}: {json.dumps(sealed[key], allow_nan=False)}" for key in sealed]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load_replay(path: Path) -> Replay:
    """The replay in the file at `path`, which was played once and is what was recorded.

    Raises ReplayFileError, which says why, for a file that is not a replay, that was altered, or
    that plays otherwise here; OSError where it can't be read.
    """
    data = read_bounded(path, MAX_BYTES)
    version = ""
    try:
        document = json.loads(data.decode("utf-8"))
        version = _other_version(document)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ReplayError("this is not a replay")
        if document.get("version") != VERSION:
            raise ReplayError(f"a replay of another format than {VERSION}")
        if document.keys() - {CONTENT} != KEYS or document.pop(SEAL) != _seal(document):
            raise ReplayError("the replay was altered after it was recorded")
        settings = _settings(document["settings"])
        if fault := content_fault(document.get(CONTENT), settings):
            raise OtherContentError(fault)
        if settings.num_envs != 1 or not isinstance(document["about"], dict):
            raise ReplayError("this is not a replay")
        episode = RecordedEpisode(
            settings=settings,
            start=_start(document["start"], settings),
            actions=_unpacked(document["actions"], document["decisions"], settings),
            line=str(document["result"]),
        )
        replay = Replay(episode, document["about"], str(document["trajectory_sha256"]))
        verify(replay)
    except (LabError, *FAULTS) as error:
        if version and not isinstance(error, OtherContentError):
            raise ReplayFileError(
                f"{path}: recorded by aimbot-lab {version}, and this is {full_version()}, "
                "in which it does not play as recorded: replay it with that version"
            ) from error
        raise ReplayFileError(f"{path}: {_reason(error)}") from error
    return replay


def _other_version(document: Any) -> str:
    """The version of this package that made a whole `document`; empty where it is this one."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return ""
    made_by = str(document.get("simulator", ""))[:MAX_VERSION]
    if made_by in ("", full_version()):
        return ""
    rest = {key: value for key, value in document.items() if key != SEAL}
    return made_by if document.get(SEAL) == _seal(rest) else ""


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "it holds settings that there are not"
    return str(error) if isinstance(error, LabError) else "this is not a replay"


def _seal(document: dict[str, Any]) -> str:
    """The hash of all of `document`, however it is laid out."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _settings(given: dict[str, Any]) -> WorldSettings:
    """The settings of the world that `given` name. Raises ReplayError where there is none such."""
    name = given.get("world", DEFAULT)
    if not isinstance(name, str) or name not in WORLDS:
        raise ReplayError(f"a replay of the world {name!r:.40}, which is not installed")
    settings: WorldSettings = TypeAdapter(WORLDS[name].settings).validate_python(given)
    return settings


def _start(given: dict[str, Any], settings: WorldSettings) -> RowArrays:
    """Arrays of the types that the world has; their shapes are checked where they are played."""
    kinds = replays_of(settings).start_types(settings, make_world)
    with np.errstate(over="raise"):
        return {name: np.array(values, kinds[name]) for name, values in given.items()}


def _unpacked(text: str, decisions: int, settings: WorldSettings) -> Float32Array:
    if not isinstance(decisions, int) or not 0 < decisions <= MAX_DECISIONS:
        raise ReplayError("this is not a replay")
    try:
        packed = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ReplayError("this is not a replay") from error
    spec = spec_of(settings)
    width = spec.agents * (len(spec.branches) + spec.continuous)
    size = decisions * width * 4
    data = zlib.decompressobj().decompress(packed, size + 1)
    return np.frombuffer(data, "<f4").reshape(width, decisions).T.astype(np.float32)
