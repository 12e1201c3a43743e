"""How a browser gets an address with a token that no other account may read."""

import os
import subprocess
import sys
from pathlib import Path

ADDRESS = "http://127.0.0.1:1/sesame/#/runs?a=1&b=%22x%22"
# A browser that notes its arguments, and what the file says that they name.
BROWSER = """
import stat, sys
from pathlib import Path
from urllib.parse import unquote, urlsplit
file = Path(unquote(urlsplit(sys.argv[2]).path))
said = [*sys.argv[2:], oct(stat.S_IMODE(file.stat().st_mode)), file.read_text()]
(unfinished := Path(sys.argv[1] + ".new")).write_text(chr(0).join(said))
unfinished.rename(sys.argv[1])
"""
OPENS = """
import sys, time
from pathlib import Path
from aimbot_lab.cli.commands.pages import open_privately
open_privately(sys.argv[2], Path(sys.argv[1]).parent)
while not Path(sys.argv[1]).exists():
    time.sleep(0.01)
"""


def test_the_token_reaches_the_browser_by_a_private_file_that_ends_with_the_command(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (program := tmp_path / "browser.py").write_text(BROWSER)
    command = f"{sys.executable} {program} '{folder / 'said'}' %s"
    opens = [sys.executable, "-c", OPENS, str(folder / "said"), ADDRESS]
    subprocess.run(opens, env={**os.environ, "BROWSER": command}, check=True, timeout=120)
    argument, mode, page = (folder / "said").read_text().split("\0")
    assert "sesame" not in argument
    assert mode == "0o600"
    assert 'content="0;url=http://127.0.0.1:1/sesame/#/runs?a=1&amp;b=%22x%22"' in page
    assert [file.name for file in folder.iterdir()] == ["said"]
