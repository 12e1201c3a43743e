"""An ML-Agents trainer file: its keys and our counterparts, and where each value stands."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from aimbot_lab.experiment.config.diagnostics import Diagnostic, KeyPath, shown_value, starts_with
from aimbot_lab.experiment.config.parameters import SECTION
from aimbot_lab.experiment.config.pydantic_errors import advice
from aimbot_lab.experiment.config.yaml_reader import YamlDocument
from aimbot_lab.foundation.errors import ConfigurationError

BEHAVIORS, DEFAULTS = "behaviors", "default_settings"
FORM = "must be an ML-Agents trainer file, a mapping with behaviors or environment_parameters"
Keys = tuple[str, ...]

# Ours, and theirs with its default.
SHARED: Mapping[str, tuple[Keys, Any]] = MappingProxyType(
    {
        "total_steps": (("max_steps",), 500_000),
        "gamma": (("reward_signals", "extrinsic", "gamma"), 0.99),
        "reward_scale": (("reward_signals", "extrinsic", "strength"), 1.0),
    }
)
PPO: Mapping[str, tuple[Keys, Any]] = MappingProxyType(
    {
        "n_epochs": (("hyperparameters", "num_epoch"), 3),
        "learning_rate": (("hyperparameters", "learning_rate"), 3e-4),
        "gae_lambda": (("hyperparameters", "lambd"), 0.95),
        "clip_range": (("hyperparameters", "epsilon"), 0.2),
        "ent_coef": (("hyperparameters", "beta"), 5e-3),
    }
)
# The last value of what falls in a straight line to max_steps unless its schedule is constant.
# Without one of its own it has that of the learning rate.
FLOORS: Mapping[str, tuple[Keys, float]] = MappingProxyType(
    {
        "learning_rate": (("hyperparameters", "learning_rate_schedule"), 1e-10),
        "clip_range": (("hyperparameters", "epsilon_schedule"), 0.1),
        "ent_coef": (("hyperparameters", "beta_schedule"), 1e-5),
    }
)
RATE_SCHEDULE = FLOORS["learning_rate"][0]
UNITS, LAYERS = ("network_settings", "hidden_units"), ("network_settings", "num_layers")
NORMALIZE = ("network_settings", "normalize")
BUFFER, BATCH = ("hyperparameters", "buffer_size"), ("hyperparameters", "batch_size")
HORIZON = ("time_horizon",)
DEVICE = ("torch_settings", "device")
MEMORY = ("network_settings", "memory")
SELF_SECTION, RATIO = "self_play", "play_against_latest_model_ratio"
# Under the same keys, with ML-Agents' defaults.
SELF_PLAY: Mapping[str, Any] = MappingProxyType(
    {"save_steps": 20_000, "swap_steps": 2_000, "window": 10, RATIO: 0.5, "initial_elo": 1200.0}
)
LIKE_PPO = ("ppo", "poca")
OURS = "hybrid_ppo"  # the algorithm whose network may have a memory
NO_RESET = (
    "has no counterpart: episodes that run go on to their ends, and the next lesson begins with "
    "each row's next one"
)

# Why something has no counterpart in {world}, by the last keys of its place.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "self_play": "the {world} has no self-play; without --target a world that has is taken",
        "team_change": "both sides are learned at once",
        "normalize": "observations are scaled by the ranges that the {world} declares",
        "curiosity": "there is no reward but the {world}'s",
        "gail": "there is no reward but the {world}'s",
        "rnd": "there is no reward but the {world}'s",
        "behavioral_cloning": "there are no demonstrations",
        "env_settings": "the {world} is no program of its own",
        "engine_settings": "there is no engine that draws",
        "checkpoint_settings": "runs are kept by aimbot-lab's tracking",
        "curriculum": "an old form; ML-Agents' upgrade_config makes environment_parameters of it",
        "parameter_randomization": "an old form; ML-Agents' upgrade_config brings it up to date",
    }
)


class TrainerFile:
    """Values of one behavior and of what all share; notes what is asked for as `taken`."""

    def __init__(self, document: YamlDocument, behavior: str | None) -> None:
        self.data: Mapping[str, Any] = document.data
        self.taken: set[KeyPath] = set()
        self.behavior = self._chosen(behavior)
        self._sections: list[KeyPath] = []
        if self.behavior is not None:
            self._sections.append((BEHAVIORS, self.behavior))
        if self.behavior is None or self.data.get(DEFAULTS) is not None:
            self._sections.append((DEFAULTS,))

    def _chosen(self, wanted: str | None) -> str | None:
        behaviors = self.data.get(BEHAVIORS)
        names = list(behaviors) if isinstance(behaviors, dict) else []
        if wanted is None or wanted in names:
            return wanted or next(iter(names), None)
        raise ConfigurationError(
            f"--behavior {wanted}: the file has no such behavior ({advice(wanted, names)})"
        )

    def take(self, *keys: str) -> Any:
        """The behavior's value at `keys`, else that of all behaviors; None if missing."""
        paths = [(*section, *keys) for section in self._sections]
        values = [self.at(path) for path in paths]
        self.taken.update(paths)
        return next((value for value in values if value is not None), None)

    def filled(self, *keys: str) -> Any:
        """The value at `keys` of the section from which ML-Agents fills in what is left out.

        That is `default_settings` where the file has it, even without these keys.
        """
        return self.at((*self._sections[-1], *keys))

    def place(self, *keys: str) -> KeyPath:
        """Where the value at `keys` stands, or would stand."""
        paths = [(*section, *keys) for section in self._sections]
        return next((path for path in paths if self.at(path) is not None), paths[0])

    def at(self, path: KeyPath) -> Any:
        """The value at `path`, None if missing."""
        value: Any = self.data
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def left(self) -> Iterator[KeyPath]:
        """The topmost places of which nothing was taken, in the order of the file; no nulls."""
        for key in self.data:
            yield from self._left((key,))

    def _left(self, path: KeyPath) -> Iterator[KeyPath]:
        value = self.at(path)
        if path in self.taken or value is None:
            return
        if not isinstance(value, dict) or not any(starts_with(one, path) for one in self.taken):
            yield path
            return
        for key in value:
            yield from self._left((*path, key))


def criteria_in(parameters: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    """The criteria by which lessons of `parameters` end, each with its place.

    Whatever has another form than ML-Agents' is passed over; so is the last lesson, whose
    criterion ML-Agents ignores.
    """
    for name, value in parameters.items():
        lessons = value.get("curriculum") if isinstance(value, dict) else None
        for number, lesson in enumerate(lessons[:-1] if isinstance(lessons, list) else ()):
            criteria = lesson.get("completion_criteria") if isinstance(lesson, dict) else None
            if isinstance(criteria, dict):
                yield (SECTION, name, "curriculum", number, "completion_criteria"), criteria


def form_diagnostics(data: Mapping[str, Any]) -> Iterator[Diagnostic]:
    """Why `data` are those of no trainer file: it has one of three sections at least."""
    given = [key for key in (BEHAVIORS, DEFAULTS, SECTION) if key in data]
    if not given:
        yield Diagnostic((), FORM)
    for key in given:
        if not isinstance(data[key], dict | None):
            yield Diagnostic((key,), f"must be a mapping (got {shown_value(data[key])})")


def whole_number(value: Any, path: KeyPath, *, least: int, most: int) -> int:
    """`value` as a whole number. Raises ConversionError if it is not, or out of bounds."""
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if type(number) is not int or not least <= number <= most:
        what = f"must be a whole number from {least} to {most} (got {shown_value(value)})"
        raise ConversionError(Diagnostic(path, what))
    return number


class ConversionError(Exception):
    """Something in a trainer file that can't be converted."""

    def __init__(self, fault: Diagnostic) -> None:
        super().__init__(fault.what)
        self.fault = fault
