"""Leagues: agents of runs, their snapshots and scripted players, each against each, and rated.

The command line calls `plan_league` and `play_league`. Games are played in worlds of two sides;
nothing here knows which world that is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, cycle
from typing import Any, NamedTuple

import numpy as np

from aimbot_lab.evaluation.episodes import (
    FIRST_SEED,
    cell_scenario,
    evaluation_seed,
    first_episodes,
)
from aimbot_lab.evaluation.matches import (
    MatchPlayer,
    endless_match,
    longest,
    play_pairs,
    script_player,
    seated,
)
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.learning_curve import (
    COLOURS,
    Interval,
    Trail,
    heading,
    html_table,
    interval_chart,
    page,
    paragraph,
    trail_chart,
)
from aimbot_lab.experiment.analysis.matches import (
    SHORT_ID,
    TrackedPool,
    fetch_snapshots,
    unlike_settings,
)
from aimbot_lab.experiment.analysis.recording import (
    RecordingRequest,
    interleaved,
    turns,
    wanted_cells,
)
from aimbot_lab.experiment.runs.agents import TrackedAgent, fetch_agent
from aimbot_lab.foundation.cycles import ALPHA, cycle_p, cyclic_share, nash_weights, strongest_cycle
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.named_code import MayRun
from aimbot_lab.foundation.ratings import ratings_of
from aimbot_lab.foundation.shown_text import percent
from aimbot_lab.foundation.world import BatchWorld, Scenario, step_buffers
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.replay.episode import About, Replay, as_replay, recorded_episodes
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.tracking.tracker import BEST, LAST, is_agent_name
from aimbot_lab.training.self_play.players import agent_player, by_kernels
from aimbot_lab.training.self_play.pool import GAMES_HEAD
from aimbot_lab.worlds.registry import make_world, type_of

ANCHOR, ANCHOR_POINTS = "greedy", 1200.0  # so that leagues compare
HEAD = ("player", "step", "rating", "95 % interval", "games", "score", "Nash")
COLOUR = COLOURS[0]


@dataclass(frozen=True)
class RatedPlayer:
    """A player of the league."""

    name: str
    run: str | None  # None: a script
    step: int | None
    rating: float
    lower: float
    upper: float
    games: int
    score: float  # mean over all its games
    nash: float  # weight in the most even mixture that no player beats


@dataclass(frozen=True)
class League:
    """Players, best first, with their scores against each other."""

    players: tuple[RatedPlayer, ...]
    scores: tuple[tuple[float | None, ...], ...]  # [P][P] mean scores; None: of itself
    counts: tuple[tuple[str, str, int, int, int], ...]  # player, player, wins, draws, losses
    cycle_p: float
    cyclic_share: float
    cycle: tuple[str, str, str] | None  # each beats the next
    anchor: str
    left_out: tuple[str, ...]  # snapshots that could not be read, with the reason

    @property
    def verdict(self) -> str:
        """Whether ratings tell the whole story, in a sentence."""
        if self.cycle_p > ALPHA:
            return f"Ratings explain these games (test for cycles: p = {self.cycle_p:.3g})."
        named = "" if self.cycle is None else f": {' beats '.join((*self.cycle, self.cycle[0]))}"
        share = f"{100 * self.cyclic_share:.0f} % of the logits are cyclic"
        return f"Ratings do not tell the whole story (p = {self.cycle_p:.3g}, {share}){named}."

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        return {"schema": 1, **asdict(self)}

    def games_text(self) -> str:
        """The games as CSV."""
        lines = [",".join(map(str, row)) for row in self.counts]
        return GAMES_HEAD + "".join(f"{line}\n" for line in lines)


def rated(
    players: Sequence[MatchPlayer], counts: np.ndarray, *, seed: int, left_out: Sequence[str]
) -> League:
    """The league of `players` that played `counts` [P, P, 3]."""
    names = [player.name for player in players]
    anchor = names.index(ANCHOR) if ANCHOR in names else 0
    ratings, scores, games = ratings_of(counts), _scores(counts), counts.sum(axis=2)
    points, errors = ANCHOR_POINTS + ratings.above(anchor), ratings.error_above(anchor)
    weights = nash_weights(np.where(games > 0, scores, 0.5))
    means = (scores * games).sum(axis=1) / np.maximum(games.sum(axis=1), 1)
    made = [
        RatedPlayer(
            name=player.name,
            run=player.run,
            step=player.step,
            rating=float(points[place]),
            lower=float(points[place] - errors[place]),
            upper=float(points[place] + errors[place]),
            games=int(games[place].sum()),
            score=float(means[place]),
            nash=float(weights[place]),
        )
        for place, player in enumerate(players)
    ]
    order = sorted(range(len(players)), key=lambda place: -made[place].rating)
    cycle = None
    if (found := strongest_cycle(counts)) is not None:
        one, two, three = found
        cycle = names[one], names[two], names[three]
    return League(
        players=tuple(made[place] for place in order),
        scores=tuple(
            tuple(float(scores[i, j]) if games[i, j] else None for j in order) for i in order
        ),
        counts=tuple(
            (names[i], names[j], *counts[i, j].tolist())
            for i, j in combinations(range(len(names)), 2)
        ),
        cycle_p=cycle_p(counts, seed=seed),
        cyclic_share=cyclic_share(counts),
        cycle=cycle,
        anchor=names[anchor],
        left_out=tuple(left_out),
    )


def _scores(counts: np.ndarray) -> np.ndarray:
    """Mean scores [P, P]; 0 where nothing was played."""
    points = counts[:, :, 0] + 0.5 * counts[:, :, 1]
    return np.asarray(points / np.maximum(counts.sum(axis=2), 1))


def rating_rows(league: League) -> list[tuple[str, ...]]:
    """A row for each player, the best first."""
    return [
        (
            one.name,
            "script" if one.step is None else f"{one.step:,}",
            f"{one.rating:.0f}",
            f"{one.lower:.0f} to {one.upper:.0f}",
            f"{one.games:,}",
            percent(one.score),
            f"{100 * one.nash:.0f} %",
        )
        for one in league.players
    ]


def score_rows(league: League) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Heads and rows of the mean scores of each player against each, numbered as rated."""
    numbers = [str(place + 1) for place in range(len(league.players))]
    rows = [
        (
            f"{number} {player.name}",
            *("" if score is None else f"{100 * score:.0f} %" for score in scores),
        )
        for number, player, scores in zip(numbers, league.players, league.scores, strict=True)
    ]
    return ("score against", *numbers), rows


def trails(league: League) -> list[Trail]:
    """The ratings of each run's players by the step that they are from."""
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    for one in league.players:
        if one.run is not None and one.step is not None:
            point = float(one.step), one.rating, one.lower, one.upper
            found.setdefault(one.run, []).append(point)
    named = sorted(found.items())
    return [
        Trail(f"run {run[:SHORT_ID]}", sorted(points), colour)
        for (run, points), colour in zip(named, cycle(COLOURS), strict=False)
    ]


def league_page(league: League) -> str:
    """The whole page, in one text."""
    head, rows = score_rows(league)
    ends = [end for one in league.players for end in (one.lower, one.upper)]
    intervals = [
        Interval(one.name, one.rating, one.lower, one.upper, COLOUR) for one in league.players
    ]
    chart = trail_chart(trails(league))
    note = "Snapshots, last and best agent of each run, with 95 % intervals."
    return page(
        "League",
        [
            paragraph(league.verdict),
            paragraph(f"{league.anchor} has 1200 points.", quiet=True),
            html_table(HEAD, rating_rows(league)),
            interval_chart(intervals, low=min(ends), high=max(ends), zero=None),
            *[heading("Ratings over steps"), chart, paragraph(note, quiet=True)],
            heading("Scores"),
            html_table(head, rows),
            *(paragraph(f"Left out: {line}") for line in league.left_out),
        ],
    )


FIRST = "first"  # the first snapshot of a run
USUAL_SCRIPT = "greedy"
SNAPSHOT = "snapshot-"
KINDS = "first, best, last, a snapshot such as snapshot-000003, step-N, a script, or a RUN"


@dataclass(frozen=True)
class Store:
    """Where runs are looked up."""

    data_folder: DataFolder
    tracking_uri: str | None = None
    may_run: MayRun | None = None  # as `fetch_agent` takes it

    @property
    def place(self) -> dict[str, Any]:
        """The same as arguments of `fetch_agent`."""
        return vars(self)


def find_opponent(
    agent: TrackedAgent, name: str | None, *, store: Store, temperature: Temperature | None = None
) -> MatchPlayer:
    """The player that `name` means to `agent`: of its own run, a script, or of another run.

    A run may be followed by a colon and one of its snapshots or agents; its last agent is meant
    without. Where no name is given it is the run's first snapshot, or `greedy` where there is none.
    Raises ConfigurationError where there is no such player, LabError where it can't be read.
    """
    scripts = type_of(agent.config.env).baselines(agent.config.env)
    if name is None:
        name = FIRST if agent.config.self_play is not None else USUAL_SCRIPT
    if name in scripts:
        single = type_of(agent.config.env).single_settings(agent.config.env)
        return script_player(name, scripts[name], make_world(single, 1))
    if _is_own(name):
        return _of_run(agent, name, store=store, temperature=temperature)
    run, _, which = name.partition(":")
    other = _other_run(run, which or LAST, known=(*scripts,), store=store)
    check_worlds([agent, other] if other.run.run_id != agent.run.run_id else [agent])
    found = _of_run(other, which or LAST, store=store, temperature=temperature)
    shown = f"{found.name} of {other.run.name or 'run'} ({other.run.run_id[:SHORT_ID]})"
    return replace(found, name=shown)


def _is_own(name: str) -> bool:
    return name == FIRST or name.startswith(SNAPSHOT) or is_agent_name(name)


def _other_run(run: str, which: str, *, known: tuple[str, ...], store: Store) -> TrackedAgent:
    if not _is_own(which):
        raise ConfigurationError(f"--against {run}:{which}: valid after the colon are {KINDS}")
    try:
        return fetch_agent(run, which if is_agent_name(which) else LAST, **store.place)
    except ConfigurationError as error:
        valid = f"valid are {KINDS}; scripts are {', '.join(known)}"
        raise ConfigurationError(f"--against: {error}; {valid}") from error


def _of_run(
    agent: TrackedAgent, which: str, *, store: Store, temperature: Temperature | None
) -> MatchPlayer:
    """The agent or snapshot `which` of the run of `agent`."""
    if is_agent_name(which):
        found = agent
        if which != agent.which:
            found = fetch_agent(agent.run.run_id, which, **store.place)
        return as_player(found, f"{found.which} agent", temperature=temperature)
    listed = snapshots_of(agent, store=store)
    names = [name for name, _ in listed]
    wanted = names[0] if which == FIRST else which
    if wanted not in names:
        raise ConfigurationError(
            f"--against {which}: the run has the snapshots {names[0]} to {names[-1]}"
        )
    read = pool_of(agent, store=store).read(wanted)
    run_id, step = agent.run.run_id, dict(listed)[wanted]
    return agent_player(wanted, read, step=step, run=run_id, temperature=temperature)


def as_player(
    agent: TrackedAgent, name: str, *, temperature: Temperature | None = None
) -> MatchPlayer:
    """`agent` as a player of that name."""
    own, run_id = agent.saved.agent, agent.run.run_id
    return agent_player(name, own, step=agent.step, run=run_id, temperature=temperature)


def pool_of(agent: TrackedAgent, *, store: Store) -> TrackedPool:
    """The snapshots of the run of `agent`."""
    return TrackedPool(agent, data_folder=store.data_folder, tracking_uri=store.tracking_uri)


def snapshots_of(agent: TrackedAgent, *, store: Store) -> list[tuple[str, int]]:
    """Names and steps of the snapshots of a run. Raises ConfigurationError where it has none."""
    shown = f"run {agent.run.run_id[:SHORT_ID]}"
    if agent.config.self_play is None:
        raise ConfigurationError(f"{shown} has no snapshots: it did not train by self-play")
    try:
        listed = pool_of(agent, store=store).listed()
    except LabError as error:
        raise ConfigurationError(f"{shown}: its snapshots can't be read: {error}") from error
    if not listed:
        raise ConfigurationError(f"{shown} has no snapshots")
    return listed


def shown_name(player: MatchPlayer) -> str:
    """What a film calls it: its name, and at which step it was saved."""
    return player.name if player.step is None else f"{player.name}, step {player.step:,}"


def match_levels(agent: TrackedAgent, difficulty: int | None) -> Sequence[int]:
    """The difficulties of the run's last lesson, or the one that is wanted.

    Raises ConfigurationError if the world has no such difficulty.
    """
    env = agent.config.env
    count = next(iter(type_of(env).targets(env).values()))
    if difficulty is not None:
        if not 1 <= difficulty <= count:
            raise ConfigurationError(f"--difficulty {difficulty}: must be 1 to {count}")
        return [difficulty]
    return sorted({cell.difficulty for cell in wanted_cells(agent, None, None)})


def record_matches(
    agent: TrackedAgent,
    opponent: MatchPlayer,
    request: RecordingRequest,
    *,
    on_episode: Callable[[str], None],
) -> tuple[Replay, ...]:
    """Matches of `agent` at home against `opponent`, under the parameters of its last lesson."""
    home = as_player(agent, f"{agent.which} agent", temperature=request.temperature)
    kind, lesson = type_of(agent.config.env), agent.config.lessons[-1]
    settings = kind.match_settings(agent.config.env)
    target, difficulties = next(iter(kind.targets(settings).items()))
    temperature = agent.saved.agent.temperature(request.temperature)
    about: About = {
        "run": agent.run.run_id,
        "name": agent.run.name,
        "home": shown_name(home),
        "away": shown_name(opponent),
        "agent": agent.which,
        "step": agent.step,
        "player": temperature.label,
        "temperature": temperature,
        "seed": request.seed,
    }
    columns = []
    for level, count in turns(match_levels(agent, request.difficulty), request.episodes):
        cell, world = Cell(target, level), make_world(settings, count)
        world.set_scenario(cell_scenario(cell, difficulties, dict(lesson.parameters)))
        seed, buffers = evaluation_seed(request.seed, cell), step_buffers(world)
        act = seated(home, opponent, world, seed=seed)
        world.reset(seed, buffers.observations)
        error = endless_match((home, opponent))
        steps = first_episodes(world, act, buffers, limit=longest(world), error=error)
        played = dict(recorded_episodes(world, steps, buffers.observations))
        judge = agent.saved.agent.mind
        columns.append([as_replay(played[row], about, judge) for row in range(count)])
        for _ in played:
            on_episode(f"difficulty {level}")
    return interleaved(columns)


MOST = 32_768  # matches at once, unless a single pair has more


def check_worlds(found: Sequence[TrackedAgent]) -> None:
    """Raise ConfigurationError, naming a run, where not all can play each other."""
    ids = [one.run.run_id for one in found]
    for run_id in ids:
        if ids.count(run_id) > 1:
            raise ConfigurationError(f"run {run_id[:SHORT_ID]} is named twice")
    first = found[0]
    for one in found:
        shown, env = f"run {one.run.run_id[:SHORT_ID]} ({one.run.name})", one.config.env
        if not type_of(env).self_play_targets:
            raise ConfigurationError(f"{shown}: world {env.world} has no matches of two agents")
        differing = unlike_settings(env, first.config.env)
        if differing:
            what = f"was trained with another {', '.join(differing)} than run {ids[0][:SHORT_ID]}"
            raise ConfigurationError(f"{shown}: {what}")


def _best(last: TrackedAgent, prefix: str, at: Mapping[str, Any]) -> list[MatchPlayer]:
    """The best agent, where there is one that is not the last."""
    try:
        best = fetch_agent(last.run.run_id, BEST, **at)
    except LabError:
        return []
    return [] if best.step == last.step else [as_player(best, f"{prefix}{best.which}")]


def spread(count: int, most: int) -> list[int]:
    """At most `most` of `count` places, evenly spaced, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})


def play_all(
    players: Sequence[MatchPlayer],
    new_world: Callable[[], BatchWorld],
    seed: int,
    *,
    on_pair: Callable[[str], None],
) -> np.ndarray:
    """[P, P, 3] wins, draws and losses of each of `players` against each.

    Every pair plays the first episode of each row of a world of its own, which begins by `seed`, so
    alike for all of them. As many pairs as have room play side by side.
    """
    pairs = list(combinations(range(len(players)), 2))
    counts = np.zeros((len(players), len(players), 3), np.int64)
    worlds = [new_world()]
    at_once = max(1, min(len(pairs), MOST // worlds[0].num_envs))
    worlds += [new_world() for _ in range(at_once - 1)]
    for first in range(0, len(pairs), at_once):
        some = pairs[first : first + at_once]
        found = play_pairs(
            [(players[one], players[other]) for one, other in some],
            worlds[: len(some)],
            seed=seed,
            seat=by_kernels,
            on_pair=lambda pair: on_pair(f"{pair[0].name} - {pair[1].name}"),
        )
        for (one, other), (wins, draws, losses) in zip(some, found, strict=True):
            counts[one, other] = wins, draws, losses
            counts[other, one] = losses, draws, wins
    return counts


@dataclass(frozen=True)
class LeagueRequest:
    """How a league is played."""

    games: int  # a pair
    snapshots: int | None  # of each run, at most; None: runs send their last agent alone
    seed: int
    difficulty: int | None = None  # of all matches; None: all alike


class PlannedLeague(NamedTuple):
    """A league before its games."""

    request: LeagueRequest
    players: tuple[MatchPlayer, ...]
    new_world: Callable[[], BatchWorld]  # in which a pair meets
    run_ids: tuple[str, ...]
    left_out: tuple[str, ...]  # snapshots that can't be read, each with the reason

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return len(self.players) * (len(self.players) - 1) // 2


def plan_league(
    runs: Sequence[str],
    request: LeagueRequest,
    *,
    data_folder: DataFolder,
    tracking_uri: str | None = None,
) -> PlannedLeague:
    """The league of `runs`, which have learned in the same world of two sides, before its games.

    Players are the last and the best agent of each run, of self-play some of its snapshots, evenly
    spaced, first and last always, and the world's scripts. Raises ConfigurationError where a run is
    named twice, or was not trained in such a world, and for a difficulty that there is not,
    LabError where a run has no agent.
    """
    at: dict[str, Any] = {"data_folder": data_folder, "tracking_uri": tracking_uri}
    found = [fetch_agent(run, LAST, **at) for run in runs]
    check_worlds(found)
    players: list[MatchPlayer] = []
    left_out: list[str] = []
    most = request.snapshots
    for last in found:
        prefix = f"{last.run.run_id[:SHORT_ID]}:" if len(found) > 1 else ""
        own_last = as_player(last, f"{prefix}{last.which}")
        if most is None:
            players.append(own_last)
            continue
        own, damaged = fetch_snapshots(last, lambda count: spread(count, most), **at, prefix=prefix)
        players += [*own, own_last, *_best(last, prefix, at)]
        left_out += damaged
    kind = type_of(found[0].config.env)
    env = kind.single_settings(found[0].config.env)
    single, scripts = make_world(env, request.games), kind.baselines(env)
    players += [script_player(name, scripts[name], single) for name in scripts]
    new_world = partial(_matches, env, request.games, _scenario(env, request))
    ids = tuple(one.run.run_id for one in found)
    return PlannedLeague(request, tuple(players), new_world, ids, tuple(left_out))


def play_league(plan: PlannedLeague, *, on_pair: Callable[[str], None]) -> League:
    """The league of `plan`; `on_pair` is called after each pair."""
    request, left_out = plan.request, plan.left_out
    counts = play_all(plan.players, plan.new_world, FIRST_SEED + request.seed, on_pair=on_pair)
    return rated(plan.players, counts, seed=request.seed, left_out=left_out)


def _scenario(env: WorldSettings, request: LeagueRequest) -> Scenario:
    """What matches are drawn from. Raises ConfigurationError for a difficulty there is not."""
    kind = type_of(env)
    levels: Mapping[str, int] = kind.targets(kind.match_settings(env))
    target, count = next(iter(levels.items()))
    if request.difficulty is None:
        return Scenario({target: 1.0})
    if not 1 <= request.difficulty <= count:
        raise ConfigurationError(f"--difficulty {request.difficulty}: must be 1 to {count}")
    one = tuple(float(level == request.difficulty) for level in range(1, count + 1))
    return Scenario({target: 1.0}, {target: one})


def _matches(env: WorldSettings, games: int, scenario: Scenario) -> BatchWorld:
    """A world of two agents in which a pair meets, one thread's work."""
    world = make_world(type_of(env).match_settings(env), games, one_thread=True)
    world.set_scenario(scenario)
    return world
