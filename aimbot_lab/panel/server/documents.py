"""JSON files that the panel reads: what they hold has the wanted form, or is refused in a line."""

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from aimbot_lab.foundation.bounded_file import read_bounded
from aimbot_lab.foundation.errors import LabError
from aimbot_lab.foundation.shown_text import one_line, shortened

MAX_BYTES = 2**22
MAX_WORDS = 200  # characters of what is wrong
Value = TypeVar("Value")


def read_document(path: Path, form: TypeAdapter[Value]) -> Value:
    """What the file at `path` says. Raises LabError where it is damaged or can't be read."""
    try:
        return form.validate_json(read_bounded(path, MAX_BYTES))
    except OSError as error:
        raise LabError(f"{path.name}: {error.strerror or error}") from error
    except (LabError, ValueError) as error:
        raise LabError(f"{path.name} is damaged: {fault_words(error)}") from error


def fault_words(error: Exception) -> str:
    """What is wrong with a document, in one line: the first of the faults that were found."""
    text = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
    return shortened(one_line(text), MAX_WORDS)
