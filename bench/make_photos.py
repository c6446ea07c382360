#!/usr/bin/env python3
"""Writes 44 pictures of 500x375 to FOLDER/all: JPEG of quality 92 and 4:2:0, about 50 KB each.

Runs with a Python that has Pillow and numpy.

Their spectrum falls with frequency as a photograph's does, and their channels correlate, so that
decoders have as much to do as on photographs.  The same bytes each time, by the same Pillow.
"""
import argparse
import pathlib

import numpy
from PIL import Image

COUNT, HEIGHT, WIDTH = 44, 375, 500


def noise(random, exponent):
    """Of deviation 1; its amplitudes fall as frequency ** -exponent."""
    rows, columns = numpy.fft.fftfreq(HEIGHT)[:, None], numpy.fft.fftfreq(WIDTH)[None]
    frequency = numpy.sqrt(rows * rows + columns * columns)
    frequency[0, 0] = 1
    spectrum = numpy.fft.fft2(random.normal(size=(HEIGHT, WIDTH))) / frequency ** exponent
    values = numpy.fft.ifft2(spectrum).real
    return values / values.std()


def picture(random):
    luma = noise(random, 1.45)
    channels = [120 + 48 * luma + 14 * noise(random, 1.8) for _ in range(3)]
    return Image.fromarray(numpy.clip(numpy.stack(channels, -1), 0, 255).astype(numpy.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    folder = parser.parse_args().folder / "all"
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(0)
    for number in range(COUNT):
        picture(random).save(folder / f"{number:03d}.jpg", quality=92, subsampling=2)


if __name__ == "__main__":
    main()
