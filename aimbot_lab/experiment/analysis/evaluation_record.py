"""What a run keeps of its evaluation: numbers, the document, and a section of its note."""

import json

from aimbot_lab.evaluation.evaluate import Score
from aimbot_lab.experiment.analysis.evaluation import Evaluated, PlayerScores
from aimbot_lab.experiment.analysis.match_scores import HEAD, match_rows
from aimbot_lab.experiment.runs.note import interval, markdown_table, with_section
from aimbot_lab.experiment.runs.result import cell_name, percent
from aimbot_lab.foundation import metric_names as names
from aimbot_lab.foundation.episodes import Cell
from aimbot_lab.tracking.runs.addition import Addition
from aimbot_lab.tracking.tracker import NOTE_TAG

FOLDER = "evaluation"  # among a run's artifacts


def evaluation_record(evaluated: Evaluated, note: str) -> Addition:
    """What the run is to keep; `note` is its note so far."""
    document = json.dumps(evaluated.as_json(), indent=1)
    return Addition(
        step=0,  # the page draws bars beside each other for these, and else a dot per chart
        metrics=_metrics(evaluated),
        tags={NOTE_TAG: with_section(note, "Evaluation", _section(evaluated))},
        texts={f"{FOLDER}/{evaluated.agent}.json": document},
    )


def _metrics(evaluated: Evaluated) -> dict[str, float]:
    (_, first), *others = evaluated.players.items()
    known = {
        names.TEST_WIN_RATE: first.overall.win_rate,
        names.TEST_WIN_RATE_LOWER: first.overall.lower,
        names.TEST_WIN_RATE_UPPER: first.overall.upper,
        names.TEST_SECONDS_TO_WIN: first.overall.median_seconds_to_win,
        names.TEST_RETURN: first.overall.mean_return,
        names.TEST_TEMPERATURE: evaluated.temperature,
        **_draw_rates(evaluated, first),
        **{
            names.of_cell(names.TEST_WIN_RATE, Cell(score.target, score.difficulty)): score.win_rate
            for score in first.cells
        },
        **{names.player_win_rate(name): scores.overall.win_rate for name, scores in others},
        **{names.test_measure(name): value for name, value in first.overall.measures.items()},
    }
    return {key: value for key, value in known.items() if value is not None}


def _draw_rates(evaluated: Evaluated, player: PlayerScores) -> dict[str, float]:
    """Shares of drawn episodes, of all cells and of each, where the world has draws."""
    if not evaluated.has_draws:
        return {}
    cells = {Cell(one.target, one.difficulty): one for one in player.cells}
    return {
        names.TEST_DRAW_RATE: player.overall.draws / player.overall.episodes,
        **{
            names.of_cell(names.TEST_DRAW_RATE, cell): score.draws / score.episodes
            for cell, score in cells.items()
        },
    }


def _section(evaluated: Evaluated) -> str:
    columns = list(evaluated.players.values())
    rows = [
        (cell_name(cell.target, cell.difficulty), *(_shown(player.cells[i]) for player in columns))
        for i, cell in enumerate(columns[0].cells)
    ]
    if len(rows) > 1:
        rows.append(("**all**", *(_shown(player.overall) for player in columns)))
    run = evaluated.run_id
    return (
        f"{evaluated.agent.capitalize()} agent, saved at step {evaluated.step:,}; "
        f"{evaluated.episodes:,} episodes of each cell; win rate with its 95 % interval.\n\n"
        + markdown_table(("cell", *evaluated.players), rows)
        + _matches(evaluated)
        + f"\n\nAgain: `aimbot-lab evaluate {run} --agent {evaluated.agent} "
        f"--episodes {evaluated.episodes} --seed {evaluated.seed} "
        f"--temperature {evaluated.temperature:g}`"
    )


def _matches(evaluated: Evaluated) -> str:
    """Scores in matches, where there are any."""
    if not evaluated.matches:
        return ""
    return "\n\nMatches:\n\n" + markdown_table(HEAD, match_rows(evaluated.matches))


def _shown(score: Score) -> str:
    drawn = f", {score.draws:,} drawn" if score.draws else ""
    numbers = score.measures
    told = [
        f"; {name} {value:.3f}"
        for name, value in numbers.items()
        if f"{name}_lower" in numbers and value is not None
    ]
    rate = f"{percent(score.win_rate)} ({interval(score.lower, score.upper)})"
    return f"{rate}{drawn}{''.join(told)}"
