"""Episodes as columns: logs of worlds, batches, result lines, and measures with their intervals.

A kernel writes a log where an episode ends: a NamedTuple of arrays with an entry for each row,
which its world declares beside its state. A field that is not in `KNOWN` is an episode column of
that world's own: it takes the field and the line of the kernel that writes it.

A result line is how a game reports an episode's end: `Warning|Result|Win` or `Warning|Result|Lose`
(the form of Aimbot-ParallelEnv), here also `Draw`; `|key=value` fields may follow.
`Warning|Command` asks the trainer to save the agent after its next update, and `Error|...` is an
error of the game. Anything else is unparsed, which is never the same as lost. Worlds of this
project give episodes as columns; lines are written from these on demand, and parsed only where a
game sends them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import cbrt, fsum, hypot, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from aimbot_lab.foundation.errors import LabError

UPPER = 0.5 + 0.95 / 2  # quantile at the upper end of an interval at 95 %
MIN_EPISODES = 30  # with fewer, a share of won episodes is not tracked as a win rate


class WinRate(NamedTuple):
    """A share of won episodes and its interval; without episodes the share is None."""

    win_rate: float | None
    lower: float
    upper: float


UNKNOWN = WinRate(None, 0.0, 1.0)


def wilson(wins: float, episodes: int, *, confidence: float = 0.95) -> WinRate:
    """The win rate of `wins` in `episodes` with its Wilson score interval.

    Unlike the normal interval it stays within 0 and 1 and is not empty at 0 or all wins. A draw
    may be half a win, for which it is wider than it need be.
    Raises ValueError unless 0 <= wins <= episodes and 0 < confidence < 1.
    Source: Wilson 1927, doi:10.1080/01621459.1927.10502953.
    """
    if not 0 <= wins <= episodes:
        raise ValueError(f"wins must lie between 0 and the {episodes} episodes (got {wins})")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1 (got {confidence})")
    if episodes == 0:
        return UNKNOWN
    rate = wins / episodes
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    weight = z * z / episodes
    centre = (rate + weight / 2) / (1 + weight)
    half = z * sqrt(rate * (1 - rate) / episodes + weight / (4 * episodes)) / (1 + weight)
    return WinRate(rate, max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)))


def are_alike(values: Sequence[float]) -> bool:
    """Whether `values` of trainings differ by no more than rounding.

    An interval of them would have no width; that a few trainings came to the same does not prove
    that the next one will.
    """
    return max(values) - min(values) <= 1e-9 * max(map(abs, values))


class MeanInterval(NamedTuple):
    """A mean and its interval; of a single value there is none."""

    mean: float
    lower: float | None
    upper: float | None


def difference_of_means(first: Sequence[float], second: Sequence[float]) -> MeanInterval:
    """The mean of `second` less that of the independent `first`, with its interval at 95 %.

    Made of those of both means. Source: Zou and Donner 2008, doi:10.1002/sim.3095.
    """
    one, two = map(mean_interval, (first, second))
    mean = two.mean - one.mean
    if one.lower is None or one.upper is None or two.lower is None or two.upper is None:
        return MeanInterval(mean, None, None)
    below = hypot(two.mean - two.lower, one.upper - one.mean)
    above = hypot(two.upper - two.mean, one.mean - one.lower)
    return MeanInterval(mean, mean - below, mean + above)


def welch(first: Sequence[float], second: Sequence[float]) -> MeanInterval:
    """The mean of `second` less that of the independent `first`, with its interval at 95 %.

    For a few values that are nearly normal, as means over a run's episodes are; one sample may vary
    more than the other. No interval without two values of each, or where none varies. Source: Welch
    1947, Biometrika 34, 28-35.
    """
    from scipy.special import stdtrit  # takes most of a second to load

    samples = first, second
    mean = fmean(second) - fmean(first)
    if min(map(len, samples)) < 2:
        return MeanInterval(mean, None, None)
    parts = [stdev(values) ** 2 / len(values) for values in samples]
    if not (error := sum(parts)):
        return MeanInterval(mean, None, None)
    spread = (part**2 / (len(one) - 1) for part, one in zip(parts, samples, strict=True))
    half = float(stdtrit(error**2 / sum(spread), UPPER)) * sqrt(error)
    return MeanInterval(mean, mean - half, mean + half)


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """The mean of `values`, of which there is one at least, with its interval at 95 %.

    Student's where they are symmetric. Returns seldom are, a few failures among successes make
    Student's hold too rarely: their skewness is removed by a transformation, under which this
    interval is Student's, and it reaches as far as Student's on both sides. It holds in 94 % and
    more of samples of 10 and more, of 50 where the tail is that of a lognormal distribution. What
    happens so rarely that a sample may well lack it is in no interval: of kinds of episodes with
    a share p, take more than 3 / p. Sources: Hall 1992, J. R. Statist. Soc. B 54, 221-228; for
    the skewness, Joanes and Gill 1998, J. R. Statist. Soc. D 47, 183-189 (their G1).
    """
    mean, count = fmean(values), len(values)
    if count < 2:
        return MeanInterval(mean, None, None)
    deviation = stdev(values, mean)
    if deviation == 0.0:
        return MeanInterval(mean, mean, mean)
    cubes = fsum(((value - mean) / deviation) ** 3 for value in values)
    skewness = cubes * sqrt(count) / ((count - 1) * max(count - 2, 1))  # over sqrt(count)

    def errors(quantile: float) -> float:
        """The quantile of the mean's errors, in its standard errors."""
        if abs(skewness) < SYMMETRIC:
            return quantile
        apart = 3.0 / skewness * (cbrt(1.0 + skewness * (quantile - skewness / 6.0)) - 1.0)
        return max(apart, quantile) if quantile > 0 else min(apart, quantile)

    z, degrees = NormalDist().inv_cdf(UPPER), count - 1
    # Student's quantile by its first terms in 1 / degrees (Cornish and Fisher).
    t = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    error = deviation / sqrt(count)
    return MeanInterval(mean, mean - error * errors(t), mean - error * errors(-t))


SYMMETRIC = 1e-6  # skewness over sqrt(n) below which it makes no difference


def student_errors(count: int, *, comparisons: int = 1) -> float:
    """Half the width of Student's interval of the mean of `count` values, two at least.

    In their sample standard deviations: t(1 - 0.025 / comparisons, count - 1) / sqrt(count). At
    95 %, of `comparisons` such intervals for all together (Bonferroni).
    """
    from scipy.special import stdtrit  # takes most of a second to load

    return float(stdtrit(count - 1, 1.0 - (1.0 - UPPER) / max(comparisons, 1))) / sqrt(count)


def student_interval(values: Sequence[float], *, comparisons: int = 1) -> MeanInterval:
    """The mean of `values` with Student's interval; none of a single one, or where all are alike.

    Values that happen to be equal say nothing about how much they vary.
    """
    mean = fmean(values)
    if are_alike(values):
        return MeanInterval(mean, None, None)
    half = student_errors(len(values), comparisons=comparisons) * stdev(values)
    return MeanInterval(mean, mean - half, mean + half)


Float64Array = npt.NDArray[np.float64]
Columns = Mapping[str, Float64Array]  # [E] each


@dataclass(frozen=True)
class Measure:
    """A number of a set of episodes that tables, JSON and tracking show; a mean where not said."""

    name: str  # in JSON
    column: str  # of the episodes
    head: str = ""  # of its column in a table; empty: it stands in none
    over: str = ""  # column that divides it; a share of 0 is 1
    only: str = ""  # column; of those episodes alone in which that is not 0
    beside: str = ""  # column whose mean a table shows with it: 3.2 of 5.0
    median: bool = False
    interval: bool = False  # whether the mean has a 95 % interval, and differences are shown
    decimals: int = 1  # in a table
    training: str = ""  # metric of the training's own episodes; empty: not tracked
    evaluation: str = ""  # metric of those played while it trains

    def values(self, columns: Columns) -> Float64Array:
        """Its value in each episode that it is of."""
        found = columns[self.column]
        if self.over:
            whole = columns[self.over]
            found = np.divide(found, whole, out=np.ones_like(whole), where=whole != 0)
        return found[columns[self.only] != 0] if self.only else found


def measured_by_name(
    measures: Sequence[Measure], parts: Sequence[Columns]
) -> dict[str, float | None]:
    """Each of `measures` over all `parts` by its name; intervals as NAME_lower and NAME_upper."""
    if not measures:
        return {}
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    found: dict[str, float | None] = {}
    for measure in measures:
        values = measure.values(columns)
        value = lower = upper = None
        if len(values) and measure.median:
            value = float(np.median(values))
        elif len(values) and measure.interval:
            value, lower, upper = mean_interval(values.tolist())
        elif len(values):
            value = float(values.mean())
        found[measure.name] = value
        if measure.interval:
            found |= {f"{measure.name}_lower": lower, f"{measure.name}_upper": upper}
    return found


def shown(measure: Measure, numbers: Mapping[str, float | None]) -> str:
    """A table's text of `measure` from what `measured_by_name` gave."""
    value, places = numbers.get(measure.name), measure.decimals
    if value is None:
        return "-"
    text = f"{value:.{places}f}"
    lower, upper = (numbers.get(f"{measure.name}_{end}") for end in ("lower", "upper"))
    if lower is not None and upper is not None:
        text += f" [{lower:.{places}f}, {upper:.{places}f}]"
    other = numbers.get(measure.beside) if measure.beside else None
    return text if other is None else f"{text} of {other:.{places}f}"


LOSS, DRAW, WIN = -1, 0, 1  # outcomes
UNCOUNTED = 0  # a scenario older than those that worlds number: no lesson counts its episodes
NO_COLUMNS: Mapping[str, npt.NDArray[np.float64]] = {}
NONE_RUNNING = np.zeros(0, np.int64)
ARRAYS = ("row", "agent", "order", "scenario", "outcome", "length", "terms")  # [E, ...] of a batch


class Cell(NamedTuple):
    """A target at one difficulty; 0 where the target has none."""

    target: str
    difficulty: int

    @property
    def shown(self) -> str:
        """The cell as a person reads it."""
        return f"{self.target} {self.difficulty}" if self.difficulty else self.target


class EpisodeBatch(NamedTuple):
    """Episodes that ended in the same step of a batch of rows: E entries, one for each agent.

    With one agent a row there is one entry per episode.
    """

    row: npt.NDArray[np.int64]  # [E] row of the batch
    agent: npt.NDArray[np.int64]  # [E] number of the agent in its row
    order: npt.NDArray[np.int64]  # [E] rank by beginning: unique, rises with the start time
    scenario: npt.NDArray[np.int64]  # [E] number of the scenario it was drawn from
    cell: tuple[Cell | None, ...]  # [E] target and difficulty; None where a game did not say
    outcome: npt.NDArray[np.int8]  # [E] LOSS, DRAW or WIN
    length: npt.NDArray[np.int64]  # [E] decisions
    terms: npt.NDArray[np.float64]  # [E, T] sum of each reward term
    # These two are the world's own arrays: read them before its next step.
    running_order: npt.NDArray[np.int64]  # [N] rank of the episode now running in each seat
    running_scenario: npt.NDArray[np.int64]  # [N] scenario of the episode now running
    columns: Mapping[str, npt.NDArray[np.float64]] = NO_COLUMNS  # [E] each, by the spec's names
    unread: tuple[
        str, ...
    ] = ()  # why a game's report of an episode, which then has no entry, is unread
    untold: tuple[int, ...] = ()  # seats that finished without an entry: unread, lost, or a life
    step: int = 0  # environment steps of the training at their end; 0: it is not known
    rating: float | None = None  # the learner's running one after them, under self-play

    def __bool__(self) -> bool:
        """Whether any episode ended."""
        return len(self.cell) > 0 or len(self.unread) > 0 or len(self.untold) > 0

    @property
    def won(self) -> npt.NDArray[np.bool_]:
        """[E] Whether the agent won; a draw is not a win."""
        won: npt.NDArray[np.bool_] = self.outcome == WIN
        return won

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """[E] Whether the episode ended in a draw."""
        drawn: npt.NDArray[np.bool_] = self.outcome == DRAW
        return drawn

    @property
    def returns(self) -> npt.NDArray[np.float64]:
        """[E] Sum of the rewards; NaN where a game did not say."""
        terms = self.terms
        total: npt.NDArray[np.float64] = terms[:, 0] if terms.shape[1] == 1 else terms.sum(axis=1)
        return total

    def seats(self, num_envs: int) -> npt.NDArray[np.int64]:
        """[E] Places among the N = agents x num_envs seats of a world: agent * num_envs + row."""
        return self.agent * num_envs + self.row

    def oldest_running(self, first: int | None) -> int | None:
        """Rank of the oldest episode that runs in scenario `first` or a later one; None: none."""
        return oldest(self.running_order, self.running_scenario, first)

    def beside(self, rank: int | None, first: int | None) -> "EpisodeBatch":
        """This batch, beside which only the episode of `rank`, of scenario `first`, goes on.

        Unlike the world's own arrays, what that leaves may be kept beyond the world's next step.
        """
        if rank is None or first is None:
            return self._replace(running_order=NONE_RUNNING, running_scenario=NONE_RUNNING)
        return self._replace(running_order=np.array([rank]), running_scenario=np.array([first]))

    def some(self, places: Sequence[int] | npt.NDArray[np.int64]) -> "EpisodeBatch":
        """The episodes at `places` [K] of this batch, in that order."""
        chosen = np.asarray(places, np.int64)
        arrays: dict[str, Any] = {name: getattr(self, name)[chosen] for name in ARRAYS}
        return self._replace(
            **arrays,
            cell=tuple([self.cell[place] for place in chosen.tolist()]),
            columns={name: column[chosen] for name, column in self.columns.items()},
        )


def joined(batches: Sequence[EpisodeBatch]) -> EpisodeBatch:
    """The episodes of all `batches`, of which there is one at least; all else is the first's."""
    first = batches[0]
    if len(batches) == 1:
        return first
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in batches]) for name in ARRAYS
    }
    return first._replace(
        **arrays,
        cell=tuple(cell for one in batches for cell in one.cell),
        columns={
            name: np.concatenate([one.columns[name] for one in batches]) for name in first.columns
        },
    )


def oldest(
    order: npt.NDArray[np.int64], scenario: npt.NDArray[np.int64], first: int | None
) -> int | None:
    """The lowest of the ranks `order` [N] whose `scenario` [N] is `first` or later; None: none."""
    if first is None:
        return None
    counts = order[scenario >= first]
    return int(counts.min()) if counts.size else None


PREFIX = "Warning|Result|"
COMMAND_LINE = "Warning|Command"
ERROR_PREFIX = "Error|"
_OUTCOMES = {"Win": WIN, "Lose": LOSS, "Draw": DRAW}
_WORDS = {outcome: word for word, outcome in _OUTCOMES.items()}
_NUMBERS = ("difficulty", "seconds", "return")


@dataclass(frozen=True)
class EpisodeResult:
    """One parsed result line; what the line did not carry is None."""

    outcome: int  # WIN, DRAW or LOSS
    target: str | None = None
    difficulty: int | None = None
    seconds: float | None = None
    episode_return: float | None = None
    columns: Mapping[str, float] = field(default_factory=dict)  # the world's own, as far as given

    @property
    def won(self) -> bool:
        """Whether it was won; a draw is not a win."""
        return self.outcome == WIN

    @property
    def cell(self) -> Cell | None:
        """Its target and difficulty; None where the line names no target."""
        return None if self.target is None else Cell(self.target, self.difficulty or 0)


class UnparsedLineError(LabError):
    """A line that is neither a result nor a command; the message gives the reason."""


def format_result_line(result: EpisodeResult) -> str:
    """The line for `result`: seconds with one decimal, the return so that it reads back.

    With columns of a world's own, all numbers are the shortest text that reads back, and the
    return comes last.
    """
    fields = ["Warning", "Result", _WORDS[result.outcome]]
    if result.target is not None:
        fields.append(f"target={result.target}")
    if result.difficulty is not None:
        fields.append(f"difficulty={result.difficulty}")
    if result.seconds is not None:
        fields.append(f"seconds={result.seconds:.1f}")
    fields += [f"{name}={shortest(value)}" for name, value in result.columns.items()]
    if result.episode_return is not None:
        total = result.episode_return
        fields.append(f"return={shortest(total) if result.columns else repr(total)}")
    return "|".join(fields)


def shortest(value: float) -> str:
    """The shortest text that reads back as `value`: 212, 1007.6, 1e+22."""
    text = repr(float(value))
    return text.removesuffix(".0")


def parse_line(line: str, columns: Sequence[str] = ()) -> EpisodeResult | Literal["command"]:
    """The result that `line` carries, or "command" for a request to save the agent.

    Fields named in `columns` may be missing; unknown extra fields are ignored. Raises
    UnparsedLineError for everything else.
    """
    text = line.strip()
    if text == COMMAND_LINE:
        return "command"
    if not text.startswith(PREFIX):
        raise UnparsedLineError("not a result line")
    outcome, *extra = text.removeprefix(PREFIX).split("|")
    if outcome not in _OUTCOMES:
        raise UnparsedLineError(f"outcome {outcome!r} is none of Win, Lose and Draw")
    fields = _fields(extra)
    known = (*_NUMBERS, *columns)
    numbers = {name: _number(name, fields[name]) for name in known if name in fields}
    difficulty = numbers.get("difficulty")
    if difficulty is not None and not difficulty.is_integer():
        raise UnparsedLineError(f"difficulty={fields['difficulty']} is not a whole number")
    return EpisodeResult(
        outcome=_OUTCOMES[outcome],
        target=fields.get("target"),
        difficulty=None if difficulty is None else int(difficulty),
        seconds=numbers.get("seconds"),
        episode_return=numbers.get("return"),
        columns={name: numbers[name] for name in columns if name in numbers},
    )


def result_line(batch: EpisodeBatch, place: int, columns: Sequence[str] | None = None) -> str:
    """The line of episode `place` of `batch`, with those of its columns that the spec names.

    Where it names none, as None, the world's own columns other than seconds follow the return.
    """
    cell, total = batch.cell[place], float(batch.returns[place])
    own = {name: float(column[place]) for name, column in batch.columns.items()}
    chosen = () if columns is None else columns
    line = format_result_line(
        EpisodeResult(
            int(batch.outcome[place]),
            target=None if cell is None else cell.target,
            difficulty=None if cell is None else cell.difficulty or None,
            seconds=own.pop("seconds", None),
            episode_return=None if math.isnan(total) else total,
            columns={name: own[name] for name in chosen},
        )
    )
    if columns is not None:
        return line
    return "|".join([line, *(f"{name}={value!r}" for name, value in own.items())])


def parse_result(line: str, columns: Sequence[str] = ()) -> EpisodeResult:
    """The result that `line` carries. Raises UnparsedLineError where it carries none."""
    result = parse_line(line, columns)
    if result == "command":
        raise UnparsedLineError("a command where a result was due")
    return result


def _fields(extra: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for item in extra:
        name, separator, value = item.partition("=")
        if not separator:
            raise UnparsedLineError(f"field {item!r} is not key=value")
        if name in fields:
            raise UnparsedLineError(f"field {name} is given twice")
        fields[name] = value
    return fields


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UnparsedLineError(f"{name}={text} is not a number") from None
    if not math.isfinite(value):
        raise UnparsedLineError(f"{name}={text} is not finite")
    return value


KNOWN = frozenset(
    {"outcome", "won", "target", "kind", "difficulty", "length", "order", "scenario", "terms"}
)
L = TypeVar("L")
FLOAT64 = np.dtype(np.float64)
IntArray = npt.NDArray[np.int64]


def own_columns(log: type[NamedTuple]) -> tuple[str, ...]:
    """The names of the episode columns that a `log` of this type adds."""
    return tuple(name for name in log._fields if name not in KNOWN)


def new_log(kind: type[L], rows: int, *, terms: int) -> L:
    """A log of this type for `rows` rows and `terms` reward terms, all zeros."""
    arrays: dict[str, Any] = {
        name: np.zeros((rows, terms) if name == "terms" else rows, _dtype(array))
        for name, array in kind.__annotations__.items()
    }
    make: Any = kind
    log: L = make(**arrays)
    return log


def _dtype(array: Any) -> np.dtype[Any]:
    """That of an `npt.NDArray[...]`: the array of a dtype before numpy 2.5, an alias from there."""
    scalar = get_args(array)[-1]
    dtype: np.dtype[Any] = np.dtype((get_args(scalar) or (scalar,))[0])
    return dtype


def cells_of(targets: Mapping[str, int], levels: int) -> dict[tuple[int, int], Cell]:
    """The cell of each target's number and difficulty, 0 (none) to `levels`."""
    return {
        (number, level): Cell(name, level)
        for name, number in targets.items()
        for level in range(levels + 1)
    }


def ended_episodes(
    rows: IntArray,
    log: Any,
    running: Any,
    *,
    cells: Mapping[tuple[int, int], Cell],
    outcome: npt.NDArray[np.int8],
    length: IntArray,
    columns: tuple[str, ...],
    sums: tuple[int, tuple[str, ...]] | None = None,
) -> EpisodeBatch:
    """The episodes that just ended in `rows` [E], which are in their next episode already.

    `running` has the `order` and `scenario` [B] of the episodes that run. `outcome` and `length`
    are those of the ended ones [E]; `columns` names the arrays of `log` that they carry. With
    `sums` only the first `sums[0]` of `log.terms` are reward terms, the others named columns.
    """
    terms = log.terms[rows]
    own = {}
    for name in columns:
        values = getattr(log, name)[rows]
        own[name] = values if values.dtype is FLOAT64 else values.astype(np.float64)
    if sums is not None and sums[1]:
        for place, name in enumerate(sums[1], sums[0]):
            own[name] = terms[:, place]
        terms = terms[:, : sums[0]]
    kinds = zip(log.target[rows].tolist(), log.difficulty[rows].tolist(), strict=True)
    return EpisodeBatch(
        row=rows,
        agent=np.zeros(len(rows), np.int64),
        order=log.order[rows],
        scenario=log.scenario[rows],
        cell=tuple([cells[kind] for kind in kinds]),
        outcome=outcome,
        length=length,
        terms=terms,
        running_order=running.order,
        running_scenario=running.scenario,
        columns=own,
    )
