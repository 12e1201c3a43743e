"""The largest numbers that settings take, endings, and the rim of the FireBase."""

from pathlib import Path

import numpy as np
import pytest
from arena_stage import ALL_TARGETS, Stage, new_stage, random_play
from pydantic import ValidationError

from aimbot_lab.foundation.episodes import (
    LOSS,
    WIN,
    EpisodeResult,
    ended_episodes,
    format_result_line,
    new_log,
    own_columns,
    parse_line,
    result_line,
)
from aimbot_lab.foundation.world import Scenario, new_step_buffers
from aimbot_lab.worlds.arena.allocate import new_state, new_tables
from aimbot_lab.worlds.arena.arena import CELLS, Arena
from aimbot_lab.worlds.arena.core.state import LOST, REWARD_TERMS, TARGETS, WON, EpisodeLog
from aimbot_lab.worlds.arena.presets import Preset, preset_faults
from aimbot_lab.worlds.arena.settings import ArenaSettings, RaySettings, RewardWeights
from aimbot_lab.worlds.arena.spec import DIFFICULTIES

EXTREMES = (
    {"mouse_limit": 1000.0, "mouse_factor": 10.0, "spin_window": 1000, "spin_threshold": 1e6},
    {"gun_cooldown": 3600.0, "fixed_timestep": 0.0001, "gun_range": 10_000.0},
    {"move_speed": 1000.0, "agent_radius": 0.05, "decision_period": 20, "fixed_timestep": 0.1},
    {"spin_rate": 1e6, "facing_distance": 1e6, "goto_win_radius": 1000.0},
    {"rewards": RewardWeights(win=1e9, lose=-1e9, spin_penalty=1e9, distance=-1e9)},
    {"rays": RaySettings(range=10_000.0), "floor_size": 1000.0, "block_gap_to_agent": 100.0},
)


@pytest.mark.parametrize("extreme", EXTREMES, ids=str)
def test_the_largest_numbers_that_settings_take_keep_every_promise(extreme) -> None:
    stage = new_stage(ALL_TARGETS, num_envs=8, **{"time_limit": 200.0, **extreme})
    low, high = stage.arena.spec.observation_low, stage.arena.spec.observation_high
    spins = np.zeros(8)
    for actions in random_play(60, 8):
        actions[:, 3] = np.where(actions[:, 3] > -4, 3e38, -3e38)
        if "mouse_limit" in extreme:
            spins += np.clip(actions[:, 3], -1000, 1000)
            started = stage.arena.state.decisions == 0
            spins[started] = np.clip(actions[started, 3], -1000, 1000)
        stage.step(actions)
        seen = stage.buffers.observations
        assert ((seen >= low) & (seen <= high)).all()  # false for NaN as well
        assert np.isfinite(stage.buffers.rewards).all()
        assert (stage.arena.state.gun_ticks >= 0).all()
    if "mouse_limit" in extreme:
        going = ~stage.buffers.finished
        np.testing.assert_array_equal(stage.arena.state.spin_sum[going] * 2.0**-40, spins[going])


@pytest.mark.parametrize(
    "field",
    [
        {"mouse_limit": 1e7},
        {"mouse_factor": 1e308},
        {"gun_cooldown": 1e9},
        {"gun_range": 1e5},
        {"move_speed": 1e4},
        {"goto_win_radius": 1e4},
        {"block_gap_to_agent": 101.0},
        {"spin_threshold": 1e7},
        {"spin_rate": 1e7},
        {"facing_distance": 1e7},
        {"agent_radius": 0.01},
        {"enemy_radius": 0.01},
        {"fixed_timestep": 1e-300},
        {"rays": {"range": 1e5}},
        {"rewards": {"win": 1e10}},
        {"rewards": {"lose": -1e10}},
    ],
    ids=str,
)
def test_numbers_beyond_all_sense_are_refused(field: dict) -> None:
    with pytest.raises(ValidationError, match=r"(less|greater) than or equal"):
        ArenaSettings(**field)


def test_a_single_preset_path_is_no_list_and_path_objects_are_taken() -> None:
    for single in ("mine.yaml", Path("mine.yaml")):
        with pytest.raises(ValidationError, match=r"must be a list .* such as \['mine.yaml'\]"):
            ArenaSettings(presets=single)
    assert ArenaSettings(presets=(Path("mine.yaml"), "b")).presets == ("mine.yaml", "b")


ROWS = 3000


def random_log():
    """How `ROWS` episodes of all kinds ended, with numbers of all sizes."""
    random = np.random.default_rng(0)
    log = new_log(EpisodeLog, ROWS, terms=len(REWARD_TERMS))
    log.outcome[:] = np.where(random.random(ROWS) < 0.5, WIN, LOSS)
    log.target[:] = random.choice(list(TARGETS.values()), ROWS)
    has_levels = np.isin(
        log.target, [TARGETS[name] for name, levels in DIFFICULTIES.items() if levels]
    )
    log.difficulty[:] = np.where(has_levels, random.integers(1, 6, ROWS), 0)
    log.seconds[:] = random.choice([0.05, 0.1, 0.25, 1.0, 29.95, 3600.0, 1e-3], ROWS)
    log.seconds[: ROWS // 2] = random.uniform(0.0, 3600.0, ROWS // 2)
    log.terms[:] = random.normal(0.0, 10.0 ** random.integers(-12, 12, (ROWS, 1)), log.terms.shape)
    log.terms[:5] = 0.0
    log.terms[5:9, 1:] = 0.0
    log.terms[5:9, 0] = (-0.0, 1e300, 999.0, 1e-320)
    return log


def test_the_lines_are_those_of_the_results() -> None:
    settings = ArenaSettings(num_envs=ROWS)
    log, state = random_log(), new_state(settings, new_tables(settings, []), 0)
    rows = np.random.default_rng(1).permutation(ROWS)[: ROWS - 7]
    batch = ended_episodes(
        rows,
        log,
        state,
        cells=CELLS,
        outcome=log.outcome[rows],
        length=log.length[rows],
        columns=own_columns(EpisodeLog),
    )
    names = {code: name for name, code in TARGETS.items()}
    returns = log.terms[rows].sum(axis=1)
    for place, (row, total) in enumerate(zip(rows, returns, strict=True)):
        line = result_line(batch, place)
        result = EpisodeResult(
            int(log.outcome[row]),
            target=names[int(log.target[row])],
            difficulty=int(log.difficulty[row]) or None,
            seconds=float(log.seconds[row]),
            episode_return=float(total),
        )
        assert line == format_result_line(result)
        parsed = parse_line(line)
        assert isinstance(parsed, EpisodeResult)
        assert parsed.episode_return == float(total)


def test_outcomes_are_those_of_every_world() -> None:
    assert (LOST, WON) == (LOSS, WIN)


EAST = Preset("east", "attack", 1, (5.1, 5.0, 4.2), (), ((7.2, 5.0),))
SLANT = Preset("slant", "attack", 1, (5.1, 5.1, 5.0), (), ((6.6, 7.1), (3.6, 3.1)))
NEARLY = Preset("nearly", "attack", 1, (5.0, 5.0, 4.0), (), ((7.0 + 5e-10, 5.0),))


@pytest.mark.parametrize("preset", [EAST, SLANT, NEARLY], ids=lambda preset: preset.name)
def test_an_enemy_on_the_rim_is_a_target_wherever_the_block_stands(preset: Preset) -> None:
    assert preset_faults(preset) == []
    arena = Arena(ArenaSettings(num_envs=256), (preset,))
    arena.set_scenario(Scenario({"attack": 1.0}))
    buffers = new_step_buffers(256, len(arena.spec.observation_names))
    arena.reset(0, buffers.observations)
    ended = Stage(arena, buffers).repeat(0, 0, 0, 0)
    assert not ended
    assert not buffers.finished.any()
    count = len(preset.enemies)
    assert (arena.state.enemy_count == count).all()
    np.testing.assert_array_equal(arena.state.enemy_is_target[:, :count], True)
