"""A scene as a page draws it: plain numbers, or a picture where a world gives none."""

import base64
import io
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from aimbot_lab.foundation.replays import Scene
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
