"""An ML-Agents trainer file: all of its keys with what becomes of each, and its values by key.

Names and defaults are those of ML-Agents' Python package, version 1.1.0 (trainers/settings.py).
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from aimbot_lab.experiment.config.checks import MAX_ROLLOUT_STEPS
from aimbot_lab.experiment.config.settings import SECTION
from aimbot_lab.experiment.config.yaml_reader import Diagnostic, KeyPath, shown_value
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import nearest_name
from aimbot_lab.training.networks.settings import MAX_LAYERS

BEHAVIORS, DEFAULTS = "behaviors", "default_settings"
WHOLE_FILE = ("env_settings", "engine_settings", "checkpoint_settings", "torch_settings", "debug")
MANY = 10**9
WORDS = {bool: "true or false", str: "a text", tuple: "a list"}
MAX_WHOLE = 2**63 - 1
MAX_TEXT = 40  # characters of a text that is read as a number
OCTAL = re.compile("[-+]?0[0-7_]+")  # to ML-Agents' YAML


class Key(NamedTuple):
    """What becomes of a key: it is taken as it is, changed, lost, or idle, which is not missed."""

    fate: Literal["copied", "changed", "lost", "idle"]
    usual: Any  # ML-Agents' value where the file leaves it out; None: it has none
    ours: str = ""  # where it goes in a curriculum
    text: str = ""  # how it changes, or why it is lost
    bounds: tuple[int, int] | None = None  # of a whole number that no other check will see


def _copied(usual: Any, ours: str, text: str = "") -> Key:
    return Key("copied", usual, ours, text)


def _changed(usual: Any, ours: str, text: str, bounds: tuple[int, int] | None = None) -> Key:
    return Key("changed", usual, ours, text, bounds)


def _lost(usual: Any, text: str) -> Key:
    return Key("lost", usual, "", text)


def _idle(*usual: Any) -> Key:
    return Key("idle", *usual)


RATE, RATE_SCHEDULE = "train.learning_rate", "hyperparameters.learning_rate_schedule"
CLIP, BONUS, NETWORK = "train.clip_range", "train.ent_coef", "train.network"
OPTIONS, GROUP = "train.options", (2, MAX_ROLLOUT_STEPS)
REWARD = "the agent learns from the world's reward alone"
UNTRAINED = "the run begins with an untrained agent"
AGENTS = (
    "agents whose `time_horizon` steps fill it; with a replay buffer `train.options.buffer_size`"
)
FOLLOWS = "if left out, the learning rate's; a linear one ends at"
ALGO = (
    "`hybrid_ppo` in world unity and with a memory, else `ppo`; in world unity `sac` stays `sac`; "
    "a plug-in with the name of an algorithm of this package becomes that algorithm"
)
SCALING = "true: `running`; false: `none` in world unity, elsewhere `ranges`"

_TABLE: Mapping[str, Mapping[str, Key]] = {
    "": {
        "trainer_type": _changed("ppo", "train.algo", ALGO),
        "max_steps": _copied(500_000, "train.total_steps"),
        "time_horizon": _changed(64, "train.n_steps", "must divide `buffer_size`", (1, MANY)),
        "behavioral_cloning": _lost(None, "nothing is learned from demonstrations"),
        "init_path": _lost(None, UNTRAINED),
        "keep_checkpoints": _idle(5),
        "checkpoint_interval": _idle(500_000),
        "even_checkpoints": _idle(False),
        "summary_freq": _idle(50_000),
        "threaded": _idle(False),
        "framework": _idle(None),
        "debug": _idle(False),
    },
    "hyperparameters": {
        "buffer_size": _changed(10_240, "env.num_envs", AGENTS, (4, MAX_ROLLOUT_STEPS)),
        "batch_size": _changed(1024, "train.batch_size", "must divide `buffer_size`", GROUP),
        "num_epoch": _copied(3, "train.n_epochs"),
        "lambd": _copied(0.95, "train.gae_lambda"),
        "learning_rate": _changed(3e-4, RATE, "by its schedule"),
        "epsilon": _changed(0.2, CLIP, "by its schedule"),
        "beta": _changed(5e-3, BONUS, "by its schedule"),
        "learning_rate_schedule": _changed("linear", RATE, "a linear one ends at 1e-10"),
        "epsilon_schedule": _changed("linear", CLIP, f"{FOLLOWS} 0.1"),
        "beta_schedule": _changed("linear", BONUS, f"{FOLLOWS} 1e-5"),
        "shared_critic": _lost(False, "policy and value share no layers"),
        "gamma": _copied(0.99, "train.gamma", "plug-ins only"),
        "buffer_init_steps": _copied(0, f"{OPTIONS}.learning_starts"),
        "steps_per_update": _changed(
            1.0, f"{OPTIONS}.gradient_steps", "steps of a rollout, divided by it"
        ),
        "tau": _copied(0.005, f"{OPTIONS}.tau"),
        "target_update_interval": _copied(10_000, f"{OPTIONS}.target_update_interval"),
        "exploration_initial_eps": _copied(0.1, f"{OPTIONS}.exploration_initial_eps"),
        "exploration_final_eps": _copied(0.05, f"{OPTIONS}.exploration_final_eps"),
        "exploration_schedule": _idle("linear"),
        "init_entcoef": _lost(1.0, "the entropy bonus starts at its own value"),
        "save_replay_buffer": _idle(False),
        "reward_signal_steps_per_update": _idle(4.0),
    },
    "network_settings": {
        "hidden_units": _changed(128, f"{NETWORK}.layers", "units of each layer", (1, 4096)),
        "num_layers": _changed(2, f"{NETWORK}.layers", "number of layers", (1, MAX_LAYERS)),
        "normalize": _changed(False, f"{NETWORK}.scaling", SCALING),
        "vis_encode_type": _lost("simple", "pictures have the encoder of train.network"),
        "goal_conditioning_type": _idle("hyper"),
        "deterministic": _lost(False, "actions are drawn while the agent learns"),
    },
    "network_settings.memory": {
        "memory_size": _changed(
            128, f"{NETWORK}.memory.size", "half, because it counts h and c", (2, 8192)
        ),
        "sequence_length": _changed(
            64, f"{NETWORK}.memory.sequence_length", "must divide `train.n_steps`", (1, MANY)
        ),
    },
    "reward_signals": {
        "curiosity": _lost(None, REWARD),
        "gail": _lost(None, REWARD),
        "rnd": _lost(None, REWARD),
    },
    "reward_signals.extrinsic": {
        "gamma": _copied(0.99, "train.gamma"),
        "strength": _copied(1.0, "train.reward_scale"),
        "network_settings": _idle(None),
    },
    "self_play": {
        "save_steps": _copied(20_000, "self_play.save_steps"),
        "swap_steps": _copied(2_000, "self_play.swap_steps"),
        "window": _copied(10, "self_play.window"),
        "play_against_latest_model_ratio": _copied(
            0.5, "self_play.play_against_latest_model_ratio"
        ),
        "initial_elo": _copied(1200.0, "self_play.initial_elo"),
        "team_change": _idle(None),  # both sides are learned at once
    },
    "env_settings": {
        "env_path": _changed(None, "env.file_name", "only world unity plays a build"),
        "env_args": _copied((), "env.env_args"),
        "seed": _copied(-1, "seed", "-1: this package's default"),
        "base_port": _copied(5005, "env.base_port", "5005: any that is free"),
        "timeout_wait": _copied(60, "env.timeout_wait"),
        "max_lifetime_restarts": _copied(10, "env.max_lifetime_restarts"),
        "restarts_rate_limit_n": _copied(1, "env.restarts_rate_limit_n"),
        "restarts_rate_limit_period_s": _copied(60, "env.restarts_rate_limit_period_s"),
        "num_envs": _lost(1, "env.num_envs counts agents, in as many processes as they need"),
        "num_areas": _idle(1),
    },
    "engine_settings": {
        "width": _copied(84, "env.width"),
        "height": _copied(84, "env.height"),
        "quality_level": _copied(5, "env.quality_level"),
        "time_scale": _copied(20.0, "env.time_scale"),
        "target_frame_rate": _copied(-1, "env.target_frame_rate"),
        "capture_frame_rate": _copied(60, "env.capture_frame_rate"),
        "no_graphics": _copied(False, "env.no_graphics"),
        "no_graphics_monitor": _idle(False),
    },
    "torch_settings": {
        "device": _changed(None, "train.device", "the CPU or the first CUDA device"),
    },
    "checkpoint_settings": {
        "initialize_from": _lost(None, UNTRAINED),
        "run_id": _idle("ppo"),
        "load_model": _idle(False),
        "resume": _idle(False),
        "force": _idle(False),
        "train_model": _idle(False),
        "inference": _idle(False),
        "results_dir": _idle("results"),
    },
}
KEYS: Mapping[str, Key] = MappingProxyType(
    {
        f"{section}.{name}".lstrip("."): key
        for section, of in _TABLE.items()
        for name, key in of.items()
    }
)
"""By place, dotted: in a behavior, unless it begins with a section of the whole file. Those of
`environment_parameters` are the same here."""
_SECTIONS = frozenset(
    ".".join(parts[:end])
    for parts in (place.split(".") for place in KEYS)
    for end in range(1, len(parts))
)


class ConversionError(Exception):
    """Something in a trainer file that can't be converted."""

    def __init__(self, *faults: Diagnostic) -> None:
        super().__init__(*(fault.what for fault in faults))
        self.faults = faults


class TrainerFile:
    """The values of one behavior, over those of all behaviors, and of the whole file.

    Raises ConversionError for values of a wrong type, ConfigurationError for a behavior that the
    file lacks.
    """

    def __init__(self, data: Mapping[str, Any], behavior: str | None) -> None:
        self.given: dict[str, Any] = {}  # by place in the table, without nulls
        self.sections: set[str] = set()  # that are given, if only empty
        self.paths: dict[str, KeyPath] = {}  # where each key, or section, stands
        self.unknown: list[Diagnostic] = []
        self._faults: list[Diagnostic] = []
        behaviors = data.get(BEHAVIORS) or {}
        if behavior is not None and behavior not in behaviors:
            known = nearest_name(behavior, list(behaviors))
            raise ConfigurationError(
                f"--behavior {behavior}: the file has no such behavior ({known})"
            )
        self.behavior = behavior or next(iter(behaviors), None)
        self.others = [(BEHAVIORS, name) for name in behaviors if name != self.behavior]
        self.parameters: Mapping[str, Any] = data.get(SECTION) or {}
        self._all = data.get(DEFAULTS)
        self._root: KeyPath = (DEFAULTS,) if self.behavior is None else (BEHAVIORS, self.behavior)
        if self._all is not None:
            self._walk(self._all, (DEFAULTS,))
        elif self.behavior is not None:
            self._walk(behaviors[self.behavior], self._root)
        # What ML-Agents fills in comes from here, for clip range and entropy bonus, too.
        self.filled_schedule = self.given.get(RATE_SCHEDULE, "linear")
        signals, extrinsic = "reward_signals", "reward_signals.extrinsic"
        self.lacks_reward = signals in self.sections and extrinsic not in self.sections
        if self._all is not None and self.behavior is not None:
            self._walk(behaviors[self.behavior], self._root)
            self.lacks_reward &= extrinsic not in self.sections
        self._walk({key: data[key] for key in WHOLE_FILE if key in data}, ())
        sections = [*WHOLE_FILE, BEHAVIORS, DEFAULTS, SECTION]
        for key in [one for one in data if one not in sections]:
            what = f"is not a key of ML-Agents 1.1.0 ({nearest_name(key, sections)})"
            self.unknown.append(Diagnostic((key,), what, about_key=True))
        if self._faults:
            raise ConversionError(*self._faults)

    def value(self, place: str) -> Any:
        """What the file says, else what ML-Agents takes."""
        return self.given.get(place, KEYS[place].usual)

    def path(self, place: str) -> KeyPath:
        """Where the key stands in the file, or would stand."""
        top = place.partition(".")[0] in WHOLE_FILE
        return self.paths.get(place, (*(() if top else self._root), *place.split(".")))

    def _walk(self, values: Any, path: KeyPath, section: str = "") -> None:
        if not isinstance(values, Mapping):
            if values is not None:
                what = f"must be a mapping (got {shown_value(values)})"
                self._faults.append(Diagnostic(path, what))
            return
        for name, value in values.items():
            place, here = f"{section}.{name}".lstrip("."), (*path, name)
            misplaced = place in WHOLE_FILE and path
            if misplaced or "." in name or (place not in KEYS and place not in _SECTIONS):
                self.unknown.append(_unknown(here, section))
            elif value is None:
                for old in [key for key in self.given if f"{key}.".startswith(f"{place}.")]:
                    del self.given[old]
                self.sections.discard(place)
            elif place in KEYS:
                self.paths[place] = here
                try:
                    self.given[place] = _typed(KEYS[place], value)
                except ValueError as error:
                    what = f"{error} (got {shown_value(value)})"
                    self._faults.append(Diagnostic(here, what))
            else:
                self.paths[place] = here
                self.sections.add(place)
                self._walk(value, here, place)


def _unknown(path: KeyPath, section: str) -> Diagnostic:
    """What to say of a key that ML-Agents refuses there."""
    name, places = str(path[-1]), [*KEYS, *_SECTIONS]
    elsewhere = [one for one in places if one.rpartition(".")[2] == name and "." in one]
    inside = {one for one in places if one.rpartition(".")[0] == section} - {*WHOLE_FILE}
    known = nearest_name(name, sorted(one.rpartition(".")[2] for one in inside))
    way = f"it stands in {elsewhere[0].rpartition('.')[0]}" if elsewhere else known
    return Diagnostic(
        path, f"is not a key of ML-Agents 1.1.0 at this place ({way})", about_key=True
    )


def _typed(key: Key, value: Any) -> Any:
    """`value` as ML-Agents reads it, which takes numbers as text, too."""
    kind = str if key.usual is None and key.ours else type(key.usual)
    if value == "None":
        raise ValueError("None is a string here; write null")
    if kind is tuple and isinstance(value, list):
        return [str(one) for one in value]
    if kind not in (int, float):
        if key.usual is not None or key.ours:
            _require(type(value) is kind, WORDS[kind])
        return value
    number = value
    if isinstance(value, str) and OCTAL.fullmatch(value):
        raise ValueError("must not begin with 0, which is octal to ML-Agents")
    if isinstance(value, str) and len(value) <= MAX_TEXT:
        with suppress(ValueError):
            number = float(value)
            number = int(value) if value.strip("+- ").isdecimal() else number
    if kind is float:
        _require(isinstance(number, int | float) and type(number) is not bool, "a number")
        return number
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    low, high = key.bounds or (-MAX_WHOLE, MAX_WHOLE)
    between = f" from {low} to {high}" if key.bounds else ""
    _require(type(number) is int and low <= number <= high, f"a whole number{between}")
    return number


def _require(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"must be {what}")
