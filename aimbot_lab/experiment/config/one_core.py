"""What a training is given that has one core to itself, beside others."""

from aimbot_lab.experiment.config.settings import CurriculumFile


def one_core_overrides(config: CurriculumFile) -> tuple[str, ...]:
    """KEY=VALUE as `--set` takes them, so that a training of `config` keeps to one core.

    Not every world has threads.
    """
    torch = "train.torch_threads=1"
    return ("env.threads=1", torch) if hasattr(config.env, "threads") else (torch,)
