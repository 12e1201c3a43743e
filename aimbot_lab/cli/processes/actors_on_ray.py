"""Actors of a training that Ray places."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.request import RunRequest
    from aimbot_lab.training.actors.group import ActorGroup


@contextmanager
def actors_on_ray(request: "RunRequest", on: str | None) -> "Iterator[ActorGroup | None]":
    """Those that `request` asks for, where they shall be `on` Ray; else None.

    Raises ConfigurationError where Ray is not installed or no cluster answers.
    """
    if on is None:
        yield None
        return
    actors = request.curriculum.config.train.actors
    if actors is None:
        raise click.UsageError("--on ray: needs train.actors in the curriculum")
    from aimbot_lab.cluster.actors import RayActors
    from aimbot_lab.cluster.connection import connected

    with connected(actors.number) as ray:
        yield RayActors(ray)
