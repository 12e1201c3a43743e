"""An ML-Agents trainer file as a curriculum.

What the file leaves out is written out as ML-Agents would have it; `trainer_file.KEYS` says what
becomes of each key, and here is how.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from os import PathLike, fspath
from os.path import basename
from typing import Any

from aimbot_lab.curriculum.settings import Lesson
from aimbot_lab.experiment.config.checks import (
    MAX_ROLLOUT_STEPS,
    formed,
    nearest_divisor,
    validate,
)
from aimbot_lab.experiment.config.settings import SECTION, course_diagnostics, with_parameters
from aimbot_lab.experiment.config.yaml_reader import (
    Diagnostic,
    KeyPath,
    read_mapping,
    read_text,
    shown_file,
    shown_value,
)
from aimbot_lab.experiment.conversion.old_forms import FORM, TodaysForm, todays_form
from aimbot_lab.experiment.conversion.players import lesson_of_player
from aimbot_lab.experiment.conversion.trainer_file import KEYS, ConversionError, TrainerFile
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.foundation.world_type import WorldType
from aimbot_lab.foundation.yaml_files import dump
from aimbot_lab.training.algorithms.algorithm import Algorithm
from aimbot_lab.training.algorithms.registry import ALGORITHMS
from aimbot_lab.training.networks.network_parts import divisors, nearest
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.worlds.registry import DEFAULT, default_type, world_types

MAX_ENVS = 65536
MIN_STEPS = 1e-3  # per update of a replay buffer's learner
USUAL = TrainSettings()
UNITY = "unity"  # the world of a build of the user's own
HYPER, NETWORK, MEMORY = "hyperparameters", "network_settings", "network_settings.memory"
SELF_PLAY, RATIO = "self_play", "self_play.play_against_latest_model_ratio"
FLOORS: Mapping[str, tuple[str, float]] = {
    "learning_rate": ("learning_rate", 1e-10),
    "epsilon": ("clip_range", 0.1),
    "beta": ("ent_coef", 1e-5),
}
"""Ours, and the last value of what falls in a straight line to max_steps."""
FORM_OF, CHOICE, LOSS, CHANGE = range(4)  # in which order notes are read
OPTIONS = ("train", "options")
EVERY_LEARNER = ("algo", "total_steps", "gamma", "reward_scale", "options", "network", "device")
LIKE_PPO = ("ppo", "poca")
OFF_POLICY: Mapping[str, int] = {"batch_size": 128, "buffer_size": 50_000}
"""ML-Agents' own where another trainer learns than PPO."""
ELO = ("Elo", "elo")
SOURCES: Mapping[str, str] = {
    "env.num_envs": f"{HYPER}.buffer_size",
    "train.algo": "trainer_type",
    "train.n_steps": "time_horizon",
    "train.batch_size": f"{HYPER}.batch_size",
    "train.network": NETWORK,
    "train.options.buffer_size": f"{HYPER}.buffer_size",
    "train.options.gradient_steps": f"{HYPER}.steps_per_update",
}
"""What we compute, and the key that it comes from most."""
CRITERIA = ("measure", "rule", "threshold", "min_lesson_length", "signal_smoothing")
NO_WIN = (
    "env.win is none, so that mean returns count: leave it out for a build that sends result "
    "lines, or say by return_above or stat what is won"
)
WEIGHTS = "targets", "difficulty"  # in a lesson
LAST = (
    "is ignored: no lesson follows the last one (ML-Agents' means are over the largest "
    "min_lesson_length, this one's included)"
)
NO_RESET = (
    "has no counterpart: episodes that run go on to their ends, and the next lesson begins with "
    "each row's next one"
)


def convert(
    path: str | PathLike[str],
    *,
    targets: Sequence[str] = (),
    behavior: str | None = None,
    world: str | None = None,
    file_name: str | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The curriculum that does what the trainer file at `path` (`-`: standard input) says, as text.

    With it, a line for everything that was lost or changed on the way.

    Its lessons play `targets`. Without any, and without a `world`, it is one for a build of the
    user's own where a `file_name`, the file's env_path or a parameter means one. Raises
    ConfigurationError with every fault that keeps the file from being converted.
    """
    name = fspath(path)
    file, text = shown_file(name), read_text(name)
    if text.lstrip().startswith("{"):
        text = text.replace("\t", " ")  # which YAML does not take and JSON does
    document = read_mapping(text, file, form=FORM)
    origins = document.origins(file)
    if document.faults:
        raise ConfigurationError(*origins.lines(document.faults))
    form = TodaysForm(document.data, {}, ())
    try:
        form = todays_form(document.data)
        given = TrainerFile(form.data, behavior)
        chosen, why = _world(given, targets, world=world, file_name=file_name)
        converter = _Converter(given, form, world=chosen, targets=targets, file_name=file_name)
        data = converter.curriculum()
    except ConversionError as error:
        placed = [one._replace(path=form.origin(one.path)) for one in error.faults]
        raise ConfigurationError(*origins.lines(placed)) from None
    notes = [f"{file}: {why}"] if why else []
    for rank in (FORM_OF, CHOICE, LOSS, CHANGE):
        found = [note for of, note in converter.notes if of == rank]
        notes += origins.lines([one._replace(path=form.origin(one.path)) for one in found])
    if idle := converter.untaken("idle"):
        notes.append(f"{file}: not needed here, ignored: {', '.join(idle)}")
    if "${" in (converted := dump(data)):
        before = text.partition("${")[0]
        place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        what = "a name holds ${, which refers to another key in a curriculum: choose another name"
        raise ConfigurationError(f"{file}:{place}: {what}")
    head = f"# Converted from the ML-Agents trainer file {basename(file)}.\n\n"
    return head + converted, tuple(notes)


def _world(
    file: TrainerFile, targets: Sequence[str], *, world: str | None, file_name: str | None
) -> tuple[WorldType, str]:
    """The world that is meant, and why where nothing says so."""
    types = world_types()
    if world is not None:
        try:
            types[world].settings()
        except ValueError:
            what = "needs settings that no trainer file has; write its curriculum by hand"
            raise ConfigurationError(f"--world {world}: {what}") from None
    if world is not None or targets:
        return types[world or DEFAULT], ""
    path = file_name or file.value("env_settings.env_path")
    if path:
        return types[UNITY], "" if file_name else f"world unity is taken, whose build is {path}"
    able = next(one for one in types.values() if one.self_play_targets)
    usual = able if SELF_PLAY in file.sections else default_type()
    lacking = next((name for name in file.parameters if not _has(usual, name)), None)
    rated = able is usual and any(one.get("measure") in ELO for _, one in _criteria(file))
    if lacking is not None and not rated:
        return types[UNITY], (
            f"world unity is used, because the {usual.name} has no parameter {lacking}; --world "
            f"{usual.name} converts without it"
        )
    if usual is able:
        return able, (
            f"names no targets: {able.self_play_targets[0]} in world {able.name} is used, because "
            "of its self-play"
        )
    return usual, f"names no targets: {usual.default_target()} is used; --target chooses others"


def _has(world: WorldType, name: str) -> bool:
    """Whether the world has the parameter, or the target or difficulty whose weight it is."""
    known = world.parameters(None)
    return known is None or name in known or _weighed(world.targets(None), name) is not None


def _weighed(targets: Mapping[str, int], name: str) -> tuple[str, int] | None:
    """The target, and the difficulty (0: the target itself), of which `name` is the weight."""
    kind, _, rest = name.partition(".")
    target, _, level = rest.partition(".")
    levels = targets.get(target, 0)
    if kind == "target" and not level and target in targets:
        return target, 0
    if kind == "difficulty" and level.isdecimal() and 1 <= int(level[:9]) <= levels:
        return target, int(level)
    return None


def _criteria(
    file: TrainerFile, *, of_last: bool = False
) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """The criteria by which lessons end, each with its place; whatever has a form.

    Those of the last lesson, which ML-Agents ignores, come only `of_last`.
    """
    for name, value in file.parameters.items():
        given = value.get("curriculum") if isinstance(value, dict) else None
        lessons = given if isinstance(given, list) else []
        for number, lesson in enumerate(lessons):
            criteria = lesson.get("completion_criteria") if isinstance(lesson, dict) else None
            if isinstance(criteria, dict) and (number == len(lessons) - 1) == of_last:
                yield (SECTION, name, "curriculum", number, "completion_criteria"), criteria


class _Converter:
    """Builds the data of a curriculum, and remembers which place in the file gave what."""

    def __init__(
        self,
        file: TrainerFile,
        form: TodaysForm,
        *,
        world: WorldType,
        targets: Sequence[str],
        file_name: str | None,
    ) -> None:
        self._file, self._world, self._held = file, world, _held(file)
        self._own = world.name == UNITY
        self._meets_itself = SELF_PLAY in file.sections and bool(world.self_play_targets)
        if self._meets_itself:
            targets = targets or world.self_play_targets[:1]
        elif not self._own:
            targets = targets or [world.default_target()]
        self._targets: dict[str, float] = dict.fromkeys(targets, 1.0)
        self._difficulty: Mapping[str, Sequence[float]] = {}
        self._levels: Mapping[str, int] = {} if self._own else world.targets(None)
        self._program = file_name or file.value("env_settings.env_path")
        self._win = "none" if self._own else None
        if any(one.get("measure") in ELO for _, one in _criteria(file)):
            self._win = None
        if self._own and self._program:
            arguments = file.value("env_settings.env_args") or ()
            if (played := lesson_of_player(self._program, arguments)) is not None:
                self._win, (lesson, of) = None, played
                self._targets, self._difficulty = dict(lesson.targets), lesson.difficulty
                self._levels = of.targets(None)
        self._came_from: dict[KeyPath, KeyPath] = {}
        kind = file.value("trainer_type")
        self._like_ppo = kind in LIKE_PPO
        self._plugin = None if self._like_ppo else ALGORITHMS.own.get(kind)
        if self._plugin is not None and _is_unfit(self._plugin, self._world):
            self._plugin = None
        self._replays = self._plugin is not None and self._plugin.replay_buffer
        self._remembers = MEMORY in file.sections and self._plugin is None
        own = "hybrid_ppo" if self._remembers or self._own else "ppo"
        self._algo = own if self._plugin is None else kind
        self.notes = [(LOSS if one.path else FORM_OF, one) for one in form.notes]

    def curriculum(self) -> dict[str, Any]:
        """The curriculum as plain data. Raises ConversionError with what is wrong with the file."""
        name = (self._file.behavior or "converted")[:100]
        self._note_losses()
        world = {} if self._world.name == DEFAULT else {"world": self._world.name}
        data: dict[str, Any] = {"name": name, "seed": None, "env": world, SELF_PLAY: {}}
        data |= {"lessons": self._lessons(), "train": {"algo": self._algo}}
        self._copy(data)
        self._learn(data["env"], data["train"])
        data["tracking"] = {"experiment": name}
        data = {key: value for key, value in data.items() if value not in (None, {})}
        faults = validate(data)[1]
        unknown = [one.path for one in faults if one.path[:2] == OPTIONS and one.about_key]
        for *_, key, option in unknown:
            what = f"has no counterpart: {self._algo} has no {option}"
            self._note(LOSS, self._source((*OPTIONS, option)), what, about_key=True)
            data["train"][key].pop(option, None)
            faults = validate(data)[1]
        if not data["train"].get("options", True):
            del data["train"]["options"]
        if faults:
            raise ConversionError(*(one._replace(path=self._source(one.path)) for one in faults))
        return data

    def _fate(self, place: str) -> str:
        """What becomes of a key in this world, with this algorithm."""
        section, ours = place.partition(".")[0], KEYS[place].ours
        if ours.startswith("env.") and section != HYPER and not self._own:
            return "lost" if place == "env_settings.env_path" else "idle"
        if place == "env_settings.num_envs" and not self._own:
            return "idle"
        if section == SELF_PLAY and not self._meets_itself:
            return "reported"  # with the section
        if section == HYPER and self._plugin is None:
            if not self._like_ppo:
                return "reported"  # with the trainer
            if ours.startswith(".".join(OPTIONS)) or place == f"{HYPER}.gamma":
                return "lost"
        unused = ours.startswith("train.") and not self._takes(ours.split(".")[1])
        return "lost" if unused else KEYS[place].fate

    def _takes(self, name: str) -> bool:
        """Whether the algorithm does something with this setting of `train`."""
        return self._plugin is None or name in {*self._plugin.takes, *EVERY_LEARNER}

    def untaken(self, fate: str) -> list[str]:
        """Given keys of this fate whose value is another than ML-Agents' own."""
        given = self._file.given.items()
        return [key for key, value in given if self._fate(key) == fate and value != KEYS[key].usual]

    def _note(self, rank: int, path: KeyPath, what: str, *, about_key: bool = False) -> None:
        self.notes.append((rank, Diagnostic(path, what, about_key=about_key)))

    def _note_changed(self, place: str, given: object, taken: object, why: str) -> None:
        """Note it where something else is `taken` than was `given` at `place`."""
        if taken != given:
            what = f"{taken} replaces {given}: {why}"
            self._note(CHANGE, self._file.path(place), what)

    def _source(self, path: KeyPath) -> KeyPath:
        """The place in the file that the value at `path` of the curriculum came from."""
        ends = range(len(path), 0, -1)
        found = (self._came_from[path[:end]] for end in ends if path[:end] in self._came_from)
        return next(found, path)

    def _note_losses(self) -> None:
        file, kind = self._file, self._file.value("trainer_type")
        self.notes += [(LOSS, fault) for fault in file.unknown]
        for other in file.others:
            what = "is left out: a curriculum trains one behavior, which --behavior chooses"
            self._note(LOSS, other, what, about_key=True)
        if self._plugin is None and kind != "ppo":
            own = "" if self._like_ppo else ", with hyperparameters of its own"
            what = f"{self._algo} replaces {kind}{own}"
            self._note(LOSS, file.path("trainer_type"), what)
        if file.lacks_reward:
            what = "has no extrinsic: ML-Agents learns without the environment's reward there"
            self._note(LOSS, file.path("reward_signals"), what, about_key=True)
        lost_sections = {
            SELF_PLAY: "" if self._meets_itself else f"world {self._world.name} has no self-play",
            MEMORY: "" if self._remembers else f"{self._algo} has no memory",
        }
        for section, why in lost_sections.items():
            if why and section in file.sections:
                self._note(LOSS, file.path(section), f"has no counterpart: {why}", about_key=True)
        for place in self.untaken("lost"):
            of_all = KEYS[place].fate == "lost" or place == "env_settings.env_path"
            why = KEYS[place].text if of_all else f"{self._algo} has none"
            self._note(LOSS, file.path(place), f"has no counterpart: {why}", about_key=True)
        if self._own and not self._program:
            what = "is missing: an editor is waited for; --file-name names a build"
            self._note(CHOICE, ("env_settings", "env_path"), what)
        if self._win:
            self._note(CHOICE, (), NO_WIN)
        for name in self._held:
            what = "stays at its first value: its lessons end by a behavior that is not trained"
            self._note(LOSS, (SECTION, name), what, about_key=True)
        lost: dict[str, list[KeyPath]] = {}
        for path, criteria in _criteria(file):
            named = criteria.get("behavior", file.behavior)
            if path[1] in self._held:
                continue
            if file.behavior not in (None, named):
                what = f"{file.behavior} replaces {named}: a curriculum trains one"
                lost.setdefault(what, []).append((*path, "behavior"))
            if criteria.get("require_reset") is True:
                lost.setdefault(NO_RESET, []).append((*path, "require_reset"))
        for path, _ in _criteria(file, of_last=True):
            if path[1] not in self._held:
                lost.setdefault(LAST, []).append(path)
        for what, places in lost.items():
            count = f" (so in {len(places)} lessons)" if len(places) > 1 else ""
            self._note(CHANGE, places[0], what + count)

    def _copy(self, data: dict[str, Any]) -> None:
        """Put in what is taken as it is, what the file leaves out as ML-Agents would have it."""
        usual = asdict(self._world.settings())
        for place, key in KEYS.items():
            value, given = self._file.value(place), place in self._file.given
            *sections, name = key.ours.split(".")
            if self._fate(place) != "copied" or value is None:
                continue
            if sections == ["env"] and value == usual[name]:
                continue
            if name == "base_port" and (value == key.usual or not self._program):
                continue  # any that is free; an editor has one of its own
            if self._plugin is not None and place.startswith(HYPER) and not given:
                continue
            if name == "seed" and value == -1:
                continue
            section = data
            for one in sections:
                section = section.setdefault(one, {})
            if not given and name in section:
                continue
            section[name] = value
            self._came_from[*sections, name] = self._file.path(place)
        self._came_from[SELF_PLAY,] = self._file.path(SELF_PLAY)

    def _learn(self, env: dict[str, Any], train: dict[str, Any]) -> None:
        """Put in the world, what learns, and in how many environments."""
        file = self._file
        for ours, theirs in SOURCES.items():
            self._came_from[tuple(ours.split("."))] = file.path(theirs)
        if self._own:
            env |= {"file_name": self._program, "behavior": file.behavior, "win": self._win}
            for key in [key for key, value in env.items() if value is None]:
                del env[key]
        if self._like_ppo or self._plugin:
            for theirs, (ours, end) in FLOORS.items():
                if self._takes(ours):
                    train[ours] = self._scheduled(theirs, end)
                    self._came_from["train", ours] = file.path(f"{HYPER}.{theirs}")
        if (device := self._device()) is not None:
            train["device"] = device
        units = file.value(f"{NETWORK}.hidden_units")
        network: dict[str, Any] = {"layers": [units] * file.value(f"{NETWORK}.num_layers")}
        scaled = file.value(f"{NETWORK}.normalize")
        network["scaling"] = "running" if scaled else "none" if self._own else "ranges"
        rollout = self._rollout()
        if self._remembers:
            network["memory"] = rollout.pop("memory")
        env["num_envs"] = rollout.pop("num_envs")
        train |= {key: value for key, value in rollout.items() if self._takes(key)}
        train["network"] = network
        if self._replays:
            options = train.setdefault("options", {})
            options["buffer_size"] = self._hyper("buffer_size")
            each = self._hyper("steps_per_update")
            if not each >= MIN_STEPS:
                path = file.path(f"{HYPER}.steps_per_update")
                raise ConversionError(
                    Diagnostic(path, f"must be at least {MIN_STEPS} (got {each})")
                )
            steps = env["num_envs"] * train.get("n_steps", 1)
            options["gradient_steps"] = max(1, round(steps / each))

    def _scheduled(self, theirs: str, end: float) -> Any:
        """A number, or what falls from it in a straight line to max_steps.

        The learning rate's schedule holds for what has none of its own, but not where ML-Agents
        fills that in from `default_settings`.
        """
        value, place = self._file.value(f"{HYPER}.{theirs}"), f"{HYPER}.{theirs}_schedule"
        usual = self._file.filled_schedule if self._like_ppo else "constant"
        schedule = self._file.given.get(place, usual)
        if schedule == "constant":
            return value
        if schedule != "linear":
            what = f"must be linear or constant (got {shown_value(schedule)})"
            raise ConversionError(Diagnostic(self._file.path(place), what))
        return {"schedule": "linear", "start": value, "end": end}

    def _device(self) -> str | None:
        """Where the networks are, if the file says so."""
        place = "torch_settings.device"
        given = self._file.value(place)
        if given is None:
            return None
        kind, _, number = str(given).partition(":")
        taken = kind if kind in ("cpu", "cuda") else "cpu"
        why = "networks are on the CPU or on the first CUDA device"
        if number and kind == "cuda":
            why += f", which CUDA_VISIBLE_DEVICES={number} chooses"
        self._note_changed(place, given, taken, why)
        return taken

    def _rollout(self) -> dict[str, Any]:
        """Environments and steps between two updates that fill ML-Agents' buffer.

        Mirrored matches of self-play fill a part of it, and minibatches divide it; with a memory
        they hold whole sequences. A trainer that is not like PPO has no such lengths: then they are
        our own.
        """
        horizon, batch = USUAL.n_steps, USUAL.batch_size
        rows: int = self._world.settings().num_envs
        if self._replays:
            return {"num_envs": rows, "n_steps": 2, "batch_size": self._hyper("batch_size")}
        buffer, as_ppo = rows * horizon, self._like_ppo or self._plugin is not None
        if as_ppo:
            buffer, batch = self._hyper("buffer_size"), self._hyper("batch_size")
            horizon = self._file.value("time_horizon")
        most = MAX_ENVS // 2 if self._meets_itself else MAX_ENVS  # a match is that of two agents
        steps = nearest_divisor(buffer, max(horizon, -(-buffer // most)))
        if buffer // steps > most:
            steps = buffer
        share = self._file.value(RATIO) if self._meets_itself else 0
        share = share if 0 <= share <= 1 else 0
        rows = max(1, round(buffer // steps / (1 + share)))
        if (rows + round(share * rows)) * steps > MAX_ROLLOUT_STEPS:
            rows -= 1
        mirrored = round(share * rows)
        samples, length, sequences = (rows + mirrored) * steps, 1, ""
        rollout: dict[str, Any] = {"num_envs": rows, "n_steps": steps}
        if self._remembers:
            rollout["memory"] = self._memory(steps)
            length = rollout["memory"]["sequence_length"]
            sequences = f" and hold whole sequences of {length} steps"
        fitting = (length * count for count in divisors(samples // length))
        rollout["batch_size"] = nearest((size for size in fitting if size > 1), batch)
        if as_ppo:
            why = f"{buffer // steps} environments with this many steps fill buffer_size {buffer}"
            self._note_changed("time_horizon", horizon, steps, why)
            why = f"{rows} matches and {mirrored} mirrored ones are played for {steps} steps"
            self._note_changed(f"{HYPER}.buffer_size", buffer, samples, why)
            why = f"it must divide buffer_size {samples}{sequences}"
            self._note_changed(f"{HYPER}.batch_size", batch, rollout["batch_size"], why)
        return rollout

    def _hyper(self, name: str) -> Any:
        place = f"{HYPER}.{name}"
        usual = OFF_POLICY if self._replays else {}
        return self._file.given.get(place, usual.get(name, KEYS[place].usual))

    def _memory(self, steps: int) -> dict[str, int]:
        """A memory whose sequences divide `steps`; ML-Agents' size is that of two arrays."""
        length = self._file.value(f"{MEMORY}.sequence_length")
        fits = nearest(divisors(steps), length)
        why = f"it must divide {steps} steps"
        self._note_changed(f"{MEMORY}.sequence_length", length, fits, why)
        self._came_from["train", "network", "memory"] = self._file.path(MEMORY)
        size = self._file.value(f"{MEMORY}.memory_size")
        if size % 2:
            path = self._file.path(f"{MEMORY}.memory_size")
            raise ConversionError(Diagnostic(path, f"must be even: it counts h and c (got {size})"))
        return {"size": size // 2, "sequence_length": fits}

    def _lessons(self) -> list[dict[str, Any]]:
        """Lessons with the environment parameters that the world has.

        Where none of those has lessons, the chain is that of a parameter that it lacks.
        """
        given = {**self._file.parameters, **self._held}
        lacking = {name: value for name, value in given.items() if not _has(self._world, name)}
        for name in lacking:
            known = nearest_name(name, self._world.parameters(None) or {})
            what = f"world {self._world.name} has no such parameter ({known})"
            self._note(LOSS, (SECTION, name), what, about_key=True)
        chains = [name for name, value in given.items() if _is_chain(value)]
        kept = {name: value for name, value in given.items() if name not in lacking}
        if chains and not kept.keys() & {*chains}:
            kept[chains[0]] = given[chains[0]]
        asked = {"name": "x", "lessons": [{"name": "all"}], SECTION: kept}
        config, faults = formed(asked)
        if config is None or (
            faults := list(course_diagnostics(config.lessons, config.environment_parameters))
        ):
            raise ConversionError(*faults)
        lessons = with_parameters(config.lessons, config.environment_parameters)
        for number in range(len(lessons)):
            for name, value in kept.items():
                inner = ("curriculum", number, "value") if _is_chain(value) else ()
                here: KeyPath = ("lessons", number, "parameters", name)
                if (weighed := _weighed(self._levels, name)) is not None:
                    here = ("lessons", number, WEIGHTS[weighed[1] > 0], weighed[0])
                self._came_from[here] = (SECTION, name, *inner)
            if chains:
                end = (SECTION, chains[0], "curriculum", number)
                self._came_from["lessons", number] = end
                here = ("lessons", number, "completion_criteria")
                self._came_from[here] = (*end, "completion_criteria")
        return [self._lesson(lesson, lacking) for lesson in lessons]

    def _lesson(self, lesson: Lesson, lacking: Mapping[str, Any]) -> dict[str, Any]:
        """The lesson with its mix, and without what the world lacks and what it leaves open."""
        document = _without_none(asdict(lesson))
        targets, parameters, emptied = {**self._targets}, {}, None
        difficulty = {target: list(weights) for target, weights in self._difficulty.items()}
        for name, value in document["parameters"].items():
            weighed = _weighed(self._levels, name)
            if name in lacking:
                continue
            if weighed is None:
                parameters[name] = value
                continue
            target, level = weighed
            if not isinstance(value, int | float):
                what = "must be a number: it is the weight of a target"
                raise ConversionError(Diagnostic((SECTION, name), what))
            if level == 0:
                targets[target], emptied = value, name
            else:
                even = [1.0] * self._levels[target]
                difficulty.setdefault(target, even)[level - 1] = value
        targets = {target: weight for target, weight in targets.items() if weight}
        if emptied is not None and not targets:
            what = "must leave a target with a weight above 0"
            raise ConversionError(Diagnostic((SECTION, emptied), what))
        document |= {
            "targets": targets,
            "difficulty": {name: one for name, one in difficulty.items() if name in targets},
            "parameters": parameters,
        }
        criteria = document.pop("completion_criteria", None)
        if criteria is not None:
            document["completion_criteria"] = {key: criteria[key] for key in CRITERIA}
        return {key: value for key, value in document.items() if value != {}}


def _is_unfit(algorithm: Algorithm, world: WorldType) -> bool:
    """Whether it needs a single row, numbered states, or numbers alone where there are choices."""
    choices = algorithm.numbers_only and world.name != UNITY
    return choices or algorithm.candidates or algorithm.table is not None


def _held(file: TrainerFile) -> dict[str, Any]:
    """Parameters whose lessons end by behaviors that are not trained, with their first values.

    None where no lessons end by the trained one.
    """
    ends: dict[str, list[Any]] = {}
    for (_, name, *_), criteria in _criteria(file):
        ends.setdefault(str(name), []).append(criteria.get("behavior"))
    if not any(file.behavior in one for one in ends.values()):
        return {}
    firsts = {name: file.parameters[name]["curriculum"][0] for name in ends}
    return {
        name: first.get("value")
        for name, first in firsts.items()
        if file.behavior not in ends[name] and isinstance(first, dict)
    }


def _is_chain(value: Any) -> bool:
    return isinstance(value, dict) and "curriculum" in value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return value
