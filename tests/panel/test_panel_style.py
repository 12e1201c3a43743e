"""The page's files: small modules, one palette readable in light and dark, no HTML written."""

import re
from itertools import product
from pathlib import Path

import pytest

from aimbot_lab.panel.server.serve import PAGE, PARTS, page_files

VENDORED = PAGE / "vendor"
SCRIPTS = sorted(path for path in PAGE.rglob("*.js") if VENDORED not in path.parents)
WRITES_HTML = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function"
)
ELSEWHERE = re.compile(r"https?://(?!\$|www\.w3\.org/2000/svg)")


def palettes() -> dict[str, dict[str, str]]:
    """The colours of the style sheet, in light and in dark."""
    text = (PAGE / "style.css").read_text()
    light, dark = re.findall(r":root \{(.+?)\n *\}", text, re.DOTALL)
    named = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in (light, dark)]
    return {"light": named[0], "dark": named[1]}


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`. Source: WCAG 2.2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, from 1 to 21. Source: WCAG 2.2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_no_script_writes_html() -> None:
    for path in SCRIPTS:
        text = path.read_text()
        assert not WRITES_HTML.search(text), path
        assert not ELSEWHERE.search(text), path


def test_a_vendored_library_has_its_licence_beside_it_and_writes_no_html_either() -> None:
    for folder in VENDORED.iterdir():
        assert "MIT License" in (folder / "LICENSE").read_text()
        for path in folder.glob("*.js"):
            assert not WRITES_HTML.search(path.read_text()), path


def test_what_writes_html_is_found() -> None:
    assert WRITES_HTML.search("node.innerHTML = text")
    assert ELSEWHERE.search('import "https://cdn.example/x.js"')


def test_the_page_has_no_inline_script_or_style() -> None:
    text = (PAGE / "index.html").read_text()
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    for address in re.findall(r'(?:src|href)="([^"#]+)"', text):
        assert address.removeprefix("/page/") in page_files()


def test_every_part_has_a_tab_on_the_page() -> None:
    main = (PAGE / "main.js").read_text()
    assert {*re.findall(r'from "\./parts/(\w+)\.js"', main)} == {*PARTS}


@pytest.mark.parametrize("path", sorted((PAGE / "parts").glob("*")), ids=lambda path: path.name)
def test_a_module_among_the_parts_is_a_part_by_its_own_name(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r'^export const name = "(\w+)"', text, re.MULTILINE) == [path.stem]
    assert path.stem in PARTS
    for exported in ("const title = ", "function open("):
        assert f"export {exported}" in text


def test_what_a_script_imports_is_a_file_of_the_page() -> None:
    for path in SCRIPTS:
        for address in re.findall(r'^import .*?from "(.+?)";', path.read_text(), re.MULTILINE):
            found = (path.parent / address).resolve().relative_to(PAGE.resolve())
            assert found.as_posix() in page_files()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_as_wcag_asks_and_what_is_on_the_floor_without_colour(scheme: str) -> None:
    colours = palettes()[scheme]
    grounds, inks = ("ground", "sheet", "soft"), ("ink", "quiet", "accent", "good", "warm", "bad")
    for ground, ink in (*product(grounds, inks), ("accent", "on-accent")):
        assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for role in ("agent", "enemy", "obstacle", "bystander", "wall"):
        assert contrast(colours[role], colours["floor"]) >= 3.0, role
