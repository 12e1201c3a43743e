"""What a Unity build is told and tells beside steps, and the processes of builds.

Side channels carry what a lesson tells a build, how episodes ended, errors and statistics. Targets
and difficulties are environment parameters too, by names of their own: `target.NAME` is the weight
of a target, `difficulty.NAME.K` that of its difficulty K. Result lines and stats carry no agent's
id: they come in the order in which the agents ended. An agent that was cut off may have none, and
has lost then. All `LogType.Warning` and `LogType.Error` logs of a build may come over its log
channel. What is not read is named once, so that it can be found.

Processes of a build are one that is asked for its shape, and those that are played: these are
started together, restarted one by one, as often as ML-Agents would, and ended with the world.
"""

import re
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf, isfinite
from statistics import fmean
from typing import Any
from uuid import UUID

from aimbot_lab.foundation.episodes import (
    COMMAND_LINE,
    ERROR_PREFIX,
    LOSS,
    PREFIX,
    WIN,
    EpisodeResult,
    UnparsedLineError,
    parse_result,
)
from aimbot_lab.foundation.errors import ConfigurationError, ForeignCodeError, LabError
from aimbot_lab.foundation.metric_names import ERRORS_LOGGED
from aimbot_lab.foundation.seeds import derive_seed
from aimbot_lab.foundation.settings import Gaussian, MultiRangeUniform, ParameterValue, Uniform
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import BoolArray, Scenario, WorldSpec
from aimbot_lab.mlagents.builds import Behaviors, Build, BuildLink, Launch
from aimbot_lab.mlagents.exception import (
    UnityCommunicatorStoppedException,
    UnityEnvironmentException,
    UnitySideChannelException,
    UnityTimeOutException,
)
from aimbot_lab.mlagents.messages import RESET, STEP, BuildMessage
from aimbot_lab.mlagents.player import weights_of
from aimbot_lab.mlagents.session import DESCRIPTION, described
from aimbot_lab.mlagents.side_channel.engine_configuration_channel import (
    EngineConfig,
    EngineConfigurationChannel,
)
from aimbot_lab.mlagents.side_channel.environment_parameters_channel import (
    EnvironmentParametersChannel,
)
from aimbot_lab.mlagents.side_channel.incoming_message import IncomingMessage
from aimbot_lab.mlagents.side_channel.side_channel import Message, framed, take_queued, unframed
from aimbot_lab.mlagents.side_channel.stats_side_channel import STATS, StatsAggregationMethod
from aimbot_lab.worlds.unity.settings import (
    BuildShape,
    UnitySettings,
    UnityWinRule,
    Winning,
    learned_behavior,
    plain_name,
)

SUM, MOST_RECENT = StatsAggregationMethod.SUM.value, StatsAggregationMethod.MOST_RECENT.value
PREVIEW = 16  # bytes of a message that are shown
MAX_LINE = 200  # characters of a line that are shown
MAX_ERRORS = 10  # different ones that are shown
MAX_STATS = 100  # different ones that are kept
MAX_NAME = 200  # characters of a metric's name
SILENT = 10  # episodes without a result, after which it is said
LATE = 5.0  # s that a behavior may come later than others
MAX_TURNS = 20  # messages in which all agents have asked for an action
Agent = tuple[str, int]  # behavior and id
Result = EpisodeResult | str
"""How an episode ended, or why that can't be read."""


def scenario_message(scenario: Scenario, spec: WorldSpec, *, seed: int) -> bytes:
    """`scenario` as data of side channels; samplers without a seed of their own draw by `seed`."""
    channel = EnvironmentParametersChannel()
    if list(spec.difficulties.values()) != [0]:  # there is more to draw than one target
        for name, weight in weights_of(scenario, spec.difficulties).items():
            channel.set_float_parameter(name, weight)
    for name, value in scenario.parameters.items():
        _send(channel, name, value, seed=derive_seed(seed, "parameter", name) % 2**31)
    return framed(take_queued([channel]))


def _send(
    channel: EnvironmentParametersChannel, name: str, value: ParameterValue, *, seed: int
) -> None:
    if not isinstance(value, Uniform | Gaussian | MultiRangeUniform):
        channel.set_float_parameter(name, float(value))
        return
    own = value.sampler_parameters.seed
    drawn = seed if own is None else own % 2**31
    if isinstance(value, Uniform):
        low, high = value.sampler_parameters.min_value, value.sampler_parameters.max_value
        channel.set_uniform_sampler_parameters(name, low, high, drawn)
    elif isinstance(value, Gaussian):
        mean, spread = value.sampler_parameters.mean, value.sampler_parameters.st_dev
        channel.set_gaussian_sampler_parameters(name, mean, spread, drawn)
    else:
        intervals = list(value.sampler_parameters.intervals)
        channel.set_multirangeuniform_sampler_parameters(name, intervals, drawn)


def engine_message(settings: UnitySettings) -> bytes:
    """The engine's settings as data of side channels."""
    channel = EngineConfigurationChannel()
    channel.set_configuration(
        EngineConfig(
            settings.width,
            settings.height,
            settings.quality_level,
            settings.time_scale,
            settings.target_frame_rate,
            settings.capture_frame_rate,
        )
    )
    return framed(take_queued([channel]))


class ChannelReader:
    """Reads the log channel of builds, whose id is `log`.

    `by_lines`: result lines over that channel say who won.
    """

    def __init__(self, log: UUID, *, by_lines: bool) -> None:
        self._log, self._by_lines = log, by_lines
        self.errors = self.save_commands = 0  # so far
        self._noticed: set[object] = {log, STATS, DESCRIPTION}
        self._shown: set[str] = set()  # errors
        self._notices: list[str] = []
        self._stats: dict[str, tuple[int, list[float]]] = {}  # by name, aggregation and values
        self._silent = 0.0  # episodes without a result; -inf once there was one

    def result_lines(self, messages: Sequence[Message]) -> list[str]:
        """Those among `messages`; the others are counted or named."""
        lines = []
        for channel, data in messages:
            if channel == self._log:
                line = _text(data)
                if line is None:
                    self._ignore("messages without text", _preview(data))
                elif line.startswith(PREFIX):
                    lines.append(line)
                elif line == COMMAND_LINE:
                    self.save_commands += 1
                elif line.startswith(ERROR_PREFIX):
                    self._count_error(line)
                else:
                    what = "lines other than results, commands and errors"
                    self._ignore(what, repr(shortened(line, MAX_LINE)))
            else:
                self._notice(
                    channel,
                    f"the build sends over the unknown side channel {channel}: {_preview(data)}; "
                    "if these are its result lines, set env.log_channel",
                )
        return lines

    def read_stat(self, data: bytes) -> tuple[str, float]:
        """The name and the value that a message over the channel of stats holds; "" and 0 of none.

        It is kept for `take_stats`; one that can't be read is named.
        """
        read = IncomingMessage(data)
        try:
            name, value, kind = read.read_string(), read.read_float32(), read.read_int32()
        except UnitySideChannelException:
            what = "the build sends a stat that can't be read, ignored"
            self._notice(what, f"{what}: {_preview(data)}")
            return "", 0.0
        if isfinite(value) and (name in self._stats or len(self._stats) < MAX_STATS):
            self._stats.setdefault(name, (kind, []))[1].append(value)
        return name, value

    def take_stats(self) -> dict[str, float]:
        """What stats came to since the last call, as `unity/NAME`: sum, last one, else the mean."""
        taken, self._stats = self._stats, {}
        ways = {SUM: sum, MOST_RECENT: lambda values: values[-1]}
        return {
            "unity/" + re.sub(r"[^A-Za-z0-9_./ :-]", "_", name)[:MAX_NAME]: float(
                ways.get(kind, fmean)(values)
            )
            for name, (kind, values) in taken.items()
        }

    def note(self, text: str) -> None:
        """Say `text`, once."""
        self._notice(text, text)

    def note_results(self, said: int, ended: int, name: str) -> None:
        """Note that results, called `name`, were `said` as episodes ended, or say that none are."""
        self._silent = -inf if said else self._silent + ended
        if self._silent >= SILENT:
            self.note(
                f"the first {SILENT} episodes ended without {name}, so that none was won: set "
                "env.win, such as {return_above: 1}, or none to go by mean returns"
            )

    def take_notices(self) -> list[str]:
        """What there is to report since the last call."""
        taken, self._notices = self._notices, []
        return taken

    def _count_error(self, line: str) -> None:
        self.errors += 1
        shown = one_line(shortened(line.splitlines()[0], MAX_LINE))
        if len(self._shown) == MAX_ERRORS and shown not in self._shown:
            self._notice(ERROR_PREFIX, f"the build logs more errors, which {ERRORS_LOGGED} counts")
        elif shown not in self._shown:
            self._shown.add(shown)
            self._notices.append(f"the build logs: {shown}")

    def _ignore(self, what: str, shown: str) -> None:
        hint = "; if its results are not lines there, set env.win" if self._by_lines else ""
        self._notice(what, f"the build sends {what} over env.log_channel, ignored: {shown}{hint}")

    def _notice(self, what: object, text: str) -> None:
        """Say `text`, once for each `what`."""
        if what not in self._noticed:
            self._noticed.add(what)
            self._notices.append(text)


def _text(data: bytes) -> str | None:
    """The line that is the whole message; None: it holds something else."""
    message = IncomingMessage(data)
    try:
        line = message.read_string().strip()
    except UnitySideChannelException:
        return None
    return line if line and message.offset == len(data) else None


def _preview(data: bytes) -> str:
    """How a message begins, as numbers and as text."""
    begins = data[:PREVIEW]
    if not begins:
        return "nothing"
    text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in begins)
    return f"{begins.hex(' ')} ({text})"


class ResultReader:
    """Reads the results of one build, with what reads the channels of all."""

    def __init__(self, spec: WorldSpec, win: Winning | None, *, channels: ChannelReader) -> None:
        self._difficulties: Mapping[str, int] = spec.difficulties
        self._columns = spec.episode_columns
        self._win, self.channels = win, channels
        self._lines: list[str] = []
        self._stats: list[float] = []

    def receive(self, messages: Sequence[Message]) -> None:
        """Keep what `messages` say of results until episodes end."""
        self._lines += self.channels.result_lines(messages)
        wanted = self._win.stat if isinstance(self._win, UnityWinRule) else None
        for data in (data for channel, data in messages if channel == STATS):
            name, value = self.channels.read_stat(data)
            if name == wanted:
                self._stats.append(value)

    def results(self, returns: Sequence[float], interrupted: BoolArray) -> list[Result]:
        """How the episodes ended whose agents ended now, in order [n]."""
        if not len(interrupted):
            return []
        lines, stats = self._lines, self._stats
        self._lines, self._stats = [], []
        if self._win == "none":
            return [EpisodeResult(LOSS, columns={"total_reward": total}) for total in returns]
        if self._win is None:
            said = self._in_order(lines, interrupted, "result lines")
        elif self._win.stat is not None:
            said = self._in_order(
                [PREFIX + ("Win" if value > 0.5 else "Lose") for value in stats],
                interrupted,
                f"values of the stat {self._win.stat!a:.40}",
            )
        else:
            above = self._win.return_above or 0.0
            return [EpisodeResult(WIN if total >= above else LOSS) for total in returns]
        return [self._read(line) for line in said]

    def _in_order(self, said: list[str], interrupted: BoolArray, name: str) -> list[str]:
        """The line of each agent that ended [n], or why there is none."""
        count, whole = len(interrupted), int((~interrupted).sum())
        self.channels.note_results(len(said), count, name)
        if len(said) == count:
            return said
        if len(said) == whole:
            lines = iter(said)
            return ["Warning|Result|Lose" if cut else next(lines) for cut in interrupted.tolist()]
        return [f"{name} and ended episodes of a step were not as many"] * count

    def _read(self, line: str) -> Result:
        if not line.startswith("Warning|"):
            return line
        try:
            result = parse_result(line, self._columns)
        except UnparsedLineError as error:
            return str(error)
        cell = result.cell
        if cell is not None and not 0 <= cell.difficulty <= self._difficulties.get(cell.target, -1):
            return f"a result line names {cell.target!a:.40} {cell.difficulty}, no target of ours"
        return result


LOST = (UnityCommunicatorStoppedException, UnityEnvironmentException, UnityTimeOutException)
"""What a new process may cure; what a build says wrongly, it would say again."""
Start = Callable[[int], BuildLink]  # a process by its number


def launch_of(settings: UnitySettings) -> Launch:
    """How builds of `settings` are started."""
    return Launch(
        file_name=settings.file_name,
        arguments=settings.env_args,
        no_graphics=settings.no_graphics,
        timeout_wait=settings.timeout_wait,
        base_port=settings.base_port,
        log_folder=settings.log_folder,
    )


def probe(settings: UnitySettings) -> BuildShape:
    """What a build of `settings` is; it is started for that, and ended.

    Raises ConfigurationError, in a line, where it can't be started or understood.
    """
    link = Build(launch_of(settings), 0)
    try:
        return _asked(link, settings)
    except ConfigurationError:
        raise
    except LabError as error:
        raise ConfigurationError(f"env.file_name: {error}") from error
    finally:
        link.close()


def _asked(link: BuildLink, settings: UnitySettings) -> BuildShape:
    link.greet(0)
    link.send(RESET, {}, engine_message(settings))
    behaviors, told, seen, messages = Behaviors(), dict[str, Any](), set[Agent](), 0
    asked = {settings.behavior, *settings.others} - {None}
    until = time.monotonic() + settings.timeout_wait
    late = time.monotonic() + min(settings.timeout_wait, LATE)
    while True:
        message = link.receive()
        known = behaviors.of(message)
        for channel, data in unframed(message.side_channels):
            if channel == DESCRIPTION:
                told = described(data)
        if known and (asked <= {*map(plain_name, known)} or time.monotonic() > late):
            name = learned_behavior(tuple(known), settings)
            asking, ended = _agents(message, behaviors, name)
            again, seen = seen & asking, seen - ended | asking  # agents may ask by turns
            messages += bool(seen)
            if seen and (again or messages > MAX_TURNS):
                spec = next(one.spec for key, one in known.items() if plain_name(key) == name)
                return BuildShape(name, spec, len(seen), told)
        if time.monotonic() > until:
            raise ConfigurationError(
                f"env.file_name: the build showed no agents that decide within "
                f"{settings.timeout_wait:g} s; does each have a Decision Requester?"
            )
        link.send(STEP, _zeros(message, behaviors), b"")


def _agents(message: BuildMessage, behaviors: Behaviors, name: str) -> list[set[Agent]]:
    """Agents of the behavior `name`, all teams: those that need an action, and that ended."""
    steps = [
        (key, behaviors.known[key].infos.decode(infos))
        for key, infos in message.infos.items()
        if plain_name(key) == name and key in behaviors.known
    ]
    return [
        {(key, one) for key, both in steps for one in both[k].agent_id.tolist()} for k in (0, 1)
    ]


def _zeros(message: BuildMessage, behaviors: Behaviors) -> dict[str, bytes]:
    """Actions of zeros for all agents of `message` that need one."""
    sent = {}
    for name, infos in message.infos.items():
        if name in behaviors.known:
            behavior = behaviors.known[name]
            count = len(behavior.infos.decode(infos)[0])
            sent[name] = behavior.actions.encode(behavior.spec.action_spec.empty_action(count))
    return sent


class Processes:
    """Up to `count` processes. They end with this object, or with the interpreter."""

    def __init__(self, start: Start, count: int, *, settings: UnitySettings) -> None:
        self._start = start
        self._limits = [RestartLimit(settings) for _ in range(count)]
        self._links: list[BuildLink] = []
        self._starts = 0
        weakref.finalize(self, _close_all, self._links)

    def begin(self, seed: int) -> Sequence[BuildLink]:
        """All processes, started where they are not running yet, with seeds that follow."""
        if not self._links:
            try:
                for number in range(len(self._limits)):
                    self._links.append(self._start(number))
                for number, link in enumerate(self._links):
                    link.greet(self._seed(seed, number))
            except BaseException:
                self.close()
                raise
        return tuple(self._links)

    def replace(self, number: int, error: LabError, seed: int) -> BuildLink:
        """A new process in the place of one that was lost by `error`.

        Raises ForeignCodeError where there were too many restarts.
        """
        refusal = self._limits[number].refusal()
        if refusal is not None:
            raise ForeignCodeError(f"{error}; {refusal}") from error
        self._links[number].close(at_once=True)
        self._starts += 1
        link = self._links[number] = self._start(number)
        link.greet(self._seed(seed, number))
        return link

    def _seed(self, seed: int, number: int) -> int:
        return derive_seed(seed, "build", number, self._starts) % 2**31

    def close(self) -> None:
        """End all processes."""
        _close_all(self._links)


def _close_all(links: list[BuildLink]) -> None:
    for link in links:
        with suppress(LabError, OSError):
            link.close()
    links.clear()


class RestartLimit:
    """Counts the restarts of one process."""

    def __init__(
        self, settings: UnitySettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings, self._clock = settings, clock
        self._times: list[float] = []

    def refusal(self) -> str | None:
        """Why the process must not be started again; None, counting it, where it may."""
        settings, now = self._settings, self._clock()
        most, period = settings.max_lifetime_restarts, settings.restarts_rate_limit_period_s
        if 0 <= most <= len(self._times):
            return f"it was restarted {most} times, as env.max_lifetime_restarts allows"
        recent = sum(now - moment < period for moment in self._times)
        if 0 <= settings.restarts_rate_limit_n <= recent:
            return (
                f"it was restarted {recent} times within {period:g} s, as "
                "env.restarts_rate_limit_n allows"
            )
        self._times.append(now)
        return None
