"""The newest agent of a run at play, in real time, as long as somebody watches."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from aimbot_lab.curriculum.cells import lesson_scenario
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.foundation.replays import ReplayRow, RestoredRow, Scene
from aimbot_lab.foundation.result_lines import result_line
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.world import Scenario, StepBuffers, step_buffers
from aimbot_lab.panel.server.result_words import ResultLine, readable
from aimbot_lab.panel.server.scene_document import Show, shower
from aimbot_lab.panel.server.watching.live_match import (
    NoPastAgents,
    OpenedRow,
    PastAgents,
    opened_match,
)
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.worlds.registry import make_world, spec_of, type_of

MAX_LINES = 8  # results that are shown
PAUSE_DECISIONS = 8  # for which an end is shown
MATCH_PAUSE = 25  # the same of a match, of which there is more to read
SLOWEST, FASTEST = 0.25, 0.05  # seconds of a decision on the page
LatestAgent = Callable[[], SavedAgent]
LatestMix = Callable[[], Scenario | None]
PastOf = Callable[[SavedAgent], PastAgents]


@dataclass
class _Episode:
    """An episode under way."""

    row: ReplayRow
    player: Any
    show: Show
    buffers: StepBuffers
    scene: Scene
    starts: Any
    number: int
    step: int  # at which the weights that play were saved
    earned: Any = None
    line: ResultLine | None = None
    held: int = 0  # decisions since its end
    names: tuple[str, ...] = ()  # of the agents of a match


@dataclass
class LivePlay:
    """Episodes of the world of `config` one after another, each with the newest agent and mix."""

    config: CurriculumFile
    agent: LatestAgent
    mix: LatestMix
    past: PastOf = lambda _: NoPastAgents()  # the past selves of an agent
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
        saved = self.agent()
        opened = self._opened(saved, number)
        return _Episode(
            row=opened.row,
            player=opened.player,
            show=shower(opened.settings),
            buffers=opened.buffers,
            scene=opened.row.beginning(),
            starts=np.ones(opened.row.world.spec.agents, np.bool_),
            number=number,
            step=int(saved.about.get("step", 0)),
            names=opened.names,
        )

    def _opened(self, saved: SavedAgent, number: int) -> OpenedRow:
        env, seed = self.config.env, derive_seed(self.seed, "panel", number)
        if type_of(env).self_play_targets:
            return opened_match(self.config, saved, self._mix(), self.past(saved), seed=seed)
        world = make_world(env, 1, one_thread=True)
        world.set_scenario(self._mix())
        buffers = step_buffers(world)
        world.reset(seed, buffers.observations)
        replays = type_of(env).replays
        row: ReplayRow = RestoredRow(world)
        settings: Any = env
        if replays is not None and (start := replays.row_start(world, 0)) is not None:
            settings = replays.row_settings(env)
            row = replays.replay_row(settings, start, make_world)
        return OpenedRow(row, saved.agent.player(row.world, seed=number), settings, buffers)

    def _mix(self) -> Scenario:
        mix = self.mix()
        if mix is not None:
            return mix
        known = spec_of(self.config.learned_env).difficulties
        return lesson_scenario(self.config.lessons[-1], known)

    def _decide(self, episode: _Episode) -> None:
        actions = episode.player(episode.buffers.observations, episode.starts)
        before = episode.scene.terms
        episode.scene, batch = episode.row.decide(actions, episode.buffers)
        episode.starts = episode.buffers.finished.copy()
        episode.earned = episode.scene.terms - before
        if batch:
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
            "ended": None if episode.line is None else asdict(episode.line),
            "lines": [asdict(line) for line in self._lines],
        }
