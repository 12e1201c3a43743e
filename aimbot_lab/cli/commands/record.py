"""`aimbot-lab record`: films of a run's agent, or of replays."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aimbot_lab.cli import options
from aimbot_lab.cli.completion import complete_runs
from aimbot_lab.cli.views.text import check_output, write_output
from aimbot_lab.cli.views.view import progress
from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.tracking.tracker import NOTE_TAG

if TYPE_CHECKING:
    from aimbot_lab.experiment.runs.agents import TrackedAgent
    from aimbot_lab.foundation.world import Picture
    from aimbot_lab.replay.episode import Replay
    from aimbot_lab.replay.frames import Grid

REPLAY_SUFFIX, DEMO_SUFFIX = ".json", ".demo"
SIZE, SMALL_SIZE = 480, 320  # of one picture, of each of several


class GridType(click.ParamType[Any]):
    """Columns x rows, such as 2x2."""

    name = "COLUMNSxROWS"

    def convert(self, value: Any, param: Any, ctx: Any) -> "Grid":
        """The grid that `value` says."""
        from aimbot_lab.replay.frames import Grid

        match = re.fullmatch(r"([1-8])x([1-8])", value)
        if match is None:
            self.fail(f"{value!r}: must be columns x rows, such as 2x2; at most 8x8", param, ctx)
        return Grid(int(match[1]), int(match[2]))


@click.command(short_help="Film an agent or replays, as MP4 or GIF.")
@click.argument(
    "sources", nargs=-1, required=True, metavar="RUN|REPLAY...", shell_complete=complete_runs
)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="The file to write: .mp4 or .gif for a film, .json for a replay of one episode.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Write a demonstration instead, FILE.demo, which ML-Agents learns from by behaviour "
    "cloning and GAIL.",
)
@click.option(
    "--grid", default="1x1", show_default=True, type=GridType(), help="Episodes side by side."
)
@click.option(
    "--episodes",
    type=click.IntRange(1, 256),
    help="Episodes of a run's agent. [default: one of each target and difficulty, or one match]",
)
@click.option("--target", help="Of a run's agent: this target alone.")
@click.option(
    "--against",
    metavar="PLAYER",
    help="In a world of matches who plays against the agent: first, best, last, a snapshot such as "
    "snapshot-000003 or step-N of the run, a script such as greedy, another RUN, or RUN:PLAYER of "
    "it. [default: the run's first snapshot, or greedy]",
)
@click.option("--difficulty", type=click.IntRange(1, 5), help="This difficulty alone.")
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
    difficulties of its last lesson. The run keeps a copy of the film, and its note a link. An MP4
    needs ffmpeg: pip install 'aimbot-lab[video]'. In a world of matches, such as the duel, it plays
    against another, and the film shows what both see.

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
    one = _is_replay(output)
    agent, replays = _replays(sources, place, one=one, grid=grid, **chosen)
    if one:
        _write_replay(replays, output)
        return
    _film(replays, output, grid=grid, size=size, speed=speed)
    if agent is not None:
        _keep(agent, replays, output, place=place)


def _is_replay(output: Path) -> bool:
    """Whether it is a replay. Raises ConfigurationError for what is neither that nor a film."""
    from aimbot_lab.replay.film import check_film

    one = output.suffix.lower() == REPLAY_SUFFIX
    if one:
        check_output(output)
    else:
        check_film(output)
    return one


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
        raise ConfigurationError("--demo: takes one RUN, whose agent plays by itself")
    check_output(output)
    found = fetch_agent(
        sources[0], agent, data_folder=place.folder, tracking_uri=place.tracking_uri
    )
    count = episodes or len(wanted_cells(found, chosen["target"], chosen["difficulty"]))
    request = RecordingRequest(episodes=count, **chosen)
    with progress("playing", count) as advance:
        content = demonstrate(found, request, on_episode=advance)
    write_output(content, output)


def _write_replay(replays: "Sequence[Replay]", output: Path) -> None:
    from aimbot_lab.replay.files import replay_text

    if len(replays) != 1:
        raise ConfigurationError("--output: a .json file holds one episode: --episodes 1")
    write_output(replay_text(replays[0]), output)


def _keep(
    agent: "TrackedAgent", replays: "Sequence[Replay]", film: Path, *, place: options.StorePlace
) -> None:
    """Leave a copy with the run, and a line in its note."""
    from aimbot_lab.experiment.analysis.recording import film_record
    from aimbot_lab.tracking.runs.history import add_to_run, find_run

    run_id, at = agent.run.run_id, place.tracking_uri
    # Read now: while the film was made, an evaluation may have written to it.
    note = find_run(place.folder, run_id, tracking_uri=at).tags.get(NOTE_TAG, "")
    record = film_record(film, replays, agent=agent, note=note)
    add_to_run(place.folder, run_id, record, tracking_uri=at)


def _replays(
    sources: Sequence[str], place: options.StorePlace, *, one: bool, grid: "Grid", **chosen: Any
) -> tuple["TrackedAgent | None", "Sequence[Replay]"]:
    """The agent, where a run's is filmed, and the episodes to show."""
    files = [Path(source) for source in sources if Path(source).is_file()]
    if len(files) == len(sources):
        from aimbot_lab.replay.files import load_replay

        if chosen["against"] is not None:
            raise ConfigurationError("--against: a replay has its players; it is for a RUN")
        return None, [load_replay(file) for file in files]
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
    return fetched, _episodes(fetched, one=one, at_least=at_least, **chosen)


def _episodes(
    agent: "TrackedAgent", *, one: bool, at_least: int, episodes: int | None, **chosen: Any
) -> "Sequence[Replay]":
    from aimbot_lab.experiment.analysis.recording import (
        RecordingRequest,
        record_agent,
        wanted_cells,
    )

    cells = wanted_cells(agent, chosen["target"], chosen["difficulty"])
    count = episodes or (1 if one else max(len(cells), at_least))
    request = RecordingRequest(episodes=count, **chosen)
    with progress("playing", count) as advance:
        return record_agent(agent, request, on_episode=advance)


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
    from aimbot_lab.league.league import check_worlds
    from aimbot_lab.league.opponents import (
        Store,
        find_opponent,
        record_matches,
    )

    check_worlds([agent])
    store, heat = Store(place.folder, place.tracking_uri), chosen["temperature"]
    opponent = find_opponent(agent, against, store=store, temperature=heat)
    request = RecordingRequest(episodes=episodes or at_least, **chosen)
    with progress("playing", request.episodes) as advance:
        return record_matches(agent, opponent, request, on_episode=advance)


def _film(
    replays: "Sequence[Replay]", output: Path, *, grid: "Grid", size: int | None, speed: float
) -> None:
    from aimbot_lab.replay.film import Film, write_film
    from aimbot_lab.replay.frames import FrameStyle, colours, frame_count, grid_frames

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
