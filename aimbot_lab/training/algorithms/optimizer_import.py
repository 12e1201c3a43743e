"""Optimizers are made without an import of torch's compiler, which takes a second."""

import sys

from torch.optim import Optimizer

MARKED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def spare_compiler_import() -> None:
    """Let optimizers be made, read and loaded without importing `torch._dynamo`.

    torch wraps these methods so that `torch.compile` leaves them as they are, and imports its
    compiler at their first call to say so. Here they are said to be left as they are beforehand.
    What they do stays the same. Where torch wraps them in another way, or has imported its
    compiler already, this does nothing.
    """
    if "torch._dynamo" in sys.modules:
        return
    for name in MARKED:
        method = getattr(getattr(Optimizer, name), "__wrapped__", None)
        if method is not None and not hasattr(method, "__dynamo_disable"):
            method.__dynamo_disable = method
