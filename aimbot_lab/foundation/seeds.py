"""Seeds for the parts of a run, derived from one number."""

import hashlib


def derive_seed(seed: int, *path: str | int) -> int:
    """A 32-bit seed for the part named by `path`, the same on every machine.

    Formula: the first four bytes of SHA-256 over "seed/part/part", so parts are independent
    of each other and of the order in which they are asked for.
    """
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
