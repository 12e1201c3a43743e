"""Environments of a user's own in a browser: Watch shows them as they draw themselves."""

from pathlib import Path

import gymnasium
import numpy as np
from browser_page import Browser, needs_chromium, wait_for_text
from panel_server import running_panel

from aimbot_lab.api import train

pytestmark = needs_chromium
FILE = """
name: watched
env: {world: gymnasium, id: CartPole-v1, num_envs: 2, kwargs: {render_mode: rgb_array}}
train: {algo: ppo, total_steps: 64, n_steps: 32, batch_size: 32, n_epochs: 1}
"""
SHARES = """() => {
  const c = document.querySelector('canvas'), shares = {};
  const data = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  for (let at = 0; at < data.length; at += 4) {
    const colour = data.slice(at, at + 3).join();
    shares[colour] = (shares[colour] ?? 0) + 4 / data.length;
  }
  return Object.fromEntries(Object.entries(shares).filter(([, share]) => share > 0.001));
}"""
DRAWN = "() => document.querySelector('canvas').toDataURL()"


def common_colours(name: str) -> list[list[int]]:
    """The two colours that an environment draws most."""
    env = gymnasium.make(name, render_mode="rgb_array")
    env.reset(seed=1)
    drawn = np.asarray(env.render()).reshape(-1, 3)
    env.close()
    colours, counts = np.unique(drawn, axis=0, return_counts=True)
    found: list[list[int]] = colours[np.argsort(counts)[-2:]].tolist()
    return found


def test_the_picture_is_what_an_environment_draws_and_it_moves(
    browser: Browser, tmp_path: Path
) -> None:
    (file := tmp_path / "watched.yaml").write_text(FILE)
    run = train(file, data_dir=tmp_path / "data").run_id
    with (
        running_panel(tmp_path / "data", here=tmp_path) as panel,
        browser.page(panel, f"watch/{run}") as page,
    ):
        wait_for_text(page, ".state", r"^weights of step [\d,]+$")
        for _ in range(2):
            before = page.evaluate(DRAWN)
            page.wait_for_function(f"before => ({DRAWN})() !== before", arg=before)
        shares = page.evaluate(SHARES)
    for colour in common_colours("CartPole-v1"):
        assert ",".join(map(str, colour)) in shares, colour
