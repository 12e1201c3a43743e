"""An algorithm that a package brings, with the package named in whatever goes wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.shown_text import one_line, shortened
from aimbot_lab.training.algorithms.algorithm import AdapterOptions, Algorithm, Memory

RETURNS: dict[str, type] = {
    "adapter": AdapterOptions,
    "more": dict,
    "more_policy": dict,
    "any_threads": bool,
    "memory": Memory,
}
"""What the functions of an algorithm give, by their names."""


def package_algorithm(algorithm: Algorithm, shown: str) -> Algorithm:
    """`algorithm`, whose functions raise ConfigurationError, in one line that names it as `shown`.

    They do so for whatever they raise, and for what they must not return.
    """
    checked: dict[str, Any] = {name: _checked(algorithm, name, shown) for name in RETURNS}
    return replace(algorithm, **checked)


def _checked(algorithm: Algorithm, name: str, shown: str) -> Callable[..., Any]:
    function, kind = getattr(algorithm, name), RETURNS[name]

    def asked(*given: Any) -> Any:
        where = f"train.algo: {shown}: its {name}"
        with blamed(f"{where} raised", ConfigurationError):
            answer = function(*given)
        if not isinstance(answer, kind):
            got = shortened(one_line(repr(answer)), 80)
            raise ConfigurationError(f"{where} gave {got}; it must give {kind.__name__}")
        return answer

    return asked
