"""`aimbot-lab bench`: benchmarks, each of which shows the report of one of `aimbot_lab.bench`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import aimbot_lab
from aimbot_lab.bench import ABLATION_TASKS
from aimbot_lab.cli import options
from aimbot_lab.cli.options import complete_files
from aimbot_lab.cli.text import print_json, stacked_table, terminal_width, wrapped
from aimbot_lab.cli.view import progress
from aimbot_lab.foundation.named_code import always
from aimbot_lab.foundation.shown_text import finite_numbers

if TYPE_CHECKING:
    from aimbot_lab.bench.turns import Report

WIDTH = 100  # characters of a line of text where there is no terminal
quick = click.option("--quick", is_flag=True, help="Rough figures in a few seconds.")


def say(line: str) -> None:
    """Show progress."""
    click.echo(wrapped(line, err=True), err=True)


markdown = click.option("--markdown", is_flag=True, help="Print tables as a page has them.")


def show(report: "Report", *, as_json: bool, markdown: bool = False) -> None:
    """Print `report` as one document, or as text and tables."""
    from aimbot_lab.bench.turns import cell, this_machine

    machine = this_machine()
    if as_json:
        about = {"schema": 1, "version": aimbot_lab.__version__, "machine": machine}
        print_json(finite_numbers({**about, **report.document}))
        return
    for words in filter(None, (not markdown and machine, report.document.get("settings"))):
        line = ", ".join(f"{key} {cell(one)}" for key, one in words.items())
        click.echo(line if markdown else wrapped(line, most=WIDTH))
    for place, part in enumerate(report.parts):
        if place or not markdown:
            click.echo()
        if isinstance(part, str):
            click.echo(part if markdown else wrapped(part, most=WIDTH))
            continue
        rows = part.cells()
        head = list(dict.fromkeys(key for row in rows for key in row))
        body = [[row.get(key, cell(None)) for key in head] for row in rows]
        if markdown:
            lines = (head, ["---"] * len(head), *body)
            click.echo(f"{part.title}:\n")
            click.echo("\n".join(f"| {' | '.join(line)} |" for line in lines))
        else:
            click.echo(wrapped(part.title, most=WIDTH))
            click.echo(stacked_table(head, body, terminal_width()))


@click.group(short_help="Measure speed on this machine.")
def bench() -> None:
    """Measure speed on this machine.

    \b
    Example:
      aimbot-lab bench sim
    """


def benchmark(short_help: str) -> "Callable[[Callable[..., Report]], click.Command]":
    """A command of the group that shows the report which a function returns."""

    def added(measure: "Callable[..., Report]") -> click.Command:
        @bench.command(measure.__name__.replace("_", "-"), short_help=short_help)
        @options.as_json
        @markdown
        @wraps(measure)
        def command(as_json: bool, markdown: bool, **given: Any) -> None:
            show(measure(**given), as_json=as_json, markdown=markdown)

        return command

    return added


@benchmark("Measure the simulator's steps per second.")
@quick
def sim(quick: bool) -> "Report":
    """Measure the simulator: steps per second, time by part, and how long a start takes.

    A step is one decision of one agent, under random play; in worlds with several agents a row the
    columns count agents. Takes about a minute; close other programs, and compare only figures of
    the same run.

    \b
    Example:
      aimbot-lab bench sim --json > bench.json
    """
    from aimbot_lab.bench.sim import FULL, QUICK, bench_sim

    return bench_sim(QUICK if quick else FULL, say)


@benchmark("Measure runs against another PPO.")
@quick
@click.option(
    "--network",
    type=click.Choice(("memory", "units", "all")),
    help="A network with a memory, with encoders of units and attention, or with everything, "
    "against plain layers and sb3-contrib's RecurrentPPO.",
)
@click.option(
    "--world",
    metavar="NAME",
    help="A world with self-play, such as duel: self-play against past selves, beside as many "
    "rows of the arena's hardest target.",
)
def train(quick: bool, network: str | None, world: str | None) -> "Report":
    """Measure whole runs: hybrid_ppo against stable-baselines3's PPO, and their time by part.

    Both use the same arena, networks and hyper-parameters, with lessons and tracking; repeats take
    turns, and the best counts. Takes about five minutes; close other programs.

    \b
    Example:
      aimbot-lab bench train --json > bench.json
      aimbot-lab bench train --network memory
      aimbot-lab bench train --world duel
    """
    from aimbot_lab.bench import train as measured

    sizes = measured.TINY if quick else measured.FULL
    if network is not None and world is not None:
        raise click.UsageError("--network and --world are two benchmarks: give one of them")
    if network is not None:
        few = sizes if quick else measured.OF_NETWORKS
        return measured.bench_networks(network, few, say)
    if world is not None:
        return measured.bench_self_play(world, sizes, say)
    return measured.bench_train(sizes, say)


@benchmark("Measure one training in several processes.")
@quick
def scale(quick: bool) -> "Report":
    """Measure one training in 1, 2 and 4 processes and with two threads, and their exchange.

    The runs are goto's, with layers of 64 and of 128 units. They take turns, in alternating
    order, and each turn is compared with the one-process turn beside it. Takes about ten minutes
    and 3 GB of memory; close other programs, and have a core for each process, or else only CPU
    time is meaningful.

    \b
    Example:
      aimbot-lab bench scale --json > scale.json
    """
    from aimbot_lab.bench.scale import FULL, TINY, bench_scale

    return bench_scale(TINY if quick else FULL, say)


@benchmark("Measure the bridge to ML-Agents.")
@quick
def bridge(quick: bool) -> "Report":
    """Measure agent-steps per second through ML-Agents' calls, over the wire and in process.

    Over the wire, a player and a trainer of this package talk by gRPC, each in a process of its
    own; an echo of messages of the same length shows the cost of gRPC itself. In process,
    LabEnvironment runs beside the world that it plays. All take turns, under random play. Takes
    about a minute; close other programs. Needs gRPC: pip install 'aimbot-lab[unity]'.

    \b
    Example:
      aimbot-lab bench bridge --json > bridge.json
    """
    from aimbot_lab.bench.bridge import FULL, QUICK, bench_bridge

    return bench_bridge(QUICK if quick else FULL, say)


@benchmark("Compare with plain stable-baselines3.")
@click.argument(
    "file",
    default="cartpole",
    type=click.Path(path_type=Path),
    shell_complete=complete_files("curriculum"),
)
@options.overrides
@options.number("--seeds", 3, (1, 1000), "Runs of each, interleaved.")
def peer(file: Path, overrides: tuple[str, ...], seeds: int) -> "Report":
    """Train a Gymnasium environment twice to the same proof, and print the ratio of wall time.

    First by the curriculum in FILE (default: the shipped cartpole), through all its lessons; then
    by stable-baselines3's PPO as its documentation uses it (a DummyVecEnv, no curriculum, no
    tracking), on the last lesson's parameters. Rows, rollouts and hyper-parameters are the same,
    and both end when the last lesson's test passes. Takes about five minutes; close other programs.

    \b
    Example:
      aimbot-lab bench peer --seeds 5
    """
    from aimbot_lab.bench.train import bench_peer
    from aimbot_lab.experiment.config.document import load_curriculum
    from aimbot_lab.training.settings import TrainingPlan

    config = load_curriculum(file, overrides, may_run=always).config
    plan = TrainingPlan(config.seed, config.env, config.lessons, config.train)
    return bench_peer(plan, seeds=seeds, say=say)


@benchmark("Compare with rl-zoo3's hyper-parameters.")
@click.option("--row", "rows", multiple=True, metavar="NAME", help="A row; repeatable. [all]")
@options.number("--seeds", 3, (1, 100), "Runs of each side, interleaved.")
@options.data_dir
def zoo(rows: tuple[str, ...], seeds: int, data_dir: Path | None) -> "Report":
    """Train with rl-zoo3's hyper-parameters, by us and by plain scripts of the libraries.

    Environments from CartPole to Pong; a row needs its package (gymnasium[box2d], 'mujoco<4',
    minigrid, ale-py). Prints the mean return of the last episodes, and the ratio of CPU time. All
    rows take hours: results are kept in the data folder, and finished rows are not trained again.

    \b
    Example:
      aimbot-lab bench zoo --row "cartpole ppo" --seeds 1
    """
    from aimbot_lab.bench.zoo import bench_zoo
    from aimbot_lab.tracking.data_folder import locate_data_folder

    kept = locate_data_folder(data_dir).root / "bench-zoo.jsonl"
    return bench_zoo(rows, seeds=seeds, kept_in=kept, say=say)


@benchmark("Measure what lessons bring.")
@click.argument("files", nargs=-1, required=True, shell_complete=complete_files("curriculum"))
@options.overrides
@options.number("--seeds", 5, (1, 1000), "Runs of each way, interleaved.")
@options.data_dir
def lessons(
    files: tuple[str, ...], overrides: tuple[str, ...], seeds: int, data_dir: Path | None
) -> "Report":
    """Train curricula, and the last lesson of each alone for as many steps.

    FILES are curricula, which run to the proof of their last lesson. Prints the steps to that proof
    and the win rate in new episodes, both ways. Takes a minute a seed for goto; results are kept in
    the data folder, and finished runs are not repeated.

    \b
    Example:
      aimbot-lab bench lessons goto --seeds 2
    """
    from aimbot_lab.bench.lessons import bench_lessons
    from aimbot_lab.tracking.data_folder import locate_data_folder

    kept = locate_data_folder(data_dir).root / "bench-lessons.jsonl"
    return bench_lessons(files, overrides, seeds=seeds, kept_in=kept, say=say)


@benchmark("Measure what the panel costs a training.")
@options.number(
    "--pairs", 30, (1, 1000), "Pairs of stretches of five seconds, one watched, one alone."
)
def panel(pairs: int) -> "Report":
    """Measure what being watched costs a training.

    A training on Goto is watched for five seconds, left alone for ten, and so on. While it is
    watched, another process asks for its state and its newest agent, as the panel does. Prints how
    much more CPU time the training takes while it is watched, how much of that goes into its
    answers, and wall time, which other programs influence, too. Takes about five minutes; don't use
    the machine meanwhile.

    \b
    Example:
      aimbot-lab bench panel --pairs 60
    """
    from aimbot_lab.bench.costs import bench_panel

    return bench_panel(pairs, say)


@benchmark("Measure what evaluation while training costs.")
@options.number("--every", 500_000, (1, 10**9), "Environment steps between two evaluations.")
@options.number("--episodes", 50, (30, 10_000), "Episodes of each difficulty in an evaluation.")
@options.number("--steps", 2_000_000, (1, 10**9), "Environment steps of a training.")
@options.number("--repeats", 3, (1, 100), "Runs with evaluation, and as many without.")
def evaluation(every: int, episodes: int, steps: int, repeats: int) -> "Report":
    """Measure what `evaluation: {every: N, episodes: M}` costs, in CPU seconds.

    The same training of --steps on Goto runs with and without it by turns, --repeats times each.
    Takes about two minutes.

    \b
    Example:
      aimbot-lab bench evaluation --every 200000
    """
    from aimbot_lab.bench.costs import bench_evaluation
    from aimbot_lab.training.settings import EvaluationSettings

    settings = EvaluationSettings(every=every, episodes=episodes)
    return bench_evaluation(settings, say, steps=steps, repeats=repeats)


@benchmark("Measure what keeping replays costs a training.")
@options.number(
    "--rollouts", 40, (2, 100_000), "Rollouts that keep replays, and as many that do not."
)
def replays(rollouts: int) -> "Report":
    """Measure what keeping replays costs a training, in CPU seconds.

    In one PPO training on Goto every other rollout keeps replays. Takes about two minutes.

    \b
    Example:
      aimbot-lab bench replays --rollouts 100
    """
    from aimbot_lab.bench.costs import bench_replays

    return bench_replays(rollouts, say)


@benchmark("Simulate how often lessons would end by luck.")
def rules() -> "Report":
    """Simulate how many lessons end that should not, and how soon the others end.

    Compares the evidence that lessons end on here with the usual rule: the win rate of the last
    hundred episodes, compared with the threshold after each episode. Takes about a minute.

    \b
    Example:
      aimbot-lab bench rules
    """
    from aimbot_lab.bench.simulations import RulesPlan, bench_rules

    return bench_rules(RulesPlan(), say)


@benchmark("Simulate how often intervals of ratings hold.")
def ratings() -> "Report":
    """Simulate leagues with known true ratings.

    Prints how often the 95 % intervals of `aimbot-lab league` contain the true difference, and how
    often its test finds a cycle, with and without a true one. Takes about a minute.

    \b
    Example:
      aimbot-lab bench ratings
    """
    from aimbot_lab.bench.simulations import RatingsPlan, bench_ratings

    return bench_ratings(RatingsPlan(), say)


@benchmark("Compare ways to draw past selves.")
@options.number("--steps", 20_000_000, (1, None), "Environment steps of each training.")
@options.number("--seeds", 3, (1, 1000), "Runs of each.")
@options.number("--games", 200, (2, 8192), "Matches of each pair in the league.")
@options.overrides
@options.place
def self_play(place: options.StorePlace, **given: Any) -> "Report":
    """Train by self-play against the latest self alone, and by each way to draw past selves.

    All final agents then meet in one league with the scripted players; greedy has 1200 points. Each
    training is a run, seed by seed. After Ctrl-C the same command continues where it was
    interrupted. 15 runs of 20 million steps take hours.

    \b
    Example:
      aimbot-lab bench self-play --steps 2000000 --seeds 2
    """
    from aimbot_lab.bench.self_play import planned_trainings, samplings_report, trained_run
    from aimbot_lab.league import LeagueRequest, plan_league, play_league

    store: Any = {"data_folder": place.folder, "tracking_uri": place.tracking_uri}
    games = given["games"]
    planned = planned_trainings(given["steps"], given["seeds"], given["overrides"])
    runs = [(one, trained_run(one, say=say, **store)) for one in planned]
    request = LeagueRequest(games=games, snapshots=None, seed=1)
    plan = plan_league([run for _, run in runs], request, **store)
    with progress(f"{games} games a pair", plan.pairs) as advance:
        league = play_league(plan, on_pair=advance)
    return samplings_report(given, runs, league)


def task_names() -> tuple[str, ...]:
    """Every target, the hardest before the others, and the tasks of names of their own."""
    return (*options.target_names(lambda world: world.hardest_target()), *ABLATION_TASKS)


@bench.command(short_help="Compare hybrid_ppo's options one by one.")
@click.option(
    "--task",
    "--target",
    "task",
    cls=options.TargetOption,
    type=options.LateChoice(task_names),
    show_default=True,
    help="What is learned: a target in all its difficulties; recall, which needs a memory; duel, "
    "against scripts; or stale, from rollouts that are kept.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="A variant to compare, for example 'target linear'; repeatable. [default: all; for "
    "recall memory and bins, for stale bins and two bounds of dual clip, for duel the parts of a "
    "network]",
)
@click.option(
    "--leave-one-out",
    is_flag=True,
    help="Start with everything on, and turn one option off at a time.",
)
@click.option(
    "--threshold",
    type=options.NumberRange(0, 1, min_open=True, max_open=True),
    help="Win rate that must be exceeded. [default: 0.7; stale 0.4, recall 0.8]",
)
@options.number("--seeds", 5, (1, 1000), "Runs of each variant.")
@click.option(
    "--steps",
    type=click.IntRange(1),
    help="Steps after which a training has failed. [default: 4 million; recall 16 million]",
)
@options.as_json
@markdown
def ablation(steps: int | None, as_json: bool, markdown: bool, **given: Any) -> None:
    """Train with each option of hybrid_ppo on its own: steps and CPU seconds to a threshold.

    All rows are compared with the row `bins`, which is plain PPO. They have the same world, lesson,
    settings and seeds, and all observe units (rays and the enemies in sight). Each trained agent
    then plays new episodes. Rows with encoders or a memory take some minutes per seed, the others
    some seconds; Ctrl-C shows the results so far. With --task recall the agent with a memory learns
    first, and the others take as many steps.

    \b
    Examples:
      aimbot-lab bench ablation --task free --threshold 0.6
      aimbot-lab bench ablation --task recall --seeds 3
    """
    from aimbot_lab.bench import ablation as trainings

    plan = trainings.AblationPlan(most_steps=steps, **given)
    done: list[trainings.Attempt] = []
    try:
        for attempt in trainings.attempts(plan, say):
            done.append(attempt)
    finally:
        if done:
            show(trainings.report(plan, done), as_json=as_json, markdown=markdown)
