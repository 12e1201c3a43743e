"""What a run keeps of films of its agent."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aimbot_lab.experiment.analysis.recording import MAX_FILMS, film_record
from aimbot_lab.experiment.runs.agents import TrackedAgent
from aimbot_lab.tracking.history import Addition
from aimbot_lab.tracking.run_summary import RunSummary
from aimbot_lab.training.agents.agent_files import SavedAgent
from tests.replay.recorded_episodes import replay_of

RUN = RunSummary("r1", "goto", "goto", "4", "FINISHED", datetime.now(UTC), None, {}, {})
UNUSED: Any = None
SAVED = SavedAgent(UNUSED, UNUSED, UNUSED, {"step": 5000})
AGENT = TrackedAgent(RUN, "best", UNUSED, SAVED)
REPLAY = replace(replay_of("goto", time_limit=0.3), about={"player": "temperature 0.5"})
BEFORE = "**All lessons passed.**\n\n### Lessons\n\n| a |"


def record(name: str, note: str = BEFORE) -> Addition:
    return film_record(Path("/films") / name, [REPLAY, REPLAY], agent=AGENT, note=note)


def note_after(*names: str) -> str:
    note = BEFORE
    for name in names:
        note = record(name, note).tags["mlflow.note.content"]
    return note


def test_the_note_gains_a_line_that_leads_to_the_film() -> None:
    assert note_after("a.mp4") == BEFORE + (
        "\n\n### Films\n\n- [a.mp4](#/experiments/4/runs/r1/artifacts/videos/a.mp4"
        "?workflowType=machine_learning): best agent, saved at step 5,000; "
        "won 0 of 2 episodes, temperature 0.5"
    )


def test_a_film_of_the_same_name_is_replaced_and_others_stay() -> None:
    assert note_after("a.mp4", "a.gif", "a.mp4") == note_after("a.gif", "a.mp4")


def test_the_note_names_the_newest_films_alone() -> None:
    note = note_after(*(f"{number}.gif" for number in range(MAX_FILMS + 2)))
    assert note.count("- [") == MAX_FILMS
    assert "[1.gif]" not in note
    assert f"[{MAX_FILMS + 1}.gif]" in note


def test_a_name_that_could_be_read_as_something_else_is_made_plain() -> None:
    found = record("my [film](1)\\2.gif")
    assert found.files == {"videos/my-film-1-2.gif": Path("/films/my [film](1)\\2.gif")}
    assert "- [my-film-1-2.gif](#/" in found.tags["mlflow.note.content"]
