"""A lesson of a curriculum as a build that trainers of ML-Agents play."""

import shlex
import sys
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from aimbot_lab.curriculum.settings import Lesson, lesson_scenario
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.world import close_world, closed_on_failure
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.mlagents.builds import program_of
from aimbot_lab.mlagents.session import PlayerSession
from aimbot_lab.worlds.registry import default_type, make_world, type_of

PLAYER = "AimbotLab.x86_64"
MARK = "# A player of aimbot-lab for ML-Agents."
MISREAD = (".app", ".exe", ".x86")
"""What ML-Agents takes out of a path, wherever it is, before it looks for the file."""
MAX_SCRIPT = 4096  # bytes
MAX_MOUSE = 1000.0  # of the settings: 80 radians in one action
ORIGINAL = (
    "--actions=raw",
    "--result-lines=plain",
    "--stats=off",
    "--log-channel=on",
    "--agents=1",
)
"""Options of a player for clients of Aimbot-ParallelEnv."""


def player_session(
    curriculum: str | None,
    *,
    lesson: int,
    agents: int | None,
    reports: Collection[uuid.UUID],
    overrides: Sequence[str] = (),
    raw: bool = False,
    **told: Any,
) -> PlayerSession:
    """Lesson number `lesson`, from 1 on, of the file or shipped name `curriculum`.

    Without a name it is the shipped one of the target that is meant where none is named. `agents`
    is the number of rows; None: as the file says. `overrides` are `KEY=VALUE` that are put into the
    file. With `raw` actions the mouse goes as far as it can. All else is PlayerSession's. Raises
    ConfigurationError, and for what the file has wrong.
    """
    name = curriculum or default_type().default_target()
    config = load_curriculum(name, overrides, may_run=always).config
    if lesson > len(config.lessons):
        raise ConfigurationError(
            f"--lesson: {name} has {len(config.lessons)} lessons (got {lesson})"
        )
    env: Any = config.env
    if raw and "mouse_limit" in type_of(env).shape_keys:
        env = replace(env, mouse_limit=MAX_MOUSE)
    world = make_world(env, agents)
    with closed_on_failure(partial(close_world, world)):
        scenario = lesson_scenario(config.lessons[lesson - 1], world.spec.difficulties)
        return PlayerSession(world, scenario, reports=reports, raw=raw, **told)


def lesson_of_player(file_name: str, arguments: Sequence[str]) -> tuple[Lesson, WorldType] | None:
    """What a player of ours plays with these arguments, and its world; None: it is another program.

    Raises ConfigurationError for what its curriculum has wrong.
    """
    try:
        with program_of(file_name).open("rb") as program:
            text = program.read(MAX_SCRIPT).decode("utf-8", errors="replace")
    except (ConfigurationError, OSError):
        return None
    if MARK not in text:
        return None
    words = [*shlex.split(text.splitlines()[-1]), *arguments]
    told = [part for word in words for part in word.split("=", 1)]
    asked = dict(pairwise(told))
    config = load_curriculum(asked.get("--curriculum") or default_type().default_target()).config
    number = asked.get("--lesson", "1")
    place = int(number) - 1 if number.isdecimal() else 0
    return config.lessons[min(place, len(config.lessons) - 1)], type_of(config.env)


def export_player(folder: Path, options: Sequence[str] = ()) -> Path:
    """The program in `folder` that ML-Agents starts like a build; it runs this installation.

    It gives the player `options` before the trainer's arguments, which hold where both say
    something. Raises ConfigurationError for a folder that ML-Agents can't read the path of, and
    where there is another file of the program's name.
    """
    path = folder.resolve() / PLAYER
    for part in MISREAD:
        if part in str(path.parent):
            raise ConfigurationError(
                f"{folder}: ML-Agents finds nothing in a folder with {part} in its path; "
                "choose another"
            )
    if path.exists() and MARK not in path.read_text(encoding="utf-8", errors="replace"):
        raise ConfigurationError(f"{path}: is not a player of aimbot-lab, and is left as it is")
    folder.mkdir(parents=True, exist_ok=True)
    given = shlex.join([sys.executable, "-m", "aimbot_lab", "player", *options])
    command = f'exec {given} "$@"'
    path.write_text(f"#!/bin/sh\n{MARK}\n{command}\n", encoding="utf-8")
    path.chmod(0o755)
    return path
