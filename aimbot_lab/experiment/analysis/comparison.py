"""Tracked runs compared: their agents in the same episodes, how they learned, what differs."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from aimbot_lab.evaluation.episodes import CellEpisodes, score_all, score_cell
from aimbot_lab.evaluation.temperature import Temperature
from aimbot_lab.experiment.analysis.evaluation import (
    EvaluationTask,
    PlayerScores,
    drop_empty_measures,
    drop_win_rates,
    last_lesson,
    play_task,
    player_at,
    trace,
)
from aimbot_lab.experiment.analysis.learning_curve import LearningCurve, common_steps, mean_win_rate
from aimbot_lab.experiment.analysis.matches import (
    MatchPlan,
    MatchScore,
    as_match_player,
    play_matches,
    unlike_settings,
)
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.experiment.runs.result import settings_that_differ
from aimbot_lab.foundation.episodes import Cell, difference_of_means, mean_interval
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world import BoolArray
from aimbot_lab.worlds.registry import spec_of, type_of, with_shape_of

LEVEL = 0.05  # of a test; intervals hold 1 - LEVEL
POWER = 0.8  # with which a further comparison should find what there is
Verdict = Literal["better", "worse", "alike", "unclear"]
Played = Sequence[CellEpisodes]  # one player's episodes, cell by cell
Interval = tuple[float, float]  # lower and upper end


class Pairs(NamedTuple):
    """How many of `episodes` pairs each player won alone."""

    episodes: int
    first_only: int
    second_only: int

    @classmethod
    def of(cls, first: BoolArray, second: BoolArray) -> "Pairs":
        """The pairs of two players' outcomes [N] in the same episodes.

        Raises ValueError where they did not play as many.
        """
        if first.shape != second.shape:
            raise ValueError(f"{len(first)} episodes can't be paired with {len(second)}")
        return cls(len(first), int((first & ~second).sum()), int((second & ~first).sum()))

    @property
    def difference(self) -> float:
        """Win rate of the second player less that of the first."""
        return (self.second_only - self.first_only) / self.episodes

    def interval(self) -> Interval:
        """The interval of the difference, adjusted Wald.

        With a pair of each kind added, half of its weight to each side: also where no pair differs
        it has a width. Source: Bonett and Price 2012, doi:10.3102/1076998611411915.
        """
        n = self.episodes + 2
        first, second = (self.first_only + 1) / n, (self.second_only + 1) / n
        middle = second - first
        z = NormalDist().inv_cdf(1 - LEVEL / 2)
        half = z * math.sqrt((first + second - middle**2) / n)
        return max(-1.0, middle - half), min(1.0, middle + half)

    @property
    def tails(self) -> tuple[float, float]:
        """If both players are as good: the chance of a larger imbalance than this, and of this one.

        Given how many pairs differ, which player won them alone is then as a fair coin's toss.
        """
        n, k = self.first_only + self.second_only, min(self.first_only, self.second_only)
        at = _coin(n, k) * (1 if 2 * k == n else 2)
        larger = 2 * sum(_coin(n, smaller) for smaller in range(k))
        return min(larger, 1.0), min(at, 1.0)

    @property
    def p_value(self) -> float:
        """The two-sided p-value of McNemar's test, mid-p: an imbalance like this one counts half.

        The exact test, which counts it whole, errs far less often than its level says and so finds
        less; mid-p keeps to it closely. Without a pair that differs it is 1. Source: Fagerland,
        Lydersen and Laake 2013, doi:10.1186/1471-2288-13-91.
        """
        if self.first_only == self.second_only == 0:
            return 1.0
        larger, at = self.tails
        return larger + at / 2

    def episodes_to_find(self, *, level: float = LEVEL) -> int | None:
        """Episodes with which a difference as large as the one seen is found with POWER.

        None where none was seen. Source: Connor 1987, doi:10.2307/2531961.
        """
        d = abs(self.difference)
        if d == 0:
            return None
        differing = (self.first_only + self.second_only) / self.episodes
        z = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(differing)
        z += NormalDist().inv_cdf(POWER) * math.sqrt(differing - d * d)
        return math.ceil((z / d) ** 2)

    def episodes_to_rule_out(self, margin: float) -> int:
        """Episodes with which the interval lies within plus or minus `margin`, with POWER.

        That is if the players are as good, and differ in as many pairs as they do here. Source: the
        two one-sided tests of Schuirmann 1987, with the variance of a paired difference.
        """
        differing = (self.first_only + self.second_only + 2) / (self.episodes + 2)
        z = NormalDist().inv_cdf(1 - LEVEL / 2) + NormalDist().inv_cdf((1 + POWER) / 2)
        return math.ceil(differing * (z / margin) ** 2)


class Wins(NamedTuple):
    """How many of `episodes` of their own each player won."""

    episodes: int  # of each
    first: int
    second: int

    @classmethod
    def of(cls, first: BoolArray, second: BoolArray) -> "Wins":
        """The wins of two players' outcomes [N].

        Raises ValueError where they did not play as many.
        """
        if first.shape != second.shape:
            raise ValueError(f"one played {len(first)} episodes, the other {len(second)}")
        return cls(len(first), int(first.sum()), int(second.sum()))

    @property
    def difference(self) -> float:
        """Win rate of the second player less that of the first."""
        return (self.second - self.first) / self.episodes

    def _adjusted(self) -> tuple[float, float]:
        """Win rates with one win and one loss more of each player."""
        n = self.episodes + 2
        return (self.first + 1) / n, (self.second + 1) / n

    def interval(self) -> Interval:
        """The interval of the difference, adjusted Wald: with one win and one loss more of each.

        Source: Agresti and Caffo 2000, doi:10.1080/00031305.2000.10474560.
        """
        first, second = self._adjusted()
        z = NormalDist().inv_cdf(1 - LEVEL / 2)
        half = z * math.sqrt(_variance(first, second) / (self.episodes + 2))
        return max(-1.0, second - first - half), min(1.0, second - first + half)

    @property
    def p_value(self) -> float:
        """The two-sided p-value of Fisher's test, mid-p: an imbalance like this one counts half.

        Given how many of all episodes were won, which player won them is then as drawn without
        replacement. Where all were won, or none, it is 1.
        """
        n, total, k = self.episodes, self.first + self.second, min(self.first, self.second)
        if total in (0, 2 * n):
            return 1.0
        larger = 2 * sum(_drawn(n, total, smaller) for smaller in range(max(total - n, 0), k))
        return min(larger + _drawn(n, total, k) * (0.5 if 2 * k == total else 1.0), 1.0)

    def episodes_to_find(self, *, level: float = LEVEL) -> int | None:
        """Episodes of each player with which a difference as large as this is found with POWER.

        None where none was seen. Source: Fleiss 1981, Statistical Methods for Rates and
        Proportions.
        """
        d = abs(self.difference)
        if d == 0:
            return None
        first, second = self.first / self.episodes, self.second / self.episodes
        mean = (first + second) / 2
        z = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(_variance(mean, mean))
        z += NormalDist().inv_cdf(POWER) * math.sqrt(_variance(first, second))
        return math.ceil((z / d) ** 2)

    def episodes_to_rule_out(self, margin: float) -> int:
        """Episodes of each with which the interval lies within +- `margin`, with POWER.

        That is if the players are as good and win as many in all as they do here; see
        `Pairs.episodes_to_rule_out`.
        """
        mean = sum(self._adjusted()) / 2
        z = NormalDist().inv_cdf(1 - LEVEL / 2) + NormalDist().inv_cdf((1 + POWER) / 2)
        return math.ceil(_variance(mean, mean) * (z / margin) ** 2)


def _coin(n: int, k: int) -> float:
    """The chance of k heads in n tosses of a fair coin."""
    return math.exp(_log_choose(n, k) - n * math.log(2))


def _variance(first: float, second: float) -> float:
    """Of the difference between an episode's outcome of one and of the other."""
    return first * (1 - first) + second * (1 - second)


def _drawn(n: int, total: int, k: int) -> float:
    """The chance that k of `total` won episodes are of one player, who played half of all 2 n."""
    return math.exp(_log_choose(n, k) + _log_choose(n, total - k) - _log_choose(2 * n, total))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The p-values adjusted for being many, by Holm's step-down method, in their own order.

    Calling a difference real where its adjusted value is at most a level errs in any of them
    with at most that chance, however they hang together.
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.maximum.accumulate(np.asarray(p_values)[order] * factors)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(stepped, 1.0)
    return tuple(adjusted.tolist())


@dataclass(frozen=True)
class Difference:
    """The second of two players against the first, in the same episodes or each in its own."""

    cell: Cell | None  # None: all cells together
    episodes: int  # of each player
    first: float  # win rate; mean return where nothing can be won
    second: float
    first_only: int | None  # episodes that the first player alone won; None: not the same ones
    second_only: int | None
    difference: float  # second less first
    lower: float  # interval at 95 %
    upper: float
    p_value: float  # mid-p of McNemar's test, or of Fisher's where episodes are not the same ones;
    # of returns that of the normal test of the mean difference
    adjusted_p_value: float  # Holm's, over the cells of all comparisons; of all together its own
    verdict: Verdict
    more_episodes: int  # of each cell, until the verdict is likely to be clear; 0 where it is
    by_return: bool = False
    measures: Mapping[str, float | None] = field(default_factory=dict)
    """Mean difference of what the world measures with an interval, by name, with NAME_lower and
    NAME_upper."""


def differences(
    first: Played,
    others: Sequence[Played],
    *,
    margin: float,
    are_paired: bool = True,
    by_return: bool = False,
) -> tuple[tuple[Difference, ...], ...]:
    """For each of `others` its difference to `first`: all cells together, then each by itself.

    The n-th episodes of all players are the same one if they `are_paired`. A player is better or
    worse where Holm's p-value is at most 0.05, alike where the interval lies within plus or minus
    `margin` (of returns that share of the larger mean), else it is unclear. All cells together are
    one question that was there from the start: its p-value needs no adjustment. Raises ValueError
    where players did not play the same cells.
    """
    compare = _compared_returns if by_return else _compared
    compared = [
        [compare([one], [two], one.cell, are_paired) for one, two in _cells(first, other)]
        for other in others
    ]
    adjusted = iter(holm([row.p_value for rows in compared for row in rows]))
    questions = sum(map(len, compared))
    return tuple(
        (
            _judged(compare(first, other, None, are_paired), margin, cells=len(rows)),
            *(
                _judged(replace(row, adjusted_p_value=next(adjusted)), margin, questions=questions)
                for row in rows
            ),
        )
        for other, rows in zip(others, compared, strict=True)
    )


def _cells(first: Played, second: Played) -> list[tuple[CellEpisodes, CellEpisodes]]:
    if [played.cell for played in first] != [played.cell for played in second]:
        raise ValueError("the players did not play the same cells")
    return list(zip(first, second, strict=True))


def _compared(first: Played, second: Played, cell: Cell | None, are_paired: bool) -> Difference:
    """The difference in the episodes of `first` and `second`, without a verdict."""
    one, two = (np.concatenate([played.won for played in side]) for side in (first, second))
    counts: Pairs | Wins = Pairs.of(one, two) if are_paired else Wins.of(one, two)
    lower, upper = counts.interval()
    return Difference(
        cell=cell,
        episodes=counts.episodes,
        first=float(one.mean()),
        second=float(two.mean()),
        first_only=counts.first_only if isinstance(counts, Pairs) else None,
        second_only=counts.second_only if isinstance(counts, Pairs) else None,
        difference=counts.difference,
        lower=lower,
        upper=upper,
        p_value=counts.p_value,
        adjusted_p_value=counts.p_value,
        verdict="unclear",
        more_episodes=0,
        measures=_measured(first, second, are_paired),
    )


def _compared_returns(
    first: Played, second: Played, cell: Cell | None, are_paired: bool
) -> Difference:
    """The same of mean returns: of the differences of each pair where episodes are the same."""
    one, two = (np.concatenate([played.returns for played in side]) for side in (first, second))
    if are_paired:
        mean, lower, upper = mean_interval((two - one).tolist())
    else:
        mean, lower, upper = difference_of_means(one.tolist(), two.tolist())
    if lower is None or upper is None:  # of one episode
        lower, upper = -math.inf, math.inf
    error = (upper - lower) / (2 * NormalDist().inv_cdf(1 - LEVEL / 2))
    surely = 0.0 if mean else 1.0  # all pairs differ by the same
    p_value = 2 * NormalDist().cdf(-abs(mean) / error) if error else surely
    return Difference(
        cell=cell,
        episodes=len(one),
        first=float(one.mean()),
        second=float(two.mean()),
        first_only=None,
        second_only=None,
        difference=mean,
        lower=lower,
        upper=upper,
        p_value=p_value,
        adjusted_p_value=p_value,
        verdict="unclear",
        more_episodes=0,
        by_return=True,
    )


def _more_of_returns(row: Difference, margin: float, *, questions: int) -> list[int]:
    """Episodes with which the difference is found, and with which it is ruled out, with POWER."""
    quantile, width = NormalDist().inv_cdf, row.upper - row.lower
    error = width / (2 * quantile(1 - LEVEL / 2))
    asked = [(quantile(1 - LEVEL / questions / 2) + quantile(POWER), abs(row.difference))]
    asked.append((quantile(1 - LEVEL / 2) + quantile((1 + POWER) / 2), margin))
    known = [(z, size) for z, size in asked if size and math.isfinite(width)]
    return [math.ceil(row.episodes * (z * error / size) ** 2) for z, size in known]


def _measured(first: Played, second: Played, are_paired: bool) -> dict[str, float | None]:
    """The mean difference of each measure that has an interval."""
    found: dict[str, float | None] = {}
    for measure in first[0].measures:
        if not measure.interval or measure.only:
            continue
        one, two = (
            np.concatenate([measure.values(played.columns) for played in side])
            for side in (first, second)
        )
        interval = mean_interval((two - one).tolist()) if are_paired else None
        mean, lower, upper = interval or difference_of_means(one.tolist(), two.tolist())
        name = measure.name
        found |= {name: mean, f"{name}_lower": lower, f"{name}_upper": upper}
    return found


def _judged(row: Difference, margin: float, *, cells: int = 1, questions: int = 1) -> Difference:
    """`row` with its verdict; it is one of `questions`, over the episodes of `cells`."""
    if row.adjusted_p_value <= LEVEL:
        return replace(row, verdict="better" if row.difference > 0 else "worse")
    if row.by_return:
        margin *= max(abs(row.first), abs(row.second))
    if -margin <= row.lower and row.upper <= margin:
        return replace(row, verdict="alike")
    enough: Sequence[int | None]
    if row.by_return:
        enough = _more_of_returns(row, margin, questions=questions)
    else:
        if row.first_only is None or row.second_only is None:
            won = (round(rate * row.episodes) for rate in (row.first, row.second))
            counts: Pairs | Wins = Wins(row.episodes, *won)
        else:
            counts = Pairs(row.episodes, row.first_only, row.second_only)
        found = counts.episodes_to_find(level=LEVEL / questions)
        enough = found, counts.episodes_to_rule_out(margin)
    more = [count - row.episodes for count in enough if count and count > row.episodes]
    return replace(row, more_episodes=math.ceil(min(more, default=row.episodes) / cells))


@dataclass(frozen=True)
class ComparisonRequest:
    """How to compare."""

    episodes: int  # of each cell
    seed: int
    margin: float  # of win rates, or as a share of returns: within it two agents are alike
    temperature: Temperature | None = None  # None: the one that each is advised to play at
    max_steps: int | None = None  # of an episode; see `evaluation.episodes.longest_episode`


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs."""

    run_id: str
    name: str
    status: str
    seed: int
    agent: str  # "best" or "last"
    step: int  # at which that was saved
    temperature: Temperature  # that it played at
    scores: PlayerScores
    curve: LearningCurve
    mean_win_rate: float | None  # or return, while it learned, over the steps that all runs have


@dataclass(frozen=True)
class Comparison:
    """The runs, and what separates each but the first from the first."""

    request: ComparisonRequest
    runs: tuple[ComparedRun, ...]
    differences: tuple[tuple[Difference, ...], ...]  # of runs[1:]: all cells together, then each
    common_steps: tuple[int, int] | None  # that the mean win rates are taken over
    settings: Mapping[str, tuple[str, ...]]  # those that differ, with every run's value
    left_out: tuple[str, ...]  # cells that not all runs ended on
    unpaired: str = ""  # why the runs did not meet the same episodes; "": they did
    matches: tuple[tuple[MatchScore, ...], ...] = ()  # of runs[1:] against the first
    unmatched: tuple[str, ...] = ()  # why there is no match, for each of them: "": there is one
    has_wins: bool = True  # else they are compared by their mean returns

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document; without the points of the curves."""
        document = {"schema": 2, **asdict(self)}
        for run in document["runs"]:
            run["lessons"] = run.pop("curve")["lessons"]
            drop_empty_measures(run["scores"])
            if not self.has_wins:
                drop_win_rates(run["scores"])
                run["mean_return"] = run.pop("mean_win_rate")
        for row in (row for rows in document["differences"] for row in rows):
            cell, worth = row.pop("cell"), "return" if row.pop("by_return") else "win_rate"
            row |= {f"{name}_{worth}": row.pop(name) for name in ("first", "second")}
            row |= {name: None for name in ("lower", "upper") if not math.isfinite(row[name])}
            if not row["measures"]:
                del row["measures"]
            row |= {"target": cell and cell[0], "difficulty": cell and cell[1]}
        for name in ("matches", "unmatched"):
            if not document[name]:
                del document[name]
        return document


def compare_agents(
    agents: Sequence[TrackedAgent],
    curves: Sequence[LearningCurve],
    request: ComparisonRequest,
    *,
    on_cell: Callable[[str, str], None],
) -> Comparison:
    """All agents in the cells that all their curricula end on, in the world of the first.

    Each sees with the rays that it learned with. `on_cell` is called after each cell of a run.
    Raises ConfigurationError where no cell is common, or an agent can't play at the temperature.
    """
    task = common_task(agents, request)
    temperatures = [agent.saved.agent.temperature(request.temperature) for agent in agents]
    played = [
        play_run(agent, task, temperature, on_cell=on_cell)
        for agent, temperature in zip(agents, temperatures, strict=True)
    ]
    unpaired = why_unpaired(agents, task, temperatures[0], played)
    has_wins = spec_of(task.env).has_wins
    rows = differences(
        played[0],
        played[1:],
        margin=request.margin,
        are_paired=not unpaired,
        by_return=not has_wins,
    )
    steps = common_steps(curves)
    plans = direct_plans(agents, request)
    return Comparison(
        request=request,
        runs=tuple(
            ComparedRun(
                run_id=agent.run.run_id,
                name=agent.run.name,
                status=agent.run.status,
                seed=agent.config.seed,
                agent=agent.which,
                step=agent.step,
                temperature=temperature,
                scores=PlayerScores(score_all(own), tuple(map(score_cell, own))),
                curve=curve,
                mean_win_rate=None if steps is None else mean_win_rate(curve, *steps),
            )
            for agent, own, curve, temperature in zip(
                agents, played, curves, temperatures, strict=True
            )
        ),
        differences=rows,
        common_steps=steps,
        settings=settings_that_differ([(agent.run, agent.config) for agent in agents]),
        left_out=_left_out(agents, request),
        unpaired=unpaired,
        matches=tuple(
            play_matches(agent, plan, request.temperature, on_cell=on_cell)
            for agent, plan in zip(agents[1:], plans, strict=False)
        ),
        unmatched=tuple("".join(plan.left_out) for plan in plans),
        has_wins=has_wins,
    )


def why_unpaired(
    agents: Sequence[TrackedAgent],
    task: EvaluationTask,
    temperature: Temperature,
    played: Sequence[tuple[CellEpisodes, ...]],
) -> str:
    """Why `agents`, of which the first played at `temperature`, did not meet the same episodes.

    "" where they did. Observations can be compared of those alone that see the same columns.
    """
    seen = [with_shape_of(task.env, agent.saved.env) for agent in agents]
    if not spec_of(task.env).can("paired"):
        return f"world {task.env.world} begins episodes from no seed"
    starts = [[start for cell in cells for start in cell.starts] for cells in played]
    for env, others in zip(seen[1:], starts[1:], strict=True):
        differ = sum(a != b for a, b in zip(starts[0], others, strict=True))
        if env == seen[0] and differ:
            return f"{differ:,} of {len(others):,} began with another observation"
    first = replace(task, env=seen[0])
    if not spec_of(task.env).can("snapshot"):  # those that have it are known to repeat themselves
        traces = [trace(first, player_at(agents[0].saved.agent, temperature)) for _ in range(2)]
        if traces[0] != traces[1]:
            return "the same seeds do not bring the same episodes again"
    return ""


def _left_out(agents: Sequence[TrackedAgent], request: ComparisonRequest) -> tuple[str, ...]:
    """Cells that not all of `agents` ended on."""
    every: list[set[str]] = [
        {cell.shown for cell in _own_task(agent, request).cells} for agent in agents
    ]
    return tuple(sorted(set[str]().union(*every) - every[0].intersection(*every)))


def direct_plans(
    agents: Sequence[TrackedAgent], request: ComparisonRequest
) -> tuple[MatchPlan, ...]:
    """The matches of `agents[1:]` against the first; none in a world without two sides.

    Without opponents, and with the reason, where the two were not trained in the same world.
    """
    first, plans = agents[0], []
    for agent in agents[1:]:
        env = agent.config.env
        if not type_of(env).self_play_targets:
            continue
        if differing := unlike_settings(env, first.config.env):
            reason = f"they were trained with another {', '.join(differing)}"
            plans.append(MatchPlan(env, (), request.episodes, request.seed, (reason,)))
        else:
            opponents = (as_match_player(first, request.temperature),)
            plans.append(MatchPlan(env, opponents, request.episodes, request.seed))
    return tuple(plans)


def common_task(agents: Sequence[TrackedAgent], request: ComparisonRequest) -> EvaluationTask:
    """What all `agents` are to play, in the world of the first.

    Raises ConfigurationError where one learned in another world, or no cell is common.
    """
    here = agents[0].config.env.world
    for agent in agents:
        if agent.config.env.world != here:
            who = f"run {agent.run.run_id[:8]}"
            what = f"{who} trained in world {agent.config.env.world}, not in {here}"
            raise ConfigurationError(what)
    tasks = [_own_task(agent, request) for agent in agents]
    cells = tuple(cell for cell in tasks[0].cells if all(cell in task.cells for task in tasks))
    if not cells:
        ends = "; ".join(
            f"{agent.run.run_id[:8]} on {', '.join(cell.shown for cell in task.cells)}"
            for agent, task in zip(agents, tasks, strict=True)
        )
        raise ConfigurationError(
            f"the runs have nothing in common to play; their curricula end: {ends}"
        )
    return replace(tasks[0], cells=cells)


def _own_task(agent: TrackedAgent, request: ComparisonRequest) -> EvaluationTask:
    episodes, limit = request.episodes, request.max_steps
    return last_lesson(agent.config, episodes=episodes, seed=request.seed, max_steps=limit)


def play_run(
    agent: TrackedAgent,
    task: EvaluationTask,
    temperature: Temperature,
    *,
    on_cell: Callable[[str, str], None],
) -> tuple[CellEpisodes, ...]:
    """The episodes of `task` that `agent` plays, seen with what it learned with."""
    seen = with_shape_of(task.env, agent.saved.env)
    return play_task(
        replace(task, env=seen),
        player_at(agent.saved.agent, temperature),
        on_cell=lambda cell: on_cell(agent.run.run_id[:8], cell.shown),
    )
