"""The example for KubeRay has the fields of its RayJob, and a command that exists."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from aimbot_lab.cli.commands.run import run
from aimbot_lab.cli.options import Span

FILE = Path(__file__).parents[2] / "aimbot_lab" / "cluster" / "rayjob.yaml"
# Of KubeRay's ray.io/v1 (rayjob_types.go, raycluster_types.go), as far as they are of use here.
FIELDS = {
    "spec": {
        *("entrypoint", "backoffLimit", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished"),
        *("rayClusterSpec", "submissionMode", "runtimeEnvYAML", "activeDeadlineSeconds"),
    },
    "rayClusterSpec": {
        *("rayVersion", "enableInTreeAutoscaling", "autoscalerOptions"),
        *("headGroupSpec", "workerGroupSpecs"),
    },
    "headGroupSpec": {"serviceType", "rayStartParams", "template"},
    "workerGroupSpecs": {
        *("groupName", "replicas", "minReplicas", "maxReplicas", "numOfHosts"),
        *("rayStartParams", "template"),
    },
}


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
    return loaded


@pytest.fixture(scope="module")
def groups(job: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = job["spec"]["rayClusterSpec"]
    return [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]


def test_its_fields_are_those_of_a_rayjob(
    job: dict[str, Any], groups: list[dict[str, Any]]
) -> None:
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert set(job["spec"]) <= FIELDS["spec"]
    assert set(job["spec"]["rayClusterSpec"]) <= FIELDS["rayClusterSpec"]
    assert set(groups[0]) <= FIELDS["headGroupSpec"]
    assert set(groups[1]) <= FIELDS["workerGroupSpecs"]


def test_every_pod_has_the_volume_of_the_data_folder(groups: list[dict[str, Any]]) -> None:
    for group in groups:
        pod = group["template"]["spec"]
        (container,) = pod["containers"]
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        assert mounts == {"data": "/data"}
        assert [one["name"] for one in pod["volumes"]] == ["data"]


def test_its_command_exists_and_the_pods_have_places_for_its_processes(
    job: dict[str, Any], groups: list[dict[str, Any]]
) -> None:
    shell = shlex.split(job["spec"]["entrypoint"])
    assert shell[:2] == ["sh", "-c"]
    words = shell[2].partition("aimbot-lab run ")[2].split()
    given = run.make_context("run", words).params
    assert given["on"] == "ray"
    assert str(given["data_dir"]) == "/data"
    places = [int(group["rayStartParams"]["num-cpus"]) for group in groups]
    least = places[0] + places[1] * groups[1]["minReplicas"]
    most = places[0] + places[1] * groups[1]["maxReplicas"]
    assert given["processes"] == Span(least, most)
