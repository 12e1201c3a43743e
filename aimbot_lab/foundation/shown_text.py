"""Text of others made harmless where it is shown: on a terminal, in Markdown, in HTML.

Names, notes and messages come from files, stores and servers that anyone may have written. What a
reader would take for more than text (escape sequences, line ends, marks that turn the direction of
writing, Markdown, tags) is shown as its code.
"""

import html
import re
import unicodedata

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode categories
_JOINERS = "\u200c\u200d"  # of letters and emoji: they are invisible, and change no direction
_MARKDOWN = re.compile(r"[^\w ,()/%='.-]|_|(?<=[wW]{3})\.")
MAX_LINE = 1_000  # characters of a refusal


def is_seen(text: str) -> bool:
    """Whether `text` consists of visible characters and spaces on one line."""
    if text.isascii():
        return text.isprintable()
    return not any(
        unicodedata.category(character) in _UNSEEN and character not in _JOINERS
        for character in text
    )


def one_line(text: str) -> str:
    """`text` with everything that is no visible character on one line escaped."""
    if is_seen(text):
        return text
    return "".join(
        character if is_seen(character) else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def terminal_lines(text: str) -> str:
    """`text` of several lines for a terminal, each of them escaped as `one_line` does."""
    return "\n".join(map(one_line, text.split("\n")))


def refusal_lines(text: str) -> str:
    """As `terminal_lines`, with the middle of very long lines left out."""
    return "\n".join(shortened(one_line(line), MAX_LINE) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """`text`, without its middle where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    kept = (most - 5) // 2
    return f"{text[:kept]} ... {text[-kept:]}"


def markdown_text(text: str) -> str:
    """`text` as one line of Markdown that shows just these characters: no tag, link or table."""
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", one_line(text))


def html_text(text: str) -> str:
    """`text` as one line of HTML, also within an attribute."""
    return html.escape(one_line(text))
