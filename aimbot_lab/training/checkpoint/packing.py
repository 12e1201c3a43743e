"""A tree of plain values, arrays and tensors as bytes, and back; reading runs no code.

A safetensors file: every array and tensor under a number, and the tree itself as JSON, in which
`{"$array": 3}` stands for the fourth of them, and `$records` for arrays of records.
"""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch as th
from safetensors import SafetensorError
from safetensors.numpy import load, save

TREE = "tree"
Arrays = dict[str, np.ndarray]


def pack(tree: Any) -> bytes:
    """`tree` as bytes: dicts, lists and tuples of plain values, NumPy arrays and tensors.

    Raises TypeError for anything else in it.
    """
    arrays: Arrays = {}
    text = json.dumps(_plain(tree, arrays))
    return save({TREE: np.frombuffer(text.encode(), np.uint8), **arrays})


def unpack(data: bytes) -> Any:
    """The tree that `pack` was given; its arrays and tensors may be written to.

    Raises ValueError where `data` is not of that kind.
    """
    try:
        arrays = load(data)
        return _tree(json.loads(arrays[TREE].tobytes()), arrays)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no packed tree: {error}") from error


def _plain(value: Any, arrays: Arrays) -> Any:
    """`value` as JSON takes it, its arrays put into `arrays`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return _plain_mapping(value, arrays)
    if isinstance(value, list):
        return [_plain(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [_plain(item, arrays) for item in value]}
    if isinstance(value, th.Tensor):
        return {"$tensor": _put(value.detach().cpu().numpy(), arrays)}
    if isinstance(value, np.ndarray) and value.dtype.kind == "U":
        return {"$texts": value.tolist()}
    if isinstance(value, np.ndarray) and value.dtype.names is not None:
        fields = [[name, _put(value[name], arrays)] for name in value.dtype.names]
        return {"$records": [value.ndim, fields]}
    if isinstance(value, np.ndarray):
        return {"$array": _put(value, arrays)}
    if isinstance(value, np.generic):
        return {"$number": _put(np.asarray(value), arrays)}
    raise TypeError(f"can't be packed: {type(value).__name__}")


def _plain_mapping(value: Mapping[Any, Any], arrays: Arrays) -> dict[str, Any]:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: _plain(inner, arrays) for key, inner in value.items()}
    pairs = [[_plain(key, arrays), _plain(inner, arrays)] for key, inner in value.items()]
    return {"$mapping": pairs}


def _put(array: np.ndarray, arrays: Arrays) -> str:
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    return name


def _tree(value: Any, arrays: Arrays) -> Any:
    if isinstance(value, list):
        return [_tree(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), "")
    if kind in _KINDS:
        return _KINDS[kind](value[kind], arrays)
    return {key: _tree(inner, arrays) for key, inner in value.items()}


def _records(axes: int, fields: list[list[str]], arrays: Arrays) -> np.ndarray:
    """The array of so many axes whose records have these fields."""
    parts = [(name, arrays[place]) for name, place in fields]
    kind = np.dtype([(name, part.dtype, part.shape[axes:]) for name, part in parts], align=True)
    records = np.zeros(parts[0][1].shape[:axes], kind)
    for name, part in parts:
        records[name] = part
    return records


_KINDS: Mapping[str, Callable[[Any, Arrays], Any]] = MappingProxyType(
    {
        "$tuple": lambda items, arrays: tuple(_tree(items, arrays)),
        "$mapping": lambda pairs, arrays: {
            _tree(key, arrays): _tree(inner, arrays) for key, inner in pairs
        },
        "$tensor": lambda name, arrays: th.from_numpy(arrays[name].copy()),
        "$array": lambda name, arrays: arrays[name].copy(),
        "$records": lambda given, arrays: _records(given[0], given[1], arrays),
        "$number": lambda name, arrays: arrays[name][()],
        "$texts": lambda texts, _: np.array(texts),
    }
)
