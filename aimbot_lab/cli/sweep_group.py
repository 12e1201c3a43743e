"""The group of the sweep commands, whose first word may be left out."""

from typing import Any

import click
from click.shell_completion import CompletionItem

from aimbot_lab.cli.completion import file_names


class SweepGroup(click.Group):
    """A group whose first word may also be a sweep, which is then started."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in where it was left out."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Commands, and sweeps, which may stand in the place of one."""
        names = [name for name in file_names("sweep") if name.startswith(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]

    def invoke(self, ctx: click.Context) -> Any:
        """What the command returns; a storage that fails is reported in one line."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from aimbot_lab.sweep.storage import storage_error

            trouble = storage_error(error)
            if trouble is None:
                raise
            raise trouble from error
