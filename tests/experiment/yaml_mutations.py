"""Curriculum files as no person would write them: seeded changes of bytes and of structure."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import yaml

SAMPLER = b"parameters: {rays.range: {sampler_type: multirangeuniform, sampler_parameters: "
SPLINTERS = [
    *(SAMPLER, b"sampler_type: uniform", b"intervals: [[1, 2], [3]]", b"{min_value: 9, seed: -1}"),
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\t", b"\r", b"\n", b"  ", b"%", b"@", b"`", b"|", b">"),
    *(b"[", b"]", b"{", b"}", b": ", b"- ", b", ", b"&a ", b"*a", b"<<: *a", b"<<: ", b"? ", b"!"),
    *(b"!!int ", b"!!set ", b"!!python/object:os.x ", b"${seed}", b"${", b"${oc.env:HOME}", b"\\$"),
    *(b"???", b"---\n", b"...\n", b"#", b'"', b"'", b'"\\ud800"', b'"\\UFFFFFFFF"', b"~", b"null"),
    *(b"1e999", b".nan", b"-.inf", b"9" * 5000, b"0x10", b"no", b"true", b"2001-01-01", b"1:2:3"),
    *(b"[" * 300, b"{a: " * 300, b"name", b"lessons", b"difficulty", "\ufeff\u2028é".encode()),
    *(b"!!binary aGk=", b"!!python/object/apply:os.system [ls]", b"!!timestamp 1", b"!<x> "),
    *(b"&" * 9, b"\x85", "\x85\u2029".encode(), b"\x1b[31m", b"\xf0\x9f\x98\x80"),
    *(b"'''", b'"\\x00"', b"!!null"),
]
ODD_VALUES: list[Any] = [
    *(None, True, False, "", " ", "x", "${seed}", "${lessons}", "${lessons.0}", "${train}", "???"),
    *(0, -1, 1, 2, 3, 7, 2**31, 2**63, 10**17, 10**30, -(10**30), 0.5, 1.0, 1.5, -0.0, 1e-320),
    *(1e308, -1e308, float("nan"), float("inf"), float("-inf"), "1e-4", "5_000", "010", "12:30"),
    *([], {}, [[]], [None], {"a": 1}, [0] * 5, [1, 2, 3, 4, 5], ["x"] * 5, [0.0, 0.0], {"": 0}),
    *("é" * 200, "a\nb", "\ud800", "\x00", "\u202e", "win_rate", "every_cell", "reward", "dqn"),
    *({"goto": 1}, {"attack": [1, 1, 1, 1, 1]}, {"free": [1]}, {"sampler_type": "uniform"}),
    {"sampler_type": "gaussian", "sampler_parameters": {"mean": 1e9, "st_dev": 0}},
    {"sampler_type": "multirangeuniform", "sampler_parameters": {"intervals": [[2, 1]]}},
    {"curriculum": [{"name": "a", "value": 1, "completion_criteria": {"behavior": "b"}}]},
    {"threshold": 0.5, "measure": "progress", "rule": "ml-agents"},
]
ODD_KEYS = [
    *("name", "seed", "env", "lessons", "train", "tracking", "targets", "difficulty", "parameters"),
    *("completion_criteria", "threshold", "rule", "options", "presets", "uri", "rewards", "0", ""),
    *("environment_parameters", "curriculum", "<<", "a.b", "é", "\u200b", "__class__", "x" * 300),
]


def changed_bytes(content: bytes, source: random.Random) -> bytes:
    """`content` with a few pieces replaced by splinters, repetitions or single bytes."""
    for _ in range(source.randint(1, 4)):
        start = source.randrange(len(content) + 1)
        end = min(len(content), start + source.choice([0, 0, 1, 3, 30, 200]))
        piece = source.choice([*SPLINTERS, content[end : end + 40], bytes([source.randrange(256)])])
        content = content[:start] + piece + content[end:]
    return content


def changed_structure(content: bytes, source: random.Random) -> bytes:
    """The data of `content` with a few parts removed, replaced, wrapped, moved or doubled."""
    data = yaml.safe_load(content)
    for _ in range(source.randint(1, 4)):
        data = source.choice(_CHANGES)(data, source)
    return _written(data, source)


def _written(data: Any, source: random.Random) -> bytes:
    """`data` as YAML of one style or another; the same part twice becomes an alias in most."""
    if source.random() < 0.2:
        with suppress(ValueError, RecursionError):  # it holds itself
            return json.dumps(data).encode()
    text: str = yaml.safe_dump(
        data,
        sort_keys=False,
        allow_unicode=source.random() < 0.7,
        default_flow_style=source.choice([None, True, False]),
    )
    return text.encode("utf-8", "surrogatepass")


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Every container with every key or index that it holds; a part that is shared once."""
    found, waiting, seen = [], [data], set()
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, dict):
            found += [(here, key) for key in here]
            waiting += here.values()
        elif isinstance(here, list):
            found += [(here, index) for index in range(len(here))]
            waiting += here
    return found


def _at_a_place(change: Callable[[Any, Any, Any, random.Random], None]) -> Any:
    def changed(data: Any, source: random.Random) -> Any:
        places = _places(data)
        if places:
            change(data, *source.choice(places), source)
        return data

    return changed


def _remove(_: Any, container: Any, key: Any, __: random.Random) -> None:
    del container[key]


def _replace(_: Any, container: Any, key: Any, source: random.Random) -> None:
    container[key] = deepcopy(source.choice(ODD_VALUES))


def _rename(_: Any, container: Any, key: Any, source: random.Random) -> None:
    if isinstance(container, dict):
        name = str(key)
        typo = name[: len(name) // 2] + name[len(name) // 2 + 1 :]
        container[source.choice([*ODD_KEYS, typo])] = container.pop(key)


def _add(_: Any, container: Any, __: Any, source: random.Random) -> None:
    if isinstance(container, dict):
        container[source.choice(ODD_KEYS)] = deepcopy(source.choice(ODD_VALUES))
    else:
        container.append(deepcopy(source.choice(ODD_VALUES)))


def _wrap(_: Any, container: Any, key: Any, source: random.Random) -> None:
    depth = source.choice([1, 1, 1, 2, 60])
    for _number in range(depth):
        wrapped = [container[key]] if source.random() < 0.5 else {"a": container[key]}
        container[key] = wrapped


def _share(data: Any, container: Any, key: Any, source: random.Random) -> None:
    other, its_key = source.choice(_places(data))
    container[key] = other[its_key]  # perhaps itself


def _multiply(_: Any, container: Any, key: Any, source: random.Random) -> None:
    if isinstance(container[key], int | float):
        container[key] *= source.choice([-1, 0, 0.5, 1.001, 2, 10, 1000, 10**12])
    elif isinstance(container[key], list):
        container[key] = container[key] * source.choice([2, 100])


_CHANGES = [
    _at_a_place(change)
    for change in (_remove, _replace, _replace, _rename, _add, _wrap, _share, _multiply)
]


def _bomb(_: bytes, source: random.Random) -> bytes:
    width, height = source.choice([(2, 40), (10, 9), (1000, 3)])
    levels = ["a0: &a0 x"]
    levels += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * width)}]" for n in range(1, height)]
    return "\n".join(levels).encode()


_ENCODINGS = ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "utf-7")
_WHOLE: list[Callable[[bytes, random.Random], bytes]] = [
    _bomb,
    lambda content, source: content.decode().encode(source.choice(_ENCODINGS)),
    lambda content, _: content.replace(b"\n", b"\r\n"),
    lambda content, source: content[: source.randrange(len(content))],
    lambda content, source: content.replace(b"  ", b"\t", source.randint(1, 3)),
    lambda content, source: content + b"\n" + content[: source.randrange(len(content))],
    lambda content, source: source.choice([b"[", b"{a: ", b"- ", b"? ", b"!!x ", b"&a "]) * 3000,
    lambda content, source: b"a: " + source.choice([b"9", b"x", b"'", b"[1,", b"\\"]) * 60000,
    lambda content, source: content * source.choice([2, 40]),
    lambda _, source: source.randbytes(source.choice([1, 10, 1000])),
    lambda content, _: b"x: &x {<<: *x}\n" + content,
    lambda content, _: content + b"\nself: &s [*s]\n",
    lambda content, _: content + b"\n<<: [&m {seed: 3, <<: {name: x}}, *m]\n",
    lambda content, _: content + "".join(f"\nk{n}: 1" for n in range(4000)).encode(),
    lambda content, _: content.replace(b": 1}", b": ${seed}}"),
]


def changed_whole(content: bytes, source: random.Random) -> bytes:
    """`content` in another encoding, cut off, repeated, or something else altogether."""
    return source.choice(_WHOLE)(content, source)


def mutated(content: bytes, source: random.Random) -> bytes:
    """A file that was `content`."""
    changes = (changed_structure, changed_structure, changed_bytes, changed_bytes, changed_whole)
    return source.choice(changes)(content, source)
