"""`aimbot-lab play`: play a world yourself, in the terminal or by commands."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.views.files import check_output, write_output

if TYPE_CHECKING:
    from aimbot_lab.replay.play_session import PlaySession

MAX_SEED = 2**31 - 1


@click.command(short_help="Play a world yourself.")
@click.option("--world", help="The world. [default: the first that can be played]")
@click.option("--map", "place", metavar="MAP", help="A shipped map or a map file.")
@click.option("--treasures", "objects", help="How many, or at which sites: 5, or 0,3,4.")
@click.option("--target", help="What is to be done. [default: the game itself]")
@click.option("--difficulty", type=click.IntRange(1), help="How hard. [default: the hardest]")
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0, MAX_SEED),
    help="Another seed is another game.",
)
@click.option("--fog/--no-fog", default=True, help="Whether what was never seen is hidden.")
@click.option("--commands", type=click.Path(path_type=Path), help="Play the commands in a file.")
@click.option("--visualize", is_flag=True, help="Print what is seen after each command.")
@options.print_document("Print the raw data of each step as a line.")
@click.option("--save", type=click.Path(path_type=Path), help="Keep the game as a replay.")
def play(
    world: str | None,
    seed: int,
    fog: bool,
    commands: Path | None,
    save: Path | None,
    **given: Any,
) -> None:
    """Play a world yourself: arrow keys or WASD move, r plays the same game again, n a new one, m
    lifts the fog, q ends.

    With --commands, or where the standard input is no terminal, one command is read from each
    line: up, down, left, right, or 0 to 3; blank lines and # comments are skipped.

    \b
    Examples:
      aimbot-lab play
      aimbot-lab play --target walk --difficulty 2 --save walk.json
      aimbot-lab play --commands moves.txt --visualize
    """
    from aimbot_lab.cli.play.command_list import play_commands, read_commands
    from aimbot_lab.cli.play.keyboard import play_by_keys, refuse_small_terminal
    from aimbot_lab.foundation.terminal_play import GameRequest
    from aimbot_lab.replay.play_session import PlaySession, playable_world

    printed = {name: given.pop(name) for name in ("visualize", "as_json")}
    game = playable_world(world)
    if save is not None:
        check_output(save, option="--save")
    by_keys = commands is None and not any(printed.values()) and _on_a_terminal()
    if by_keys:
        refuse_small_terminal()
    words = None if by_keys else read_commands(commands, game.commands)
    session = PlaySession(game, GameRequest(**given), seed=seed, fog=fog)
    if words is None:
        play_by_keys(session)
    else:
        play_commands(session, words, **printed)
    if save is not None:
        _save(session, save)


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _save(session: "PlaySession", path: Path) -> None:
    from aimbot_lab.replay.files import replay_text

    write_output(replay_text(session.replay()), path, option="--save")
    click.echo(f"the replay is {path}", err=True)
