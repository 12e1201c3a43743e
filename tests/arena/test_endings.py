"""Result lines of finished episodes."""

import numpy as np

from aimbot_lab.foundation.episodes import LOSS, WIN
from aimbot_lab.foundation.result_lines import (
    EpisodeResult,
    format_result_line,
    parse_line,
    result_line,
)
from aimbot_lab.worlds.arena.allocate import new_state, new_tables
from aimbot_lab.worlds.arena.arena import CELLS
from aimbot_lab.worlds.arena.core.state import LOST, REWARD_TERMS, TARGETS, WON, EpisodeLog
from aimbot_lab.worlds.arena.scenario import DIFFICULTIES
from aimbot_lab.worlds.arena.settings import ArenaSettings
from aimbot_lab.worlds.episode_log import ended_episodes, new_log, own_columns

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
