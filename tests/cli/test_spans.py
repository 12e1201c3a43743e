"""N and MIN:MAX of processes."""

import pytest
from click import BadParameter

from aimbot_lab.cli.options import ONE, Span, SpanType


@pytest.mark.parametrize("span", [ONE, Span(4, 4), Span(2, 64)])
def test_a_span_is_read_as_it_is_written(span: Span) -> None:
    kind = SpanType(64)
    assert kind.convert(str(span), None, None) == kind.convert(span, None, None) == span


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", "0 is not in the range 1<=x<=64"),
        ("4:65", "65 is not in the range 1<=x<=64"),
        ("4:2", "'4:2' is not MIN:MAX with MIN at most MAX"),
        ("4:", "'4:' is not MIN:MAX"),
        (":4", "'' is not a number; N or MIN:MAX is"),
        ("2:3:4", "'3:4' is not a number"),
        ("-1", "'-1' is not a number"),
        ("²", "'²' is not a number"),
        ("9" * 5000, "9 is not in the range 1<=x<=64"),
    ],
)
def test_what_is_no_span_is_refused(text: str, wanted: str) -> None:
    with pytest.raises(BadParameter) as told:
        SpanType(64).convert(text, None, None)
    assert wanted in told.value.message
