"""What a run keeps of its evaluation."""

import json

from aimbot_lab.evaluation.episodes import CellScore, Score
from aimbot_lab.evaluation.temperature import ADVISED, COOLER
from aimbot_lab.experiment.analysis.evaluation import Evaluated, PlayerScores, evaluation_record
from aimbot_lab.experiment.runs.result import with_section
from aimbot_lab.foundation import metric_names as names


def scores(win_rate: float) -> PlayerScores:
    numbers = (100, int(100 * win_rate), win_rate, win_rate - 0.1, win_rate + 0.1, None, -3.0)
    cells = tuple(CellScore(*numbers, "goto", level) for level in (1, 2))
    return PlayerScores(Score(*numbers), cells)


EVALUATED = Evaluated(
    run_id="abc",
    name="goto",
    agent="last",
    step=1000,
    seed=1,
    episodes=100,
    temperature=COOLER,
    advised=ADVISED,
    players={
        "temperature 0.5": scores(0.9),
        "deterministic": scores(0.8),
        "random": scores(0.1),
    },
)


def test_the_first_player_gives_the_numbers_and_the_others_their_win_rate() -> None:
    record = evaluation_record(EVALUATED, "")
    assert record.step == 0
    assert record.metrics == {
        names.TEST_WIN_RATE: 0.9,
        names.TEST_WIN_RATE_LOWER: 0.8,
        names.TEST_WIN_RATE_UPPER: 1.0,
        names.TEST_RETURN: -3.0,
        names.TEST_TEMPERATURE: 0.5,
        "test/win_rate/goto/1": 0.9,
        "test/win_rate/goto/2": 0.9,
        names.player_win_rate("deterministic"): 0.8,
        names.player_win_rate("random"): 0.1,
    }


def test_the_document_is_kept_and_reads_back() -> None:
    text = evaluation_record(EVALUATED, "").texts["evaluation/last.json"]
    assert json.loads(text) == json.loads(json.dumps(EVALUATED.as_json()))


def test_the_note_gains_a_section_and_a_second_evaluation_replaces_it() -> None:
    before = "**All lessons passed.**\n\n### Lessons\n\n| a |\n\n### Last\n\nb"
    once = evaluation_record(EVALUATED, before).tags["mlflow.note.content"]
    assert once.startswith(before)
    assert "| goto 2&emsp; | 90.0 % (80.0 % to 100.0 %)&emsp; | 80.0 %" in once
    assert evaluation_record(EVALUATED, once).tags["mlflow.note.content"] == once


def test_a_section_in_the_middle_is_replaced_where_it_stands() -> None:
    note = with_section(with_section("top", "A", "one"), "AB", "two")
    assert with_section(note, "A", "new") == "top\n\n### A\n\nnew\n\n### AB\n\ntwo"
    assert with_section("", "A", "one") == "### A\n\none"
