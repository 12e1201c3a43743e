"""`aimbot-lab weights`: change the mix of difficulties of a run that trains."""

from pathlib import Path
from typing import Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.text import print_json, table
from aimbot_lab.foundation.shown_text import one_line

WAIT_SECONDS = 60.0  # a run listens where a rollout begins
Levels = tuple[int, ...]


class LevelsParam(click.ParamType[Levels]):
    """Difficulties separated by commas."""

    name = "levels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The difficulties in `value`, such as 1,2."""
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(level) for level in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no list of difficulties, such as 1,2", param, ctx)


@click.command(short_help="Show or change the mix of a running run.")
@click.argument("run", shell_complete=complete_runs)
@click.argument("target")
@click.argument("moves", nargs=-1, metavar="[LEVEL=WEIGHT]...")
@click.option("--lock", type=LevelsParam(), default=(), help="Difficulties whose weights stay.")
@click.option("--unlock", type=LevelsParam(), default=(), help="Difficulties that may move again.")
@options.data_dir
@options.as_json
def weights(
    run: str,
    target: str,
    moves: tuple[str, ...],
    lock: Levels,
    unlock: Levels,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show or change the weights of TARGET's difficulties while RUN trains on this machine.

    The weights sum to 1: the others give way in proportion, locked ones stay put. A change holds
    for every episode that begins after it until the lesson ends; the next lesson begins with its
    own mix. It is recorded in the run, and `aimbot-lab explain` shows it.

    \b
    Examples:
      aimbot-lab weights 3f2a goto
      aimbot-lab weights 3f2a goto 3=0.5 --lock 1,2
    """
    from aimbot_lab.curriculum.weight_change import WeightChange
    from aimbot_lab.foundation.errors import ConfigurationError
    from aimbot_lab.tracking.data_folder import locate_data_folder
    from aimbot_lab.tracking.runs.control_channel import ControlChannel
    from aimbot_lab.tracking.runs.running import running_run

    change = WeightChange(target, tuple(map(_move, moves)), lock, unlock)
    folder = running_run(locate_data_folder(data_dir), run)
    control_channel = ControlChannel(folder.path)
    key = control_channel.send(change._asdict())
    answer = control_channel.wait(key, WAIT_SECONDS, still_open=lambda: not folder.is_free)
    if answer is None:
        raise _silence(folder.path.exists(), taken_back=control_channel.withdraw(key), run=run)
    if "error" in answer:
        raise ConfigurationError(answer["error"])
    if as_json:
        print_json({"schema": 1, "run_id": folder.run_id, **answer})
    else:
        click.echo(_text(answer, changed=bool(moves or lock or unlock)))


def _move(text: str) -> tuple[int, float]:
    level, _, weight = text.partition("=")
    try:
        return int(level), float(weight)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no LEVEL=WEIGHT, such as 3=0.5") from None


def _silence(running: bool, *, taken_back: bool, run: str) -> Exception:
    from aimbot_lab.foundation.errors import LabError

    if not running:
        return LabError(f"run {run} ended before it read the change")
    if taken_back:
        return LabError(f"run {run} did not listen in time; nothing was changed; try again")
    return LabError(f"run {run} has read the change, but its answer was lost")


def _text(answer: dict[str, Any], *, changed: bool) -> str:
    rows = [
        (level, f"{weight:.4f}", "locked" if locked else "")
        for level, (weight, locked) in enumerate(
            zip(answer["weights"], answer["locked"], strict=True), start=1
        )
    ]
    verb = "changed" if changed else "as they are"
    head = f"{answer['target']} in lesson {answer['lesson']}, {verb} at step {answer['step']:,}"
    return f"{one_line(head)}\n" + table(("difficulty", "weight", ""), rows)
