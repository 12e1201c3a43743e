"""The shipped file of ML-Agents' trainer sets what the player's world has."""

from pathlib import Path

import yaml

import aimbot_lab.mlagents
from aimbot_lab.curriculum.settings import lesson_scenario
from aimbot_lab.experiment.config.document import load_curriculum
from aimbot_lab.foundation.samplers import Uniform, UniformParameters
from aimbot_lab.mlagents.player_channels import ReceivedParameters
from aimbot_lab.worlds.registry import make_world

FILE = Path(aimbot_lab.mlagents.__file__).parent / "goto_ppo.yaml"


def test_its_parameters_make_the_first_lesson_of_goto_open_ground_with_the_usual_rules() -> None:
    told = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert list(told["behaviors"]) == ["AimbotLab"]
    config = load_curriculum("goto", ()).config
    world = make_world(config.env, 4)
    scenario = lesson_scenario(config.lessons[0], world.spec.difficulties)
    received = ReceivedParameters(world, scenario)
    given = dict(told["environment_parameters"])
    lessons = given.pop("goto_win_radius")["curriculum"]
    drawn = UniformParameters(**given.pop("move_speed")["sampler_parameters"])
    given["move_speed"] = Uniform(sampler_parameters=drawn)
    for lesson in lessons:
        assert received.receive({**given, "goto_win_radius": lesson["value"]}) == ()
    assert lessons[-1]["value"] == config.env.goto_win_radius
    assert drawn.min_value < config.env.move_speed < drawn.max_value
    assert set(received._scenario.targets) == {"goto"}
    assert received._scenario.difficulty["goto"][1:] == (0.0,) * 4
    assert received._scenario.difficulty["goto"][0] > 0.0
