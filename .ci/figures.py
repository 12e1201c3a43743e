"""The figures of the pages, measured anew: `make figures`, or `python .ci/figures.py [WORD ...]`.

A figure stands in a page between `<!-- figure: COMMAND -->` and `<!-- end of figure -->`; it is
what the command prints with `--markdown`. Words choose the commands that hold one of them. What was
measured of this commit is kept, so that the same command goes on where it was broken off, and a
command that fails leaves the figure as it was.
"""

import importlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
VERSION = importlib.import_module("aimbot_lab").__version__
CPU = importlib.import_module("aimbot_lab.bench.turns").this_machine()["cpu"]
FIGURE = re.compile(r"(<!-- figure: (.+?) -->\n).*?(<!-- end of figure -->)", re.DOTALL)


def main() -> None:
    """Measure, write into the pages, and say what failed."""
    commit = _said("git", "rev-parse", "--short=12", "HEAD").strip()
    place = Path(tempfile.gettempdir()) / "aimbot-lab-figures" / commit
    place.mkdir(parents=True, exist_ok=True)
    pages = [ROOT / name for name in _said("git", "ls-files", "*.md").splitlines()]
    failed = 0
    for page in pages:
        for _, command, _ in FIGURE.findall(page.read_text(encoding="utf-8")):
            if not sys.argv[1:] or any(word in command for word in sys.argv[1:]):
                failed += not written(page, command, place)
    sys.exit(bool(failed))


def written(page: Path, command: str, place: Path) -> bool:
    """Whether what `command` prints stands in `page` now."""
    kept = place / sha256(command.encode()).hexdigest()[:16]
    if not kept.exists():
        begun = time.monotonic()
        words = [*shlex.split(command)[1:], "--markdown"]
        done = subprocess.run(
            [sys.executable, "-m", "aimbot_lab", *words],
            cwd=place,
            env={**os.environ, "AIMBOT_LAB_DATA_DIR": str(place / "data"), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            _tell(f"FAILED  {command}")
            return False
        kept.write_text(done.stdout, encoding="utf-8")
        _tell(f"{time.monotonic() - begun:6.0f} s  {command}")
    text = page.read_text(encoding="utf-8")
    shown = f"`{command}`, version {VERSION}, {CPU}. {kept.read_text(encoding='utf-8')}"
    page.write_text(
        FIGURE.sub(lambda one: f"{one[1]}{shown}{one[3]}" if one[2] == command else one[0], text),
        encoding="utf-8",
    )
    return True


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
