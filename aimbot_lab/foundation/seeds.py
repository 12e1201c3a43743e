"""Seeds for the parts of a run, derived from one number, and the states of torch's generators."""

import hashlib
from collections.abc import Mapping
from typing import Any


def derive_seed(seed: int, *path: str | int) -> int:
    """A 32-bit seed for the part named by `path`, the same on every machine.

    Formula: the first four bytes of SHA-256 over "seed/part/part", so parts are independent
    of each other and of the order in which they are asked for.
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def torch_random(torch: Any) -> dict[str, Any]:
    """Where the generators of the module `torch` stand: the CPU's, and used GPUs'."""
    state: dict[str, Any] = {"torch": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    return state


def restore_torch_random(torch: Any, state: Mapping[str, Any]) -> None:
    """Set generators of `torch` to what `torch_random` gave; those of GPUs where there are any."""
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"][: torch.cuda.device_count()])
