"""What the launchers of several machines tell each other, by keys of one store."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

ORDER = "order"  # of the one that leads, for all others
COUNT = "machines"  # that ever came, the leader's not counted
FAILURES = (RuntimeError, ValueError, OSError)  # of a store that is gone; what is no message


@dataclass(frozen=True)
class Hello:
    """Who comes."""

    name: str
    address: str
    processes: int
    about: Mapping[str, str]  # what must be the same everywhere, by what a person calls it


@dataclass(frozen=True)
class Said:
    """How a machine that follows is; `beat` is another one each time."""

    beat: int = 0
    round: int = 0  # that its workers are of; 0: none run
    ends: tuple[tuple[int, int, str], ...] = ()  # rank, exit code and cause of those that ended
    stop: int = 0  # the signal by which its user asks for the training's end
    left: bool = False  # nobody is there any more


@dataclass(frozen=True)
class Order:
    """What all are to do."""

    round: int = 0  # of workers, the newest
    ranks: Mapping[str, int] = field(default_factory=dict)  # first one of a machine, by its number
    world: int = 0  # processes in all; 0: machines are waited for
    port: int = 0  # where the workers meet
    stop: int = 0  # the signal to pass on to the workers: a user asks for the end
    ended: int | None = None  # the exit code of all
    refused: Mapping[str, str] = field(default_factory=dict)  # why, by the machine's number
    full: bool = False  # no more machines than take part are taken in


def hello_key(number: int) -> str:
    """Where the machine says who it is."""
    return f"hello/{number}"


def said_key(number: int) -> str:
    """Where the machine says how it is."""
    return f"said/{number}"


def put(store: "Store", key: str, message: Hello | Said | Order) -> None:
    """Have the others find `message`. Raises RuntimeError where the store is gone."""
    store.set(key, json.dumps(asdict(message)))


def found(store: "Store", key: str) -> dict[str, Any] | None:
    """The document that was put there, None without one. Raises RuntimeError, ValueError."""
    if not store.check([key]):
        return None
    document = json.loads(store.get(key))
    if not isinstance(document, dict):
        raise ValueError(f"{key} is no message")
    return document


def order_of(document: Mapping[str, Any]) -> Order:
    """The order that was sent. Raises TypeError for what is none."""
    return Order(**document)


def said_of(document: Mapping[str, Any]) -> Said:
    """What was said. Raises TypeError for what is no such message."""
    ends = tuple((int(rank), int(code), str(cause)) for rank, code, cause in document["ends"])
    return Said(**{**document, "ends": ends})
