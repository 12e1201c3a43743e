"""Runs in Gorge Walk small enough for a test."""

from pathlib import Path

from aimbot_lab.worlds.gorge import map_choice
from aimbot_lab.worlds.gorge import maps as files
from aimbot_lab.worlds.gorge.world_type import GORGE

CURRICULUM = """
name: tiny gorge
env: {{world: gorge, num_envs: 8, max_steps: {max_steps}, map: {map}}}
lessons:
  - name: near
    targets: {{walk: 1}}
    difficulty: {{walk: [1, 0, 0, 0, 0]}}
    completion_criteria: {{threshold: 0.99, min_lesson_length: 1000}}
train:
  algo: hybrid_ppo
  total_steps: 256
  n_steps: 16
  batch_size: 128
  n_epochs: 1
  network: {{layers: [4]}}
"""


def curriculum(map_name: str = "gorge", *, max_steps: int = 200) -> str:
    """A curriculum of a few hundred steps on the map."""
    return CURRICULUM.format(map=map_name, max_steps=max_steps)


def write_map(path: Path, *, seed: int = 7) -> None:
    path.write_text(GORGE.files.make(seed, {"obstacle_share": 0.3, "sites": 3}), encoding="utf-8")


def ship_another_map(monkeypatch, folder: Path) -> None:
    """Have `gorge` name another map than the shipped one, as in another version."""
    write_map(folder / "gorge.yaml", seed=8)
    monkeypatch.setattr(files, "FOLDER", folder)
    map_choice._loaded.cache_clear()
