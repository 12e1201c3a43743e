"""A command in several processes of this machine, started anew together when one is lost."""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from aimbot_lab.training.processes.stop_signals import StopSignals
from aimbot_lab.training.processes.workers import STOPPED

MAX_RESTARTS = 3
# Torch's agent would hand out the addresses of dead processes (pytorch#135712).
AGENT = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}


def to_stderr(line: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def launch(
    command: Sequence[str],
    processes: int,
    *,
    environment: Mapping[str, str],
    report: Callable[[str], None] = to_stderr,
    progress: Callable[[], object] = lambda: None,
) -> int:
    """The exit code of `command`, run in `processes` processes with `environment` beside ours.

    Each finds its place in RANK and WORLD_SIZE; only rank 0 writes to our standard output and
    error. After the loss of one (by a signal, or LostError's exit code) all are started anew, at
    most three times with no change of what `progress` gives between, then the code is 1. Any other
    error ends all with its code. SIGINT, SIGTERM and SIGHUP are passed on once, which gives 130; a
    second one kills all. `report` gets each loss, and a follower's error, in a line. To be called
    in the main thread.
    """
    os.environ.update(AGENT)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    with StopSignals() as signals, _quiet_logs():
        from aimbot_lab.training.processes.elastic_agent import Agent, StoppedAtOnceError
        from aimbot_lab.training.processes.rendezvous import on_this_machine, worker_spec

        with on_this_machine() as meeting:
            agent = Agent(
                worker_spec(command, processes, meeting=meeting, max_restarts=MAX_RESTARTS),
                environment=environment,
                signals=signals,
                report=report,
                progress=progress,
            )
            try:
                agent.run()
            except StoppedAtOnceError:
                return STOPPED
    return agent.exit_code


@contextmanager
def _quiet_logs() -> Iterator[None]:
    """Without the warnings and tracebacks of torch's agent: we report what counts in a line."""
    logger, silence = logging.getLogger("torch.distributed.elastic"), logging.NullHandler()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(silence)
    try:
        yield
    finally:
        logger.removeHandler(silence)
        logger.propagate = before
