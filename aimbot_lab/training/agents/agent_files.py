"""Agents as files: weights in safetensors, everything else in JSON; loading runs no code."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch as th
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.files import read_bounded
from aimbot_lab.foundation.named_code import UntrustedCodeError
from aimbot_lab.foundation.registry import Registry
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.foundation.world_type import WorldSettings
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.algorithms.algorithm import (
    POLICY_KWARGS,
    named_layers,
    stack_weights,
)
from aimbot_lab.training.algorithms.models import new_policy
from aimbot_lab.training.algorithms.registry import ALGORITHMS, AnyTrain, algorithm_of
from aimbot_lab.training.networks.network import NETWORKS
from aimbot_lab.training.settings import TrainSettings
from aimbot_lab.version import full_version
from aimbot_lab.worlds.registry import (
    WORLDS,
    AnyWorld,
    as_dict,
    content_fault,
    content_of,
    kept_spec,
    stored_spec,
)

FORMAT = 1
WEIGHTS, DESCRIPTION = "agent.safetensors", "agent.json"
PARTS = frozenset({"format", "env", "train", "about"})
CONTENT = "content"  # what `env` names and does not hold, where it does so
SPEC = "spec"  # of a world that has to be asked for it
THREADS = 1  # where agents only play: with batches that small, a second one is waited for
MAX_DESCRIPTION_BYTES, MAX_WEIGHTS_BYTES = 2**21, 2**30
MAX_NAME = 80
FAULTS = (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError, LabError)


class _MissingEntryError(LabError):
    """What the agent was made with is not installed."""


class _OtherContentError(LabError):
    """What the agent's world was made of is another now."""


@dataclass(frozen=True)
class SavedAgent:
    """An agent read from its files, with the settings it was trained under."""

    agent: Agent
    env: WorldSettings
    train: TrainSettings
    about: dict[str, Any]


def save_agent(
    policy: BasePolicy,
    folder: Path,
    *,
    env: WorldSettings,
    train: TrainSettings,
    about: dict[str, Any],
) -> tuple[Path, Path]:
    """The two files written to `folder`; `about` is kept as it is (plain JSON values).

    Each file appears whole or not at all, and a new folder only with both.
    """
    is_new = not folder.exists()
    # Copies, because a file keeps no two names for one tensor, as policies have for some.
    weights = {name: t.detach().cpu().clone() for name, t in policy.state_dict().items()}
    description = {"format": FORMAT, "env": as_dict(env), "train": asdict(train), "about": about}
    description |= {CONTENT: content} if (content := content_of(env)) else {}
    description |= {SPEC: spec} if (spec := kept_spec(env)) else {}
    paths = folder / WEIGHTS, folder / DESCRIPTION
    fresh = tuple(path.with_suffix(path.suffix + ".new") for path in paths)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        fresh[0].write_bytes(save(weights))  # save_file raises no OSError for a full disk
        fresh[1].write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
        for path, written in zip(paths, fresh, strict=True):
            written.replace(path)
    except BaseException:
        for written in fresh:
            written.unlink(missing_ok=True)
        if is_new:
            folder.rmdir()
        raise
    return paths


def load_agent(folder: str | PathLike[str]) -> SavedAgent:
    """The agent saved in `folder`; torch uses one thread from here on, however it was trained.

    Reading them runs no code and takes no more memory than they are large, also for files of
    unknown origin. Raises LabError, which says why, where they are missing or not of one agent, and
    UntrustedCodeError for an agent of an older version that does not say what its world shows.
    """
    folder = Path(folder)
    if not folder.is_dir():
        there = "is a file" if folder.exists() else "there is no such folder"
        raise LabError(
            f"{folder}: {there}; an agent is a folder with {WEIGHTS} and {DESCRIPTION}, as "
            "`aimbot-lab export RUN -o FOLDER` writes it"
        )
    try:
        description = _description(read_bounded(folder / DESCRIPTION, MAX_DESCRIPTION_BYTES))
        _require_entries(description["env"], description["train"])
        env = TypeAdapter(AnyWorld).validate_python(description["env"])
        train = TypeAdapter(AnyTrain).validate_python(description["train"])
        _refuse_other_content(description.get(CONTENT), env)
        spec = stored_spec(env, description.get(SPEC))
        policy = policy_of(read_bounded(folder / WEIGHTS, MAX_WEIGHTS_BYTES), train, spec)
    except FileNotFoundError as error:
        raise LabError(f"{folder}: the agent's files are missing; is this an agent?") from error
    except UntrustedCodeError as error:
        raise UntrustedCodeError(f"{folder}: {error}") from error
    except (_MissingEntryError, _OtherContentError) as error:
        raise LabError(f"{folder}: {error}") from error
    except FAULTS as error:
        what = "the agent's files are damaged, or of another version"
        raise LabError(f"{folder}: {what} ({_reason(error)})") from error
    th.set_num_threads(THREADS)
    return SavedAgent(Agent(policy, spec, train), env, train, description["about"])


def _description(data: bytes) -> dict[str, Any]:
    """The JSON document in `data`, of this format."""
    description = json.loads(data.decode("utf-8"))
    if not isinstance(description, dict) or not description.keys() >= PARTS:
        raise ValueError(f"{DESCRIPTION} describes no agent")
    if description["format"] != FORMAT:
        raise ValueError(f"{DESCRIPTION} is of another format than {FORMAT}")
    about = description["about"]
    if not isinstance(about, dict) or not isinstance(about.get("step", 0), int):
        raise ValueError(f"{DESCRIPTION} says nothing that can be read about the agent")
    return description


def _require_entries(env: Any, train: Any) -> None:
    """Raise _MissingEntryError for the first part of an agent that no installed package brings."""
    network = train.get("network") if isinstance(train, dict) else None
    registries: tuple[tuple[Any, Registry[Any]], ...] = (
        (env, WORLDS),
        (train, ALGORITHMS),
        (network, NETWORKS),
    )
    for settings, registry in registries:
        name = settings.get(registry.key) if isinstance(settings, dict) else None
        if isinstance(name, str) and name not in registry:
            shown = shortened(one_line(name), MAX_NAME)
            raise _MissingEntryError(
                f"the agent needs the {registry.noun} {shown}, which no installed package brings"
            )
        if isinstance(name, str) and name not in registry.own:
            _load(registry, name)


def _refuse_other_content(recorded: Any, env: WorldSettings) -> None:
    fault = content_fault(recorded, env)
    if fault is not None:
        raise _OtherContentError(fault)


def _load(registry: Registry[Any], name: str) -> None:
    try:
        registry[name]
    except ConfigurationError as error:
        raise _MissingEntryError(str(error)) from error


def _reason(error: Exception) -> str:
    """`error` in a few visible characters: names in a file may hold anything."""
    if isinstance(error, ValidationError):
        return f"{DESCRIPTION} holds settings that there are not"
    text = error.strerror or "" if isinstance(error, OSError) else str(error)
    line = text.split("\n", maxsplit=1)[0]
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:120]


def policy_of(data: bytes, train: TrainSettings, spec: WorldSpec) -> BasePolicy:
    """The policy that `train` describes with the weights in `data`, a safetensors file.

    Raises ValueError, or what safetensors and torch raise, where they do not fit to the last
    name, shape and type, or hold NaN or infinity.
    """
    weights = load(data)
    held = sum(tensor.numel() for tensor in weights.values())
    if held < _least_weights(train, spec):
        raise ValueError("the described network is larger than the weights in the file")
    policy = new_policy(train, spec)
    check_weights(weights, policy.state_dict())
    policy.load_state_dict(weights)
    policy.set_training_mode(False)
    # Buffers once more: some are worked out from those in the file.
    if not all(bool(th.isfinite(buffer).all()) for buffer in policy.buffers()):
        raise ValueError("its normalisation statistics are not finite")
    return policy


def _least_weights(train: TrainSettings, spec: WorldSpec) -> int:
    """The least number of weights that such a network has, before one is made."""
    algorithm = algorithm_of(train)
    if algorithm.table is not None:
        return algorithm.table(train, spec)
    bins = spec.continuous * len(train.aim_bins) if algorithm.chooses_bins(train, spec) else 0
    quantiles = train.options.get("n_quantiles")
    outputs = max(bins, quantiles if isinstance(quantiles, int) else 0)
    inputs = len(spec.observation_names)
    memory, given = algorithm.memory(train, inputs), train.options.get(POLICY_KWARGS)
    critics = 0
    if isinstance(given, Mapping):
        if "net_arch" in given and not named_layers(train):
            raise ValueError("its net_arch names no layers")
        critics = given.get("n_critics", 0)
    least = memory.weights + stack_weights(train, memory.outputs, outputs)
    return max(least, critics * inputs if isinstance(critics, int) else 0)


def check_weights(weights: Mapping[str, th.Tensor], wanted: Mapping[str, th.Tensor]) -> None:
    """Raise ValueError for the first difference in names, shapes and types, and for NaN."""
    for name in sorted(wanted.keys() ^ weights.keys()):
        what = "is missing" if name in wanted else "belongs to no part of the network"
        raise ValueError(f"weight {name} {what}")
    for name, tensor in weights.items():
        for kind in ("shape", "dtype"):
            given, right = getattr(tensor, kind), getattr(wanted[name], kind)
            if given != right:
                raise ValueError(f"weight {name} has {kind} {_shown(given)}, not {_shown(right)}")
        if not bool(th.isfinite(tensor).all()):
            raise ValueError(f"weight {name} holds NaN or infinity")


def _shown(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, th.Size) else str(value).removeprefix("torch.")


AgentRank = tuple[int, float]
"""Lessons passed, then the lower end of the win rate's interval; the mean return without wins."""


class BestAgent:
    """Weights of the agent with the highest rank; `weights` is None before there is one.

    Ranked by the interval's lower end, so that a lucky streak over few episodes does not count as
    better.
    """

    def __init__(self) -> None:
        self.weights: dict[str, th.Tensor] | None = None
        self.about: dict[str, Any] = {}
        self._rank: AgentRank = (-1, 0.0)

    @classmethod
    def of(cls, weights: Mapping[str, th.Tensor], about: Mapping[str, Any]) -> "BestAgent":
        """The agent with `weights`, which was found to be the best in another way."""
        made = cls()
        made.weights, made.about = dict(weights), dict(about)
        return made

    def consider(
        self, rank: AgentRank, weights: Mapping[str, th.Tensor], *, step: int, lesson: int
    ) -> None:
        """Keep a copy of `weights`, those at environment step `step`, if none ranked as high.

        `lesson` is the one it was in, from 1; of a training that passed all, the last.
        """
        if rank > self._rank:
            self._rank = rank
            self.weights = {name: tensor.clone() for name, tensor in weights.items()}
            self.about = {"step": step, "lesson": lesson, "win_rate_lower": rank[1]}

    def state(self) -> dict[str, Any]:
        """Everything about it."""
        return {"weights": self.weights, "about": self.about, "rank": self._rank}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state()` gave."""
        self.weights, self.about = state["weights"], state["about"]
        self._rank = state["rank"]


def saved_agents(
    policy: BasePolicy,
    best: BestAgent,
    folder: Path,
    *,
    env: WorldSettings,
    train: TrainSettings,
    about: dict[str, Any],
) -> dict[str, tuple[Path, ...]]:
    """Files in `folder` of `policy` as the `last` agent and, once there is one, of the `best`.

    Both say of what version the code was.
    """
    made_by = {"aimbot_lab": full_version()}
    saved: dict[str, tuple[Path, ...]] = {
        "last": save_agent(policy, folder / "last", env=env, train=train, about=about | made_by)
    }
    if best.weights is not None:
        last = {name: t.clone() for name, t in policy.state_dict().items()}
        policy.load_state_dict(best.weights)
        about = best.about | made_by
        saved["best"] = save_agent(policy, folder / "best", env=env, train=train, about=about)
        policy.load_state_dict(last)
    return saved
