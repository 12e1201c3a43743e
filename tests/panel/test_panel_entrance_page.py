"""How a page gets in, in a browser; and addresses that are no address of a part."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from browser_page import Browser, needs_chromium, wait_for_text
from panel_server import TOKEN, PanelUnderTest

from aimbot_lab.cli.commands import pages

pytestmark = needs_chromium
FILLED = ".main-cards .card"  # once the panel has answered


@contextmanager
def another_server() -> Iterator[tuple[str, list[str]]]:
    """Another port of this machine: its address, and all that a browser sends there."""
    sent: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(f"{self.requestline}\n{self.headers}")
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>another</title>")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", sent
        finally:
            server.shutdown()
            thread.join()


def test_a_page_stays_in_and_what_another_port_is_sent_lets_nobody_in(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel) as page, another_server() as (address, sent):
        page.locator(FILLED).first.wait_for()
        assert page.url == f"{panel.origin}/#start"
        page.reload()
        page.locator(FILLED).first.wait_for()
        second = page.context.new_page()
        second.goto(f"{panel.origin}/")
        second.locator(FILLED).first.wait_for()
        second.evaluate("address => { location.href = address; }", address)
        second.wait_for_url(address)
        assert sent
        assert page.context.cookies() == []
        assert all(TOKEN not in one and "cookie:" not in one.lower() for one in sent)


def test_a_page_without_the_token_says_so_and_comes_in_once_another_tab_does(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel) as page:
        page.locator(FILLED).first.wait_for()
        page.evaluate("localStorage.token = 'that of a panel before'")
        page.reload()
        wait_for_text(page, "#connection", "open the address that it printed")
        second = page.context.new_page()
        second.goto(panel.entrance)
        page.locator(FILLED).first.wait_for()
        page.locator("#connection").wait_for(state="hidden")
    expected = [one for one in browser.faults if "403" in one]
    assert browser.faults == expected != []
    browser.faults.clear()


def test_the_private_file_leads_to_the_page_and_its_part(
    tmp_path: Path, browser: Browser, panel: PanelUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()
    monkeypatch.setattr(pages.webbrowser, "open", lambda _: opened.set())
    entrance = pages.open_privately(f"{panel.entrance}#training/a&b", tmp_path)
    assert opened.wait(60)
    with browser.page(panel) as page:
        page.goto(entrance.as_uri())
        page.wait_for_url(f"{panel.origin}/#training/a&b")
        wait_for_text(page, ".notice", "^no such request: run: ")
    browser.faults.remove(f"request: {entrance.as_uri()}")


def test_an_address_that_is_not_encoded_is_taken_as_it_stands(
    panel: PanelUnderTest, browser: Browser
) -> None:
    with browser.page(panel, "%") as page:
        page.locator(FILLED).first.wait_for()
        for part in ("training", "watch", "replays", "sweep"):  # which look at what follows
            for odd in (f"{part}/%", f"{part}/%E0%A4%A"):
                page.evaluate("odd => { location.hash = odd; }", odd)
                page.locator(f"main.part-{part} h1").wait_for()
        for odd in ("sweep/" + "x" * 100_000, "__proto__/%"):
            page.evaluate("odd => { location.hash = odd; }", odd)
        page.locator(FILLED).first.wait_for()
        assert page.locator("#connection").is_hidden()
