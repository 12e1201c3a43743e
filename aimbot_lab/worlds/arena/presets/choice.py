"""The presets that an arena plays: those of files, or those it was given."""

from collections.abc import Sequence

from aimbot_lab.foundation.errors import ConfigurationError
from aimbot_lab.worlds.arena.presets.block import Preset
from aimbot_lab.worlds.arena.presets.check import preset_faults
from aimbot_lab.worlds.arena.presets.files import SHIPPED_FILES, load_presets, preset_files
from aimbot_lab.worlds.arena.settings import ArenaSettings

WIDTHS = {"obstacles": 4, "enemies": 2}  # numbers of each of them


def chosen_presets(settings: ArenaSettings, given: Sequence[Preset] | None) -> Sequence[Preset]:
    """`given`, or else the shipped presets, where they are wanted, and those that `settings` name.

    Raises ConfigurationError with every rule that any of them breaks.
    """
    if given is None:
        shipped = SHIPPED_FILES if settings.shipped_presets else ()
        return load_presets([*shipped, *preset_files(settings.presets)])
    faults = [fault for preset in given for fault in _faults(preset)]
    if faults:
        raise ConfigurationError(*faults)
    return given


def lacking_presets(settings: ArenaSettings, target: str, weights: Sequence[float]) -> list[int]:
    """The difficulties of `target` that have a weight and no preset among those of `settings`."""
    if settings.shipped_presets:  # which have one of each
        return []
    there = {(one.target, one.difficulty) for one in chosen_presets(settings, None)}
    drawn = (level for level, weight in enumerate(weights, start=1) if weight > 0)
    return [level for level in drawn if (target, level) not in there]


def _faults(preset: object) -> list[str]:
    if not isinstance(preset, Preset):
        return [f"preset {preset!r}: must be a Preset"]
    malformed = _malformed(preset)
    if malformed:
        return [f"preset {preset.name}: {reason}" for reason in malformed]
    return preset_faults(preset)


def _malformed(preset: Preset) -> list[str]:
    """What the rules cannot be asked about: fields of another form than they are declared."""
    faults = []
    if type(preset.difficulty) is not int:
        faults.append(f"difficulty {preset.difficulty!r} is not 1 to 5")
    if not _is_numbers(preset.fire_base, 3):
        faults.append(f"fire_base: must be three numbers (got {preset.fire_base!r})")
    for name, width in WIDTHS.items():
        items = getattr(preset, name)
        if not isinstance(items, tuple | list) or not all(_is_numbers(i, width) for i in items):
            faults.append(f"{name}: must each be {width} numbers (got {items!r})")
    return faults


def _is_numbers(value: object, count: int) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == count
        and all(isinstance(number, int | float) for number in value)
    )
