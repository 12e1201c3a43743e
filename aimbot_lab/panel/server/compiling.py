"""Kernels of a game compiled in a process of their own, once, so that the panel keeps answering.

Numba holds Python's lock while it compiles. What it has compiled stays in its cache, from which the
panel then loads it; a mark in the user's cache says for which kernels that was done.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from aimbot_lab.foundation.files import user_cache
from aimbot_lab.panel.server.lab import Lab, Session
from aimbot_lab.panel.server.messages import KERNELS, in_thread
from aimbot_lab.tracking.data_folder import DataFolder

if TYPE_CHECKING:
    from aimbot_lab.panel.server.game import EpisodeGame, SceneGame

WORDS = (
    "The simulator is being compiled, in a process of its own. "
    "This is done once and takes some seconds …"
)
DECISIONS = 3  # that are made: the last of them without compiling


async def compiled(session: Session, part: str, what: str) -> None:
    """Wait until the kernels of the game `what` can be loaded; `part` of the page is told why."""
    mark = await in_thread(_mark, session.lab, what)
    if mark is None or mark.exists():
        return
    session.tell(part, "compiling", WORDS)
    words = [sys.executable, "-P", "-m", __name__, what]
    done = await in_thread(lambda: subprocess.run(words, capture_output=True, check=False))
    if done.returncode == 0:  # else the panel compiles them, and says what is wrong
        with suppress(OSError):
            mark.touch()


def _mark(lab: Lab, what: str) -> Path | None:
    """The file that is there once the kernels were compiled; None: nothing is compiled."""
    lab.loader.need(*KERNELS)
    from aimbot_lab.foundation.kernels.jit import kernel_sources

    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return None
    sources = hashlib.sha256(b"".join(path.read_bytes() for path in kernel_sources()))
    return user_cache() / f"panel-{what}-{sources.hexdigest()[:16]}"


def _games(lab: Lab, what: str) -> "Iterator[EpisodeGame | SceneGame]":
    """The games that need all kernels of `what`."""
    from aimbot_lab.panel.server.actors import PERSON, USUAL, find_actor, match_target, set_up
    from aimbot_lab.panel.server.game import ChosenEpisode, EpisodeGame, SceneGame
    from aimbot_lab.worlds.registry import default_type

    if what == "test":
        scene = SceneGame(find_actor(lab, USUAL))
        scene.press(scene.editor.buttons[0].key)
        yield scene
    elif what == "match":
        match = set_up(lab, USUAL)
        yield EpisodeGame(match.person, ChosenEpisode(match_target()[0], 0, 1), match.rival)
    else:
        for key, target in product((PERSON, USUAL), default_type().targets(None)):
            yield EpisodeGame(find_actor(lab, key), ChosenEpisode(target, 0, 1))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for game in _games(Lab(DataFolder(Path(folder)), here=Path(folder)), sys.argv[1]):
            for _ in range(DECISIONS):
                game.decide()
