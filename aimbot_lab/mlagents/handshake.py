"""What a build and a trainer tell each other once: versions, abilities, behaviors, the world.

A player of ours describes its world, beyond what ML-Agents' messages hold, to a trainer that asks
for it: names and bounds of observations, targets with their difficulties, parameters, columns of
episodes, as JSON over a side channel of its own. A build of Unity says nothing of the kind.
"""

import json
import uuid
from collections.abc import Iterable
from typing import Any

from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.spec_document import spec_document, spec_from
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.mlagents.base_env import ActionSpec, BehaviorSpec
from aimbot_lab.mlagents.exception import UnityEnvironmentException, UnitySideChannelException
from aimbot_lab.mlagents.messages import WireError, new_message, parsed

COMMUNICATION = "1.5.0"  # version of the protocol
PACKAGE = "2.0.1"  # of Unity's package that speaks it as we do
TRAINER = "0.30.0"  # of ML-Agents' Python package; builds of later ones see pictures otherwise
ABILITIES = (
    *("baseRLCapabilities", "concatenatedPngObservations", "compressedChannelMapping"),
    *("hybridActions", "trainingAnalytics", "variableLengthObservation", "multiAgentGroups"),
)
DESCRIPTION = uuid.UUID("6b6f6f8c-3c5e-4f0f-9a3f-5d1c2a7e9b10")
ASKED = "AIMBOT_LAB_DESCRIBE"
"""The variable in a player's environment by which a trainer of ours asks for it."""
TOLD = (
    *("observation_names", "observation_low", "observation_high", "blocks", "targets"),
    *("difficulties", "parameters", "action_names", "decision_seconds", "time_unit", "max_steps"),
    *("has_draws", "time_column", "episode_columns", "result_columns", "turn_per_unit"),
)


def greeting() -> bytes:
    """The InitOutput that a build begins with."""
    output = new_message("InitOutput")
    output.name = "AcademySingleton"
    output.communication_version, output.package_version = COMMUNICATION, PACKAGE
    for ability in ABILITIES:
        setattr(output.capabilities, ability, True)
    return _written(output)


def introduction(behaviors: Iterable[str], spec: BehaviorSpec) -> bytes:
    """The InitOutput that comes with the first agents of `behaviors`."""
    output = new_message("InitOutput")
    for name in behaviors:
        brain = output.brain_parameters.add()
        brain.brain_name, brain.is_training = name, True
        actions = brain.action_spec
        actions.num_continuous_actions = spec.action_spec.continuous_size
        actions.num_discrete_actions = spec.action_spec.discrete_size
        actions.discrete_branch_sizes.extend(spec.action_spec.discrete_branches)
    return _written(output)


def trainers_seed(initialization: bytes) -> int:
    """The seed in the trainer's InitInput.

    Raises UnityEnvironmentException for a trainer of another major version, WireError for other
    bytes.
    """
    given = _init_input(initialization)
    _require_version(given, "the trainer", "this build")
    return int(given.seed)


def reads_channels_first(initialization: bytes) -> bool:
    """Whether the trainer of this InitInput reads pictures as [C, H, W], as those from 1.0 on do.

    Trainers of 0.x read [H, W, C]; one that names no version is taken for a new one.
    """
    return not str(_init_input(initialization).package_version).startswith("0.")


def _init_input(initialization: bytes) -> Any:
    return parsed("InitInput", initialization, "the trainer's first message can't be read")


def check_build(initialization: bytes) -> None:
    """Raise UnityEnvironmentException for a build whose InitOutput is of another major version."""
    given = parsed("InitOutput", initialization, "the build's first message can't be read")
    _require_version(given, "the build", "this trainer")


def _require_version(given: Any, other: str, own: str) -> None:
    version = str(given.communication_version)
    if version.partition(".")[0] != COMMUNICATION.partition(".")[0]:
        raise UnityEnvironmentException(
            f"{other} speaks version {version!a:.20} of the protocol, {own} "
            f"{COMMUNICATION}: the numbers before the point must be the same"
        )


def trainers_answer(seed: int) -> bytes:
    """The InitInput that answers a build's greeting, with a seed of 31 bits."""
    given = new_message("InitInput")
    given.seed, given.num_areas = seed, 1
    given.communication_version, given.package_version = COMMUNICATION, TRAINER
    for ability in ABILITIES:
        setattr(given.capabilities, ability, True)
    return _written(given)


def action_specs(initialization: bytes) -> dict[str, ActionSpec]:
    """The actions of the behaviors that an InitOutput introduces.

    Raises WireError for other bytes and behaviors without an action.
    """
    given = parsed("InitOutput", initialization, "what a build says of its behaviors can't be read")
    found = {}
    for brain in given.brain_parameters:
        spec = brain.action_spec
        branches = tuple(int(size) for size in spec.discrete_branch_sizes)
        if not spec.num_continuous_actions and not branches:
            raise WireError(
                f"behavior {brain.brain_name!a:.60} has no actions, or those of a version of "
                "ML-Agents before 1.3"
            )
        found[str(brain.brain_name)] = ActionSpec(int(spec.num_continuous_actions), branches)
    return found


def _written(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def describe(spec: WorldSpec, *, raw: bool = False) -> bytes:
    """`spec` as a message over `DESCRIPTION`, whose agents take `raw` actions."""
    document = spec_document(spec)
    turn, (_, high) = spec.turn_per_unit, spec.action_ranges
    document["turn_per_unit"] = None if turn is None else turn * (1.0 if raw else float(high[0]))
    return json.dumps(document).encode("utf-8")


def described(message: bytes) -> dict[str, Any]:
    """Fields of a WorldSpec that `message` tells.

    Raises UnitySideChannelException where it is no such description.
    """
    try:
        spec = spec_from(json.loads(message))
    except ValueError as error:
        raise UnitySideChannelException(
            f"what a build says of its world can't be read: {shortened(one_line(repr(error)), 80)}"
        ) from error
    return {name: getattr(spec, name) for name in TOLD}
