"""Scenes and result lines as a page shows them: plain numbers or a picture, and rounded words."""

import base64
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from aimbot_lab.foundation.replays import Scene
from aimbot_lab.foundation.result_lines import PREFIX
from aimbot_lab.foundation.scenes import SceneView
from aimbot_lab.foundation.world import Picture

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


MANY = 10_000.0  # from here on whole numbers are shown


@dataclass(frozen=True)
class ResultLine:
    """A line that a game sends, and what this project's own simulator adds to it."""

    line: str  # as Unity sends it: Warning|Result|Win
    detail: str = ""


def readable(full: str) -> ResultLine:
    """A whole result line in its two parts; another line as it is."""
    if not full.startswith(PREFIX):
        return ResultLine(full)
    outcome, *fields = full.removeprefix(PREFIX).split("|")
    return ResultLine(PREFIX + outcome, ", ".join(map(_rounded, fields)))


def in_one(full: str) -> str:
    """A whole result line as one text."""
    found = readable(full)
    return f"{found.line} ({found.detail})" if found.detail else found.line


def _rounded(field: str) -> str:
    """`return=1.2345678` as return=1.235."""
    name, _, value = field.partition("=")
    try:
        number = float(value)
    except ValueError:
        return field
    return f"{name}={number:.0f}" if abs(number) >= MANY else f"{name}={number:.4g}"
