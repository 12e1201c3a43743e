"""Leases: which process works on a trial, and until when it is taken at its word."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from aimbot_lab.tracking.runs.ownership import Owner


@dataclass(frozen=True)
class Lease:
    """A trial's holder; the lease ends by itself unless it is renewed."""

    owner: Owner
    until: float  # s since 1970, by the storage's clock

    def is_over(self, now: float) -> bool:
        """Whether the holder is dead, or has been silent for too long."""
        return self.until < now or self.owner.is_gone()

    def as_attribute(self) -> dict[str, Any]:
        """Plain values for the storage."""
        return {**asdict(self.owner), "until": self.until}


def read_lease(attribute: Mapping[str, Any] | None) -> Lease | None:
    """The lease in a trial's attribute, None if missing."""
    if not attribute:
        return None
    values = dict(attribute)
    until = values.pop("until")
    return Lease(Owner(**values), until)
