"""A kind of network that a package brings, with the package named in whatever goes wrong."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, get_args

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.foundation.world import WorldSpec
from aimbot_lab.training.networks.network import NetworkType
from aimbot_lab.training.networks.settings import Activation

if TYPE_CHECKING:
    from gymnasium import spaces
    from torch import nn


class PackageNetwork(NetworkType):
    """`inner`, shown to a person as `shown`.

    Raises ConfigurationError, in one line, for whatever its methods raise, and for what they must
    not return.
    """

    def __init__(self, inner: NetworkType, shown: str) -> None:
        self.inner, self._shown = inner, shown
        self.name, self.settings = inner.name, inner.settings

    def features(
        self, settings: Any, observations: "spaces.Box", *, spec: WorldSpec
    ) -> "nn.Module":
        """A torch module from raw observations [N, D] to features [N, F]."""
        with self._blamed("can't be made:"):
            return self.inner.features(settings, observations, spec=spec)

    def layers(self, settings: Any) -> tuple[int, ...]:
        """Units of the layers that actor and critic each have of their own."""
        with self._blamed("its layers raised"):
            given = self.inner.layers(settings)
        if not isinstance(given, tuple | list) or not all(map(_is_units, given)):
            raise self._fault("layers", given, "whole numbers from 1 on")
        return tuple(given)

    def activation(self, settings: Any) -> Activation:
        """What stands between those layers."""
        with self._blamed("its activation raised"):
            given = self.inner.activation(settings)
        if given not in get_args(Activation):
            raise self._fault("activation", given, " or ".join(map(repr, get_args(Activation))))
        return given

    def policy_arguments(self, settings: Any, spec: WorldSpec) -> Mapping[str, Any]:
        """Further arguments of the policy's class."""
        with self._blamed("its policy_arguments raised"):
            given = self.inner.policy_arguments(settings, spec)
        if not isinstance(given, Mapping):
            raise self._fault("policy_arguments", given, "arguments by their names")
        return given

    def weights(self, settings: Any, inputs: int, outputs: int) -> int:
        """Weights that one such stack has at least, between so many inputs and outputs."""
        with self._blamed("its weights raised"):
            given = self.inner.weights(settings, inputs, outputs)
        if type(given) is not int or given < 0:
            raise self._fault("weights", given, "a whole number from 0 on")
        return given

    def fault(self, settings: Any, spec: WorldSpec, *, algo: str) -> str | None:
        """Why this network can't be trained; that it can't be asked is a reason too."""
        try:
            with self._blamed("its fault raised"):
                fault = self.inner.fault(settings, spec, algo=algo)
        except ConfigurationError as error:
            return str(error).removeprefix("train.network: ")
        return None if fault is None else one_line(str(fault))

    def _blamed(self, what: str) -> AbstractContextManager[None]:
        return blamed(f"train.network: {self._shown} {what}", ConfigurationError)

    def _fault(self, call: str, got: Any, wanted: str) -> ConfigurationError:
        given = shortened(one_line(repr(got)), 80)
        return ConfigurationError(
            f"train.network: {self._shown}: its {call} gave {given}; it must give {wanted}"
        )


def _is_units(value: Any) -> bool:
    return type(value) is int and value >= 1
