"""The real packages of ML-Agents and ours: `make real-ml-agents` runs these.

The client and its protobuf live in an environment of their own, in which `llapi_calls` runs as a
program and starts the exported player of this environment.
"""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from aimbot_lab.experiment.ml_agents.players import export_player
from aimbot_lab.foundation.result_lines import parse_line
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.worlds.registry import make_world, settings_with
from tests.mlagents import llapi_calls
from tests.mlagents.llapi_worlds import GOTO

pytestmark = pytest.mark.real_ml_agents
ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("AIMBOT_LAB_ML_AGENTS", ROOT / ".venv-ml-agents")) / "bin" / "python"
CURRICULUM = """
name: real
env: {num_envs: 64, time_limit: 3.0}
lessons: [{name: all, targets: {goto: 1}}]
train: {algo: ppo, total_steps: 2_048, n_steps: 32, batch_size: 512}
"""

BASES = ("UnicodeEncodeError",)  # which has a place in a text; ours is its base, UnicodeError


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


def by_the_real_client(folder: Path, kind: str, agents: int) -> Any:
    """What `llapi_calls` tells of the exported player."""
    curriculum = folder / "real.yaml"
    curriculum.write_text(CURRICULUM, encoding="utf-8")
    player = export_player(folder / "build")
    script = Path(llapi_calls.__file__)
    command = [str(PYTHON), str(script), kind, str(player.with_suffix("")), str(free_port())]
    command += ["--curriculum", str(curriculum), "--agents", str(agents)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.rpartition("\n")[2])


def test_the_same_calls_give_the_same_on_both(tmp_path: Path) -> None:
    real = by_the_real_client(tmp_path, "calls", 8)
    api = llapi_calls.interface("aimbot_lab.mlagents", "aimbot_lab.mlagents")
    told = llapi_calls.channels(api)
    world = make_world(settings_with(num_envs=8, time_limit=3.0))
    env = LabEnvironment(world, GOTO, seed=5, side_channels=list(vars(told).values()))
    ours = json.loads(json.dumps(llapi_calls.told_by(env, api, told)))
    assert list(ours) == list(real)
    unlike = [name for name in real if not alike(ours[name], real[name])]
    assert unlike == [], {name: (real[name], ours[name]) for name in unlike[:1]}
    assert len(real["lines"]["gives"]) >= 8


def alike(ours: Any, real: Any) -> bool:
    """Whether ours gives the same, or raises an error of the kind of the real one."""
    if "raises" in real:
        kinds = [kind for kind in real["raises"] if kind not in BASES] or real["raises"]
        return "raises" in ours and kinds[0] in ours["raises"]
    return bool(ours == real)


def test_the_real_client_steps_the_player_a_thousand_times(tmp_path: Path) -> None:
    told = by_the_real_client(tmp_path, "long", 64)
    assert told["exit"] == 0
    results = [parse_line(line) for line in told["lines"]]
    assert len(results) == told["ended"] == told["wins"] > 64 * 30
    assert told["interrupted"] == 0  # the arena's time limit is a loss
    assert told["forbidden"] > 0
