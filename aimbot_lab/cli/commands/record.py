"""`aimbot-lab record`: films of a run's agent, or of replays."""

import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.commands.play import ENTER, HOME, LEAVE
from aimbot_lab.cli.options import complete_runs
from aimbot_lab.cli.text import check_output, print_json, table, write_output
from aimbot_lab.cli.view import progress
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.foundation.shown_text import MAX_LINE, one_line, shortened
from aimbot_lab.tracking.data_folder import locate_data_folder
from aimbot_lab.tracking.tracker import NOTE_TAG

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.agents import TrackedAgent
    from aimbot_lab.foundation.world import Picture
    from aimbot_lab.replay.episode import EpisodeSummary, Replay
    from aimbot_lab.replay.film import Grid

REPLAY_SUFFIX, DEMO_SUFFIX = ".json", ".demo"
SIZE, SMALL_SIZE = 480, 320  # of one picture, of each of several


class GridType(click.ParamType[Any]):
    """Columns x rows, such as 2x2."""

    name = "COLUMNSxROWS"

    def convert(self, value: Any, param: Any, ctx: Any) -> "Grid":
        """The grid that `value` says."""
        from aimbot_lab.replay.film import Grid

        match = re.fullmatch(r"([1-8])x([1-8])", value)
        if match is None:
            self.fail(f"{value!r}: must be columns x rows, such as 2x2; at most 8x8", param, ctx)
        return Grid(int(match[1]), int(match[2]))


@click.command(short_help="Film an agent or replays, as MP4 or GIF.")
@click.argument(
    "sources", nargs=-1, required=True, metavar="RUN|REPLAY...", shell_complete=complete_runs
)
@options.output(
    "The file to write: .mp4 or .gif for a film, .json for a replay of one episode.", required=True
)
@click.option(
    "--demo",
    is_flag=True,
    help="Write a demonstration (.demo) for ML-Agents' behaviour cloning and GAIL instead.",
)
@click.option(
    "--grid", default="1x1", show_default=True, type=GridType(), help="Episodes side by side."
)
@click.option(
    "--episodes",
    type=click.IntRange(1, 256),
    help="How many episodes of a run's agent. [default: one for each target and difficulty, or "
    "one match]",
)
@click.option("--target", help="Film a run's agent only at this target.")
@click.option(
    "--against",
    metavar="PLAYER",
    help="In matches, the opponent: first, best, last, a snapshot such as snapshot-000003 or "
    "step-N of the run, a script such as greedy, another RUN, or RUN:PLAYER. [default: the "
    "run's first snapshot, or greedy]",
)
@click.option("--difficulty", type=click.IntRange(1, 5), help="Only this difficulty.")
@options.temperature
@options.agent
@options.seed
@options.max_steps
@options.size
@options.speed
@options.trust
@options.place
def record(
    sources: tuple[str, ...],
    output: Path,
    demo: bool,
    grid: "Grid",
    size: int | None,
    speed: float,
    place: options.StorePlace,
    **chosen: Any,
) -> None:
    """Film the agent of a RUN, or REPLAY files: the world as it draws itself (the arena from
    above), what the agent does, the reward's terms as bars, and how each episode ends.

    RUN is a run's id, the beginning of it, or "latest"; its agent plays the targets and
    difficulties of its last lesson. The run keeps a copy of the film, and its note links it. An MP4
    needs ffmpeg: pip install 'aimbot-lab[video]'. In matches, such as those of the duel, the film
    shows what both agents see.

    \b
    Examples:
      aimbot-lab record latest -o agent.mp4 --grid 2x2
      aimbot-lab record latest -o hard.json --target goto --difficulty 5
      aimbot-lab record hard.json -o hard.gif
      aimbot-lab record latest --against first -o match.mp4
      aimbot-lab record latest --demo -o expert.demo --episodes 100
    """
    if demo:
        _demonstrate(sources, output, place, **chosen)
        return
    from aimbot_lab.replay.film import check_film

    one = output.suffix.lower() == REPLAY_SUFFIX
    if one:
        check_output(output)
    else:
        check_film(output)
    agent, replays = _replays(sources, place, one=one, grid=grid, **chosen)
    if one:
        from aimbot_lab.replay.episode import replay_text

        if len(replays) != 1:
            raise ConfigurationError("--output: a .json file holds one episode: --episodes 1")
        write_output(replay_text(replays[0]), output)
        return
    _film(replays, output, grid=grid, size=size, speed=speed)
    if agent is not None:
        from aimbot_lab.experiment.analysis.recording import film_record
        from aimbot_lab.tracking.history import add_to_run, find_run

        run_id, at = agent.run.run_id, place.tracking_uri
        # Read now: while the film was made, an evaluation may have written to it.
        note = find_run(place.folder, run_id, tracking_uri=at).tags.get(NOTE_TAG, "")
        record = film_record(output, replays, agent=agent, note=note)
        add_to_run(place.folder, run_id, record, tracking_uri=at)


def _demonstrate(
    sources: Sequence[str],
    output: Path,
    place: options.StorePlace,
    *,
    agent: str,
    against: str | None,
    episodes: int | None,
    **chosen: Any,
) -> None:
    from aimbot_lab.experiment.analysis.recording import RecordingRequest, demonstrate, wanted_cells
    from aimbot_lab.experiment.runs.agents import fetch_agent

    if output.suffix.lower() != DEMO_SUFFIX:
        raise ConfigurationError(f"--output {output}: ML-Agents reads files that end in .demo")
    if len(sources) != 1 or Path(sources[0]).is_file() or against is not None:
        raise ConfigurationError("--demo: needs exactly one RUN, and no --against")
    check_output(output)
    found = fetch_agent(
        sources[0], agent, data_folder=place.folder, tracking_uri=place.tracking_uri
    )
    count = episodes or len(wanted_cells(found, chosen["target"], chosen["difficulty"]))
    request = RecordingRequest(episodes=count, **chosen)
    with progress("playing", count) as advance:
        content = demonstrate(found, request, on_episode=advance)
    write_output(content, output)


def _replays(
    sources: Sequence[str], place: options.StorePlace, *, one: bool, grid: "Grid", **chosen: Any
) -> tuple["TrackedAgent | None", "Sequence[Replay]"]:
    """The agent, where a run's is filmed, and the episodes to show."""
    files = [Path(source) for source in sources if Path(source).is_file()]
    if len(files) == len(sources):
        from aimbot_lab.experiment.runs.run_record import noted_in
        from aimbot_lab.replay.episode import load_replay

        if chosen["against"] is not None:
            raise ConfigurationError("--against: a replay has its players; it is for a RUN")
        return None, [load_replay(file, may_run=noted_in(place.folder)) for file in files]
    if len(sources) != 1 or sources[0].lower().endswith(REPLAY_SUFFIX):
        missing = next(source for source in sources if not Path(source).is_file())
        raise ConfigurationError(f"{missing}: no such replay; of runs, one can be filmed at a time")
    return _played(sources[0], place, one=one, grid=grid, **chosen)


def _played(
    run: str,
    place: options.StorePlace,
    *,
    one: bool,
    grid: "Grid",
    agent: str,
    against: str | None,
    **chosen: Any,
) -> tuple["TrackedAgent", "Sequence[Replay]"]:
    from aimbot_lab.experiment.analysis import recording
    from aimbot_lab.experiment.runs.agents import fetch_agent
    from aimbot_lab.worlds.registry import type_of

    fetched = fetch_agent(run, agent, data_folder=place.folder, tracking_uri=place.tracking_uri)
    at_least = 1 if one else grid.panes
    if against is not None or type_of(fetched.config.env).self_play_targets:
        target = chosen.pop("target")
        if target is not None and against is not None:
            raise ConfigurationError("--target and --against: both say who plays against the agent")
        chosen.pop("max_steps")  # matches end by the rules
        return fetched, _matches(fetched, against or target, place, at_least=at_least, **chosen)
    cells = recording.wanted_cells(fetched, chosen["target"], chosen["difficulty"])
    count = chosen.pop("episodes") or (1 if one else max(len(cells), at_least))
    request = recording.RecordingRequest(episodes=count, **chosen)
    with progress("playing", count) as advance:
        return fetched, recording.record_agent(fetched, request, on_episode=advance)


def _matches(
    agent: "TrackedAgent",
    against: str | None,
    place: options.StorePlace,
    *,
    at_least: int,
    episodes: int | None,
    **chosen: Any,
) -> "Sequence[Replay]":
    """One match, and as many as a grid has room for."""
    from aimbot_lab.experiment.analysis.recording import RecordingRequest
    from aimbot_lab.league import Store, check_worlds, find_opponent, record_matches

    check_worlds([agent])
    store, heat = Store(place.folder, place.tracking_uri), chosen["temperature"]
    opponent = find_opponent(agent, against, store=store, temperature=heat)
    request = RecordingRequest(episodes=episodes or at_least, **chosen)
    with progress("playing", request.episodes) as advance:
        return record_matches(agent, opponent, request, on_episode=advance)


def _film(
    replays: "Sequence[Replay]", output: Path, *, grid: "Grid", size: int | None, speed: float
) -> None:
    from aimbot_lab.replay.film import (
        Film,
        FrameStyle,
        colours,
        frame_count,
        grid_frames,
        write_film,
    )

    small = grid.panes > 1 or output.suffix.lower() == ".gif"
    style = FrameStyle(size or (SMALL_SIZE if small else SIZE))
    step = min(replay.episode.frame_seconds for replay in replays)
    with progress("filming", frame_count(replays, grid)) as advance:

        def counted() -> "Iterator[Picture]":
            for picture in grid_frames(replays, grid, style):
                yield picture
                advance(output.name)

        write_film(output, Film(counted(), speed / step, colours(replays)))
    click.echo(f"written to {output}", err=True)


SECONDS_AT_THE_END = 1.5


@click.command(short_help="Play a recorded episode again.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--frames",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write a PNG picture of every decision to this folder.",
)
@options.size
@options.speed
@options.trust
@options.data_dir
@options.as_json
def replay(
    file: Path,
    folder: Path | None,
    size: int | None,
    speed: float,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Play the episode in FILE again, and print how it went.

    A file that was altered, or whose trajectory differs on this machine, is refused. A training
    keeps a few replays of every lesson as replays/ among its artifacts;
    `aimbot-lab record RUN -o episode.json` makes more.

    \b
    Examples:
      aimbot-lab replay episode.json
      aimbot-lab replay episode.json --frames pictures
    """
    from aimbot_lab.experiment.runs.run_record import noted_in
    from aimbot_lab.replay.episode import load_replay, summarize

    if not file.is_file():
        raise ConfigurationError(f"{file}: no such replay; aimbot-lab record makes one")
    found = load_replay(file, may_run=noted_in(locate_data_folder(data_dir)))
    if folder is not None:
        _write_frames(found, folder, size or 480)
    elif sys.stdout.isatty() and not (as_json or os.environ.get("NO_COLOR")):
        from aimbot_lab.replay.terminal import Screen, screens

        columns, lines = shutil.get_terminal_size()
        true_colour = os.environ.get("COLORTERM", "") in ("truecolor", "24bit")
        step = found.episode.frame_seconds / speed
        with _own_screen():
            due = time.monotonic()
            for text in screens(found, Screen(columns, lines, true_colour)):
                click.echo(HOME + text, nl=False, color=True)
                sys.stdout.flush()
                due += step
                time.sleep(max(due - time.monotonic(), 0.0))
            time.sleep(SECONDS_AT_THE_END)
    summary = summarize(found)
    if as_json:
        print_json(summary.as_json())
    else:
        _show_summary(summary)


def _show_summary(summary: "EpisodeSummary") -> None:
    level = f", difficulty {summary.difficulty}" if summary.difficulty else ""
    click.echo(f"{summary.target}{level}: {summary.outcome} after {summary.took}")
    events = (f", {count} {name}" for name, count in summary.events.items())
    click.echo(f"{summary.decisions} decisions{''.join(events)}")
    rows = [
        (name.replace("_", " "), f"{value:,.1f}") for name, value in summary.reward_terms.items()
    ]
    rows.append(("return", f"{summary.episode_return:,.1f}"))
    click.echo(table(("reward", "sum"), rows))
    if summary.about:
        about = ", ".join(f"{key} {value}" for key, value in summary.about.items())
        click.echo(shortened(one_line(about), MAX_LINE), err=True)
    click.echo(f"plays as recorded: trajectory {summary.trajectory_sha256[:12]}", err=True)


@contextmanager
def _own_screen() -> Iterator[None]:
    """The terminal's second screen, and the first as it was when the block ends."""
    click.echo(ENTER, nl=False, color=True)
    try:
        yield
    finally:
        click.echo(LEAVE, nl=False, color=True)
        sys.stdout.flush()


def _write_frames(found: "Replay", folder: Path, size: int) -> None:
    from PIL import Image

    from aimbot_lab.replay.film import FrameStyle, frames

    count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for count, picture in enumerate(frames(found, FrameStyle(size)), 1):
            Image.fromarray(picture).save(folder / f"{count - 1:04}.png")
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"--frames {folder}: can't be written: {reason}") from error
    click.echo(f"{count} pictures are in {folder}", err=True)
