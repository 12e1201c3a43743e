"""Whether two commits train alike, to the bit: `python .ci/compare.py OLD [NEW]`.

Trains every curriculum that both have with the code of each and compares `state_sha256`; then
evaluates the agents of OLD, and plays its replays, with both. Run it with an environment that has
the package's dependencies; each commit is checked out into a folder of its own, which is kept for
the next comparison, and its kernels with it. Exit code 1 where anything differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EPISODES = "40"
SCORES = "episodes", "wins", "median_seconds_to_win", "mean_return"
SETTLED = ("train.torch_threads=1", "tracking.experiment=compared")


class Commit:
    """The code of one commit, with data folders of its own."""

    def __init__(self, name: str, place: Path) -> None:
        found = _said("git", "rev-parse", "--short=12", name, folder=ROOT)
        self.name, self.folder = found.strip(), place / found.strip()
        if not self.folder.exists():
            _said("git", "worktree", "add", "--detach", str(self.folder), self.name, folder=ROOT)

    @property
    def curricula(self) -> set[str]:
        """The names of its curricula."""
        return {path.name for path in (self.folder / "curricula").glob("*.yaml")}

    def call(self, data: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
        """What `aimbot-lab` comes to with `words`."""
        place = [] if data is None else ["--data-dir", str(data)]
        return subprocess.run(
            [sys.executable, "-P", "-m", "aimbot_lab", *words, *place],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "AIMBOT_LAB_TRUST": "all"},
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, data: Path | None, *words: str) -> Any:
        """The document that `aimbot-lab` prints with `words`; its last words where it fails."""
        done = self.call(data, *words, "--json")
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"failed": done.stderr.strip().splitlines()[-1:]}

    def trained(self, curriculum: str, data: Path, steps: int | None) -> Any:
        """The document of one training."""
        sets = [*SETTLED, *([] if steps is None else [f"train.total_steps={steps}"])]
        if curriculum == "duel.yaml" and steps is None:
            sets.append("train.total_steps=2000000")
        words = [word for one in sets for word in ("--set", one)]
        return self.run(data, "run", f"curricula/{curriculum}", *words)


def _said(*command: str, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def told(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def compared(old: Commit, new: Commit, steps: int | None, only: list[str]) -> int:
    """How many curricula, agents and replays differ."""
    different = 0
    for curriculum in sorted(only or old.curricula & new.curricula):
        with tempfile.TemporaryDirectory() as folder:
            data = {commit: Path(folder) / commit.name for commit in (old, new)}
            runs = {one: one.trained(curriculum, data[one], steps) for one in (old, new)}
            found = [runs[one].get("state_sha256", runs[one]) for one in (old, new)]
            agent, replay = runs[old].get("run_id", "latest"), Path(folder) / "replay.json"
            asked = "evaluate", agent, "--episodes", EPISODES
            judged = [one.run(data[old], *asked) for one in (old, new)]
            played = [_scores(one) for one in judged]
            kept = old.call(data[old], "record", agent, "-o", str(replay))
            rows = [("state", found), ("agent", played)]
            if "has no replays" not in kept.stderr:
                shown = [one.run(None, "replay", str(replay)) for one in (old, new)]
                rows.append(("replay", shown))
        for what, pair in rows:
            alike = pair[0] == pair[1] and not any(map(_failed, pair))
            different += not alike
            word = "equal" if alike else "DIFFERENT"
            sample = pair if what == "state" or not alike else pair[:1]
            told(f"{curriculum:<18} {what:<7} {word:<10} {str(sample)[:160]}")
    return different


def _scores(judged: Any) -> Any:
    """What each player won and earned, in their order: names of keys differ between versions.

    Nine digits of it, since a mean may be added up in another order.
    """
    players = [one["overall"] for one in judged.get("players", {}).values()]
    return [[one[key] and float(f"{one[key]:.9g}") for key in SCORES] for one in players] or judged


def _failed(found: Any) -> bool:
    """Whether it is what `Commit.run` gives of a command that failed: two of them are not alike."""
    return isinstance(found, dict) and "failed" in found


def main() -> None:
    """Compare, print a line for each, and exit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--whole", action="store_true", help="to the end of every curriculum")
    parser.add_argument("--only", action="append", default=[], metavar="FILE")
    place = Path(tempfile.gettempdir()) / "aimbot-lab-compared"
    parser.add_argument("--place", type=Path, default=place, help="where commits are checked out")
    asked = parser.parse_args()
    asked.place.mkdir(parents=True, exist_ok=True)
    old, new = Commit(asked.old, asked.place), Commit(asked.new, asked.place)
    different = compared(old, new, None if asked.whole else asked.steps, asked.only)
    told(f"{old.name} and {new.name}: {different or 'none'} differ")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
