"""Commands for a terminal in the folder in which the panel was started."""

import shlex
from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.tracking.data_folder import locate_data_folder

if TYPE_CHECKING:
    from aimbot_lab.panel.server.lab import Lab

SHORT = 12  # letters of a run's id, of which a few would do


def command(lab: "Lab", *words: str) -> str:
    """A line that does `words` with the runs that the panel shows."""
    return shlex.join(["aimbot-lab", *words, *_place(lab)])


def _place(lab: "Lab") -> list[str]:
    """The options without which another data folder, or another store, would be meant."""
    try:
        is_usual = locate_data_folder(None).root.resolve() == lab.data_folder.root.resolve()
    except LabError:
        is_usual = False
    words = [] if is_usual else ["--data-dir", str(lab.data_folder.root)]
    return [*words, *([] if lab.tracking_uri is None else ["--tracking-uri", lab.tracking_uri])]
