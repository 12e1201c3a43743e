"""Code that settings name, such as a module to import, and which of it this process may run.

Agents, runs and curricula come from anywhere, so reading one runs nothing that it names. Code runs
where the command names the file that names the code, where a training that began with it was noted
in the data folder, or where the user trusts it. What may run stands in the environment: processes
that are started from this one may run it, too.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from aimbot_lab.foundation.errors import ConfigurationError, blamed
from aimbot_lab.foundation.shown_text import one_line, shortened

TRUST = "AIMBOT_LAB_TRUST"
"""The environment variable that holds hashes of code that may run, or EVERYTHING."""


EVERYTHING = "all"
MAX_SHOWN = 120  # characters of what a file names


class NamedCode(NamedTuple):
    """Code that settings name."""

    key: str  # of the settings that name it: env.module
    shown: str  # for a person: module my_env
    source: str  # hash of what is imported or started
    sha256: str  # of the same, with the arguments that an environment is made with


MayRun = Callable[[NamedCode], bool]


def never(code: NamedCode) -> bool:
    """That code may not run: its file is only read."""
    del code
    return False


def always(code: NamedCode) -> bool:
    """That code may run: this very command names the file that names it."""
    del code
    return True


class UntrustedCodeError(ConfigurationError):
    """Code would have had to run that this process may not run."""


def named_code(
    key: str,
    noun: str,
    name: str,
    *,
    parts: Mapping[str, Any],
    arguments: Any = None,
) -> NamedCode:
    """The code `name`, a `noun` that stands at `key`.

    `parts` are all that decides what is imported or started, `arguments` those of an environment.
    """
    shown = shortened(one_line(f"{noun} {name}"), MAX_SHOWN)
    return NamedCode(key, shown, _hash(parts), _hash([parts, arguments]))


def allow(code: NamedCode | None) -> None:
    """Let this process, and those that it starts, run `code`."""
    if code is not None and not is_allowed(code):
        os.environ[TRUST] = ",".join(filter(None, (os.environ.get(TRUST), code.sha256)))


def allow_everything() -> None:
    """Let this process, and those that it starts, run whatever files name."""
    os.environ[TRUST] = EVERYTHING


def is_allowed(code: NamedCode | None, *, trusted: str | None = None) -> bool:
    """Whether this process may run `code`, or one in which TRUST is `trusted`.

    It may where settings name none.
    """
    known = (os.environ.get(TRUST, "") if trusted is None else trusted).split(",")
    return code is None or EVERYTHING in known or code.sha256 in known


def require_allowed(code: NamedCode | None) -> None:
    """Raise UntrustedCodeError, in a line, unless this process may run `code`."""
    if code is not None and not is_allowed(code):
        raise UntrustedCodeError(
            f"{code.key}: the {code.shown} is not run, because no training in this data folder "
            "began with it; if you trust it, add --trust"
        )


def imported(module: str, where: str) -> ModuleType:
    """The module of that name, which may lie in the working directory.

    Raises ConfigurationError, in a line that begins with `where`, if it can't be imported.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")
    with blamed(f"{where}{module} can't be imported:", ConfigurationError):
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if module.endswith(".py"):
                name = module.removesuffix(".py")
                raise ConfigurationError(
                    f"{where}a module is written without .py: {name}, not {module}"
                ) from error
            if error.name != module.partition(".")[0]:
                raise  # what the module itself misses
            raise ConfigurationError(
                f"{where}there is no module {error.name}: install its package, or call this in the "
                "folder that holds it"
            ) from error


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=repr).encode()).hexdigest()
