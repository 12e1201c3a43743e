"""Agents as files: weights in safetensors, everything else in JSON; loading runs no code."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch as th
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from stable_baselines3.common.policies import BasePolicy

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.sim.settings import ArenaSettings
from aimbot_lab.sim.spec import arena_spec
from aimbot_lab.training.agent import Agent
from aimbot_lab.training.algorithms import new_policy
from aimbot_lab.training.settings import TrainSettings

FORMAT = 1
WEIGHTS, DESCRIPTION = "agent.safetensors", "agent.json"


@dataclass(frozen=True)
class SavedAgent:
    """An agent read from its files, with the settings it was trained under."""

    agent: Agent
    env: ArenaSettings
    train: TrainSettings
    about: dict[str, Any]


def save_agent(
    policy: BasePolicy,
    folder: Path,
    *,
    env: ArenaSettings,
    train: TrainSettings,
    about: dict[str, Any],
) -> tuple[Path, Path]:
    """The two files written to `folder`; `about` is kept as it is (plain JSON values).

    Each file appears whole or not at all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Copies, because a file keeps no two names for one tensor, as policies have for some.
    weights = {name: t.detach().cpu().clone() for name, t in policy.state_dict().items()}
    description = {"format": FORMAT, "env": asdict(env), "train": asdict(train), "about": about}
    paths = folder / WEIGHTS, folder / DESCRIPTION
    fresh = tuple(path.with_suffix(path.suffix + ".new") for path in paths)
    save_file(weights, fresh[0])
    fresh[1].write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
    for path, written in zip(paths, fresh, strict=True):
        written.replace(path)
    return paths


def load_agent(folder: Path) -> SavedAgent:
    """The agent saved in `folder`; torch uses as many threads from here on as it was trained with.

    Raises LabError where its files are missing or damaged.
    """
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if description["format"] != FORMAT:
            raise LabError(f"{folder}: agent of format {description['format']}, not {FORMAT}")
        env = TypeAdapter(ArenaSettings).validate_python(description["env"])
        train = TypeAdapter(TrainSettings).validate_python(description["train"])
        spec = arena_spec(env)
        th.set_num_threads(train.torch_threads)
        policy = new_policy(train, spec)
        policy.load_state_dict(load_file(folder / WEIGHTS))
        policy.set_training_mode(False)
    except FileNotFoundError as error:
        raise LabError(f"{folder}: the agent's files are missing; is this an agent?") from error
    except (ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = "settings" if isinstance(error, ValidationError) else str(error).splitlines()[0]
        raise LabError(f"{folder}: the agent's files are damaged ({reason})") from error
    return SavedAgent(Agent(policy, spec, train), env, train, description.get("about", {}))
