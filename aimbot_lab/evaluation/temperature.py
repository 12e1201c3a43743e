"""How boldly an agent draws its actions."""

import math

from aimbot_lab.foundation.errors import ConfigurationError

LOWEST, HIGHEST = 0.01, 10.0  # beside 0; below, logits divided by it leave float32


class Temperature(float):
    """A number that says how an agent's actions are drawn from its policy.

    Logits are divided by it, and the standard deviation of a continuous action is multiplied by
    it: 1 samples as in training, less prefers the likelier actions, 0 takes the likeliest one.
    Raises ConfigurationError for anything but 0 and LOWEST to HIGHEST.
    """

    def __new__(cls, value: float) -> "Temperature":
        """The temperature `value`."""
        if math.isnan(value) or not (value == 0 or LOWEST <= value <= HIGHEST):
            raise ConfigurationError(
                f"temperature {value:g}: must be 0 (the likeliest action) or from {LOWEST:g} to "
                f"{HIGHEST:g} (1: sampled as in training)"
            )
        return super().__new__(cls, value)

    @property
    def label(self) -> str:
        """How tables, films and files name an agent that plays so."""
        return {1.0: "sampled", 0.0: "likeliest action"}.get(self, f"temperature {self:g}")


SAMPLED = Temperature(1)
LIKELIEST = Temperature(0)
COOLER = Temperature(0.5)
ADVISED = SAMPLED
"""At which agents play where nothing else is asked for: what the evidence of their lessons is
about. README.md beside this module says more."""
