"""Entry points of packages that are not installed, as if they were."""

from importlib.metadata import EntryPoint

import pytest

from aimbot_lab.foundation import registry


def install(monkeypatch: pytest.MonkeyPatch, group: str, name: str, value: str) -> None:
    """Have an installed package bring `name` of the group `aimbot_lab.GROUP`."""
    there = registry._installed
    entry = EntryPoint(name, value, f"aimbot_lab.{group}")

    def installed(asked: str) -> tuple[EntryPoint, ...]:
        return (*there(asked), *((entry,) if asked == entry.group else ()))

    monkeypatch.setattr(registry, "_installed", installed)
