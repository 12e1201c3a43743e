"""Who may act in a game of the page: the person, scripts, agents and snapshots of runs."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aimbot_lab.evaluation.matches import MatchPlayer, script_player
from aimbot_lab.foundation.display import WorldScenes
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import never
from aimbot_lab.foundation.shown_text import shortened
from aimbot_lab.foundation.world import Scenario
from aimbot_lab.foundation.world_type import MakePlayer, WorldSettings
from aimbot_lab.panel.server.messages import AGENTS, KERNELS, STORE
from aimbot_lab.panel.server.run_list import RunLine
from aimbot_lab.tracking.control_channel import ControlChannel, LiveFolder
from aimbot_lab.tracking.run_folder import RunFolder
from aimbot_lab.tracking.tracker import BEST, LAST
from aimbot_lab.worlds.registry import default_settings, make_world, type_of, world_types

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.agents import TrackedAgent
    from aimbot_lab.panel.server.lab import Lab
    from aimbot_lab.training.agents.agent_files import SavedAgent


PERSON, SCRIPT, RUN = "person", "script:", "run:"
ANSWER_SECONDS = 20.0  # that a run that trains is given to show its agent
FRESH_SECONDS = 5.0  # for which an agent that was shown counts as present
FIRST = "first"
USUAL = SCRIPT + "greedy"
WORDS = {FIRST: "first snapshot", BEST: "best agent", LAST: "last agent"}


@dataclass(frozen=True)
class ActorLine:
    """Who may act, as the page lists it."""

    key: str
    label: str


class GameActor(NamedTuple):
    """Who acts, and the world in which they do."""

    key: str
    settings: WorldSettings  # of a world of one row
    make: MakePlayer | None  # None: a person
    step: int | None = None  # environment step at which an agent's weights were saved

    @property
    def is_script(self) -> bool:
        """Whether it is neither a person nor an agent that learned."""
        return self.make is not None and self.step is None


def actor_lines(lines: Sequence[RunLine]) -> list[ActorLine]:
    """The person, the scripts of the default world with scenes, and runs, the newest first."""
    settings = playable_settings()
    scripts = [ActorLine(SCRIPT + name, f"script: {name}") for name in _scripts(settings)]
    runs = (_agents_of(line) for line in lines if line.world in ("", settings.world))
    return [ActorLine(PERSON, "you"), *reversed(scripts), *chain.from_iterable(runs)]


def _agents_of(line: RunLine) -> Iterator[ActorLine]:
    """The newest agent of a run, and those that it saved on request."""
    label = f"agent: {line.name or line.run_id[:8]} ({line.run_id[:6]})"
    newest = ", newest" if line.state == "trains" else ""
    yield ActorLine(RUN + line.run_id, label + newest)
    for name in line.saved:
        yield ActorLine(f"{RUN}{line.run_id}:{name}", f"{label}, {name.replace('-', ' ')}")


def find_actor(lab: "Lab", key: str) -> GameActor:
    """The actor of that key, in the world that pages play, or the one that its agent learned in.

    Raises LabError if there is no such actor or its world has no scenes.
    """
    lab.loader.need(*KERNELS)
    own = _one_row(playable_settings())
    if key == PERSON:
        return GameActor(key, own, None)
    if key.startswith(SCRIPT):
        found = _scripts(own).get(key.removeprefix(SCRIPT))
        if found is None:
            raise ConfigurationError(f"{key}: this world has no such script")
        return GameActor(key, own, found)
    saved = _saved_agent(lab, key.removeprefix(RUN))
    resting_of(saved.env)
    return GameActor(
        key,
        _one_row(saved.env),
        lambda world, seed: saved.agent.player(world, seed=seed),
        int(saved.about.get("step", 0)),
    )


def playable_settings() -> WorldSettings:
    """The settings of the first world that has scenes. Raises ConfigurationError: there is none."""
    settings = default_settings()
    if world_types()[settings.world].scenes is not None:
        return settings
    raise ConfigurationError("no world that is installed can be drawn on a page")


def scenes_of(settings: WorldSettings) -> WorldScenes:
    """What the world of `settings` says of pages. Raises ConfigurationError: it says nothing."""
    found = type_of(settings).scenes
    if found is None:
        raise ConfigurationError(
            f"it learned in the world {settings.world}, which can't be drawn on a page"
        )
    return found


def resting_of(settings: WorldSettings) -> Scenario:
    """What a row at rest is drawn from. Raises ConfigurationError: such a world has no scenes."""
    found = scenes_of(settings).resting
    if found is None:
        here = playable_settings().world
        raise ConfigurationError(
            f"it learned in the world {settings.world}, and this is for the {here}: see it at "
            f"Watch, or choose {settings.world} at Play to meet it"
        )
    return found


def _scripts(settings: WorldSettings) -> dict[str, MakePlayer]:
    return dict(type_of(settings).baselines(settings))


def _one_row(settings: WorldSettings) -> WorldSettings:
    chosen: Any = settings
    chosen = replace(chosen, num_envs=1)
    one: WorldSettings = replace(chosen, threads=1) if hasattr(chosen, "threads") else chosen
    return one


def _saved_agent(lab: "Lab", key: str) -> "SavedAgent":
    """The agent that `key` means: a run, and after a colon one that it saved on request.

    Without that it is the present one of a run that trains, else its best or its last one.
    """
    lab.loader.need(*STORE, *AGENTS)
    from aimbot_lab.training.agents.agent_files import load_agent

    run, _, name = key.partition(":")
    line = lab.run_list.line(run)
    if line is None or (name and name not in line.saved):
        raise ConfigurationError(f"agent {shortened(key, 40)}: there is no such agent on this page")
    folder = lab.run_list.find(run)
    if not name and folder is not None and not folder.is_free:
        return load_agent(present_agent(folder))
    try:
        return load_agent(_kept(lab, run, (name,) if name else (BEST, LAST)))
    except LabError:
        if name or folder is None or not (shown := LiveFolder.of(folder.path).agent).is_dir():
            raise
        return load_agent(shown)  # its process died


def _kept(lab: "Lab", run: str, names: Sequence[str]) -> Path:
    """Where the first of the agents of `names` lies that a run has kept."""
    from aimbot_lab.experiment.runs.agents import fetch_agent_files

    fault: LabError | None = None
    for name in names:
        try:
            found = fetch_agent_files(run, name, data_folder=lab.data_folder, uri=lab.tracking_uri)
            return found[1]
        except LabError as error:
            fault = fault or error
    raise fault or ConfigurationError(f"run {run[:12]} has no agent")


def present_agent(folder: RunFolder, *, seconds: float = ANSWER_SECONDS) -> Path:
    """Where a run that trains shows its present agent, which it is asked for; else its last one.

    One that it has shown within the last seconds is present enough. Raises LabError where it has
    shown none within `seconds`.
    """
    from aimbot_lab.training.agents.agent_files import DESCRIPTION

    channel, shown = ControlChannel(folder.path), LiveFolder.of(folder.path).agent
    with suppress(OSError):
        if time.time() - (shown / DESCRIPTION).stat().st_mtime < FRESH_SECONDS:
            return shown
    key = channel.send({"kind": "show_agent"})
    answer = channel.wait(key, seconds, still_open=lambda: not folder.is_free)
    if answer is None:
        channel.withdraw(key)
    if (answer is not None and "error" not in answer) or shown.is_dir():
        return shown
    if answer is not None:
        raise LabError(f"run {folder.path.name[:12]} shows no agent: {answer['error']}")
    raise LabError(
        f"run {folder.path.name[:12]} has no agent yet: it is starting, or in a long update; "
        "choose it again in a while, or let a script act"
    )


class MatchSetup(NamedTuple):
    """A match for a person: who acts at home, and who plays away, by its name on the page."""

    person: GameActor
    rival: "MatchPlayer"
    label: str


def match_target() -> tuple[str, int]:
    """The target of the first world of matches that pages can show, and how many difficulties.

    Empty and 0 if no world has matches.
    """
    settings = _match_settings()
    if settings is None:
        return "", 0
    return next(iter(type_of(settings).targets(settings).items()))


def rival_lines(lines: Sequence[RunLine]) -> list[ActorLine]:
    """The scripts of that world, the strongest first, and the runs in it, the newest first."""
    settings = _match_settings()
    if settings is None:
        return []
    names = reversed([*type_of(settings).baselines(settings)])
    scripts = [ActorLine(SCRIPT + name, f"script: {name}") for name in names]
    runs = (line for line in lines if line.world in ("", settings.world))
    return [*scripts, *chain.from_iterable(map(_rivals_of, runs))]


def _rivals_of(line: RunLine) -> Iterator[ActorLine]:
    label = f"{line.name or line.run_id[:8]} ({line.run_id[:6]})"
    trains = line.state == "trains"
    words = {LAST: "newest agent", FIRST: WORDS[FIRST]} if trains else WORDS
    for which in (LAST, BEST, FIRST):
        if which in words:
            yield ActorLine(f"{RUN}{line.run_id}:{which}", f"{label}, {words[which]}")


def set_up(lab: "Lab", key: str) -> MatchSetup:
    """A match against the rival of that key, in the world that its agent learned in.

    Raises LabError if there is no such rival or its world has no matches.
    """
    lab.loader.need(*KERNELS)
    settings = _match_settings()
    if settings is None:
        raise ConfigurationError("no world that is installed has matches")
    if key.startswith(SCRIPT):
        kind, name = type_of(settings), key.removeprefix(SCRIPT)
        scripts = kind.baselines(settings)
        if name not in scripts:
            raise ConfigurationError(f"{shortened(key, 40)}: this world has no such script")
        single = make_world(kind.single_settings(settings), 1)
        person = GameActor(PERSON, _for_one(settings), None)
        return MatchSetup(person, script_player(name, scripts[name], single), name)
    lab.loader.need(*STORE, *AGENTS)
    run, _, which = key.removeprefix(RUN).partition(":")
    line = lab.run_list.line(run)
    if line is None or which not in WORDS:
        raise ConfigurationError(f"{shortened(key, 40)}: there is no such opponent on this page")
    env, rival = _of_run(lab, run, which)
    words = next(one.label for one in _rivals_of(line) if one.key.endswith(f":{which}"))
    return MatchSetup(GameActor(PERSON, _for_one(env), None), rival, words)


def _of_run(lab: "Lab", run: str, which: str) -> tuple[WorldSettings, MatchPlayer]:
    """The world of a run, and the player that `which` of `WORDS` means."""
    from aimbot_lab.experiment.runs.agents import fetch_agent
    from aimbot_lab.league import Store, check_worlds, find_opponent

    folder = lab.run_list.find(run)
    if folder is not None and not folder.is_free:
        from aimbot_lab.panel.server.watched_agent import snapshot_parts
        from aimbot_lab.training.agents.agent_files import load_agent
        from aimbot_lab.training.self_play.players import agent_player

        saved = load_agent(present_agent(folder))
        if not type_of(saved.env).self_play_targets:
            raise ConfigurationError(
                f"it learns in the world {saved.env.world}, which has no matches of two agents"
            )
        agent, name, step = saved.agent, "newest agent", int(saved.about.get("step", 0))
        if which == FIRST:
            parts = snapshot_parts(folder.path / "checkpoints", saved)
            if not parts.names:
                raise ConfigurationError(
                    "the run has kept no snapshot yet; choose its newest agent"
                )
            agent, name, step = parts.agent(parts.names[0]), parts.names[0], 0
        return saved.env, agent_player(name, agent, step=step, run=folder.path.name)
    store = Store(lab.data_folder, lab.tracking_uri, never)
    found: TrackedAgent = fetch_agent(run, LAST, **store.place)
    check_worlds([found])
    return found.config.env, find_opponent(found, which, store=store)


def _match_settings() -> WorldSettings | None:
    """The settings of the first world of matches that pages can show."""
    for kind in world_types().values():
        if kind.self_play_targets and kind.scenes is not None:
            found: WorldSettings = kind.match_settings(kind.settings())
            return found
    return None


def _for_one(settings: WorldSettings) -> WorldSettings:
    """Of one match, in which both seats are played from outside."""
    replays = type_of(settings).replays
    assert replays is not None
    one: WorldSettings = replays.row_settings(settings)
    return one
