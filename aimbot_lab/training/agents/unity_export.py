"""Agents as the ONNX files that Behavior Parameters of a Unity scene take.

Names, shapes and types are those of ML-Agents' own exporter (Python package 1.1.0,
trainers/torch_entities/model_serialization.py): opset 9, an input for each sensor, and actions both
drawn and likeliest, between which Deterministic Inference chooses.
"""

import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from torch import nn

from aimbot_lab.evaluation.temperature import LIKELIEST, Temperature
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.files import replaced_whole
from aimbot_lab.mlagents.info_codec import sensors_of
from aimbot_lab.training.agents.agent_files import SavedAgent
from aimbot_lab.training.agents.export_policy import DeployedPolicy
from aimbot_lab.training.agents.onnx_export import (
    Given,
    Memories,
    OnnxCheck,
    PlainPolicy,
    Played,
    compare,
    refuse_difference,
    require_libraries,
    sample,
    session_of,
    strip,
)
from aimbot_lab.training.networks.hybrid_policy import FORBIDDEN

OPSET = 9
VERSION = 3.0  # of models' form, since ML-Agents 2.0 of Unity
MASKS, MEMORY_IN, MEMORY_OUT = "action_masks", "recurrent_in", "recurrent_out"
HEAD = ("version_number", "memory_size")
NUMBERS, NUMBERS_SHAPE = "continuous_actions", "continuous_action_output_shape"
CHOICES, CHOICES_SHAPE = "discrete_actions", "discrete_action_output_shape"
LIKELIEST_OF = "deterministic_"  # how the names of outputs begin that are not drawn


class UnityPolicy(nn.Module):
    """What an agent sends over ML-Agents' wire, for what its sensors show.

    Takes `inputs` in order: each sensor [N, ...], pictures as [N, C, H, W] of shades from 0 to 1;
    masks [N, choices], 1 where a choice is allowed; what it remembers [N, 1, 2 M], hidden before
    cell. Gives `outputs`: choices [N, branches] and numbers [N, C] from -1 to 1, each drawn at the
    temperature of `deployed` and as it is likeliest. Masks hold for agents that learned without
    them, too.
    """

    order: th.Tensor  # [D] where each column of an observation stands among those of all sensors
    version: th.Tensor  # [1]
    memory_size: th.Tensor  # [1] of both parts
    continuous_size: th.Tensor  # [1]
    branch_sizes: th.Tensor  # [1, branches]
    has_choice: th.Tensor  # [choices, K] 1 where a combination of choices holds this one
    middle: th.Tensor  # [C] of each number, in the world's units
    reach: th.Tensor  # [C] from there to its bounds

    def __init__(self, deployed: DeployedPolicy) -> None:
        super().__init__()
        spec, size = deployed.spec, 0 if deployed.memory is None else deployed.memory.size
        self.deployed, self.sensors = deployed, sensors_of(spec)
        self._branches, self._choices = len(spec.branches), sum(spec.branches)
        self._half_memory = size
        self.inputs = [f"obs_{place}" for place in range(len(self.sensors))]
        self.inputs += [MASKS] if spec.branches else []
        self.inputs += [MEMORY_IN] if size else []
        self.outputs = [*HEAD]
        for has, name, shape in (
            (spec.continuous, NUMBERS, NUMBERS_SHAPE),
            (spec.branches, CHOICES, CHOICES_SHAPE),
        ):
            self.outputs += [name, shape, f"{LIKELIEST_OF}{name}"] if has else []
        self.outputs += [MEMORY_OUT] if size else []
        columns = [one.columns for one in self.sensors if one.columns is not None]
        low, high = spec.action_ranges
        combinations = deployed.combinations.numpy()
        has_choice = [
            (combinations[:, branch] == choice).astype(np.float32)
            for branch, size in enumerate(spec.branches if deployed.flat else ())
            for choice in range(size)
        ]
        for name, values in (
            ("order", np.argsort(np.concatenate([np.zeros(0, np.int64), *columns]))),
            ("version", np.array([VERSION], np.float32)),
            ("memory_size", np.array([2 * self._half_memory], np.float32)),
            ("continuous_size", np.array([spec.continuous], np.float32)),
            ("branch_sizes", np.array([spec.branches], np.float32)),
            ("has_choice", np.array(has_choice, np.float32)),
            ("middle", ((low + high) / 2).astype(np.float32)),
            ("reach", ((high - low) / 2).astype(np.float32)),
        ):
            self.register_buffer(name, th.from_numpy(values))

    def forward(self, *given: th.Tensor) -> tuple[th.Tensor, ...]:
        """All outputs, in order."""
        shown = list(zip(self.sensors, given, strict=False))
        flat = [seen.flatten(1) for sensor, seen in shown if sensor.picture is None]
        observation = th.cat(flat, dim=1) if flat else given[0].flatten(1)[:, :0]
        if len(flat) > 1:
            observation = observation[:, self.order]
        by_name = {sensor.picture: seen for sensor, seen in shown if sensor.picture is not None}
        pictures = tuple(_shades(by_name[one.name]) for one in self.deployed.spec.pictures)
        named = dict(zip(self.inputs, given, strict=True))
        masks, memory, state = named.get(MASKS), named.get(MEMORY_IN), None
        if memory is not None:
            state = memory[:, 0, : self._half_memory], memory[:, 0, self._half_memory :]
        learned = masks > 0.5 if masks is not None and self.deployed.masked else None
        scores, after = self.deployed.scored(observation, learned, state, pictures)
        if masks is not None and learned is None:
            scores = self._allowed(scores, 1.0 - masks)
        drawn, likeliest = self._drawn(scores, observation), self._likeliest(scores, observation)
        found = {HEAD[0]: self.version, HEAD[1]: self.memory_size}
        found |= {NUMBERS_SHAPE: self.continuous_size, CHOICES_SHAPE: self.branch_sizes}
        for prefix, actions in (("", drawn), (LIKELIEST_OF, likeliest)):
            found[prefix + CHOICES] = actions[:, : self._branches].long()
            found[prefix + NUMBERS] = (actions[:, self._branches :] - self.middle) / self.reach
        if after:
            found[MEMORY_OUT] = th.cat(after, dim=1).unsqueeze(1)
        return tuple(found[name] for name in self.outputs)

    def _allowed(self, scores: th.Tensor, forbidden: th.Tensor) -> th.Tensor:
        """`scores` [N, L] of which those with a `forbidden` [N, choices] choice are never taken."""
        if self.deployed.flat:
            return scores + (forbidden @ self.has_choice) * FORBIDDEN
        count = self._choices
        return th.cat([scores[:, :count] + forbidden * FORBIDDEN, scores[:, count:]], dim=1)

    def _likeliest(self, scores: th.Tensor, observation: th.Tensor) -> th.Tensor:
        return self.deployed.acted(scores, observation, self.deployed.likeliest(scores))

    def _drawn(self, scores: th.Tensor, observation: th.Tensor) -> th.Tensor:
        deployed, heat = self.deployed, float(self.deployed.temperature)
        if not deployed.noisy:
            return self._likeliest(scores, observation)
        likely = [(part / heat).softmax(dim=1) for part in deployed.by_branch(scores)]
        chosen = [th.multinomial(part, 1)[:, 0] for part in likely]
        normal = th.randn_like(scores[:, : len(self.middle)])
        return deployed.acted(scores, observation, chosen, normal)


def _shades(picture: th.Tensor) -> th.Tensor:
    """[N, H, W, C] of a `picture` [N, C, H, W] of shades from 0 to 1, as 8 bits have them."""
    return (th.floor(picture.clamp(0.0, 1.0) * 255.0 + 0.5) / 255.0).permute(0, 2, 3, 1)


def export_unity(
    saved: SavedAgent,
    path: Path,
    *,
    temperature: Temperature | None = None,
    observations: int = 10_000,
) -> OnnxCheck:
    """The file `path` written, which a scene's Behavior Parameters take as their model.

    Its drawn actions are those at `temperature`, or at the one that is advised. It appears only
    where onnxruntime chooses by it what torch chooses, on `observations` of them, as `export_onnx`
    does. Raises ConfigurationError where a library for ONNX is missing, for a world whose actions
    have units of their own, and for what this form can't hold, LabError where the two differ.
    """
    deployed, algo = DeployedPolicy(saved, temperature).eval(), saved.train.algo
    if deployed.spec.environment_actions is not None:
        what = "its actions are an environment's own, which no scene of Unity takes: --for plain"
        raise ConfigurationError(f"world {saved.env.world}: {what}")
    require_libraries()
    policy = UnityPolicy(deployed)
    with replaced_whole(path) as fresh:
        _write(policy, algo, fresh)
        check = compare_unity(saved, fresh, sample(deployed.spec, observations))
        refuse_difference(check)
    return check


def compare_unity(saved: SavedAgent, path: Path, given: Given) -> OnnxCheck:
    """The likeliest actions of the file at `path` against those of the agent in torch."""
    deployed, session = DeployedPolicy(saved, LIKELIEST).eval(), session_of(path)
    policy, plain = UnityPolicy(deployed), PlainPolicy(deployed)
    taken = {one.name for one in session.get_inputs()}

    def play(now: Given, memory: Memories) -> Played:
        named = dict(zip(policy.inputs, _inputs(policy, now, memory), strict=True))
        given = {name: array for name, array in named.items() if name in taken}
        outputs = dict(zip(policy.outputs, session.run(policy.outputs, given), strict=True))
        rows = len(now.observation)
        choices = outputs.get(LIKELIEST_OF + CHOICES, np.zeros((rows, 0)))
        numbers = outputs.get(LIKELIEST_OF + NUMBERS, np.zeros((rows, 0)))
        units = numbers * policy.reach.numpy() + policy.middle.numpy()
        with th.no_grad():
            inputs = plain.inputs_of(now, memory)
            scores = plain(*map(th.from_numpy, inputs.values()))[1].numpy()
        after = np.split(outputs[MEMORY_OUT][:, 0], 2, axis=1) if memory else []
        actions = np.concatenate([choices, units], axis=1).astype(np.float32)
        return actions, scores, dict(zip(memory, after, strict=True))

    return compare(saved, deployed, given, play)


def _inputs(policy: UnityPolicy, given: Given, memory: Memories) -> list[Any]:
    """What is `given` as the policy's inputs, in order.

    Masks are all 1 for an agent that learned without them, which torch does not show it either.
    """
    seen = [np.ascontiguousarray(one.of(given.observation)) for one in policy.sensors]
    masks = given.action_masks.astype(np.float32)
    if MASKS in policy.inputs:
        seen.append(masks if policy.deployed.masked else np.ones_like(masks))
    if memory:
        seen.append(np.concatenate([*memory.values()], axis=1)[:, None])
    return seen


def _write(policy: UnityPolicy, algo: str, path: Path) -> None:
    """Write the file `path`. Raises ConfigurationError for an operation that the opset lacks."""
    import onnx

    few = sample(policy.deployed.spec, 2)
    tensors = [th.from_numpy(one) for one in _inputs(policy, few, policy.deployed.nothing(2))]
    fixed = (*HEAD, NUMBERS_SHAPE, CHOICES_SHAPE)
    batched = [name for name in (*policy.inputs, *policy.outputs) if name not in fixed]
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            th.onnx.export(
                policy,
                tuple(tensors),
                path,
                dynamo=False,
                opset_version=OPSET,
                input_names=policy.inputs,
                output_names=policy.outputs,
                dynamic_axes={name: {0: "batch"} for name in batched},
            )
    except th.onnx.errors.OnnxExporterError as error:
        what = str(error).partition("\n")[0]
        raise ConfigurationError(f"{algo}: no file for Unity can hold it: {what}") from error
    model = onnx.load(path)
    strip(model)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
