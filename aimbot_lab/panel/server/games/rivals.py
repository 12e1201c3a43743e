"""Who a person may play a match against: the world's scripts, and agents and snapshots of runs."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.panel.server.games.actors import (
    PERSON,
    RUN,
    SCRIPT,
    Actor,
    ActorLine,
    present_agent,
)
from aimbot_lab.panel.server.loading import AGENTS, KERNELS, STORE
from aimbot_lab.tracking.runs.agent_names import BEST, LAST

if TYPE_CHECKING:
    from aimbot_lab.evaluation.matches import MatchPlayer
    from aimbot_lab.experiment.runs.tracked_agent import TrackedAgent
    from aimbot_lab.panel.server.lab import Lab
    from aimbot_lab.panel.server.runs.run_list import RunLine
    from aimbot_lab.tracking.runs.run_folder import RunFolder

FIRST = "first"
USUAL = SCRIPT + "greedy"
WORDS = {FIRST: "first snapshot", BEST: "best agent", LAST: "last agent"}


class MatchSetup(NamedTuple):
    """A match for a person: who acts at home, and who plays away, by its name on the page."""

    person: Actor
    rival: "MatchPlayer"
    label: str


def match_target() -> tuple[str, int]:
    """The target of the first world of matches that pages can show, and how many difficulties.

    Empty and 0 where there is none such.
    """
    settings = _match_settings()
    if settings is None:
        return "", 0
    from aimbot_lab.worlds.registry import type_of

    return next(iter(type_of(settings).targets(settings).items()))


def rival_lines(lines: Sequence["RunLine"]) -> list[ActorLine]:
    """The scripts of that world, the strongest first, and the runs in it, the newest first."""
    from aimbot_lab.worlds.registry import type_of

    settings = _match_settings()
    if settings is None:
        return []
    names = reversed([*type_of(settings).baselines(settings)])
    scripts = [ActorLine(SCRIPT + name, f"script: {name}") for name in names]
    runs = (line for line in lines if line.world in ("", settings.world))
    return [*scripts, *chain.from_iterable(map(_agents_of, runs))]


def _agents_of(line: "RunLine") -> Iterator[ActorLine]:
    label = f"{line.name or line.run_id[:8]} ({line.run_id[:6]})"
    trains = line.state == "trains"
    words = {LAST: "newest agent", FIRST: WORDS[FIRST]} if trains else WORDS
    for which in (LAST, BEST, FIRST):
        if which in words:
            yield ActorLine(f"{RUN}{line.run_id}:{which}", f"{label}, {words[which]}")


def set_up(lab: "Lab", key: str) -> MatchSetup:
    """A match against the rival of that key, in the world that its agent learned in.

    Raises LabError where there is none such, or its world has no matches.
    """
    lab.loader.need(*KERNELS)
    settings = _match_settings()
    if settings is None:
        raise ConfigurationError("no world that is installed has matches")
    if key.startswith(SCRIPT):
        return _against_script(key, settings)
    lab.loader.need(*STORE, *AGENTS)
    run, _, which = key.removeprefix(RUN).partition(":")
    line = lab.run_list.line(run)
    if line is None or which not in WORDS:
        raise ConfigurationError(f"{shortened(key, 40)}: there is none such on this page")
    env, rival = _of_run(lab, run, which)
    words = next(one.label for one in _agents_of(line) if one.key.endswith(f":{which}"))
    return MatchSetup(Actor(PERSON, _for_one(env), None), rival, words)


def _against_script(key: str, settings: WorldSettings) -> MatchSetup:
    from aimbot_lab.evaluation.matches import script_player
    from aimbot_lab.worlds.registry import make_world, type_of

    kind, name = type_of(settings), key.removeprefix(SCRIPT)
    scripts = kind.baselines(settings)
    if name not in scripts:
        raise ConfigurationError(f"{shortened(key, 40)}: this world has no such script")
    single = make_world(kind.single_settings(settings), 1)
    person = Actor(PERSON, _for_one(settings), None)
    return MatchSetup(person, script_player(name, scripts[name], single), name)


def _of_run(lab: "Lab", run: str, which: str) -> tuple[WorldSettings, "MatchPlayer"]:
    """The world of a run, and the player that `which` of `WORDS` means."""
    from aimbot_lab.experiment.config.validation import never
    from aimbot_lab.experiment.runs.tracked_agent import fetch_agent
    from aimbot_lab.league.opponents import Store, check_matches, find_opponent

    folder = lab.run_list.find(run)
    if folder is not None and not folder.is_free:
        return _of_training(folder, which)
    store = Store(lab.data_folder, lab.tracking_uri, never)
    found: TrackedAgent = fetch_agent(run, LAST, **store.place)
    check_matches(found)
    return found.config.env, find_opponent(found, which, store=store)


def _of_training(folder: "RunFolder", which: str) -> tuple[WorldSettings, "MatchPlayer"]:
    from aimbot_lab.panel.server.watching.past_agents import SnapshotParts
    from aimbot_lab.training.agents.agent_files import load_agent
    from aimbot_lab.training.self_play.seated_agent import agent_player
    from aimbot_lab.worlds.registry import type_of

    saved = load_agent(present_agent(folder))
    if not type_of(saved.env).self_play_targets:
        raise ConfigurationError(
            f"it learns in the world {saved.env.world}, which has no matches of two agents"
        )
    agent, name, step = saved.agent, "newest agent", int(saved.about.get("step", 0))
    if which == FIRST:
        parts = SnapshotParts(folder.path / "checkpoints", saved)
        if not (names := parts.names()):
            raise ConfigurationError("the run has kept no snapshot yet; choose its newest agent")
        agent, name, step = parts.agent(names[0]), names[0], 0
    return saved.env, agent_player(name, agent, step=step, run=folder.path.name)


def _match_settings() -> WorldSettings | None:
    """The settings of the first world of matches that pages can show."""
    from aimbot_lab.worlds.registry import world_types

    for kind in world_types().values():
        if kind.self_play_targets and kind.scenes is not None:
            found: WorldSettings = kind.match_settings(kind.settings())
            return found
    return None


def _for_one(settings: WorldSettings) -> WorldSettings:
    """Of one match, in which both seats are played from outside."""
    from aimbot_lab.worlds.registry import type_of

    replays = type_of(settings).replays
    assert replays is not None
    one: WorldSettings = replays.row_settings(settings)
    return one
