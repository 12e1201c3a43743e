"""What plays in the part Watch: the newest weights of a run in its present mix, in real time."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.evaluation.episodes import cell_scenario
from aimbot_lab.evaluation.matches import MatchPlayer, PairActor, script_player
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.runs.agents import TrackedAgent, fetch_agent
from aimbot_lab.experiment.runs.run_record import RESOLVED_NAME
from aimbot_lab.foundation.display import ReplayRow, RestoredRow, Scene
from aimbot_lab.foundation.episodes import Cell, result_line
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.named_code import NamedCode
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Observations,
    Scenario,
    StepBuffers,
    step_buffers,
)
from aimbot_lab.foundation.world_type import Act
from aimbot_lab.league import Store, pool_of, snapshots_of
from aimbot_lab.panel.server.replays import ResultLine, Show, readable, shower, thought_document
from aimbot_lab.tracking.control_channel import LiveFolder
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.history import download_artifact
from aimbot_lab.tracking.run_folder import RunFolder
from aimbot_lab.tracking.tracker import LAST
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import DESCRIPTION, SavedAgent, load_agent
from aimbot_lab.training.self_play.players import agent_player
from aimbot_lab.training.self_play.pool import read_part
from aimbot_lab.worlds.registry import code_of, make_world, spec_of, type_of

PART = "part-"  # what the files of a checkpoint's parts begin with
SNAPSHOTS = "snapshot-*"
ITSELF = "itself"
MAX_LINES = 8  # results that are shown
PAUSE_DECISIONS = 8  # for which an end is shown
MATCH_PAUSE = 25  # the same of a match, of which there is more to read
SLOWEST, FASTEST = 0.25, 0.05  # seconds of a decision on the page
NOT_YET = (
    "the run has shown no agent yet: it shows one where a rollout begins, after its first update"
)


class PastAgents(NamedTuple):
    """Past selves of an agent, by their names."""

    names: list[str]  # the first first
    agent: Callable[[str], Agent]  # one of them. Raises LabError where it can't be read


def snapshot_parts(checkpoints: Path, saved: SavedAgent) -> PastAgents:
    """Those of a run that trains, in its checkpoints, none before the first; `saved` is its agent.

    Any agent of the run will do.
    """
    found = sorted(path.name for path in checkpoints.glob(PART + SNAPSHOTS))

    def read(name: str) -> Agent:
        return read_part(checkpoints / f"{PART}{name}", saved.train, saved.agent.spec)

    return PastAgents([name.removeprefix(PART) for name in found], read)


def drawn_cell(mix: Scenario, random: np.random.Generator) -> tuple[str, int]:
    """A target and a difficulty, as often as `mix` weighs them."""
    target = _drawn(mix.targets, random)
    weights = mix.difficulty.get(target, (1.0,))
    return target, _drawn(dict(enumerate(weights, start=1)), random)


def _drawn(weights: Mapping[Any, float], random: np.random.Generator) -> Any:
    shares = np.array([*weights.values()], np.float64)
    return [*weights][int(random.choice(len(shares), p=shares / shares.sum()))]


def _opponent(
    config: CurriculumFile,
    saved: SavedAgent,
    target: str,
    past: PastAgents | None,
    *,
    random: np.random.Generator,
) -> MatchPlayer:
    """The opponent in a match of `target`; in the share of mirrored ones the agent itself."""
    kind, own = type_of(config.env), config.self_play
    scripts = kind.baselines(config.env)
    mirrored = own is not None and random.random() < own.play_against_latest_model_ratio
    if target in scripts and not mirrored:
        single = make_world(kind.single_settings(config.env), 1)
        return script_player(target, scripts[target], single)
    names = [] if mirrored or past is None else past.names
    if past is None or not names:
        return agent_player(ITSELF, saved.agent, step=0, run="")
    name = names[int(random.integers(len(names)))]
    return agent_player(name, past.agent(name), step=0, run="")


@dataclass
class _Episode:
    """An episode under way, of the world of `settings` in `row`."""

    row: ReplayRow
    settings: Any
    player: Act
    buffers: StepBuffers
    number: int
    step: int  # at which the weights that play were saved
    agent: Agent  # that is watched
    names: tuple[str, ...] = ()  # of the agents of a match
    mind: dict[str, Any] | None = None  # what it expected, and how likely its choices were
    earned: Any = None
    line: ResultLine | None = None
    held: int = 0  # decisions since its end

    def __post_init__(self) -> None:
        """Show its beginning."""
        self.show: Show = shower(self.settings)
        self.scene: Scene = self.row.beginning()
        self.starts: BoolArray = np.ones(self.row.world.spec.agents, np.bool_)


@dataclass
class LivePlay:
    """Episodes of the world of `config` one after another, each with the newest agent and mix."""

    config: CurriculumFile
    agent: Callable[[], SavedAgent]
    mix: Callable[[], Scenario | None]
    past: Callable[[SavedAgent], PastAgents | None] = lambda _: None  # where it has any
    seed: int = field(default_factory=lambda: time.time_ns() % 2**31)
    _episode: _Episode | None = None
    _lines: deque[ResultLine] = field(default_factory=lambda: deque(maxlen=MAX_LINES))

    @property
    def seconds(self) -> float:
        """Of a decision on the page: the world's own time, within what eyes can follow."""
        world = type_of(self.config.env)
        spec = world.spec(self.config.env)
        replays = world.replays
        wanted = spec.decision_seconds if replays is None else replays.frame_seconds(spec)
        return min(max(wanted, FASTEST), SLOWEST)

    def decide(self) -> dict[str, Any]:
        """The scene after one more decision."""
        episode = self._episode
        if episode is None or episode.held >= (MATCH_PAUSE if episode.names else PAUSE_DECISIONS):
            episode = self._episode = self._begun(0 if episode is None else episode.number + 1)
        elif episode.line is not None:
            episode.held += 1
        else:
            self._decide(episode)
        return self._document(episode)

    def _begun(self, number: int) -> _Episode:
        """The next episode, of the newest agent: one of the world, or a match."""
        saved, env = self.agent(), self.config.env
        kind, step = type_of(env), int(saved.about.get("step", 0))
        seed, mix = derive_seed(self.seed, "panel", number), self._mix()
        replays, is_match = kind.replays, bool(kind.self_play_targets)
        settings: Any = env
        random = np.random.default_rng(seed)
        if is_match:
            assert replays is not None
            settings = replays.row_settings(env)
            target, level = drawn_cell(mix, random)
            opponent = _opponent(self.config, saved, target, self.past(saved), random=random)
            own, levels = next(iter(kind.targets(settings).items()))
            mix = cell_scenario(Cell(own, level), levels, mix.parameters)
        world = make_world(settings, 1, one_thread=True)
        world.set_scenario(mix)
        buffers = step_buffers(world)
        world.reset(seed, buffers.observations)
        row: ReplayRow = RestoredRow(world)
        if replays is not None and (start := replays.row_start(world, 0)) is not None:
            settings = replays.row_settings(env)
            row = replays.replay_row(settings, start, make_world)
        if not is_match:
            player: Act = saved.agent.player(row.world, seed=number)
            return _Episode(row, settings, player, buffers, number, step, saved.agent)
        home = agent_player("home", saved.agent, step=0, run="").sit(derive_seed(seed, "home"))
        player = PairActor(row.world, home, opponent.sit(derive_seed(seed, "away")))
        names = f"agent, step {step:,}", opponent.name
        return _Episode(row, settings, player, buffers, number, step, saved.agent, names)

    def _mix(self) -> Scenario:
        mix = self.mix()
        if mix is not None:
            return mix
        known = spec_of(self.config.learned_env).difficulties
        return lesson_scenario(self.config.lessons[-1], known)

    def _decide(self, episode: _Episode) -> None:
        seen = episode.buffers.observations
        actions = episode.player(seen, episode.starts)
        episode.mind = mind_of(episode.agent, seen, actions, episode.row.world, episode.settings)
        before = episode.scene.terms
        episode.scene, batch = episode.row.decide(actions, episode.buffers)
        episode.starts = episode.buffers.finished.copy()
        episode.earned = episode.scene.terms - before
        if len(batch.row):
            place = int(np.flatnonzero(batch.agent == 0)[0])
            columns = episode.row.world.spec.result_columns
            episode.line = readable(result_line(batch, place, columns))
            self._lines.appendleft(episode.line)

    def _document(self, episode: _Episode) -> dict[str, Any]:
        scene, names = episode.scene, episode.row.world.spec.reward_terms
        terms = scene.terms if len(scene.terms) == len(names) else np.zeros(len(names))
        earned = np.zeros(len(names)) if episode.earned is None else episode.earned
        return {
            "scene": episode.show(scene),
            "period": self.seconds,
            "episode": episode.number,
            "agent_step": episode.step,
            "names": [*episode.names],
            "goal": scene.goal,
            "seconds": round(scene.seconds, 2),
            "time_limit": scene.time_limit,
            "time_unit": episode.row.world.spec.time_unit,
            "terms": [
                [name, round(float(total), 3), round(float(one), 3)]
                for name, total, one in zip(names, terms, earned, strict=True)
            ],
            "mind": episode.mind,
            "ended": None if episode.line is None else asdict(episode.line),
            "lines": [asdict(line) for line in self._lines],
        }


def mind_of(
    agent: Agent, seen: Observations, actions: Float32Array, world: BatchWorld, settings: Any
) -> dict[str, Any] | None:
    """What `agent` expected where it chose the first of `actions`, and how likely its choices were.

    None for one that remembers, and for one that neither judges states nor draws actions.
    """
    masks = np.ones((len(seen), sum(agent.spec.branches)), np.bool_)
    if world.spec.can("masks"):
        world.action_masks(masks)
    mind = agent.mind(seen[:1], masks[:1])
    return None if mind is None else thought_document(mind.at(0, actions[0], agent.spec), settings)


class PlayableRun(Protocol):
    """What is known of a run that is watched."""

    @property
    def run_id(self) -> str:
        """Its id."""

    @property
    def status(self) -> Any:
        """The last state that it has shown; None: none yet."""

    def find(self) -> RunFolder | None:
        """Its folder, while it has one."""


def code_of_run(run: PlayableRun, data_folder: DataFolder, *, uri: str | None) -> NamedCode | None:
    """The code that the world of `run` is made of; None: it needs none of a user's own."""
    folder = run.find()
    if folder is not None and not folder.is_free:
        return code_of(load_curriculum(folder.path / "checkpoints" / RESOLVED_NAME).config.env)

    def fetch(name: str) -> Path:
        return download_artifact(data_folder, run.run_id, name=name, tracking_uri=uri)

    return code_of(load_curriculum(fetch(RESOLVED_NAME), find=fetch).config.env)


class WatchedAgent:
    """The newest agent of a run that trains; of one that is over, its last.

    Or that of the `name` under which the run saved it on request.
    """

    def __init__(
        self, run: PlayableRun, data_folder: DataFolder, *, uri: str | None, name: str = ""
    ) -> None:
        self._run, self._data_folder, self._uri, self._name = run, data_folder, uri, name
        self._loaded: SavedAgent | None = None
        self._time = 0
        self._tracked: TrackedAgent | None = None
        self._kept: PastAgents | None = None
        self._looked = False  # for those that were kept
        self.folder = None if name else self._live_folder()
        self.config = self._config()
        self.play = LivePlay(self.config, self.newest, self.mix, self.past)

    def newest(self) -> SavedAgent:
        """The newest weights. Raises LabError where the run has shown none yet."""
        if self.folder is not None:
            agent = LiveFolder.of(self.folder).agent
            with suppress(OSError):
                changed = (agent / DESCRIPTION).stat().st_mtime_ns
                if changed != self._time:
                    self._loaded, self._time = load_agent(agent), changed
        if self._loaded is None:
            raise LabError(NOT_YET)
        return self._loaded

    def past(self, saved: SavedAgent) -> PastAgents | None:
        """The past selves of `saved`; None where it has none."""
        if self.config.self_play is None:
            return None
        if self.folder is not None:
            return snapshot_parts(self.folder / "checkpoints", saved)
        assert self._tracked is not None
        if not self._looked:
            self._looked = True
            with suppress(LabError):  # a run that was stopped has kept none
                store = Store(self._data_folder, self._uri)
                names = [name for name, _ in snapshots_of(self._tracked, store=store)]
                self._kept = PastAgents(names, pool_of(self._tracked, store=store).read)
        return self._kept

    def mix(self) -> Scenario | None:
        """What the run draws now, with the parameters of its lesson; None: not known."""
        return shown_mix(self.config, self._run.status)

    def _live_folder(self) -> Path | None:
        folder = self._run.find()
        return None if folder is None or folder.is_free else folder.path

    def _config(self) -> CurriculumFile:
        """What the run trains by; of one that is over the agent comes with it."""
        if self.folder is not None:
            place = self.folder / "checkpoints" / RESOLVED_NAME
            return load_curriculum(place).config
        found = self._tracked = fetch_agent(
            self._run.run_id,
            self._name or LAST,
            data_folder=self._data_folder,
            tracking_uri=self._uri,
        )
        self._loaded = found.saved
        return found.config


def shown_mix(config: CurriculumFile, status: Any) -> Scenario | None:
    """What a run of `config` draws by its `status`; None: not known."""
    if not status or not 0 <= status["lesson"] < len(config.lessons):
        return None
    known = spec_of(config.learned_env).difficulties
    written = lesson_scenario(config.lessons[status["lesson"]], known)
    pairs = zip(status["targets"]["targets"], status["targets"]["weights"], strict=False)
    targets = {name: weight for name, weight in pairs if weight > 0 and name in known}
    if not targets:
        return written
    levels = {name: tuple(one["weights"]) for name, one in status["difficulty"].items()}
    levels = {name: one for name, one in levels.items() if name in targets}
    return replace(written, targets=targets, difficulty=levels)
