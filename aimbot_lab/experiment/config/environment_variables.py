"""References to environment variables, `${oc.env:NAME}`, where the user allows them by name.

A file that reads the machine would give another training on another one, and what it reads ends
up in every run's record: so a variable is read only when it is asked for.
"""

import os
import re
from collections.abc import Collection
from typing import Any

from aimbot_lab.experiment.config.yaml_reader import read_yaml

_VARIABLE = re.compile(r"(?<!\\)\$\{oc\.env:(?P<name>\w+)(?:,(?P<default>[^${}]*))?\}")


def with_variables(text: str, allowed: Collection[str]) -> Any:
    """`text` with the values of the environment variables that it refers to.

    A text that is one such reference and no more becomes what its value says in YAML, for example
    a number. Raises ValueError for a variable that is not allowed or not set.
    """

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in allowed:
            raise ValueError(f"must not read the environment without --allow-env {name}")
        found = os.environ.get(name, match["default"])
        if found is None:
            raise ValueError(f"refers to an environment variable that is not set: {name}")
        if "${" in found:
            raise ValueError(f"refers to an environment variable that holds a reference: {name}")
        return found

    plain = _VARIABLE.sub(value, text)
    return _scalar(plain) if _VARIABLE.fullmatch(text) else plain


def _scalar(text: str) -> Any:
    document = read_yaml(text)
    return text if document.faults or isinstance(document.data, dict | list) else document.data
