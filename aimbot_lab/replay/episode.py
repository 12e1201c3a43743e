"""Recorded episodes: how they are recorded and played again, and their files."""

import base64
import binascii
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from aimbot_lab.foundation.argument_checks import MisuseError
from aimbot_lab.foundation.display import (
    Mind,
    ReplayRow,
    ReplayWorld,
    RestoredRow,
    RowArrays,
    Scene,
    Thought,
    WorldReplays,
)
from aimbot_lab.foundation.episodes import (
    DRAW,
    LOSS,
    WIN,
    EpisodeBatch,
    EpisodeResult,
    parse_line,
    result_line,
)
from aimbot_lab.foundation.errors import (
    ActionError,
    ConfigurationError,
    ForeignCodeError,
    LabError,
)
from aimbot_lab.foundation.files import read_bounded
from aimbot_lab.foundation.named_code import MayRun, allow, never
from aimbot_lab.foundation.world import (
    BatchWorld,
    BoolArray,
    Float32Array,
    Int64Array,
    Observations,
    WorldSpec,
    closing,
    observation_bytes,
    step_buffers,
)
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.version import full_version
from aimbot_lab.worlds.registry import (
    DEFAULT,
    WORLDS,
    as_dict,
    code_of,
    content_fault,
    content_of,
    make_world,
    spec_of,
    type_of,
)

About = Mapping[str, str | int | float]  # what a person should know: run, lesson, step


class ReplayError(LabError):
    """A file that is not a replay, or one that does not play as it was recorded."""


class ReplayFileError(ReplayError):
    """A file that the user named and that can't be played."""

    exit_code = 2


class OtherContentError(ReplayError):
    """What the replay's world was made of is another now."""


HERE = OtherContentError, ConfigurationError, ForeignCodeError
"""Why a replay may not play here in whatever version: its world, or the code that it names."""


@dataclass(frozen=True)
class RecordedEpisode:
    """What a whole episode depends on, and how it ended."""

    settings: WorldSettings  # of a world of one row
    start: RowArrays  # the row as the episode began
    actions: Float32Array  # [N, agents x A] world actions, one agent's after another's
    line: str  # the result line of the first agent
    seen: Observations | None = None  # [1] by the first agent as it began; None: not noted

    @property
    def result(self) -> EpisodeResult:
        """How it ended."""
        result = parse_line(self.line)
        if result == "command":
            raise ReplayError("the replay's result is a command")
        return result

    @property
    def spec(self) -> WorldSpec:
        """The shape of its world."""
        return spec_of(self.settings)

    @property
    def frame_seconds(self) -> float:
        """Of a film to a decision."""
        return self.world.frame_seconds(self.spec)

    @property
    def world(self) -> WorldReplays:
        """What its world says of replays. Raises ReplayError where the world has none."""
        return replays_of(self.settings)


def replays_of(settings: WorldSettings) -> WorldReplays:
    """What the world of `settings` says of replays. Raises ReplayError where it has none."""
    found = type_of(settings).replays
    if found is None:
        raise ReplayError(f"the world {settings.world} has no replays: its episodes can't be kept")
    return found


@dataclass(frozen=True)
class Replay:
    """A recorded episode with the hash of its trajectory."""

    episode: RecordedEpisode
    about: About
    trajectory_sha256: str
    mind: Mind | None = None  # of the first agent; None: not known

    def thought(self, decision: int) -> Thought | None:
        """What the first agent thought in a decision, by its number; None: not known."""
        if self.mind is None or decision < 0:
            return None
        return self.mind.at(decision, self.episode.actions[decision], self.episode.spec)


class RowRecorder:
    """Records the episodes of one row of `world`, from one that begins on.

    Copies a row's actions each step, and the row where an episode begins, with its observations
    there, of those [N] that `seen` gives. Raises ReplayError where the world has no replays.
    """

    def __init__(
        self, world: BatchWorld, row: int, seen: Callable[[], Observations] | None = None
    ) -> None:
        if not world.spec.can("replay"):
            raise ReplayError("this world has no replays: its episodes can't be kept")
        self._world = cast(ReplayWorld, world)
        self._replays = replays_of(self._world.settings)
        self._row, self.seen = row, seen
        self._settings = self._replays.row_settings(self._world.settings)
        self._start: RowArrays | None = None
        self._first: Observations | None = None
        self._actions: list[Float32Array] = []
        self.begin()

    def begin(self) -> None:
        """Record the episode that is about to begin; one under way is left out."""
        self._actions = []
        self._start = self._replays.row_start(self._world, self._row)
        if self.seen is not None:
            self._first = self.seen()[self._row : self._row + 1].copy()

    def add(self, actions: Float32Array, ended: EpisodeBatch) -> RecordedEpisode | None:
        """The row's episode, where the last step ended it.

        `actions` [N, A] are those of the last step, `ended` is what it gave.
        """
        self._actions.append(self._replays.row_actions(self._world, self._row, actions).ravel())
        if not ended or self._row not in ended.row:
            return None
        episode = None
        if self._start is not None:
            line = _line(self._world.spec, ended, self._row)
            actions_made = np.stack(self._actions)
            episode = RecordedEpisode(self._settings, self._start, actions_made, line, self._first)
        self.begin()
        return episode


def recorded_episodes(
    world: BatchWorld,
    steps: Iterable[tuple[Float32Array, EpisodeBatch, Int64Array, Int64Array]],
    observations: Observations | None = None,
    *,
    episodes: int | None = None,
) -> Iterator[tuple[int, RecordedEpisode]]:
    """The first `episodes` of `world`, which was just reset, with their ranks, as they end.

    `steps` are those of `evaluation.episodes.first_episodes` with the same number, made while this
    goes on. Minds need the `observations` [N] that the world was reset into.
    """
    seen = None if observations is None else lambda: observations
    recorders = {row: RowRecorder(world, row, seen) for row in range(world.num_envs)}
    one_in_each = episodes in (None, world.num_envs)
    for actions, ended, places, ranks in steps:
        rank_by_row = dict(zip(ended.row[places].tolist(), ranks.tolist(), strict=True))
        for row, recorder in list(recorders.items()):
            episode = recorder.add(actions, ended)
            if episode is not None and row in rank_by_row:
                yield rank_by_row[row], episode
                if one_in_each:
                    del recorders[row]


@dataclass(frozen=True)
class ReplayStep:
    """An episode after one of its decisions; before the first there is no action."""

    scene: Scene  # read what it is drawn from before the next step
    action: Float32Array | None  # [A] of the first agent
    observations: Observations  # [agents] after the decision; zeros before the first
    rewards: Float32Array  # [agents]
    earned: npt.NDArray[np.float64]  # [T] what each reward term gave for this decision
    line: str | None  # the result line of the first agent, once the episode has ended
    world: BatchWorld  # in which it is played


def replay_steps(
    episode: RecordedEpisode, *, drawn: bool = True, alone: bool = True
) -> Iterator[ReplayStep]:
    """The beginning of `episode` and the moment after each of its decisions, to be `drawn` or not.

    Its world is closed at the end if it is `alone`: many an environment ends the library by which
    others of the process are drawn, too. Raises ReplayError where the episode can't be played, or
    does not end with its last action.
    """
    try:
        row = episode.world.replay_row(episode.settings, episode.start, make_world)
    except MisuseError as error:
        raise ReplayError(f"the replay's initial state is invalid: {error}") from error
    with closing(row.world) if alone else nullcontext():
        if not drawn and isinstance(row, RestoredRow):
            row.world.keep_endings = False  # for which an environment would have to render
        last = len(episode.actions) - 1
        for number, step in enumerate(_steps(row, episode.actions), -1):
            if number >= 0 and (step.line is not None) != (number == last):
                raise ReplayError(
                    f"the replay plays another episode than was recorded: it had {last + 1} "
                    f"decisions, here it {'ends after' if number < last else 'goes on after'} "
                    f"{number + 1}"
                )
            yield step


def _steps(row: ReplayRow, actions: Float32Array) -> Iterator[ReplayStep]:
    world, buffers = row.world, step_buffers(row.world)
    scene = row.beginning()
    nothing = np.zeros_like(scene.terms)
    yield ReplayStep(scene, None, buffers.observations, buffers.rewards, nothing, None, world)
    for number, action in enumerate(actions):
        before = scene.terms
        by_agent = action.reshape(world.spec.agents, -1)
        try:
            scene, batch = row.decide(by_agent, buffers)
        except ActionError as error:
            raise ReplayError(f"the replay's action {number} is invalid: {error}") from error
        ended = len(batch.row) > 0
        yield ReplayStep(
            scene=scene,
            action=by_agent[0],
            observations=buffers.final_observations if ended else buffers.observations,
            rewards=buffers.rewards.copy(),
            earned=scene.terms - before,
            line=_line(world.spec, batch, 0) if ended else None,
            world=world,
        )


def _line(spec: WorldSpec, batch: EpisodeBatch, row: int) -> str:
    """The result line of the first agent of `row`, whose episode is in `batch`."""
    place = int(np.flatnonzero((batch.row == row) & (batch.agent == 0))[0])
    return result_line(batch, place, spec.result_columns)


def trajectory_sha256(
    episode: RecordedEpisode, note: Callable[[ReplayStep], None] = lambda _: None
) -> str:
    """The hash of all that happens: poses, observations, rewards, the result.

    `note` is called with each moment. Raises ReplayError where the episode does not end as it was
    recorded.
    """
    digest = hashlib.sha256()
    for step in replay_steps(episode, drawn=False):
        note(step)
        for array in step.scene.trajectory:
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        digest.update(observation_bytes(step.observations))
        digest.update(step.rewards.astype("<f8").tobytes())
        digest.update((step.line or "").encode())
        if step.line is not None and step.line != episode.line:
            raise ReplayError(
                "the replay plays another episode than was recorded: it ended with "
                f"{episode.line!r:.120}, here with {step.line!r}"
            )
    return digest.hexdigest()


Judge = Callable[[Observations, BoolArray], Mind | None]
"""What an agent thinks of observations [B] with the masks [B, sum of branches] of its actions."""
JUDGED_AT_ONCE = 256  # decisions
MAX_JUDGED = 2**18  # numbers of a mind that a replay keeps; a file stays small


def as_replay(episode: RecordedEpisode, about: About, judge: Judge | None = None) -> Replay:
    """`episode` with its hash, played once, and what its first agent thought where `judge` knows.

    Raises ReplayError where it plays otherwise.
    """
    numbers = len(episode.actions) * (1 + sum(episode.spec.branches))
    if judge is None or episode.seen is None or numbers > MAX_JUDGED:
        return Replay(episode, about, trajectory_sha256(episode))
    judging = _Judging(judge, episode.seen)
    found = trajectory_sha256(episode, judging.note)
    return Replay(episode, about, found, judging.mind())


class _Judging:
    """Collects what `judge` thinks of an episode while it is played, which began with `seen`."""

    def __init__(self, judge: Judge, seen: Observations) -> None:
        self._judge, self._first = judge, seen
        self._seen: list[Observations] = []  # of decisions that are not judged yet
        self._masks: list[BoolArray] = []
        self._minds: list[Mind | None] = []

    def note(self, step: ReplayStep) -> None:
        """Take what the first agent sees after `step`, unless that ended the episode."""
        if len(self._seen) == JUDGED_AT_ONCE or step.line is not None:
            self._minds.append(self._judge(np.concatenate(self._seen), np.concatenate(self._masks)))
            self._seen, self._masks = [], []
        spec = step.world.spec
        masks = np.ones((spec.agents, sum(spec.branches)), np.bool_)
        if spec.can("masks"):
            step.world.action_masks(masks)
        self._seen.append(self._first if step.action is None else step.observations[:1].copy())
        self._masks.append(masks[:1])

    def mind(self) -> Mind | None:
        """Of all decisions; None where the agent thinks nothing that can be shown.

        As after a training that diverged, whose network outputs NaN.
        """
        minds = [one for one in self._minds if one is not None]
        if not minds or len(minds) < len(self._minds):
            return None
        values = [one.values for one in minds if one.values is not None]
        branches = zip(*(one.choices for one in minds), strict=True)
        choices = tuple(np.concatenate(shares) for shares in branches)
        mind = Mind(np.concatenate(values) if values else None, choices)
        return mind if _is_sound(mind) else None


def verify(replay: Replay) -> None:
    """Raise ReplayError unless `replay` plays to the trajectory that was recorded."""
    found = trajectory_sha256(replay.episode)
    if found != replay.trajectory_sha256:
        raise ReplayError(
            "the replay plays another episode than was recorded (trajectory "
            f"{found[:12]}, recorded {replay.trajectory_sha256[:12]}): another version of "
            "the simulator recorded it"
        )


OUTCOMES = {WIN: "won", DRAW: "drawn", LOSS: "lost"}


def lesson_title(replay: Replay) -> str:
    """The lesson that `replay` is of, else the run's name."""
    about = replay.about
    if "lesson" not in about:
        return str(about.get("name", ""))
    name = about.get("lesson_name")
    return f"lesson {about['lesson']}" + (f": {name}" if name else "")


def player_words(replay: Replay) -> str:
    """Who played `replay`, as far as it says: which agent, and how its actions were drawn."""
    about = replay.about
    agent = f"{about['agent']} agent" if "agent" in about else ""
    return ", ".join(str(words) for words in (agent, about.get("player")) if words)


def cell_words(replay: Replay) -> str:
    """Target and difficulty of `replay` in words."""
    result = replay.episode.result
    level = f", difficulty {result.difficulty}" if result.difficulty else ""
    return f"{result.target}{level}"


@dataclass(frozen=True)
class EpisodeSummary:
    """How an episode went."""

    won: bool
    outcome: str  # of OUTCOMES
    target: str
    difficulty: int | None  # None: the target has none
    seconds: float
    took: str  # the same with its unit, for a person
    decisions: int
    events: dict[str, int]  # how often each thing happened
    episode_return: float
    reward_terms: dict[str, float]  # those that earned something
    trajectory_sha256: str
    about: dict[str, str | int | float]

    def as_json(self) -> dict[str, Any]:
        """Plain values, ready for one JSON document."""
        named = {"schema": 1, **asdict(self)}
        events = named.pop("events")
        del named["took"]
        place = [*named].index("decisions") + 1
        items = [*named.items()]
        return dict([*items[:place], *events.items(), *items[place:]])


def summarize(replay: Replay) -> EpisodeSummary:
    """What happened in `replay`. Raises ReplayError where it can't be played."""
    events: Counter[str] = Counter()
    terms: npt.NDArray[np.float64] = np.zeros(0)
    for step in replay_steps(replay.episode, drawn=False):
        events.update(step.scene.events)
        terms = step.scene.terms
    result, episode, spec = replay.episode.result, replay.episode, replay.episode.spec
    seconds = round(len(episode.actions) * spec.decision_seconds, 6)
    named = zip(spec.reward_terms, terms.tolist(), strict=True)
    return EpisodeSummary(
        won=result.won,
        outcome=OUTCOMES[result.outcome],
        target=result.target or "",
        difficulty=result.difficulty,
        seconds=seconds,
        took=f"{seconds:.1f} s" if spec.time_unit == "s" else f"{seconds:g} {spec.time_unit}",
        decisions=len(episode.actions),
        events=dict(events),
        episode_return=float(terms.sum()),
        reward_terms={name: value for name, value in named if value},
        trajectory_sha256=replay.trajectory_sha256,
        about=dict(replay.about),
    )


FORMAT, VERSION = "aimbot-lab replay", 1
SEAL = "content_sha256"
KEYS = frozenset(
    {"format", "version", "simulator", "about", "result", "settings", "start", "actions"}
    | {"decisions", "trajectory_sha256", SEAL}
)
CONTENT = "content"  # what the settings name and do not hold, where they do so
MIND = "mind"  # what the agent thought, where that is known
SHARES = "<f2"  # of probabilities, which a person reads in percent
MAX_BYTES = 2**22  # of a file
MAX_DECISIONS = 2**20
MAX_VERSION = 40  # characters of a version that a refusal repeats
FAULTS = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    FloatingPointError,
    RecursionError,
    zlib.error,
)


def replay_text(replay: Replay) -> str:
    """`replay` as a JSON document."""
    episode = replay.episode
    columns = np.ascontiguousarray(episode.actions.T, "<f4")  # by column, which packs best
    document = {
        "format": FORMAT,
        "version": VERSION,
        "simulator": full_version(),
        "about": dict(replay.about),
        "result": episode.line,
        "settings": as_dict(episode.settings),
        "start": {name: array.tolist() for name, array in episode.start.items()},
        "decisions": len(episode.actions),
        "actions": _packed(columns),
        "trajectory_sha256": replay.trajectory_sha256,
    }
    document |= {CONTENT: content} if (content := content_of(episode.settings)) else {}
    document |= {} if replay.mind is None else {MIND: _mind_document(replay.mind)}
    sealed = {**document, SEAL: _seal(document)}
    # A line for each part: short, and still to be read.
    lines = [f"{json.dumps(key)}: {json.dumps(sealed[key], allow_nan=False)}" for key in sealed]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def load_replay(path: Path, *, may_run: MayRun = never) -> Replay:
    """The replay in the file at `path`, which was played once and is what was recorded.

    Code that its world names runs where `may_run` says so. Raises ReplayFileError, which says why,
    for a file that is not a replay, that was altered, or that plays otherwise here; OSError where
    it can't be read.
    """
    data = read_bounded(path, MAX_BYTES)
    version = ""
    try:
        document = json.loads(data.decode("utf-8"))
        version = _other_version(document)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ReplayError("this is not a replay")
        if document.get("version") != VERSION:
            raise ReplayError(f"a replay of another format than {VERSION}")
        if document.keys() - {CONTENT, MIND} != KEYS or document.pop(SEAL) != _seal(document):
            raise ReplayError("the replay was altered after it was recorded")
        settings = _settings(document["settings"])
        if (code := code_of(settings)) is not None and may_run(code):
            allow(code)
        if fault := content_fault(document.get(CONTENT), settings):
            raise OtherContentError(fault)
        if settings.num_envs != 1 or not isinstance(document["about"], dict):
            raise ReplayError("this is not a replay")
        episode = RecordedEpisode(
            settings=settings,
            start=_start(document["start"], settings),
            actions=_unpacked(document["actions"], document["decisions"], settings),
            line=str(document["result"]),
        )
        mind = _mind(document[MIND], episode) if MIND in document else None
        replay = Replay(episode, document["about"], str(document["trajectory_sha256"]), mind)
        verify(replay)
    except (LabError, *FAULTS) as error:
        if version and not isinstance(error, HERE):
            raise ReplayFileError(
                f"{path}: recorded by aimbot-lab {version}, and this is {full_version()}, "
                "in which it does not play as recorded: replay it with that version"
            ) from error
        raise ReplayFileError(f"{path}: {_reason(error)}") from error
    return replay


def _other_version(document: Any) -> str:
    """The version of this package that made a whole `document`; empty where it is this one."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return ""
    made_by = str(document.get("simulator", ""))[:MAX_VERSION]
    if made_by in ("", full_version()):
        return ""
    rest = {key: value for key, value in document.items() if key != SEAL}
    return made_by if document.get(SEAL) == _seal(rest) else ""


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "it holds settings that there are not"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "this is not a replay"
    return str(error) if isinstance(error, LabError) else "it holds no episode of its world"


def _seal(document: dict[str, Any]) -> str:
    """The hash of all of `document`, however it is laid out."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _settings(given: dict[str, Any]) -> WorldSettings:
    """The settings of the world that `given` name. Raises ReplayError if it is not installed."""
    name = given.get("world", DEFAULT)
    if not isinstance(name, str) or name not in WORLDS:
        raise ReplayError(f"a replay of the world {name!r:.40}, which is not installed")
    settings: WorldSettings = TypeAdapter(WORLDS[name].settings).validate_python(given)
    return settings


def _start(given: dict[str, Any], settings: WorldSettings) -> RowArrays:
    """Arrays of the types that the world has; their shapes are checked where they are played."""
    kinds = replays_of(settings).start_types(settings, make_world)
    with np.errstate(over="raise"):
        return {name: np.array(values, kinds[name]) for name, values in given.items()}


def _unpacked(text: str, decisions: int, settings: WorldSettings) -> Float32Array:
    if not isinstance(decisions, int) or not 0 < decisions <= MAX_DECISIONS:
        raise ReplayError("this is not a replay")
    spec = spec_of(settings)
    return _array(text, decisions, spec.agents * (len(spec.branches) + spec.continuous))


def _packed(columns: np.ndarray) -> str:
    """The bytes of `columns` as text, which `_array` reads."""
    return base64.b64encode(zlib.compress(columns.tobytes(), 9)).decode("ascii")


def _array(text: str, decisions: int, width: int, kind: str = "<f4") -> Float32Array:
    """[decisions, width] of columns that were packed. Raises one of `FAULTS`, or ReplayError."""
    try:
        packed = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ReplayError("this is not a replay") from error
    size = decisions * width * np.dtype(kind).itemsize
    data = zlib.decompressobj().decompress(packed, size + 1)
    return np.frombuffer(data, kind).reshape(width, decisions).T.astype(np.float32)


def _mind_document(mind: Mind) -> dict[str, str]:
    """The parts that there are, each packed as actions are."""
    found = {}
    if mind.values is not None:
        found["values"] = _packed(mind.values.astype("<f4"))
    if mind.choices:
        found["choices"] = _packed(np.concatenate([one.T for one in mind.choices]).astype(SHARES))
    return found


def _mind(given: dict[str, str], episode: RecordedEpisode) -> Mind:
    """What `_mind_document` wrote. Raises one of `FAULTS`, or ReplayError."""
    decisions, branches = len(episode.actions), episode.spec.branches
    values = _array(given["values"], decisions, 1)[:, 0] if "values" in given else None
    choices: tuple[Any, ...] = ()
    if "choices" in given:
        whole = _array(given["choices"], decisions, sum(branches), SHARES).astype(np.float64)
        choices = tuple(np.split(whole, np.cumsum(branches)[:-1], axis=1))
    mind = Mind(None if values is None else values.astype(np.float64), choices)
    if not _is_sound(mind):
        raise ReplayError("the critic's values must be finite, and probabilities from 0 to 1")
    return mind


def _is_sound(mind: Mind) -> bool:
    """Whether `mind` holds something, values are finite and shares lie from 0 to 1."""
    values = np.zeros(0) if mind.values is None else mind.values
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)  # as a file keeps them
    shares = all(((one >= 0.0) & (one <= 1.0)).all() for one in mind.choices)
    return bool(np.isfinite(values).all() and shares and (len(values) or len(mind.choices)))
