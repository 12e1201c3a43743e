"""What is to be trained, as the process that leads hands it to others.

They may be on machines that have neither the curriculum nor the folder of the run.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from aimbot_lab.experiment.config.document import parse_curriculum
from aimbot_lab.experiment.runs.processes.preparation import start_of
from aimbot_lab.experiment.runs.request import RunRequest
from aimbot_lab.experiment.runs.starting import InitialAgent, read_initial_agent
from aimbot_lab.tracking.data_folder import DataFolder

AT = "the training's curriculum"  # its file, in messages


def as_document(request: RunRequest) -> dict[str, Any]:
    """The curriculum of `request`, and the agent that it begins with, as plain values."""
    curriculum, start = request.curriculum, start_of(request)
    return {
        "curriculum": curriculum.resolved_text,
        "files": dict(curriculum.files),
        "start": None if start is None else _start_document(start),
    }


def request_from(document: Mapping[str, Any], data_folder: DataFolder) -> RunRequest:
    """What was handed over, in which no run is resumed: the leader does that."""
    files, start = document["files"], document["start"]
    curriculum = parse_curriculum(document["curriculum"], AT, find=files.__getitem__)
    return RunRequest(curriculum, data_folder, start=None if start is None else _start_from(start))


def _start_document(start: InitialAgent) -> dict[str, Any]:
    files = {name: np.frombuffer(data, np.uint8) for name, data in start.files.items()}
    return {"source": start.ref.source, "files": files}


def _start_from(document: Mapping[str, Any]) -> InitialAgent:
    with tempfile.TemporaryDirectory("-start") as folder:
        for name, data in document["files"].items():
            (Path(folder) / name).write_bytes(data.tobytes())
        return read_initial_agent(Path(folder), source=document["source"])
