"""The real packages of ML-Agents and ours: `make real-ml-agents` runs these.

The client and its protobuf live in an environment of their own, in which `llapi_calls` runs as a
program and starts the exported player of this environment.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aimbot_lab.experiment.conversion.players import ORIGINAL, export_player
from aimbot_lab.foundation.episodes import parse_line
from aimbot_lab.mlagents import LabEnvironment
from aimbot_lab.worlds.arena.settings import CameraSettings, ObservationSettings
from aimbot_lab.worlds.registry import make_world, settings_with
from tests.mlagents import llapi_calls
from tests.mlagents.llapi_worlds import GOTO
from tests.mlagents.real_programs import HERE, OLD_PYTHON, PYTHON, ended, free_port, told_by

pytestmark = pytest.mark.real_ml_agents
CURRICULUM = """
name: real
env: {num_envs: 64, time_limit: 3.0}
lessons: [{name: all, targets: {goto: 1}}]
train: {algo: ppo, total_steps: 2_048, n_steps: 32, batch_size: 512}
"""
BASES = ("UnicodeEncodeError",)  # which has a place in a text; ours is its base, UnicodeError


def by_the_real_client(
    folder: Path, kind: str, agents: int, *options: str, python: Path = PYTHON
) -> Any:
    """What `llapi_calls` tells of the exported player with these further `options`."""
    curriculum = folder / "real.yaml"
    curriculum.write_text(CURRICULUM, encoding="utf-8")
    player = export_player(folder / "build").with_suffix("")
    own = "--curriculum", curriculum, "--agents", agents, *options
    return told_by("llapi_calls.py", kind, player, free_port(), *own, python=python)


def test_the_same_calls_give_the_same_on_both(tmp_path: Path) -> None:
    real = by_the_real_client(tmp_path, "calls", 8)
    api = llapi_calls.interface("aimbot_lab.mlagents", "aimbot_lab.mlagents.base_env")
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


@pytest.mark.parametrize(("version", "python"), [("1.1.0", PYTHON), ("0.30.0", OLD_PYTHON)])
def test_the_real_client_steps_the_player_a_thousand_times(
    tmp_path: Path, version: str, python: Path
) -> None:
    told = by_the_real_client(tmp_path, "long", 64, python=python)
    assert told["version"] == version
    assert told["exit"] == 0
    results = [parse_line(line) for line in told["lines"]]
    assert len(results) == told["ended"] == told["wins"] > 64 * 30
    assert told["interrupted"] == 0  # the arena's time limit is a loss
    assert told["forbidden"] > 0


@pytest.mark.parametrize("compression", [(), ("--png",)])
@pytest.mark.parametrize("colours", [(), ("--rgb",)])
@pytest.mark.parametrize("channels_first", [True, False])
def test_the_real_client_reads_pictures_and_rays(
    tmp_path: Path, channels_first: bool, colours: tuple[str, ...], compression: tuple[str, ...]
) -> None:
    python = PYTHON if channels_first else OLD_PYTHON
    options = ("--camera", "20x10", "--rays", "ml-agents", *colours, *compression)
    real = by_the_real_client(tmp_path, "sensors", 4, *options, python=python)
    camera = CameraSettings(width=20, height=10, grey=not colours)
    told = ObservationSettings(camera=camera, rays="ml-agents")
    world = make_world(settings_with(num_envs=4, time_limit=3.0, observation=told))
    api = llapi_calls.interface("aimbot_lab.mlagents", "aimbot_lab.mlagents.base_env")
    ours = llapi_calls.sensors_seen(LabEnvironment(world, GOTO, seed=5), api)
    sensors, seen = json.loads(json.dumps(ours))
    channels = 3 if colours else 1
    picture = [channels, 10, 20] if channels_first else [10, 20, channels]
    assert real[0][0][0] == picture
    assert [one[0] for one in real[0][1:]] == [one[0] for one in sensors[1:]] == [[95], [13]]
    assert [one[3] for one in real[0]] == [one[3] for one in sensors]
    for theirs, own in zip(real[1], seen, strict=True):
        assert theirs[1:] == own[1:]
        pixels = np.array(theirs[0]["values"], np.float32)
        if not channels_first:
            pixels = pixels.transpose(0, 3, 1, 2)
        # A grey picture that is compressed is the mean of three equal shades, rounded.
        np.testing.assert_allclose(pixels, own[0]["values"], atol=1e-6)
        assert pixels.std() > 0.05


def test_a_client_of_0_30_plays_the_build_for_the_original_without_arguments(
    tmp_path: Path,
) -> None:
    player = export_player(tmp_path / "build", ORIGINAL).with_suffix("")
    script = HERE / "original_calls.py"
    done = ended(OLD_PYTHON, script, player, free_port(), cwd=tmp_path)
    assert "side channel" not in (done.stdout + done.stderr).lower()
    told = json.loads(done.stdout.rpartition("\n")[2])
    assert (told["name"], told["shapes"]) == ("AimbotLab?team=0", [[51]])
    assert told["actions"] == "Continuous: 1, Discrete: (3, 3, 2)"
    assert told["turns"] == pytest.approx([0.08, 0.8], abs=1e-5)
    won = [reward > 0 for reward in told["rewards"]]
    assert told["lines"] == [f"Warning|Result|{'Win' if one else 'Lose'}" for one in won]
    assert any(won)
    assert [abs(reward) for reward in told["rewards"]] == pytest.approx([999] * len(won), abs=30)
