"""Who may act in a game of the page: the person, the world's scripts, the agents of runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.scenes.world_scenes import WorldScenes
from aimbot_lab.foundation.world_type import MakePlayer, WorldSettings
from aimbot_lab.panel.server.loading import AGENTS, KERNELS, STORE

if TYPE_CHECKING:
    from aimbot_lab.panel.server.lab import Lab
    from aimbot_lab.panel.server.run_list import RunLine
    from aimbot_lab.training.agents.agent_files import SavedAgent

PERSON, SCRIPT, RUN = "person", "script:", "run:"


@dataclass(frozen=True)
class ActorLine:
    """Who may act, as the page lists it."""

    key: str
    label: str


class Actor(NamedTuple):
    """Who acts, and the world in which they do."""

    key: str
    settings: WorldSettings  # of a world of one row
    make: MakePlayer | None  # None: a person


def actor_lines(lines: Sequence["RunLine"]) -> list[ActorLine]:
    """The person, the scripts of the default world with scenes, and runs, the newest first."""
    settings = playable_settings()
    scripts = [ActorLine(SCRIPT + name, f"script: {name}") for name in _scripts(settings)]
    runs = [
        ActorLine(RUN + line.run_id, f"agent: {line.name or line.run_id[:8]} ({line.run_id[:6]})")
        for line in lines
    ]
    return [ActorLine(PERSON, "you"), *reversed(scripts), *runs]


def find_actor(lab: "Lab", key: str, settings: WorldSettings | None = None) -> Actor:
    """The actor of that key, in a world of `settings`, or the one that its agent learned in.

    Raises LabError where there is none such, or its world has no scenes.
    """
    lab.loader.need(*KERNELS)
    own = _one_row(playable_settings() if settings is None else settings)
    if key == PERSON:
        return Actor(key, own, None)
    if key.startswith(SCRIPT):
        found = _scripts(own).get(key.removeprefix(SCRIPT))
        if found is None:
            raise ConfigurationError(f"{key}: this world has no such script")
        return Actor(key, own, found)
    saved = _saved_agent(lab, key.removeprefix(RUN))
    scenes_of(saved.env)
    return Actor(
        key,
        _one_row(saved.env),
        lambda world, seed: saved.agent.player(world, seed=seed),
    )


def playable_settings() -> WorldSettings:
    """The settings of the first world that has scenes. Raises ConfigurationError: there is none."""
    from aimbot_lab.worlds.registry import default_settings, world_types

    settings = default_settings()
    if world_types()[settings.world].scenes is not None:
        return settings
    raise ConfigurationError("no world that is installed can be drawn on a page")


def scenes_of(settings: WorldSettings) -> WorldScenes:
    """What the world of `settings` says of pages. Raises ConfigurationError: it says nothing."""
    from aimbot_lab.worlds.registry import type_of

    found = type_of(settings).scenes
    if found is None:
        raise ConfigurationError(
            f"it learned in the world {settings.world}, which can't be drawn on a page"
        )
    return found


def _scripts(settings: WorldSettings) -> dict[str, MakePlayer]:
    from aimbot_lab.worlds.registry import type_of

    return dict(type_of(settings).baselines(settings))


def _one_row(settings: WorldSettings) -> WorldSettings:
    chosen: Any = settings
    chosen = replace(chosen, num_envs=1)
    one: WorldSettings = replace(chosen, threads=1) if hasattr(chosen, "threads") else chosen
    return one


def _saved_agent(lab: "Lab", run: str) -> "SavedAgent":
    """The best agent of a run, or its last one; of one that trains the newest that it has shown."""
    lab.loader.need(*STORE, *AGENTS)
    from aimbot_lab.experiment.runs.tracked_agent import fetch_agent_files
    from aimbot_lab.tracking.runs.live_folder import LiveFolder
    from aimbot_lab.training.agents.agent_files import load_agent

    if lab.run_list.line(run) is None:
        raise ConfigurationError(f"run {run[:12]}: there is none such on this page")
    folder = lab.run_list.find(run)
    if folder is not None and (agent := LiveFolder.of(folder.path).agent).is_dir():
        return load_agent(agent)
    fault: LabError | None = None
    for which in ("best", "last"):
        try:
            found = fetch_agent_files(run, which, data_folder=lab.data_folder, uri=lab.tracking_uri)
            return load_agent(found.folder)
        except LabError as error:
            fault = fault or error
    raise LabError(f"{fault}; one that trains can act here once Watch has shown it")
