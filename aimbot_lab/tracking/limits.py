"""What a store takes, checked where it is logged: nothing refusable is ever acknowledged."""

import math
import posixpath
import re
from collections.abc import Mapping

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import is_seen

METRICS_PER_CALL = 1000
TAGS_PER_CALL = 100
PARAMS_PER_CALL = 100
MAX_PARAM = 6000  # characters
MAX_TAG = 8000  # characters
_LONGEST_KEY = 250  # characters
_LONGEST_RUN_NAME = 250  # characters
_KEY = re.compile(r"[\w\-. :/]+")


def checked_key(key: str) -> str:
    """`key`, a name of a metric, parameter or tag. Raises ValueError where MLflow refuses it."""
    if not _KEY.fullmatch(key) or not _is_plain_path(key) or len(key) > _LONGEST_KEY:
        raise ValueError(
            f"{key!r} is not a valid name for tracking: letters, digits and _-. :/ are allowed, "
            f"{_LONGEST_KEY} characters at most, no empty part between slashes"
        )
    return key


def checked_run_name(name: str) -> str:
    """`name`, what a run is to be called. Raises ConfigurationError where a list can't show it."""
    if not name.strip() or len(name) > _LONGEST_RUN_NAME or not is_seen(name):
        shown = shortened(name, 40)
        raise ConfigurationError(
            f"the name of a run must be one visible line of 1 to {_LONGEST_RUN_NAME} characters, "
            f"not all of them blank (got {shown!a})"
        )
    return name


def checked_name(name: str) -> str:
    """`name`, an artifact's relative path. Raises ValueError where it leaves the run's folder."""
    if not _is_plain_path(name) or "\\" in name:
        raise ValueError(f"{name!r} is not an artifact name: a relative path like notes/summary.md")
    return name


def checked_file_name(name: str) -> str:
    """`name`, an artifact at the top. Raises ValueError where it is in a folder, or as above."""
    if "/" in name:
        raise ValueError(f"{name!r} is not a file name: no folder is allowed")
    return checked_name(name)


def name_in_folder(folder: str, file_name: str) -> str:
    """The artifact name of a file in `folder`, empty for the top. Raises ValueError as above."""
    return checked_name(f"{folder}/{file_name}" if folder else file_name)


def checked_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """`metrics` as plain floats; a value that is not finite becomes NaN.

    MLflow would store infinity as 1.8e308, which makes a chart's scale useless; NaN shows as a
    gap. Raises ValueError for a key that MLflow refuses.
    """
    values = {checked_key(key): float(value) for key, value in metrics.items()}
    return {key: value if math.isfinite(value) else math.nan for key, value in values.items()}


def checked_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """`tags` with long values cut. Raises ValueError for a key that MLflow refuses."""
    return {checked_key(key): shortened(value, MAX_TAG) for key, value in tags.items()}


def shortened(text: str, longest: int) -> str:
    """`text`, cut to `longest` characters and ended by an ellipsis where it is longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _is_plain_path(path: str) -> bool:
    return posixpath.normpath(path) == path and path != "." and not path.startswith(("/", ".."))
