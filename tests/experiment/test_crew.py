"""What the processes of one training compare before they learn."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aimbot_lab import version
from aimbot_lab.experiment.runs import crew
from aimbot_lab.experiment.runs.crew import Crew
from aimbot_lab.experiment.runs.run_record import InitialAgentRef, RunRequest
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.data_folder import DataFolder
from aimbot_lab.training.processes.exchange import Alone, LostError, Rank

AGENT = InitialAgentRef(source="a" * 32, step=8192, sha256="b" * 64)
OTHER = AGENT._replace(sha256="c" * 64)


class Saying(Alone):
    """The exchange of a leader; what it said is kept."""

    place = Rank(0, 2)

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def gather(self, data: bytes) -> list[bytes]:
        self.said.append(data)
        return [data]


class Heard(Alone):
    """The exchange of a follower that hears what `leader` said."""

    place = Rank(1, 2)

    def __init__(self, leader: list[bytes]) -> None:
        self._leader = leader

    def gather(self, data: bytes) -> list[bytes]:
        return [*self._leader, data]


class Gone(Saying):
    """The exchange of a process whose others are gone."""

    def gather(self, data: bytes) -> list[bytes]:
        raise LostError


def request(start: InitialAgentRef | None = None, **given: Any) -> RunRequest:
    curriculum: Any = SimpleNamespace(resolved_text="", config=SimpleNamespace(seed=1))
    agent: Any = None if start is None else SimpleNamespace(ref=start)
    return RunRequest(curriculum, DataFolder(Path("unused")), start=agent, **given)


def resumed(start: InitialAgentRef | None) -> RunRequest:
    run: Any = SimpleNamespace(record=SimpleNamespace(start=start))
    return request(resume=run)


def compare(leader: RunRequest, follower: RunRequest) -> None:
    """Have a follower with its request meet a leader with another one."""
    saying = Saying()
    Crew(saying).compare(leader)
    Crew(Heard(saying.said)).compare(follower)


def test_a_run_that_the_leader_resumes_began_with_the_agent_that_the_others_are_given() -> None:
    compare(resumed(AGENT), request(AGENT))
    compare(resumed(None), request(None))
    compare(resumed(AGENT), resumed(AGENT))
    for leader in request(OTHER), resumed(None):
        with pytest.raises(ConfigurationError, match="process 1 has another agent to begin with"):
            compare(leader, request(AGENT))


def test_what_the_leader_gives_is_taken_by_the_same_code_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crew, "as_document", lambda given: {"seed": given.curriculum.config.seed})
    monkeypatch.setattr(crew, "request_from", lambda document, folder: (document, folder))
    saying, folder = Saying(), DataFolder(Path("mine"))
    Crew(saying).give(request())
    assert Crew(Heard(saying.said)).take(folder) == ({"seed": 1}, folder)
    monkeypatch.setattr(version, "code_hash", lambda: "0ddc0de5")
    follower = Crew(Heard(saying.said))
    other = r"process 1 has another version .*: [\d.]+ \(0ddc0de5\), not [\d.]+ \("
    with pytest.raises(ConfigurationError, match=other):
        follower.take(folder)
    assert follower.failed, "nobody waits for another round"


@pytest.mark.parametrize("code", [0, 130])
def test_all_end_with_the_exit_code_of_the_leader_and_without_it_with_their_own(code: int) -> None:
    saying = Saying()
    assert Crew(saying).exit_code(code) == code
    assert Crew(Heard(saying.said)).exit_code(0) == code
    assert Crew(Gone()).exit_code(code) == code
