"""Whatever is done to a curriculum: it loads, or it is refused in lines of the agreed form."""

import random
import re
from pathlib import Path

import pytest

from aimbot_lab.experiment.document import load_curriculum
from aimbot_lab.experiment.paths import is_seen
from aimbot_lab.foundation.errors import ConfigurationError

SHIPPED = Path(__file__).parents[2] / "curricula" / "goto.yaml"
LINE = re.compile(r"c\.yaml(:[1-9]\d*:[1-9]\d*)?: \S.*")
SAMPLER = b"parameters: {rays.range: {sampler_type: multirangeuniform, sampler_parameters: "
SPLINTERS = [
    *(SAMPLER, b"sampler_type: uniform", b"intervals: [[1, 2], [3]]", b"{min_value: 9, seed: -1}"),
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\t", b"\r", b"\n", b"  ", b"%", b"@", b"`", b"|", b">"),
    *(b"[", b"]", b"{", b"}", b": ", b"- ", b", ", b"&a ", b"*a", b"<<: *a", b"<<: ", b"? ", b"!"),
    *(b"!!int ", b"!!set ", b"!!python/object:os.x ", b"${seed}", b"${", b"${oc.env:HOME}", b"\\$"),
    *(b"???", b"---\n", b"...\n", b"#", b'"', b"'", b'"\\ud800"', b'"\\UFFFFFFFF"', b"~", b"null"),
    *(b"1e999", b".nan", b"-.inf", b"9" * 5000, b"0x10", b"no", b"true", b"2001-01-01", b"1:2:3"),
    *(b"[" * 300, b"{a: " * 300, b"name", b"lessons", b"difficulty", "\ufeff\u2028é".encode()),
]


def mutated(content: bytes, source: random.Random) -> bytes:
    for _ in range(source.randint(1, 4)):
        start = source.randrange(len(content) + 1)
        end = min(len(content), start + source.choice([0, 0, 1, 3, 30, 200]))
        piece = source.choice([*SPLINTERS, content[end : end + 40], bytes([source.randrange(256)])])
        content = content[:start] + piece + content[end:]
    return content


def refusal() -> tuple[str, ...]:
    """The faults of c.yaml, none where it loads."""
    try:
        load_curriculum("c.yaml")
    except ConfigurationError as error:
        return tuple(error.faults) or ("refused without a reason",)
    return ()


@pytest.mark.parametrize("seed", range(10))
def test_no_mutation_gets_past_the_agreed_lines(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = random.Random(seed)
    for _ in range(20):
        Path("c.yaml").write_bytes(mutated(SHIPPED.read_bytes(), source))
        assert [line for line in refusal() if not LINE.fullmatch(line) or not is_seen(line)] == []
