"""Agents as files of stable-baselines3's `save`, which its `load` reads without this package.

Files of others are read for their weights: what is pickled in them is never unpickled.
"""

import json
import warnings
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import CombinedExtractor, NatureCNN
from stable_baselines3.common.utils import LinearSchedule

from aimbot_lab.evaluation.temperature import LIKELIEST
from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.files import replaced_whole
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world_type import LibraryObservations, WorldSettings
from aimbot_lab.training.agents.agent import Agent
from aimbot_lab.training.agents.agent_files import (
    MAX_WEIGHTS_BYTES,
    SavedAgent,
    check_weights,
    save_agent,
)
from aimbot_lab.training.agents.onnx_export import sample
from aimbot_lab.training.algorithms.algorithm import HER_ARGUMENTS, REPLAY
from aimbot_lab.training.algorithms.models import (
    new_action_noise,
    new_policy,
    policy_arguments,
    scaled_features,
)
from aimbot_lab.training.algorithms.registry import algorithm_of
from aimbot_lab.training.algorithms.replay import LIBRARY
from aimbot_lab.training.networks.encoders import EgocentricFeatures
from aimbot_lab.training.networks.settings import map_sizes, resolved_picture
from aimbot_lab.training.settings import Linear, TrainSettings, value_at
from aimbot_lab.worlds.registry import spec_of, type_of

ROWS = 256  # observations that are played to compare
CLOSE = 1e-5  # share of its range by which a number may differ
DATA, WEIGHTS = "data", "policy.pth"
MAX_ENTRIES = 100  # of a file
MAX_TENSORS = 10_000
MAX_DATA_BYTES = 2**24
ALGORITHMS_OF: Mapping[str, str] = MappingProxyType(
    {
        "sb3_contrib.common.maskable.policies": "maskable_ppo",
        "sb3_contrib.common.recurrent.policies": "recurrent_ppo",
        **{f"stable_baselines3.{name}.policies": name for name in ("dqn", "sac", "td3")},
        **{f"sb3_contrib.{name}.policies": name for name in ("qrdqn", "tqc", "crossq", "ars")},
    }
)
"""Algorithms by the modules of their policies; ddpg has that of td3."""


class ZipCheck(NamedTuple):
    """How a written file plays beside the agent in torch."""

    algorithm: str  # its class in the library
    observations: int
    largest: float  # difference of a number, in shares of its range
    space: spaces.Space[Any]  # of what its `predict` is shown


def export_zip(saved: SavedAgent, path: Path) -> ZipCheck:
    """The file `path` written, which `load` of the algorithm's class in the library reads.

    It holds classes of the library alone, its hyper-parameters, and the weights; the optimizer
    begins anew. It appears only where it plays as the agent does. Raises ConfigurationError for
    an agent that the library has no class for, LabError where the two differ.
    """
    model, observations = library_agent(saved.train, saved.env, saved.agent)
    weights = saved.agent.policy.state_dict().values()
    model.policy.load_state_dict(dict(zip(model.policy.state_dict(), weights, strict=True)))
    model.num_timesteps = int(saved.about.get("step", 0))
    with replaced_whole(path) as fresh:
        model.save(fresh)
        return _compared(type(model), fresh, saved.agent, observations)


def _compared(
    kind: type[BaseAlgorithm], path: Path, agent: Agent, observations: LibraryObservations
) -> ZipCheck:
    shown, ours = observations.drawn(ROWS, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a replay buffer that is larger than the memory
        loaded = kind.load(path, device="cpu", buffer_size=1)
    theirs, _ = loaded.predict(shown, deterministic=True)
    mine, _ = agent.choose(ours, temperature=LIKELIEST)
    low, high = (end.astype(np.float64) for end in agent.spec.action_ranges)
    count = len(agent.spec.branches)
    apart = np.abs(agent.world_actions(theirs, ours) - mine)
    largest = float((apart[:, count:] / np.maximum(high - low, 1e-30)).max(initial=0.0))
    other = int(apart[:, :count].any(axis=1).sum())
    if other or not largest <= CLOSE:
        raise LabError(
            f"{kind.__name__}.load plays differently from the agent: {other} of {ROWS} choices, "
            f"numbers by up to {largest:g} of their range"
        )
    return ZipCheck(kind.__name__, ROWS, largest, observations.space)


def library_agent(
    train: TrainSettings, env: WorldSettings, agent: Agent
) -> tuple[BaseAlgorithm, LibraryObservations]:
    """An untrained model as the library's script has it, with the weights of `agent` in order.

    And what it is shown. Raises ConfigurationError, in a line, if no class of the library fits.
    """
    algorithm, spec = algorithm_of(train), agent.spec
    kind, policy = (_of_library(one) for one in algorithm.load())
    if kind is None or kind.__name__.lower() != train.algo.replace("_", ""):
        raise ConfigurationError(
            f"{train.algo} has no class in stable-baselines3 or sb3-contrib, so none of their "
            "files holds its agent: export it as .onnx"
        )
    if (fault := _fault(train, agent)) is not None:
        raise ConfigurationError(f"no file of {kind.__name__} holds such an agent: {fault}")
    asked = type_of(env).library_observations(env, spec)
    observations = _own_observations(agent) if asked is None else asked
    arguments = algorithm.model_arguments(train, observations.space, 1)
    for name in (REPLAY, HER_ARGUMENTS):  # without which it is loaded without an environment
        arguments.pop(name, None)
    arguments = {name: _plain(value) for name, value in arguments.items()}
    if arguments.get("action_noise") is not None:
        arguments["action_noise"] = new_action_noise(arguments["action_noise"], agent.space, 1)
    of_policy = policy_arguments(algorithm, train, spec)
    del of_policy["features_extractor_class"]
    if spec.pictures:
        alone = not isinstance(observations.space, spaces.Dict)
        of_policy["features_extractor_class"] = NatureCNN if alone else CombinedExtractor
        size = resolved_picture(train.network, spec).size  # type: ignore[arg-type]
        of_policy["features_extractor_kwargs"] = {
            "features_dim" if alone else "cnn_output_dim": size
        }
    elif isinstance(observations.space, spaces.Dict):
        if train.algo == "ars":
            raise ConfigurationError(
                "no file of ARS holds such an agent: the library's takes no observation of several "
                "entries: train with env.wrappers: [FlattenObservation], or export it as .onnx"
            )
        of_policy["features_extractor_class"] = CombinedExtractor
    made: Any = kind
    model = made(policy, None, policy_kwargs=of_policy, _init_setup_model=False, **arguments)
    model.observation_space, model.action_space = observations.space, agent.space
    model.n_envs, model.device = 1, th.device("cpu")
    if getattr(model, "target_entropy", None) == "auto":  # which is asked of an environment
        model.target_entropy = -float(get_action_dim(agent.space))
    places = {"buffer_size", "n_steps"} & vars(model).keys()  # for which memory is taken
    kept = {name: getattr(model, name) for name in places}
    vars(model).update(dict.fromkeys(places, 1))
    model._setup_model()
    vars(model).update(kept)
    check_order(model.policy.state_dict(), agent.policy.state_dict())
    return model, observations


def check_order(theirs: Mapping[str, th.Tensor], ours: Mapping[str, th.Tensor]) -> None:
    """Raise ConfigurationError where the weights of one are not those of the other, in order."""
    shapes = [[tuple(one.shape) for one in held.values()] for held in (theirs, ours)]
    if shapes[0] != shapes[1]:
        raise ConfigurationError(
            "no file of stable-baselines3 holds such an agent: train.network has parts that the "
            "library does not know: export it as .onnx"
        )


def _fault(train: TrainSettings, agent: Agent) -> str | None:
    """What of the agent the library does not know, with the way out; None: nothing."""
    spec, onnx = agent.spec, "export it as .onnx"
    taken = spec.environment_actions
    if any(
        isinstance(one, EgocentricFeatures)
        or one.statistics is not None
        or bool((one.scale != 1.0).any() or (one.shift != 0.0).any())
        for one in scaled_features(agent.policy)
    ):
        return (
            "it scales what it sees by train.network.scaling (or features: egocentric), which the "
            f"library does outside of it: train with none, or {onnx}"
        )
    if spec.pictures:
        encoder = resolved_picture(train.network, spec).encoder  # type: ignore[arg-type]
        if encoder != "nature":
            sizes = {one.name: map_sizes("nature", *one.shape[:2])[-1] for one in spec.pictures}
            small = [name for name, size in sizes.items() if min(size) < 1]
            way = "train.network.picture: {encoder: nature}"
            if small:
                way = f"env.observation: {{flatten: [{', '.join(small)}]}}"
            what = f"the library has no encoder of pictures like {encoder}"
            return f"{what}: train with {way}, or {onnx}"
    if taken is not None:
        combined = algorithm_of(train).ranks_actions and len(spec.branches) > 1
        if combined or taken.kind in ("dict", "tuple"):
            return f"the library has no such actions as those of its environment: {onnx}"
        if any(taken.starts):
            return f"its choices begin at {max(taken.starts, key=abs)}, the library's at 0: {onnx}"
    return None


def _of_library(kind: type[Any]) -> type[Any] | None:
    """The first class of the library among those that `kind` is made of."""
    return next((one for one in kind.__mro__ if one.__module__.startswith(LIBRARY)), None)


def _own_observations(agent: Agent) -> LibraryObservations:
    """What the agent itself is shown of a world."""

    def drawn(rows: int, seed: int) -> tuple[Any, Any]:
        observations = sample(agent.spec, rows, seed=seed).observation
        return agent.seen.shown(observations), observations

    return LibraryObservations(agent.seen.space, drawn)


def _plain(value: Any) -> Any:
    """`value` without our schedules: a straight line as the library has it, else as it begins."""
    if isinstance(value, Linear):
        return LinearSchedule(value.start, value.end, value.end_fraction)
    return value_at(value, 1.0)


def unpack_zip(path: Path, folder: Path, *, env: WorldSettings, train: TrainSettings) -> None:
    """Write the agent in the library's file `path`, for a training by `train`, to `folder`.

    Raises ConfigurationError, in a line, where it is damaged, of another algorithm or does not
    fit. Nothing that it holds is run, however it was made.
    """
    fresh = Agent(new_policy(train, spec := spec_of(env)), spec, train)
    names = list(library_agent(train, env, fresh)[0].policy.state_dict())
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_ENTRIES:
                raise ValueError(f"it has more than {MAX_ENTRIES} entries")
            about = json.loads(_entry(archive, DATA, MAX_DATA_BYTES))
            data = _entry(archive, WEIGHTS, MAX_WEIGHTS_BYTES)
        held, steps = _algorithm(about), _steps(about)
        weights = _tensors(data)
    except Exception as error:  # the file is a stranger's
        reason = shortened(one_line(str(error) or type(error).__name__), 120)
        raise ConfigurationError(
            f"{path}: can't be read as a file of stable-baselines3's save: {reason}"
        ) from error
    if held not in (train.algo, None) and {held, train.algo} != {"td3", "ddpg"}:
        raise ConfigurationError(
            f"{path}: holds an agent of {held}, this training learns by {train.algo}: "
            f"use train.algo: {held}"
        )
    try:
        check_weights(weights, dict(zip(names, fresh.policy.state_dict().values(), strict=True)))
    except ValueError as error:
        raise ConfigurationError(
            f"{path}: {shortened(one_line(str(error)), 160)}: its network or its environment is "
            "another; train.network.layers and train.options.policy_kwargs describe the network"
        ) from error
    own = dict(zip(fresh.policy.state_dict(), map(weights.__getitem__, names), strict=True))
    fresh.policy.load_state_dict(own)
    save_agent(fresh.policy, folder, env=env, train=train, about={"step": steps})


def _entry(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """What the entry `name` holds. Raises ValueError where that is more than `limit` bytes."""
    with archive.open(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ValueError(f"{name} is larger than {limit:,} bytes")
    return data


def _algorithm(about: Any) -> str | None:
    """The algorithm whose attributes `about` describes; None: a policy of a user's own class."""
    described = about["policy_class"]
    module = described["__module__"] if isinstance(described, dict) else ""
    if module == "stable_baselines3.common.policies":
        marks = {"clip_range": "ppo", "cg_max_steps": "trpo"}
        return next((algo for key, algo in marks.items() if key in about), "a2c")
    return ALGORITHMS_OF.get(module)


def _steps(about: Any) -> int:
    steps = about.get("num_timesteps", 0)
    return steps if type(steps) is int and 0 <= steps < 2**62 else 0


def _tensors(data: bytes) -> dict[str, th.Tensor]:
    """The weights by name. Raises ValueError, or what torch raises, where they are none."""
    with zipfile.ZipFile(BytesIO(data)) as inner:
        parts = inner.infolist()
        if len(parts) > MAX_TENSORS or any(one.compress_type for one in parts):
            raise ValueError(f"{WEIGHTS} is not as torch writes it")
    held = th.load(BytesIO(data), map_location="cpu", weights_only=True)
    if not isinstance(held, Mapping) or not all(
        isinstance(name, str) and type(one) is th.Tensor for name, one in held.items()
    ):
        raise ValueError(f"{WEIGHTS} holds other things than weights")
    return dict(held)
