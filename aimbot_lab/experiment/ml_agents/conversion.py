"""An ML-Agents trainer file as a curriculum.

Its names and defaults are those of ML-Agents' Python package, version 1.1.0: what the file leaves
out is written out as ML-Agents would have it.
"""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike, fspath
from os.path import basename
from typing import Any, NamedTuple

from aimbot_lab.experiment.config.checks import MAX_ROLLOUT_STEPS, nearest_divisor
from aimbot_lab.experiment.config.diagnostics import Diagnostic, Origins
from aimbot_lab.experiment.config.document import read_text, refuse_unless_mapping, shown_file
from aimbot_lab.experiment.config.key_path import KeyPath, shown_value
from aimbot_lab.experiment.config.keys import advice
from aimbot_lab.experiment.config.parameter_lessons import SECTION
from aimbot_lab.experiment.config.settings import CurriculumFile
from aimbot_lab.experiment.config.validation import validate
from aimbot_lab.experiment.config.yaml_loader import dump
from aimbot_lab.experiment.config.yaml_reader import YamlDocument, read_yaml
from aimbot_lab.experiment.ml_agents.counterparts import (
    BATCH,
    BUFFER,
    DEFAULT_STEPS,
    FLOORS,
    HORIZON,
    LAYERS,
    LIKE_PPO,
    MEMORY,
    NORMALIZE,
    OURS,
    PPO,
    RATIO,
    REASONS,
    SELF_PLAY,
    SELF_SECTION,
    SHARED,
    UNITS,
    Keys,
)
from aimbot_lab.experiment.ml_agents.trainer_file import (
    FORM,
    ConversionError,
    TrainerFile,
    form_diagnostics,
    whole_number,
)
from aimbot_lab.experiment.ml_agents.written import written
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.training.networks.parts.part_checks import divisors, nearest
from aimbot_lab.worlds.registry import default_type, world_types

MAX_ENVS = 65536


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
    document, file = read_yaml(read_text(name)), shown_file(name)
    refuse_unless_mapping(document, file, form=FORM)
    origins = Origins(file, document.keys, document.values)
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
        f"# Converted from the ML-Agents trainer file {basename(file)}.\n\n{dump(written(config))}"
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
                **self._with_self_play(self._training()),
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
        self._file.taken.update((SECTION, name) for name in given)
        self._file.taken.add((SECTION,))
        return {name: value for name, value in given.items() if name in known}

    def _training(self) -> dict[str, Any]:
        train: dict[str, Any] = {"algo": OURS if self._remembers() else "ppo"}
        settings = dict(SHARED)
        kind = self._file.take("trainer_type") or "ppo"
        if kind != "ppo":
            what = f"{train['algo']} is taken in the place of {kind}"
            self._notes.append(Diagnostic(self._file.place("trainer_type"), what))
        env: dict[str, Any] = {}
        if kind in LIKE_PPO:
            settings.update(PPO)
            env, rollout = self._rollout()
            train.update(rollout)
        for ours, (theirs, usual) in settings.items():
            value = self._file.take(*theirs)
            value = usual if value is None else value
            train[ours] = self._scheduled(ours, value) if ours in FLOORS else value
            self._came_from["train", ours] = self._file.place(*theirs)
        train["network"] = self._network()
        if train["algo"] == OURS:
            train |= self._remembering(train)
        return {"env": env, "train": train}

    def _with_self_play(self, data: dict[str, Any]) -> dict[str, Any]:
        """`data` in a world that has self-play, whose mirrored matches fill part of a rollout."""
        if not self._world.self_play_targets:
            return data
        file, env, train = self._file, data["env"], data["train"]
        section = {
            key: usual if (given := file.take(SELF_SECTION, key)) is None else given
            for key, usual in SELF_PLAY.items()
        }
        for key in SELF_PLAY:
            self._came_from[SELF_SECTION, key] = file.place(SELF_SECTION, key)
        self._came_from[SELF_SECTION,] = file.place(SELF_SECTION)
        env = {"world": self._world.name, **env}
        ratio = section[RATIO]
        if "n_steps" in train and isinstance(ratio, int | float) and 0 <= ratio <= 1:
            env["num_envs"] = matches = max(1, round(env["num_envs"] / (1 + ratio)))
            samples = (matches + round(ratio * matches)) * train["n_steps"]
            fits, given = nearest_divisor(samples, train["batch_size"]), train["batch_size"]
            self._replaced(BATCH, given, fits, f"it must divide {samples} steps of a rollout")
            train = {**train, "batch_size": fits}
        return {"env": env, SELF_SECTION: section, "train": train}

    def _remembers(self) -> bool:
        return isinstance(self._file.at(self._file.place(*MEMORY)), dict)

    def _remembering(self, train: Mapping[str, Any]) -> dict[str, Any]:
        """The network of `train` with a memory, and minibatches of whole sequences.

        ML-Agents' memory_size is that of hidden and cell together.
        """
        size = self._whole((*MEMORY, "memory_size"), usual=128, most=2 * 4096, least=2)
        length = self._whole((*MEMORY, "sequence_length"), usual=64, most=10**9)
        network, steps = train["network"], train.get("n_steps", DEFAULT_STEPS)
        fits = nearest(divisors(steps), length)
        self._replaced((*MEMORY, "sequence_length"), length, fits, f"it must divide {steps} steps")
        self._came_from["train", "network", "memory"] = self._file.place(*MEMORY)
        memory = {"size": size // 2, "sequence_length": fits}
        remembering: dict[str, Any] = {"network": {**network, "memory": memory}}
        if "batch_size" in train:
            samples = self._whole(BUFFER, usual=10_240, least=4, most=MAX_ROLLOUT_STEPS)
            batch = train["batch_size"]
            whole = nearest([fits * one for one in divisors(samples // fits)], batch)
            self._replaced(BATCH, batch, whole, f"it must be a multiple of {fits}, a sequence")
            remembering["batch_size"] = whole
        return remembering

    def _replaced(self, keys: Keys, given: int, taken: int, why: str) -> None:
        """Note it where `taken` is another number than was `given`."""
        if taken != given:
            what = f"{taken} is taken in the place of {given}: {why}"
            self._notes.append(Diagnostic(self._file.place(*keys), what))

    def _scheduled(self, ours: str, value: Any) -> Any:
        keys, floor = FLOORS[ours]
        schedule = self._file.take(*keys) or "linear"
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

    def _rollout(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Environments and steps between two updates that fill ML-Agents' buffer."""
        buffer = self._whole(BUFFER, usual=10_240, least=4, most=MAX_ROLLOUT_STEPS)
        batch = self._whole(BATCH, usual=1024, least=2, most=MAX_ROLLOUT_STEPS)
        horizon = self._whole(HORIZON, usual=64, most=10**9)
        steps = nearest_divisor(buffer, max(horizon, -(-buffer // MAX_ENVS)))
        if buffer // steps > MAX_ENVS:
            steps = buffer
        divides = nearest_divisor(buffer, batch)
        self._replaced(BATCH, batch, divides, f"it must divide buffer_size {buffer}")
        return {"num_envs": buffer // steps}, {"n_steps": steps, "batch_size": divides}

    def _whole(self, keys: Keys, *, usual: int, most: int, least: int = 1) -> int:
        value = self._file.take(*keys)
        if value is None:
            return usual
        return whole_number(value, self._file.place(*keys), least=least, most=most)
