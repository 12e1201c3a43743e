"""Torch's elastic agent, with our own judgement of who begins again and who does not.

Torch's agent restarts its workers after any failure, and gives them 30 s to end. Ours restarts them
after a loss only (a signal, or the exit code of LostError), passes a stop request on once and then
waits for the checkpoint.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.distributed.elastic.agent.server.api import (
    RunResult,
    SimpleElasticAgent,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)

from aimbot_lab.training.processes.meeting import INTERFACE, loopback_interface
from aimbot_lab.training.processes.stop_signals import StopSignals
from aimbot_lab.training.processes.workers import STOPPED, Worker, start_worker

SECONDS_TO_FOLLOW = 5.0  # for the others to end by themselves after one has
SECONDS_TO_SAVE = 30.0  # the same, once all were asked to stop, and for a leader after an error


class StoppedAtOnceError(Exception):
    """The user asked to stop before the workers were there, or twice."""


class Agent(SimpleElasticAgent):
    """Starts the workers of this machine, and all of them anew after a loss."""

    def __init__(
        self,
        spec: WorkerSpec,
        *,
        environment: Mapping[str, str],
        signals: StopSignals,
        report: Callable[[str], None],
        progress: Callable[[], object],
    ) -> None:
        super().__init__(spec)
        self._environment, self._signals = environment, signals
        self._report, self._progress = report, progress
        self._reached = progress()
        self._workers: list[Worker] = []
        self._first_end: float | None = None  # of a worker that ends it for all
        self._asked = False
        self.exit_code = 1

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        if self._signals.number is not None:
            raise StoppedAtOnceError
        spec, self._first_end = worker_group.spec, None
        command: Sequence[str] = [str(spec.entrypoint), *spec.args]
        self._workers = []
        for worker in worker_group.workers:
            self._workers.append(start_worker(command, self._variables(worker_group, worker)))
        return {local: worker.process.pid for local, worker in enumerate(self._workers)}

    def _variables(self, group: WorkerGroup, worker: Any) -> dict[str, str]:
        """What torchrun would write into the environment, and what the caller asks for."""
        spec = group.spec
        return {
            INTERFACE: loopback_interface(),
            **self._environment,
            "RANK": str(worker.global_rank),
            "LOCAL_RANK": str(worker.local_rank),
            "WORLD_SIZE": str(worker.world_size),
            "LOCAL_WORLD_SIZE": str(spec.local_world_size),
            "MASTER_ADDR": str(group.master_addr),
            "MASTER_PORT": str(group.master_port),
            "TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id(),
            "TORCHELASTIC_RESTART_COUNT": str(spec.max_restarts - self._remaining_restarts),
            "TORCHELASTIC_MAX_RESTARTS": str(spec.max_restarts),
            "TORCHELASTIC_USE_AGENT_STORE": str(spec.rdzv_handler.use_agent_store),
        }

    def _monitor_workers(self, *_: Any) -> RunResult:
        self._pass_stop_on()
        codes = [worker.code for worker in self._workers]
        ends_all = self._led_to is not None or any(code not in (None, 0, STOPPED) for code in codes)
        if self._first_end is None and ends_all:
            self._first_end = time.monotonic()
        if None in codes and not self._is_too_late():
            return RunResult(state=WorkerState.HEALTHY)
        return self._judged()

    @property
    def _led_to(self) -> int | None:
        """The exit code of a leader that ended well, which ends the run; None before."""
        codes = (worker.code for worker in self._workers if worker.rank == 0)
        return next((code for code in codes if code in (0, STOPPED)), None)

    def _pass_stop_on(self) -> None:
        number = self._signals.number
        if self._signals.again:
            raise StoppedAtOnceError
        if number is not None and not self._asked:
            self._asked = True
            for worker in self._workers:
                worker.process.send_signal(number)

    def _is_too_late(self) -> bool:
        # An error that all met: the leader may still be saving what the run needs.
        saves = self._asked or any(worker.failed for worker in self._workers)
        seconds = SECONDS_TO_SAVE if saves else SECONDS_TO_FOLLOW
        return self._first_end is not None and time.monotonic() - self._first_end > seconds

    def _judged(self) -> RunResult:
        """What the workers' ends mean for all: an error ends the run, a loss may be mended."""
        failed = [worker for worker in self._workers if worker.failed]
        lost = [worker for worker in self._workers if worker.was_lost]
        if failed and self._led_to is None:
            return self._ended_by(failed[0])
        if lost and not self._asked and self._led_to is None:
            # A signal is the cause, that others lost that process is its effect.
            return self._after_loss(min(lost, key=lambda worker: worker.code or 0))
        self.exit_code = STOPPED if self._led_to is None else self._led_to
        return RunResult(
            state=WorkerState.SUCCEEDED,
            return_values={worker.rank: worker.code for worker in self._workers},
        )

    def _ended_by(self, worker: Worker) -> RunResult:
        self._remaining_restarts = 0
        self.exit_code = worker.code or 1
        if worker.rank:  # what the leader says was seen
            self._report(worker.cause())
        return RunResult(state=WorkerState.FAILED)

    def _after_loss(self, worker: Worker) -> RunResult:
        most, reached = self._worker_group.spec.max_restarts, self._progress()
        if reached != self._reached:
            self._reached, self._remaining_restarts = reached, most
        if self._remaining_restarts:
            number = most - self._remaining_restarts + 1
            self._report(f"{worker.cause()}; all begin again (restart {number} of {most})")
        else:
            self._report(f"{worker.cause()}; gave up after {most} restarts")
        return RunResult(state=WorkerState.FAILED)

    def _stop_workers(self, *_: Any, **__: Any) -> None:
        self._shutdown()

    def _shutdown(self, *_: Any, **__: Any) -> None:
        """Kill who still runs; what counts is in the checkpoint."""
        for worker in self._workers:
            if worker.code is None:
                worker.process.kill()
        for worker in self._workers:
            worker.kill()
