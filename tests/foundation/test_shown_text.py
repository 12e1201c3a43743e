"""What others have written is shown as text, whatever a reader would take it for."""

import pytest

from aimbot_lab.foundation.shown_text import (
    MAX_LINE,
    html_text,
    markdown_text,
    one_line,
    refusal_lines,
    terminal_lines,
)

HOSTILE = "a\x1b[2J\x9b31mb\rc\nd\u202ee\u2066f\u2028g\ud800h\x00"


def test_nothing_that_steers_a_terminal_is_left() -> None:
    shown = one_line(HOSTILE)
    assert shown.isprintable()
    assert shown == r"a\x1b[2J\x9b31mb\rc\nd\u202ee\u2066f\u2028g\ud800h\x00"
    assert terminal_lines("one\ntwo\x1b\r") == "one\ntwo\\x1b\\r"


@pytest.mark.parametrize("text", ["all levels", "Größe 0.5, (50 %) a/b it's x=1", "目標"])
def test_plain_names_stay_as_they_are(text: str) -> None:
    assert one_line(text) == markdown_text(text) == text


def test_nothing_that_markdown_or_html_would_act_on_is_left() -> None:
    text = "<img src=x onerror=alert(1)> [a](http://b) | `c` **d** __e__ www.f.g ~~h~~ #1 \\ &lt;"
    shown = markdown_text(text)
    assert not set('<>[]|`*_~\\":') & set(shown)
    assert "www." not in shown
    assert html_text('<b title="x">&\n') == "&lt;b title=&quot;x&quot;&gt;&amp;\\n"


def test_a_refusal_does_not_repeat_a_long_name() -> None:
    assert len(refusal_lines("x" * 100_000)) <= MAX_LINE
    assert refusal_lines(f"no such run {'x' * 100_000}: lists them").endswith(": lists them")
