"""What a build and a trainer tell each other once: versions, abilities, behaviors."""

from collections.abc import Iterable
from typing import Any

from google.protobuf.message import DecodeError

from aimbot_lab.mlagents.actions import ActionSpec
from aimbot_lab.mlagents.behaviors import BehaviorSpec
from aimbot_lab.mlagents.exception import UnityEnvironmentException
from aimbot_lab.mlagents.wire.schema import new_message
from aimbot_lab.mlagents.wire.wire_format import WireError

COMMUNICATION = "1.5.0"  # version of the protocol
PACKAGE = "2.0.1"  # of Unity's package that speaks it as we do
TRAINER = "0.30.0"  # of ML-Agents' Python package; builds of later ones see pictures otherwise
ABILITIES = (
    *("baseRLCapabilities", "concatenatedPngObservations", "compressedChannelMapping"),
    *("hybridActions", "trainingAnalytics", "variableLengthObservation", "multiAgentGroups"),
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

    Raises UnityEnvironmentException for a trainer of another major version, WireError for bytes
    that are none.
    """
    given = _init_input(initialization)
    version = str(given.communication_version)
    if version.partition(".")[0] != COMMUNICATION.partition(".")[0]:
        raise UnityEnvironmentException(
            f"the trainer speaks version {version!a:.20} of the protocol, this build "
            f"{COMMUNICATION}: the numbers before the point must be the same"
        )
    return int(given.seed)


def reads_channels_first(initialization: bytes) -> bool:
    """Whether the trainer of this InitInput reads pictures as [C, H, W], as those from 1.0 on do.

    Trainers of 0.x read [H, W, C]; one that names no version is taken for a new one.
    """
    return not str(_init_input(initialization).package_version).startswith("0.")


def _init_input(initialization: bytes) -> Any:
    given = new_message("InitInput")
    try:
        given.ParseFromString(initialization)
    except DecodeError as error:
        raise WireError("the trainer's first message can't be read") from error
    return given


def check_build(initialization: bytes) -> None:
    """Raise UnityEnvironmentException for a build whose InitOutput is of another major version."""
    given = new_message("InitOutput")
    try:
        given.ParseFromString(initialization)
    except DecodeError as error:
        raise WireError("the build's first message can't be read") from error
    version = str(given.communication_version)
    if version.partition(".")[0] != COMMUNICATION.partition(".")[0]:
        raise UnityEnvironmentException(
            f"the build speaks version {version!a:.20} of the protocol, this trainer "
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

    Raises WireError for bytes that are none and behaviors without an action.
    """
    given = new_message("InitOutput")
    try:
        given.ParseFromString(initialization)
    except DecodeError as error:
        raise WireError("what a build says of its behaviors can't be read") from error
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
