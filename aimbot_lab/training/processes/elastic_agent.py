"""Torch's elastic agent, with our own judgement of who begins again and who does not.

Torch's agent restarts its workers after any failure, and gives them 30 s to end. Ours restarts them
after a loss only (a signal, or the exit code of LostError), passes a stop request on once and then
waits for the checkpoint. With several machines the agent of the one that leads judges for all.
"""

import time
from collections.abc import Sequence
from typing import Any

from torch.distributed.elastic.agent.server.api import (
    RunResult,
    SimpleElasticAgent,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from torch.distributed.elastic.agent.server.api import Worker as Assigned
from torch.distributed.elastic.rendezvous import RendezvousHandler

from aimbot_lab.training.processes.judgement import (
    MAX_RESTARTS,
    STOPPED,
    Ended,
    Restarts,
    judged,
    led_to,
)
from aimbot_lab.training.processes.machines.following import EndedError, Following
from aimbot_lab.training.processes.machines.leading import Leading
from aimbot_lab.training.processes.machines.meeting_point import MeetingPoint
from aimbot_lab.training.processes.machines.task import Task
from aimbot_lab.training.processes.machines.team import Team
from aimbot_lab.training.processes.meeting import INTERFACE, loopback_interface
from aimbot_lab.training.processes.stop_signals import StoppedAtOnceError, StopSignals
from aimbot_lab.training.processes.workers import Worker, start_worker

GONE = -1_000  # in place of the rank and the code of a machine's processes
SECONDS_BETWEEN_LOOKS = 0.1
SECONDS_TO_FOLLOW = 5.0  # for the others to end by themselves after one has
SECONDS_TO_SAVE = 30.0  # the same, once all were asked to stop, and for a leader after an error


class MachineAgent(SimpleElasticAgent):
    """Starts the workers of this machine, and passes a stop request on to them."""

    def __init__(
        self,
        task: Task,
        team: Team,
        *,
        meeting: RendezvousHandler,
        point: MeetingPoint | None,
        signals: StopSignals,
    ) -> None:
        spec = WorkerSpec(
            role="training",
            local_world_size=team.processes,
            rdzv_handler=meeting,
            entrypoint=task.command[0],
            args=tuple(task.command[1:]),
            max_restarts=MAX_RESTARTS,
            monitor_interval=SECONDS_BETWEEN_LOOKS,
        )
        super().__init__(spec)
        interface = loopback_interface() if point is None else point.interface
        self._environment, self._signals = {INTERFACE: interface, **task.environment}, signals
        self._workers: list[Worker] = []
        self._asked = False
        self.exit_code = 1

    def _assign(self, first: int, world: int) -> list[Assigned]:
        processes = self._worker_group.spec.local_world_size
        return [
            Assigned(local, first + local, first + local, world, world)
            for local in range(processes)
        ]

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec = worker_group.spec
        command: Sequence[str] = [str(spec.entrypoint), *spec.args]
        self._workers = []
        for worker in worker_group.workers:
            self._workers.append(start_worker(command, self._variables(worker_group, worker)))
        return {local: worker.process.pid for local, worker in enumerate(self._workers)}

    def _variables(self, group: WorkerGroup, worker: Assigned) -> dict[str, str]:
        """What torchrun would write into the environment, and what the caller asks for."""
        spec = group.spec
        return {
            **self._environment,
            "RANK": str(worker.global_rank),
            "LOCAL_RANK": str(worker.local_rank),
            "WORLD_SIZE": str(worker.world_size),
            "LOCAL_WORLD_SIZE": str(spec.local_world_size),
            "MASTER_ADDR": str(group.master_addr),
            "MASTER_PORT": str(group.master_port),
            "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
            "TORCHELASTIC_RESTART_COUNT": "0",  # each round meets at a port of its own
            "TORCHELASTIC_MAX_RESTARTS": str(spec.max_restarts),
            "TORCHELASTIC_USE_AGENT_STORE": str(spec.rdzv_handler.use_agent_store),
        }

    def _pass_on(self, number: int) -> None:
        if not self._asked:
            self._asked = True
            for worker in self._workers:
                worker.process.send_signal(number)

    def _ends(self) -> list[Ended]:
        """How our workers ended, those that have."""
        return [ended for worker in self._workers if (ended := worker.ended) is not None]

    def _all_is_over(self) -> RunResult:
        values = {worker.global_rank: None for worker in self._worker_group.workers}
        return RunResult(state=WorkerState.SUCCEEDED, return_values=values)

    def _exit_barrier(self) -> None:
        """Nothing: the machine that leads waits for the others itself."""

    def _stop_workers(self, *_: Any, **__: Any) -> None:
        self._shutdown()

    def _shutdown(self, *_: Any, **__: Any) -> None:
        """Kill who still runs; what counts is in the checkpoint."""
        for worker in self._workers:
            if worker.code is None:
                worker.process.kill()
        for worker in self._workers:
            worker.kill()


class Leader(MachineAgent):
    """Judges what the ends of all workers mean, and has all begin anew after a loss."""

    def __init__(
        self,
        task: Task,
        team: Team,
        *,
        meeting: Leading,
        point: MeetingPoint | None,
        signals: StopSignals,
    ) -> None:
        super().__init__(task, team, meeting=meeting, point=point, signals=signals)
        self._report, self._restarts = task.report, Restarts(task.progress)
        self._roster = meeting.roster
        self._first_end: float | None = None  # of a worker that ends it for all

    def _assign_worker_ranks(self, *_: Any) -> list[Assigned]:
        return self._assign(0, self._roster.order.world)

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        if self._signals.number is not None:
            raise StoppedAtOnceError
        self._first_end = None
        return super()._start_workers(worker_group)

    def _monitor_workers(self, *_: Any) -> RunResult:
        self._roster.look()
        self._pass_stop_on()
        ends, gone = [*self._ends(), *self._others_ends()], self._roster.gone()
        others_follow = gone or led_to(ends) is not None or not all(one.well for one in ends)
        if self._first_end is None and others_follow:
            self._first_end = time.monotonic()
        running = len(ends) < self._roster.order.world
        if running and not self._is_too_late(ends, gone):
            return RunResult(state=WorkerState.HEALTHY)
        return self._judged(ends, gone)

    def _others_ends(self) -> list[Ended]:
        now = self._roster.order.round
        members = (one.said for one in self._roster.members())
        return [Ended(*ended) for said in members if said.round == now for ended in said.ends]

    def _pass_stop_on(self) -> None:
        if self._signals.again:
            raise StoppedAtOnceError
        number = self._signals.number or self._roster.stop_signal()
        if number is not None:
            self._pass_on(number)
            self._roster.stop(number)

    def _is_too_late(self, ends: list[Ended], gone: list[str]) -> bool:
        if gone and not self._asked and led_to(ends) is None:
            return True
        # An error that all met: the leader may still be saving what the run needs.
        saves = self._asked or any(ended.failed for ended in ends)
        seconds = SECONDS_TO_SAVE if saves else SECONDS_TO_FOLLOW
        return self._first_end is not None and time.monotonic() - self._first_end > seconds

    def _judged(self, ends: list[Ended], gone: list[str]) -> RunResult:
        machines = [Ended(GONE, GONE, cause) for cause in gone]
        verdict = judged([*ends, *machines], stopping=self._asked)
        if verdict.loss is None:
            assert verdict.code is not None
            self.exit_code = verdict.code
            if led_to(ends) is not None or verdict.code == STOPPED:
                return self._all_is_over()
            self._remaining_restarts = 0
            if verdict.error:
                self._report(verdict.error)
            return RunResult(state=WorkerState.FAILED)
        again, line = self._restarts.after(verdict.loss)
        self._remaining_restarts = int(again)
        self._report(line)
        return RunResult(state=WorkerState.FAILED)


class Follower(MachineAgent):
    """Does what the leader orders, and says how its workers are."""

    def __init__(
        self,
        task: Task,
        team: Team,
        *,
        meeting: Following,
        point: MeetingPoint,
        signals: StopSignals,
    ) -> None:
        super().__init__(task, team, meeting=meeting, point=point, signals=signals)
        self._meeting = meeting

    def _assign_worker_ranks(self, *_: Any) -> list[Assigned]:
        return self._assign(self._meeting.first_rank, self._meeting.taken.world)

    def _monitor_workers(self, *_: Any) -> RunResult:
        try:
            order = self._meeting.order
        except EndedError as end:
            self.exit_code = end.exit_code
            return self._all_is_over()
        if self._signals.again:
            raise StoppedAtOnceError
        if self._signals.number is not None:
            self._meeting.talk.say(stop=self._signals.number)
        if order.stop:
            self._pass_on(order.stop)
        ends = self._ends()
        self._meeting.talk.say(ends=tuple(ends))
        return RunResult(state=WorkerState.HEALTHY)
