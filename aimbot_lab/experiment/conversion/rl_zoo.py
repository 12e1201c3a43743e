"""An entry of rl-zoo3's hyperparams/*.yml as a curriculum without lessons.

Such a file has an entry for each environment; the file's name says the algorithm. Texts of Python
in it (`dict(net_arch=[64, 64], activation_fn=nn.ReLU)`) are read as syntax trees: nothing is
evaluated, and no class that the file names is imported.
"""

import ast
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aimbot_lab.experiment.config.checks import MAX_ROLLOUT_STEPS, nearest_divisor
from aimbot_lab.experiment.config.yaml_reader import (
    Diagnostic,
    KeyPath,
    Origins,
    read_mapping,
    read_text,
    shown_file,
    shown_value,
)
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import nearest_name, one_line, shortened
from aimbot_lab.foundation.yaml_files import dump
from aimbot_lab.training.algorithms.algorithm import (
    ACTIVATIONS,
    HER,
    HER_ARGUMENTS,
    POLICY_KWARGS,
    REPLAY,
    Algorithm,
)
from aimbot_lab.training.algorithms.registry import ALGORITHMS

STEPS = "n_timesteps"  # which each entry has
ALGOS: Mapping[str, str] = MappingProxyType({"ppo_lstm": "recurrent_ppo"})
"""Our names of algorithms where the files have others."""
ATARI = "atari"  # the entry of all Atari games
FALLBACKS = ATARI, "default"  # entries for any environment
MODULES: Mapping[str, str] = MappingProxyType(
    {
        r"MiniGrid-": "minigrid",
        r"Panda": "panda_gym",
        r"(highway|merge|roundabout|parking|intersection|racetrack)-": "highway_env",
        r"Fetch|HandManipulate|AntMaze|PointMaze": "gymnasium_robotics",
        r".*Bullet.*Env-": "pybullet_envs_gymnasium",
        r".*NoVel-": "rl_zoo3.import_envs",
        r"ALE/": "ale_py",
    }
)
"""Packages that make ids known, by how these begin."""
TODAY: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2d", "Swimmer"), "v5"),
        **dict.fromkeys(("HumanoidStandup", "InvertedPendulum", "InvertedDoublePendulum"), "v5"),
        **dict.fromkeys(("Reacher", "Pusher"), "v5"),
        **dict.fromkeys(("LunarLander", "LunarLanderContinuous", "BipedalWalker"), "v3"),
        **dict.fromkeys(("BipedalWalkerHardcore", "CarRacing"), "v3"),
        **dict.fromkeys(("PandaReach", "PandaPush", "PandaSlide", "PandaPickAndPlace"), "v3"),
        **dict.fromkeys(("PandaStack", "PandaFlip"), "v3"),
        **dict.fromkeys(("FetchReach", "FetchPush", "FetchSlide", "FetchPickAndPlace"), "v4"),
        **dict.fromkeys(("CartPole", "Acrobot", "Pendulum"), "v1"),
    }
)
"""Versions of today, where Gymnasium no longer makes older ones."""
OLD_HER = ("n_sampled_goal", "goal_selection_strategy", "online_sampling", "max_episode_length")
OPTIMIZERS_BY_CLASS: Mapping[str, str] = MappingProxyType(
    {
        "Adam": "adam",
        "AdamW": "adamw",
        "RMSprop": "rmsprop",
        "RMSpropTFLike": "rmsprop_tf",
        "SGD": "sgd",
    }
)
LOST: Mapping[str, str] = MappingProxyType(
    {
        "online_sampling": "stable-baselines3 always samples so",
        "max_episode_length": "stable-baselines3 finds it out",
        "optimize_memory_usage": "our replay buffer keeps each observation once",
        "vec_env_wrapper": "wrap each environment: env.wrappers",
        "monitor_kwargs": "env.win says what is won",
        "handle_timeout_termination": "stable-baselines3's default is taken",
    }
)
"""Keys without a counterpart, each with what is done instead."""
SCHEDULES = "learning_rate", "clip_range"
MAPPINGS = POLICY_KWARGS, HER_ARGUMENTS, "env_kwargs"
PYTHON_TEXTS = (POLICY_KWARGS, HER_ARGUMENTS, "env_kwargs", "normalize", "monitor_kwargs")


def is_zoo_file(path: Path) -> bool:
    """Whether the file at `path` looks like one of rl-zoo3; standard input is not read for that."""
    if str(path) == "-":
        return False
    try:
        data = read_mapping(read_text(str(path)), "", form="").data
    except ConfigurationError:
        return False
    return any(isinstance(entry, Mapping) and STEPS in entry for entry in data.values())


def convert_entry(path: Path, *, env: str | None, algo: str | None) -> tuple[str, tuple[str, ...]]:
    """The curriculum that trains as the entry of `env` says; without one, as the only entry.

    The algorithm is `algo`, or the file's name. Raises ConfigurationError with every fault.
    """
    file = shown_file(str(path))
    document = read_mapping(read_text(str(path)), file, form="must be a mapping of environments")
    origins = document.origins(file)
    if document.faults:
        raise ConfigurationError(*origins.lines(document.faults))
    name, given = _entry(document.data, env, file)
    entry = _Entry(name, given, origins)
    data = entry.curriculum(env or name, _algorithm(algo, path, given))
    if entry.faults:
        raise ConfigurationError(*origins.lines(entry.faults))
    if "${" in (text := dump(data)):
        raise ConfigurationError(f"{file}: {name} holds ${{, which refers to a key in a curriculum")
    entry_name = shortened(one_line(name), 60)
    head = f"# Converted from the entry {entry_name} of {Path(file).name} (rl-zoo3)."
    return f"{head}\n\n{text}", tuple(origins.lines(entry.notes))


def curriculum_of(env: str, algo: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Data of the curriculum that trains `algo` in `env` by the keys of `entry`."""
    return _Entry(env, entry, Origins("")).curriculum(env, algo)


def _entry(data: Mapping[str, Any], env: str | None, file: str) -> tuple[str, Mapping[str, Any]]:
    """The entry of `env`: of that id, of another version of it, of all Atari games, or default."""
    entries = {name: one for name, one in data.items() if isinstance(one, Mapping)}
    if env is None:
        if len(entries) != 1 or not entries.keys().isdisjoint(FALLBACKS):
            known = ", ".join(entries)
            raise ConfigurationError(f"{file}: --env says which entry is meant: {known}")
        return next(iter(entries.items()))
    alike = [name for name in entries if _base(name) == _base(env)]
    fallback = FALLBACKS[not _is_atari(env)]
    for name in (env, *sorted(alike, reverse=True), fallback):
        if name in entries:
            return name, entries[name]
    raise ConfigurationError(f"{file}: has no entry {env} ({nearest_name(env, entries, 'name')})")


def _algorithm(algo: str | None, path: Path, entry: Mapping[str, Any]) -> str:
    name = algo or str(entry.get("model_class", path.stem))
    name = ALGOS.get(name, name)
    if name not in ALGORITHMS.own:
        raise ConfigurationError(
            f"{path}: the file's name says no algorithm ({name}): --algo is one of "
            f"{', '.join(ALGORITHMS.own)}"
        )
    return name


def _base(env: str) -> str:
    return re.sub(r"-v\d+$", "", env)


def _is_atari(env: str) -> bool:
    return env.startswith("ALE/") or "NoFrameskip" in env


class _Entry:
    """Turns an entry's keys into sections, and notes what has no counterpart."""

    def __init__(self, name: str, given: Mapping[str, Any], origins: Origins) -> None:
        self._path: KeyPath = (name,)
        self._given = dict(given)
        self._origins = origins
        self.notes: list[Diagnostic] = []
        self.faults: list[Diagnostic] = []

    def curriculum(self, env: str, algo: str) -> dict[str, Any]:
        """Data of a curriculum without lessons."""
        for key in PYTHON_TEXTS:
            if isinstance(text := self._given.get(key), str):
                self._given[key] = self._parsed(key, text)
        self._given = {key: value for key, value in self._given.items() if value is not None}
        for key in MAPPINGS:
            if not isinstance(value := self._given.get(key, {}), Mapping):
                self._fault(key, f"must be a mapping (got {shown_value(value)})")
                del self._given[key]
        train: dict[str, Any] = {"algo": algo}
        if (steps := self._take(STEPS)) is not None:
            train["total_steps"] = self._number(STEPS, steps, int)
        section = self._environment(env)
        self._take("model_class")
        options = self._options(algo)
        self._scaling(train, algo, goals=REPLAY in options)
        if self._take("policy") == "LinearPolicy":
            options[POLICY_KWARGS] = {"net_arch": [], "with_bias": False}
        known = ALGORITHMS.own[algo]
        for key, value in self._given.items():
            if key in LOST:
                self._note(key, f"has no counterpart: {LOST[key]}")
            elif key in known.shared:
                train[key] = self._scheduled(key, value)
            else:
                options[key] = value
        self._minibatches(train, section.get("num_envs", 1), known)
        if options:
            train["options"] = options
        return {"name": f"{algo} {env}".replace("/", " "), "env": section, "train": train}

    def _minibatches(self, train: dict[str, Any], rows: int, algorithm: Algorithm) -> None:
        """A `batch_size` that divides a rollout, as is asked of it here."""
        usual = algorithm.of_own_worlds.get("n_steps", algorithm.settings().n_steps)
        size, steps = train.get("batch_size"), train.get("n_steps", usual)
        if not {"n_steps", "batch_size"} <= algorithm.shared.keys():
            return
        if type(size) is not int or type(steps) is not int:
            return  # which the check refuses, as it does a rollout without an end
        rollout = rows * steps
        if size > 0 and 1 < rollout <= MAX_ROLLOUT_STEPS and rollout % size:
            train["batch_size"] = fitting = nearest_divisor(rollout, size)
            what = f"{fitting} replaces {size}: a rollout has {rollout} samples"
            self._note("batch_size", what)

    def _environment(self, env: str) -> dict[str, Any]:
        known = self._today(env)
        section: dict[str, Any] = {"world": "gymnasium", "id": known}
        for beginning, module in MODULES.items():
            if re.match(beginning, known):
                section["module"] = module
        if (kwargs := self._take("env_kwargs")) is not None:
            section["kwargs"] = kwargs
        if (copies := self._take("n_envs")) is not None:
            section["num_envs"] = self._number("n_envs", copies, int)
        wrappers = self._wrappers()
        if _is_atari(env) or ATARI in wrappers:
            section["atari"] = True
        if wrappers := [one for one in wrappers if one != ATARI]:
            section["wrappers"] = wrappers
        if (stacked := self._take("frame_stack")) is not None and stacked != 1:
            section["frame_stack"] = stacked
        if "MiniGrid" in known and "FlatObsWrapper" not in str(wrappers):
            section["observation"] = {"drop": ["mission"]}
        return section

    def _today(self, env: str) -> str:
        """The id that Gymnasium has today."""
        if found := re.fullmatch(r"(?:ALE/)?(\w+?)(?:NoFrameskip)?-v\d+", env):
            if _is_atari(env):
                known = f"ALE/{found[1]}-v5"
            else:
                known = f"{found[1]}-{TODAY[found[1]]}" if found[1] in TODAY else env
            if known != env:
                self._note(None, f"{env} is taken as {known}: its returns may be others")
            return known
        return env

    def _wrappers(self) -> list[Any]:
        """`env.wrappers` from the inside out, and ATARI for stable-baselines3's AtariWrapper."""
        given = self._take("env_wrapper")
        found: list[Any] = []
        for one in given if isinstance(given, list) else [given] * (given is not None):
            named = isinstance(one, Mapping) and len(one) == 1
            name, kwargs = next(iter(one.items())) if named else (one, None)
            module, _, kind = name.rpartition(".") if isinstance(name, str) else ("", "", "")
            if not (module and kind.isidentifier() and isinstance(kwargs, Mapping | None)):
                what = "must be a class with arguments, as module.Class; several are a list"
                self._fault("env_wrapper", f"{what} (got {shown_value(one)})")
                continue
            if kind == "AtariWrapper":
                found.append(ATARI)
                if kwargs:
                    self._note("env_wrapper", f"arguments of AtariWrapper are left out: {kwargs}")
                continue
            place = kind if module.startswith(("gymnasium.wrappers", "gym.wrappers")) else None
            shown = place or f"{module}:{kind}"
            package = module.partition(".")[0]
            if place is None and package not in ("stable_baselines3", "sb3_contrib"):
                where = f"pip install {package}, or keep your own in the working folder"
                self._note("env_wrapper", f"{shown} must be there: {where}")
            found.append({"wrapper": shown, "kwargs": dict(kwargs)} if kwargs else shown)
        return found

    def _scaling(self, train: dict[str, Any], algo: str, *, goals: bool) -> None:
        """`normalize` by our running statistics, which are others than VecNormalize's."""
        given = self._take("normalize")
        if given in (None, False):
            return
        if not isinstance(given, Mapping | bool):
            self._fault("normalize", f"must be true, false or a mapping (got {shown_value(given)})")
            return
        kwargs = given if isinstance(given, Mapping) else {}
        lost = []
        if kwargs.get("norm_obs", True):
            if ALGORITHMS.own[algo].candidates:
                lost.append(f"observations are not scaled, which {algo} does not learn")
            else:
                train["network"] = {"scaling": "running"}
        if kwargs.get("norm_reward", True):
            if goals:
                lost.append("rewards are not scaled, which other goals' are not either")
            else:
                train["reward_scale"] = "running"
        if lost or {"network", "reward_scale"} & train.keys():
            usual = "becomes running statistics of ours: numbers differ from the zoo's"
            self._note("normalize", "; ".join(lost) or usual)

    def _options(self, algo: str) -> dict[str, Any]:
        """Options of the class, and arguments of its policy."""
        options: dict[str, Any] = {}
        if (kind := self._take("noise_type")) is not None:
            options["action_noise"] = [str(kind).strip(), self._take("noise_std", 0.1)]
        hindsight = {key: value for key in OLD_HER if (value := self._take(key)) is not None}
        if self._take("replay_buffer_class") == "HerReplayBuffer" or hindsight:
            options[REPLAY] = HER
            more = {**hindsight, **(self._take(HER_ARGUMENTS) or {})}
            for key in ("online_sampling", "max_episode_length"):
                more.pop(key, None)
            if more:
                options[HER_ARGUMENTS] = more
        if (frequency := self._take("train_freq")) is not None:
            options["train_freq"] = list(frequency) if isinstance(frequency, tuple) else frequency
        if (callback := self._take("callback")) is not None:
            self._note("callback", f"is left out: train.callbacks names it ({callback})")
        of_policy = self._take(POLICY_KWARGS)
        if isinstance(of_policy, Mapping):
            direct = ALGORITHMS.own[algo].policy_options
            options |= {key: value for key, value in of_policy.items() if key in direct}
            if rest := {key: value for key, value in of_policy.items() if key not in direct}:
                options[POLICY_KWARGS] = self._policy(rest)
        return options

    def _policy(self, given: dict[str, Any]) -> dict[str, Any]:
        layers = given.get("net_arch")
        if isinstance(layers, list) and len(layers) == 1 and isinstance(layers[0], Mapping):
            given["net_arch"] = layers[0]  # the form of stable-baselines3 before 1.8
        if (optimizer := given.pop("optimizer_class", None)) is not None:
            given["optimizer"] = OPTIMIZERS_BY_CLASS.get(str(optimizer), optimizer)
        for key in ("features_extractor_class", "features_extractor_kwargs"):
            if key in given:
                what = f"{key} is left out: network.picture says which encoder"
                self._note(POLICY_KWARGS, f"{what} ({given.pop(key)})")
        return given

    def _scheduled(self, key: str, value: Any) -> Any:
        """A number, or from `lin_X` a line from X to 0."""
        if isinstance(value, str) and value.startswith("lin_"):
            start = self._number(key, value.removeprefix("lin_"), float)
            return {"schedule": "linear", "start": start, "end": 0.0}
        if isinstance(value, str) and key in SCHEDULES:
            return self._number(key, value, float)
        return value

    def _number(self, key: str, value: Any, kind: Callable[[float], Any]) -> Any:
        with suppress(TypeError, ValueError, OverflowError):
            if type(value) is not bool and kind(float(value)) == float(value):
                return kind(float(value))
        what = "a whole number" if kind is int else "a number"
        self._fault(key, f"must be {what} (got {shown_value(value)})")
        return kind(1)

    def _parsed(self, key: str, text: str) -> Any:
        """What a text of Python means, by its syntax alone."""
        if text == "HerReplayBuffer":
            return text
        try:
            return _literal(ast.parse(text.strip(), mode="eval").body)
        except (RecursionError, MemoryError):
            self._fault(key, "can't be read: it is nested too deeply")
        except (SyntaxError, ValueError, TypeError) as error:
            self._fault(key, f"can't be read: {getattr(error, 'msg', error)}")
        return None

    def _take(self, key: str, usual: Any = None) -> Any:
        return self._given.pop(key, usual)

    def _note(self, key: str | None, what: str) -> None:
        self.notes.append(Diagnostic((*self._path, *([key] if key else [])), what))

    def _fault(self, key: str, what: str) -> None:
        self.faults.append(Diagnostic((*self._path, key), what))


def _literal(node: ast.expr) -> Any:
    """A literal, `dict(...)` of literals, or the name of a class of torch.nn.

    Raises ValueError for anything else.
    """
    match node:
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=pairs):
            if any(pair.arg is None for pair in pairs):
                raise ValueError("** has no place here")
            if len({pair.arg for pair in pairs}) < len(pairs):
                raise ValueError("an argument is given twice")
            return {str(pair.arg): _literal(pair.value) for pair in pairs}
        case ast.Dict(keys=keys, values=values):
            if None in keys:
                raise ValueError("** has no place here")
            named = [ast.literal_eval(key) for key in keys if key is not None]
            return {str(key): _literal(value) for key, value in zip(named, values, strict=True)}
        case ast.List(elts=inner) | ast.Tuple(elts=inner):
            return [_literal(one) for one in inner]
        case ast.Attribute(attr=name):
            return next((ours for ours, kind in ACTIVATIONS.items() if kind == name), name)
        case ast.Name(id=name):
            return name
    with suppress(ValueError, TypeError):
        value = ast.literal_eval(node)
        if isinstance(value, bool | int | float | str | None):
            return value
    raise ValueError(f"must be plain values (got {shortened(one_line(ast.unparse(node)), 60)})")
