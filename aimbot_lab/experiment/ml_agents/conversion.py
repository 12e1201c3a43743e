"""An ML-Agents trainer file as a curriculum.

Its names and defaults are those of ML-Agents' Python package, version 1.1.0: what the file leaves
out is written out as ML-Agents would have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike, fspath
from os.path import basename
from typing import Any, NamedTuple

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.checks import MAX_ROLLOUT_STEPS, nearest_divisor, validate
from aimbot_lab.experiment.config.diagnostics import Diagnostic, KeyPath, shown_value
from aimbot_lab.experiment.config.parameters import SECTION
from aimbot_lab.experiment.config.pydantic_errors import advice
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.config.yaml_reader import (
    YamlDocument,
    read_mapping,
    read_text,
    shown_file,
)
from aimbot_lab.experiment.ml_agents.trainer_file import (
    BATCH,
    BUFFER,
    DEVICE,
    FLOORS,
    FORM,
    HORIZON,
    LAYERS,
    LIKE_PPO,
    MEMORY,
    NO_RESET,
    NORMALIZE,
    OURS,
    PPO,
    RATE_SCHEDULE,
    RATIO,
    REASONS,
    SELF_PLAY,
    SELF_SECTION,
    SHARED,
    UNITS,
    ConversionError,
    Keys,
    TrainerFile,
    criteria_in,
    form_diagnostics,
    whole_number,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.foundation.yaml_nodes import dump
from aimbot_lab.training.networks.parts.network_parts import divisors, nearest
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import DEFAULT, default_type, world_types

MAX_ENVS = 65536
USUAL = TrainSettings()


class Conversion(NamedTuple):
    """A curriculum's text, and a line for everything that was lost or changed on the way."""

    text: str
    notes: tuple[str, ...]


def convert(
    path: str | PathLike[str], *, targets: Sequence[str] = (), behavior: str | None = None
) -> Conversion:
    """The curriculum that does what the trainer file at `path` (`-`: standard input) says.

    Its lessons play `targets`, the world's default one where none are given. Raises
    ConfigurationError with every fault that keeps the file from being converted.
    """
    name = fspath(path)
    file = shown_file(name)
    document = read_mapping(read_text(name), file, form=FORM)
    origins = document.origins(file)
    faults = document.faults or list(form_diagnostics(document.data))
    if faults:
        raise ConfigurationError(*origins.lines(faults))
    world, played = _played(document, behavior, targets)
    converter = _Converter(document, behavior, world=world, targets=played)
    config, faults = converter.curriculum()
    if config is None:
        raise ConfigurationError(*origins.lines(faults))
    notes = origins.lines(list(converter.notes()))
    if not targets:
        notes.insert(0, f"{file}: names no targets: {played[0]} is taken{_others(world)}")
    text = (
        f"# Converted from the ML-Agents trainer file {basename(file)}.\n\n{dump(_written(config))}"
    )
    return Conversion(text, tuple(notes))


def _played(
    document: YamlDocument, behavior: str | None, targets: Sequence[str]
) -> tuple[WorldType, list[str]]:
    """The world, and its targets that are played: a past self where the file asks for self-play."""
    file = TrainerFile(document, behavior)
    if not targets and file.at(file.place(SELF_SECTION)) is not None:
        able = next((one for one in world_types().values() if one.self_play_targets), None)
        if able is not None:
            return able, [able.self_play_targets[0]]
    return default_type(), list(targets) or [default_type().default_target()]


def _others(world: WorldType) -> str:
    """How other targets are chosen, which the world must have."""
    if world.name == default_type().name:
        return "; --target chooses others"
    return f", in world {world.name}, for its self-play"


class _Converter:
    """Builds the data of a curriculum, and remembers which place in the file gave what."""

    def __init__(
        self,
        document: YamlDocument,
        behavior: str | None,
        *,
        world: WorldType,
        targets: list[str],
    ) -> None:
        self._file = TrainerFile(document, behavior)
        self._world = world
        self._targets = targets
        self._notes: list[Diagnostic] = []
        self._came_from: dict[KeyPath, KeyPath] = {}

    def curriculum(self) -> tuple[CurriculumFile | None, list[Diagnostic]]:
        """The curriculum with its parameters in its lessons, or what is wrong with the file."""
        name = (self._file.behavior or "converted")[:100]
        try:
            data = {
                "name": name,
                **self._seed(),
                "lessons": [{"name": "all", "targets": dict.fromkeys(self._targets, 1)}],
                SECTION: self._parameters(),
                **self._training(),
                "tracking": {"experiment": name},
            }
        except ConversionError as error:
            return None, [error.fault]
        config, faults = validate(data)
        placed = [fault._replace(path=self._source(fault.path)) for fault in faults]
        return None if config is None else config.resolved(), placed

    def notes(self) -> Iterator[Diagnostic]:
        """What was changed, and what has no counterpart."""
        yield from self._notes
        for path in self._file.left():
            reason = next((REASONS[str(key)] for key in path[::-1] if key in REASONS), None)
            what = "has no counterpart"
            if reason:
                what += f": {reason.format(world=self._world.name)}"
            yield Diagnostic(path, what, about_key=True)

    def _source(self, path: KeyPath) -> KeyPath:
        """The place in the file that the value at `path` of the curriculum came from."""
        ends = range(len(path), 0, -1)
        found = (self._came_from[path[:end]] for end in ends if path[:end] in self._came_from)
        return next(found, path)

    def _seed(self) -> dict[str, Any]:
        place: KeyPath = ("env_settings", "seed")
        seed = self._file.at(place)
        if seed is None or seed == -1:  # -1: another one each time
            return {}
        self._file.taken.add(place)
        self._came_from["seed",] = place
        return {"seed": seed}

    def _parameters(self) -> Any:
        """The environment parameters that the world has."""
        given = self._file.data.get(SECTION) or {}
        known = self._world.parameters(None) or {}
        for name in given:
            if name not in known:
                what = f"the {self._world.name} has no such parameter ({advice(name, known)})"
                self._notes.append(Diagnostic((SECTION, name), what, about_key=True))
        self._note_criteria(given)
        self._file.taken.update((SECTION, name) for name in given)
        self._file.taken.add((SECTION,))
        return {name: value for name, value in given.items() if name in known}

    def _note_criteria(self, given: Mapping[str, Any]) -> None:
        """Note what is lost of the criteria of `given` parameters, each loss at its first place."""
        lost: dict[str, list[KeyPath]] = {}
        own = self._file.behavior
        for path, criteria in criteria_in(given):
            other = criteria.get("behavior", own)
            if own not in (None, other):
                why = "a curriculum trains one behavior, which --behavior chooses"
                what = f"{own} is taken in the place of {other}: {why}"
                lost.setdefault(what, []).append((*path, "behavior"))
            if criteria.get("require_reset") is True:
                lost.setdefault(NO_RESET, []).append((*path, "require_reset"))
        for what, (first, *more) in lost.items():
            count = f" (so in {1 + len(more)} lessons)" if more else ""
            self._notes.append(Diagnostic(first, what + count))

    def _training(self) -> dict[str, Any]:
        """The sections that say what learns, and in how many environments."""
        remembers = isinstance(self._file.at(self._file.place(*MEMORY)), dict)
        train: dict[str, Any] = {"algo": OURS if remembers else "ppo", **self._device()}
        kind = self._file.take("trainer_type") or "ppo"
        if kind != "ppo":
            what = f"{train['algo']} is taken in the place of {kind}"
            self._notes.append(Diagnostic(self._file.place("trainer_type"), what))
        like_ppo = kind in LIKE_PPO
        for ours, (theirs, usual) in {**SHARED, **(PPO if like_ppo else {})}.items():
            value = self._file.take(*theirs)
            value = usual if value is None else value
            train[ours] = self._scheduled(ours, value) if ours in FLOORS else value
            self._came_from["train", ours] = self._file.place(*theirs)
        self_play, train["network"] = self._self_play(), self._network()
        env, rollout = self._rollout(self_play, like_ppo=like_ppo, remembers=remembers)
        if remembers:
            train["network"]["memory"] = rollout.pop("memory")
        if not self_play:
            return {"env": env, "train": train | rollout}
        env = {"world": self._world.name, **env}
        return {"env": env, SELF_SECTION: self_play, "train": train | rollout}

    def _self_play(self) -> dict[str, Any]:
        """ML-Agents' self-play, in a world that has any."""
        if not self._world.self_play_targets:
            return {}
        file = self._file
        for key in SELF_PLAY:
            self._came_from[SELF_SECTION, key] = file.place(SELF_SECTION, key)
        self._came_from[SELF_SECTION,] = file.place(SELF_SECTION)
        given = {key: file.take(SELF_SECTION, key) for key in SELF_PLAY}
        return {key: SELF_PLAY[key] if one is None else one for key, one in given.items()}

    def _device(self) -> dict[str, str]:
        """Where the networks are, if the file says so."""
        given = self._file.at(DEVICE)
        self._file.taken.add(DEVICE)
        if given is None:
            return {}
        kind, _, number = str(given).partition(":")
        taken = kind if kind in ("cpu", "cuda") else "cpu"
        why = "networks are on the CPU or on the first CUDA device"
        if number and kind == "cuda":
            why += f", which CUDA_VISIBLE_DEVICES={number} chooses"
        self._note_change(DEVICE, given, taken, why)
        return {"device": taken}

    def _rollout(
        self, self_play: Mapping[str, Any], *, like_ppo: bool, remembers: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Environments and steps between two updates that fill ML-Agents' buffer.

        Mirrored matches of `self_play` fill a part of it, and minibatches divide it; with a memory
        they hold whole sequences. A trainer that is not like PPO has no such lengths: then they are
        our own.
        """
        horizon, batch = USUAL.n_steps, USUAL.batch_size
        buffer = self._world.settings().num_envs * horizon
        if like_ppo:
            buffer = self._whole(BUFFER, usual=10_240, least=4, most=MAX_ROLLOUT_STEPS)
            batch = self._whole(BATCH, usual=1024, least=2, most=MAX_ROLLOUT_STEPS)
            horizon = self._whole(HORIZON, usual=64, most=10**9)
        most = MAX_ENVS // 2 if self_play else MAX_ENVS  # a match is that of two agents
        steps = nearest_divisor(buffer, max(horizon, -(-buffer // most)))
        if buffer // steps > most:
            steps = buffer
        share = self_play.get(RATIO, 0)
        share = share if isinstance(share, int | float) and 0 <= share <= 1 else 0
        rows = max(1, round(buffer // steps / (1 + share)))
        if (rows + round(share * rows)) * steps > MAX_ROLLOUT_STEPS:
            rows -= 1
        mirrored = round(share * rows)
        samples, length, sequences = (rows + mirrored) * steps, 1, ""
        rollout: dict[str, Any] = {"n_steps": steps}
        if remembers:
            rollout["memory"] = self._memory(steps)
            length = rollout["memory"]["sequence_length"]
            sequences = f" and hold whole sequences of {length} steps"
        fitting = (length * count for count in divisors(samples // length))
        rollout["batch_size"] = nearest((size for size in fitting if size > 1), batch)
        if like_ppo:
            why = f"{buffer // steps} environments of so many steps fill buffer_size {buffer}"
            self._note_change(self._file.place(*HORIZON), horizon, steps, why)
            why = f"{rows} matches and {mirrored} mirrored ones are played for {steps} steps"
            self._note_change(self._file.place(*BUFFER), buffer, samples, why)
            why = f"it must divide buffer_size {samples}{sequences}"
            self._note_change(self._file.place(*BATCH), batch, rollout["batch_size"], why)
        return {"num_envs": rows}, rollout

    def _memory(self, steps: int) -> dict[str, int]:
        """A memory whose sequences divide `steps`.

        ML-Agents' memory_size is that of hidden and cell together.
        """
        size = self._whole((*MEMORY, "memory_size"), usual=128, most=2 * 4096, least=2)
        length = self._whole((*MEMORY, "sequence_length"), usual=64, most=10**9)
        fits = nearest(divisors(steps), length)
        place = self._file.place(*MEMORY, "sequence_length")
        self._note_change(place, length, fits, f"it must divide {steps} steps")
        self._came_from["train", "network", "memory"] = self._file.place(*MEMORY)
        return {"size": size // 2, "sequence_length": fits}

    def _note_change(self, place: KeyPath, given: object, taken: object, why: str) -> None:
        """Note it where something else is `taken` than was `given` at `place`."""
        if taken != given:
            what = f"{taken} is taken in the place of {given}: {why}"
            self._notes.append(Diagnostic(place, what))

    def _scheduled(self, ours: str, value: Any) -> Any:
        keys, floor = FLOORS[ours]
        schedule = self._file.take(*keys) or self._file.filled(*RATE_SCHEDULE) or "linear"
        if schedule == "constant":
            return value
        if schedule != "linear":
            what = f"must be linear or constant (got {shown_value(schedule)})"
            raise ConversionError(Diagnostic(self._file.place(*keys), what))
        return {"schedule": "linear", "start": value, "end": floor}

    def _network(self) -> dict[str, Any]:
        units = self._whole(UNITS, usual=128, most=4096)
        layers = self._whole(LAYERS, usual=2, most=100)
        network: dict[str, Any] = {"layers": [units] * layers}
        if self._file.at(self._file.place(*NORMALIZE)) is True:
            self._file.take(*NORMALIZE)
            network["scaling"] = "running"
        return network

    def _whole(self, keys: Keys, *, usual: int, most: int, least: int = 1) -> int:
        value = self._file.take(*keys)
        if value is None:
            return usual
        return whole_number(value, self._file.place(*keys), least=least, most=most)


def _written(config: CurriculumFile) -> dict[str, Any]:
    """What a person would write of `config`: nothing that is only a default."""
    train = asdict(config.train)
    kept = ("algo", *SHARED, *PPO, "n_steps", "batch_size")
    return {
        "name": config.name,
        "seed": config.seed,
        "env": _env(config),
        **_self_play(config),
        "lessons": [_lesson(lesson) for lesson in config.lessons],
        "train": {
            **{key: _without(train[key], "end_fraction") for key in kept},
            **({} if config.train.device == USUAL.device else {"device": config.train.device}),
            "network": _written_network(train["network"]),
        },
        "tracking": {"experiment": config.tracking.experiment},
    }


def _env(config: CurriculumFile) -> dict[str, Any]:
    """The number of rows, and the world where it is not the one that is meant without a name."""
    named = {} if config.env.world == DEFAULT else {"world": config.env.world}
    return {**named, "num_envs": config.env.num_envs}


def _self_play(config: CurriculumFile) -> dict[str, Any]:
    if config.self_play is None:
        return {}
    given = asdict(config.self_play)
    return {"self_play": {key: given[key] for key in SELF_PLAY}}


def _written_network(network: Mapping[str, Any]) -> dict[str, Any]:
    written = {key: network[key] for key in ("layers", "scaling")}
    memory = network["memory"]
    if memory is not None:
        written["memory"] = {key: memory[key] for key in ("size", "sequence_length")}
    return written


def _lesson(lesson: Lesson) -> dict[str, Any]:
    """The lesson without what it leaves open."""
    document = _without_none(asdict(lesson))
    criteria = document.get("completion_criteria")
    if criteria is not None:
        kept = ("measure", "rule", "threshold", "min_lesson_length", "signal_smoothing")
        document["completion_criteria"] = {key: criteria[key] for key in kept}
    return {key: value for key, value in document.items() if value != {}}


def _without(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key != name}
    return value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return value
