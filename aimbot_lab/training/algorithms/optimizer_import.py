"""Optimizers are made and used without an import of torch's compiler, which takes seconds."""

import functools
import sys
from typing import Any

import torch
from torch.optim import Adam, Optimizer, RMSprop

MARKED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
STEPPING = Adam, RMSprop  # those of stable-baselines3


def spare_compiler_import() -> None:
    """Let optimizers be made, read, loaded and used without importing `torch._dynamo`.

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
    for kind in STEPPING:
        _spare_step(kind)


def _spare_step(kind: type[Optimizer]) -> None:
    """A step of `kind` is taken by torch's own code, without its word to the compiler before it."""
    told: Any = kind.step
    bare: Any = getattr(told, "__wrapped__", None)
    if bare is None or hasattr(told, "hooked") or hasattr(told, "spares_compiler"):
        return  # torch has no such word, an optimizer was made before, or this was done before

    @functools.wraps(bare)
    def step(self: Optimizer, *given: Any, **named: Any) -> Any:
        if "torch._dynamo" in sys.modules:
            return told(self, *given, **named)
        with torch.set_grad_enabled(self.defaults["differentiable"]):
            return bare(self, *given, **named)

    step.spares_compiler = True  # type: ignore[attr-defined]
    kind.step = step  # type: ignore[method-assign]
