"""What ML-Agents' own settings code makes of trainer files; runs by the Python of its packages.

Texts as a JSON list come from standard input; of each, its settings or why it is refused is JSON
in the last line of standard output.
"""

import json
import sys
import warnings

import yaml
from mlagents.plugins.trainer_type import register_trainer_plugins
from mlagents.trainers.settings import RunOptions, TrainerSettings

warnings.simplefilter("ignore")
register_trainer_plugins()


def read(text):
    TrainerSettings.default_override = None  # which the text before may have left
    try:
        return RunOptions.from_dict(yaml.safe_load(text)).as_dict()
    except Exception as error:  # noqa: BLE001 any of them refuses the file
        return repr(error)


if __name__ == "__main__":
    found = [read(text) for text in json.load(sys.stdin)]
    sys.stdout.write("\n" + json.dumps(found, default=str))
