"""Options that several commands share."""

from pathlib import Path

import click

data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Folder of the tracking store and its files. [env: AIMBOT_LAB_DATA_DIR; default: "
    ".aimbot-lab in the project's folder]",
)
tracking_uri = click.option(
    "--tracking-uri",
    metavar="ADDRESS",
    help="An MLflow tracking server to use in place of the data folder's store. "
    "[env: MLFLOW_TRACKING_URI]",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
overrides = click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Change a value of the file, for example train.total_steps=100000; repeatable.",
)
allow_env = click.option(
    "--allow-env",
    metavar="NAME",
    multiple=True,
    help="Let the file read the environment variable NAME by ${oc.env:NAME}; the run keeps its "
    "value. Repeatable.",
)
