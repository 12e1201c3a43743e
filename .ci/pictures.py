"""The pictures of the README and of the pages on evaluation, benchmarks and the panel.

`python .ci/pictures.py` trains goto in a data folder of its own, by the commands that the README
shows, films the agent, plots the run, and takes a picture of the panel with a Chromium of the
system.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PACKAGE = Path(__file__).parents[1] / "aimbot_lab"
LAB = [sys.executable, "-m", "aimbot_lab"]
WATCHED_SECONDS = 4  # of an episode, before the picture


def main() -> None:
    """Make all of them anew."""
    with tempfile.TemporaryDirectory() as data:
        place = ["--data-dir", data]
        subprocess.run([*LAB, "run", "goto", *place], check=True)
        film = ["-o", str(PACKAGE / "worlds" / "arena" / "episode.gif"), *place]
        hard = ["--target", "goto", "--difficulty", "5", "--seed", "2"]
        subprocess.run([*LAB, "record", "latest", *hard, *film], check=True)
        curve = ["-o", str(PACKAGE / "evaluation" / "win_rate.png"), *place]
        subprocess.run([*LAB, "plot", "latest", *curve], check=True)
        watched(place, PACKAGE / "panel" / "watch.png")
        judged = ["--set", "evaluation={every: 10000, episodes: 50}"]  # in the last lesson
        seeds = ["run", "doorkey", "--seeds", "3", *judged, *place]
        alone = ["--name", "8x8 alone", "--set", "lessons=[{name: 8x8}]"]
        subprocess.run([*LAB, *seeds], check=True)
        subprocess.run([*LAB, *seeds, *alone, "--set", "train.total_steps=150000"], check=True)
        curves = ["-o", str(PACKAGE / "bench" / "doorkey.png"), *place]
        subprocess.run([*LAB, "plot", "--filter", "experiment=doorkey", *curves], check=True)


def watched(place: list[str], file: Path) -> None:
    """Keep in `file` what the panel shows of the newest run at Watch."""
    command = [*LAB, "panel", "latest", "--port", "0", "--no-browser", *place]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as panel:
        assert panel.stderr is not None
        lines = (re.search(r"at (http\S+)#training/(\w+)", line) for line in panel.stderr)
        address, run = next(filter(None, lines)).groups()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1200, "height": 780})
            page.goto(f"{address}#watch/{run}")
            page.wait_for_selector("canvas.eyes", timeout=120_000)
            page.wait_for_timeout(1000 * WATCHED_SECONDS)
            page.screenshot(path=file)
            browser.close()
        panel.terminate()


if __name__ == "__main__":
    main()
