"""Pictures as a film: MP4 by ffmpeg, which comes with an extra, or GIF by Pillow."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from PIL import Image

from aimbot_lab.foundation.errors import ConfigurationError, LabError
from aimbot_lab.foundation.world import Picture

MORE_GIF_COLOURS = 48  # beside those that must be met
LOOKED_AT = 12  # pictures of a GIF from which its colours are chosen
CRF = "23"  # H.264's quality: 0 (all of it) to 51; text stays sharp
GIF_TICK = 0.01  # s, the unit of a GIF's times
FASTEST_GIF = 2  # ticks a picture; viewers slow down what is faster

Pictures = Iterator[Picture]
Colours = Sequence[tuple[int, int, int]]


class Film(NamedTuple):
    """Pictures of one size, and how they are shown."""

    pictures: Pictures
    per_second: float
    colours: Colours = ()  # that must be met where a format has few


Write = Callable[[Path, Film], None]


def write_film(path: Path, film: Film) -> None:
    """Write `film` to the file `path`, whole or not at all.

    Its suffix says how. Raises ConfigurationError for another suffix than .mp4 and .gif, where
    ffmpeg is needed and missing, and where the file can't be written.
    """
    write = WRITERS[check_film(path)]
    fresh = path.with_name(f".{path.stem}.part{path.suffix}")
    try:
        write(fresh, film)
        fresh.replace(path)
    except OSError as error:
        reason = error.strerror or error
        raise ConfigurationError(f"--output {path}: can't be written: {reason}") from error
    finally:
        fresh.unlink(missing_ok=True)


def check_film(path: Path) -> str:
    """The suffix of `path`. Raises ConfigurationError where no film of that kind can be made."""
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        raise ConfigurationError(f"--output {path}: must end with {' or '.join(WRITERS)}")
    if suffix == ".mp4":
        _ffmpeg()
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(f"--output {path}: there is no such folder")
    return suffix


def _ffmpeg() -> str:
    """The program: that of the extra, else the machine's own."""
    try:
        from imageio_ffmpeg import get_ffmpeg_exe

        return str(get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        found = shutil.which("ffmpeg")
        if found is None:
            raise ConfigurationError(
                "an MP4 needs ffmpeg: pip install 'aimbot-lab[video]'; a .gif needs nothing more"
            ) from error
        return found


def _write_mp4(path: Path, film: Film) -> None:
    first = next(film.pictures)
    height, width = first.shape[:2]
    # Every player shows yuv420p, which has one colour for two by two pixels.
    size = width - width % 2, height - height % 2
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}"]
    given += ["-r", f"{film.per_second:g}", "-i", "-"]
    made = ["-an", "-c:v", "libx264", "-crf", CRF, "-pix_fmt", "yuv420p", "-movflags", "faststart"]
    command = [_ffmpeg(), "-v", "error", "-y", *given, *made, str(path)]
    with TemporaryFile() as words:
        with Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=words) as ffmpeg:
            _feed(ffmpeg, chain([first], film.pictures), size)
        if ffmpeg.returncode:
            words.seek(0)
            output = words.read().decode(errors="replace").strip().splitlines() or [
                "no reason given"
            ]
            raise LabError(f"ffmpeg could not make the film: {output[-1][:200]}")


def _feed(ffmpeg: "Popen[bytes]", pictures: Pictures, size: tuple[int, int]) -> None:
    assert ffmpeg.stdin is not None
    try:
        for picture in pictures:
            ffmpeg.stdin.write(np.ascontiguousarray(picture[: size[1], : size[0]]).tobytes())
        ffmpeg.stdin.close()
    except BrokenPipeError:
        return  # it ended: its exit code and its output say more
    except BaseException:
        ffmpeg.kill()
        raise


def _write_gif(path: Path, film: Film) -> None:
    first = [Image.fromarray(picture) for picture in islice(film.pictures, LOOKED_AT)]
    palette = _palette(first, film.colours)

    def reduced(picture: Image.Image) -> Image.Image:
        return picture.quantize(palette=palette, dither=Image.Dither.NONE)

    head = reduced(first[0])
    rest = (reduced(picture) for picture in chain(first[1:], map(Image.fromarray, film.pictures)))
    ticks = max(round(1 / film.per_second / GIF_TICK), FASTEST_GIF)
    head.save(path, save_all=True, append_images=rest, duration=ticks * 10, loop=0)


def _palette(pictures: Sequence[Image.Image], colours: Colours) -> Image.Image:
    """`colours`, and the most common of `pictures`.

    The first pictures do not show every colour that comes later.
    """
    sheet = Image.new("RGB", (pictures[0].width, sum(picture.height for picture in pictures)))
    for place, picture in enumerate(pictures):
        sheet.paste(picture, (0, place * picture.height))
    common = sheet.quantize(MORE_GIF_COLOURS, method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in colours for part in colour] + common)
    return palette


WRITERS: Mapping[str, Write] = MappingProxyType({".mp4": _write_mp4, ".gif": _write_gif})
