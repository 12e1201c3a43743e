"""The launchers of a training: of the machine that leads, and of those that follow."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aimbot_lab.foundation.errors import LabError
from aimbot_lab.training.processes.judgement import STOPPED
from aimbot_lab.training.processes.machines.messages import FAILURES
from aimbot_lab.training.processes.machines.task import Task, quieten
from aimbot_lab.training.processes.machines.team import Team
from aimbot_lab.training.processes.stop_signals import StoppedAtOnceError, StopSignals

if TYPE_CHECKING:
    from aimbot_lab.training.processes.machines.following import Correspondence
    from aimbot_lab.training.processes.machines.meeting_point import MeetingPoint


def lead(
    task: Task,
    team: Team,
    point: "MeetingPoint | None" = None,
    listener: socket.socket | None = None,
) -> int:
    """The exit code of all, led by this machine, which listens at `point` by `listener`.

    See `launch`; without `point` there are no other machines. Raises LabError where machines do
    not fit together or do not come, after which all of them end.
    """
    with StopSignals() as signals, _quiet():
        from aimbot_lab.training.processes.elastic_agent import Leader
        from aimbot_lab.training.processes.machines.leading import Leading, held_store

        with held_store(point, listener) as store:
            meeting = Leading(store, team, task, point=point, signals=signals)
            code = 1
            try:
                agent = Leader(task, team, meeting=meeting, point=point, signals=signals)
                agent.run()
                code = agent.exit_code
            except StoppedAtOnceError:
                code = STOPPED
            except LabError as error:
                code = error.exit_code
                raise
            finally:
                meeting.end(code)
    return code


def follow(task: Task, team: Team, point: "MeetingPoint") -> int:
    """The exit code of all, led by the machine that has `point`, once they have ended.

    Where that machine is lost, it is waited for as long as the team is patient. Raises LabError
    where it does not come, or turns this one away.
    """
    with StopSignals() as signals, _quiet():
        from aimbot_lab.training.processes.machines.following import (
            Correspondence,
            LeaderLostError,
            reached,
        )

        until = time.monotonic() + team.patience_s
        while True:
            try:
                talk = Correspondence(reached(point, until, signals), team.hello(point))
            except StoppedAtOnceError:
                return STOPPED
            except FAILURES:
                continue  # it was lost again; nobody waits longer than `until`
            try:
                return _followed(talk, task, team, point, signals)
            except LeaderLostError:
                until = talk.heard + team.patience_s
            finally:
                talk.leave()


def _followed(
    talk: "Correspondence", task: Task, team: Team, point: "MeetingPoint", signals: StopSignals
) -> int:
    from aimbot_lab.training.processes.elastic_agent import Follower
    from aimbot_lab.training.processes.machines.following import EndedError, Following

    meeting = Following(talk, team, point, signals=signals, report=task.report)
    agent = Follower(task, team, meeting=meeting, point=point, signals=signals)
    try:
        agent.run()
        code = agent.exit_code
    except EndedError as end:
        code = end.exit_code
    except StoppedAtOnceError:
        task.report(f"left the training at {point.shown}")
        return STOPPED
    task.report(f"the training at {point.shown} ended with exit code {code}")
    return code


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings and tracebacks of torch's agent: we report what counts in a line."""
    quieten()
    logger, silence = logging.getLogger("torch.distributed.elastic"), logging.NullHandler()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(silence)
    try:
        yield
    finally:
        logger.removeHandler(silence)
        logger.propagate = before
