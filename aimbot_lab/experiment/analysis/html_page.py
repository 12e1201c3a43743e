"""Pages in HTML that stand by themselves: their style and their pictures are inside."""

from collections.abc import Sequence

from aimbot_lab.foundation.shown_text import html_text

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1000px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .3rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #e4e4e4;
         vertical-align: top; }
th { font-weight: 600; border-color: #999; } code { background: #f3f3f3; padding: 0 .25rem; }
.scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; } .quiet { color: #666; }
"""


def page(title: str, parts: Sequence[str]) -> str:
    """A whole document; `parts` are HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html_text(title)}</title><style>{_STYLE}</style></head>\n<body>\n"
        f"<h1>{html_text(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def heading(text: str) -> str:
    """The head of a section."""
    return f"<h2>{html_text(text)}</h2>"


def paragraph(text: str, *, quiet: bool = False) -> str:
    """Plain text."""
    return f"<p{' class=quiet' if quiet else ''}>{html_text(text)}</p>"


def html_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows of plain text under their heads."""
    lines = [f"<tr>{''.join(f'<th>{html_text(name)}</th>' for name in head)}</tr>"]
    lines += [
        f"<tr>{''.join(f'<td>{html_text(str(cell))}</td>' for cell in row)}</tr>" for row in rows
    ]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'
