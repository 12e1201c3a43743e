"""The files of the page, by their names: a list that is made when the panel starts."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "page"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file of the page."""

    path: Path
    media_type: str


def page_files() -> Mapping[str, PageFile]:
    """All of them, by their paths from the folder `page`."""
    found = sorted(path for path in PAGE.rglob("*") if path.suffix in TYPES)
    return {path.relative_to(PAGE).as_posix(): PageFile(path, TYPES[path.suffix]) for path in found}
