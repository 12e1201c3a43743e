"""The keys of a terminal stay quiet while something is drawn on it, and only then."""

import json
import subprocess
import sys
import termios

from terminal_session import TerminalSession

TELL_FLAGS = """
import json, subprocess, sys, termios
from aimbot_lab.cli.stopping import quiet_keys

def flags():
    local = termios.tcgetattr(2)[3]
    return [bool(local & termios.ECHOCTL), bool(local & termios.NOFLSH)]

def told():
    seen = []
    try:
        with quiet_keys(2):
            seen.append(flags())
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        seen.append(flags())
    print(json.dumps(seen))

"""
IN_BACKGROUND = (
    TELL_FLAGS
    + """
if len(sys.argv) > 1:
    told()
else:
    command = [sys.executable, "-c", sys.orig_argv[2], "again"]
    child = subprocess.Popen(command, process_group=0)
    try:
        child.wait(20)
    finally:
        child.kill()
"""
)


def test_keys_are_quiet_inside_and_as_before_after_an_exception() -> None:
    with TerminalSession("-c", TELL_FLAGS + "told()") as session:
        before = session.flags()
        assert before & termios.ECHOCTL
        assert not before & termios.NOFLSH
        code, output = session.finish()
        assert code == 0, session.shown
        assert session.flags() == before
    assert json.loads(output) == [[False, True], [True, False]]


def test_a_background_process_leaves_the_terminal_alone_and_is_not_halted() -> None:
    with TerminalSession("-c", IN_BACKGROUND) as session:
        code, output = session.finish()
        assert code == 0, session.shown
    assert json.loads(output) == [[True, False], [True, False]]


def test_where_there_is_no_terminal_nothing_happens() -> None:
    code = "from aimbot_lab.cli.stopping import quiet_keys\n"
    code += "with quiet_keys(2): print('inside')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("inside\n", "")
