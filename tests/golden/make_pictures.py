#!/usr/bin/env python3
"""Writes tests/golden/pictures/: small pictures of every kind, and what Pillow makes of them.

usage: build/deps/test-venv/bin/python tests/golden/make_pictures.py

expected.txt has a line a case, the last word is the SHA-256 of Pillow's bytes:
  decode FILE WIDTH HEIGHT SHA             convert("RGB")
  luma FILE SHA                            convert("L")
  resize W H CHANNELS FILTER X0 Y0 X1 Y1 OW OH SHA     resize((OW, OH), FILTER, box) of source()
  fit W H CHANNELS FILTER OH OW FIT SHA    torchvision's Resize and CenterCrop of source(), or
                                           resize((OW, OH)) when FIT is stretch
The JPEG and WebP files are written by Pillow's libraries; PNGs of all depths by this script.
"""
import hashlib
import io
import pathlib
import random
import struct
import zlib

import numpy as np
from PIL import Image

OUT = pathlib.Path(__file__).parent / "pictures"
FILTERS = {"bilinear": Image.BILINEAR, "nearest": Image.NEAREST, "bicubic": Image.BICUBIC}
random_numbers = np.random.default_rng(1)


def scene(height, width, channels):
    """Waves, a plain patch and noise."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 90 * np.sin(x / 7 + k) + 50 * np.cos(y / 5.3 * (k + 1)) for k in range(channels)]
    pixels = np.stack(waves, -1) + random_numbers.normal(0, 8, (height, width, channels))
    pixels[height // 3:height // 2, width // 4:width // 2] = 40
    return np.clip(pixels, 0, 255).astype(np.uint8)


def source(height, width, channels):
    """The picture that the test makes too: a hashed index on gradients."""
    i = np.arange(height * width * channels, dtype=np.uint64)
    noise = ((i * 2654435761) % 2**32) >> 26
    pixel, channel = i // channels, i % channels
    values = (noise + pixel % width * 4 + pixel // width * 3 + channel * 85) % 256
    return values.astype(np.uint8).reshape(height, width, channels)


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_rows(values, depth):
    for row in values:
        row = row.reshape(-1)
        if depth >= 8:
            packed = row.astype(">u2" if depth == 16 else np.uint8).tobytes()
        else:
            bits = (row[:, None] >> np.arange(depth - 1, -1, -1)) & 1
            packed = np.packbits(bits.reshape(-1).astype(np.uint8)).tobytes()
        yield b"\0" + packed


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
         (1, 0, 2, 1)]


def png(height, width, color, depth, interlace, transparent):
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    values = random_numbers.integers(0, 1 << depth, (height, width, channels))
    parts = [values[y::dy, x::dx] for y, x, dy, dx in ADAM7] if interlace else [values]
    rows = b"".join(row for part in parts if part.size for row in png_rows(part, depth))
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    out = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header)
    if color == 3:
        palette = random_numbers.integers(0, 256, 3 << depth).astype(np.uint8)
        out += png_chunk(b"PLTE", palette.tobytes())
    if transparent:
        out += png_chunk(b"tRNS", {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: b"\0\x80"}[color])
    out += png_chunk(b"tEXt", b"Comment\0skipped")
    return out + png_chunk(b"IDAT", zlib.compress(rows, 9)) + png_chunk(b"IEND", b"")


def encoded(image, **options):
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def jpegs():
    color = Image.fromarray(scene(47, 61, 3))
    for name, options in {"444": {"subsampling": 0}, "422": {"subsampling": 1},
                          "420": {"subsampling": 2}, "progressive": {"progressive": True},
                          "restarts": {"restart_marker_blocks": 2},
                          "rgb": {"keep_rgb": True}}.items():
        yield f"{name}.jpg", encoded(color, format="JPEG", quality=90, **options)
    yield "grey.jpg", encoded(color.convert("L"), format="JPEG", quality=90)
    cmyk = Image.frombytes("CMYK", (61, 47), scene(47, 61, 4).tobytes())
    yield "cmyk.jpg", encoded(cmyk, format="JPEG", quality=90)
    yield "dot.jpg", encoded(color.resize((1, 1)), format="JPEG", quality=90)


def webps():
    color, alpha = Image.fromarray(scene(47, 61, 3)), Image.fromarray(scene(17, 23, 4))
    yield "lossy.webp", encoded(color, format="WEBP", quality=80)
    yield "lossless.webp", encoded(color.crop((0, 0, 23, 17)), format="WEBP", lossless=True)
    yield "alpha.webp", encoded(alpha, format="WEBP", quality=80)
    yield "exact.webp", encoded(alpha, format="WEBP", lossless=True, exact=True)


def pngs():
    for color, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16),
                          6: (8, 16)}.items():
        for depth in depths:
            for interlace in (0, 1):
                kind = f"{color}-{depth}" + ("-interlaced" if interlace else "")
                yield f"{kind}.png", png(11, 9, color, depth, interlace, False)
            if color in (0, 2, 3):
                yield f"{color}-{depth}-trns.png", png(11, 9, color, depth, 0, True)


def sha(image):
    return hashlib.sha256(np.asarray(image).tobytes()).hexdigest()


def decode_cases(name, data):
    (OUT / name).write_bytes(data)
    image = Image.open(io.BytesIO(data))
    yield f"decode {name} {image.width} {image.height} {sha(image.convert('RGB'))}"
    yield f"luma {name} {sha(image.convert('L'))}"


def picture(height, width, channels):
    pixels = source(height, width, channels)
    return Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])


def resize_case(width, height, channels, name, box, size):
    image = picture(height, width, channels).resize(size, FILTERS[name], box=box)
    box = " ".join(f"{corner:.9g}" for corner in box)
    return f"resize {width} {height} {channels} {name} {box} {size[0]} {size[1]} {sha(image)}"


def fit_case(width, height, channels, name, size, fit):
    image = picture(height, width, channels)
    if fit == "stretch":
        image = image.resize((size, size), FILTERS[name])
    else:  # torchvision.transforms.functional: resize(size), center_crop(size)
        long_side = int(size * max(width, height) / min(width, height))
        scaled = (size, long_side) if width <= height else (long_side, size)
        image = image.resize(scaled, FILTERS[name])
        left, top = (int(round((side - size) / 2.0)) for side in scaled)
        image = image.crop((left, top, left + size, top + size))
    return f"fit {width} {height} {channels} {name} {size} {size} {fit} {sha(image)}"


def resize_cases():
    draw = random.Random(2)
    sides = [1, 2, 3, 5, 16, 33, 100, 224, 301]
    for case in range(160):
        width, height = draw.choice(sides), draw.choice(sides)
        size = draw.choice([*sides, width]), draw.choice([*sides, height])
        box = (0, 0, width, height)
        if case % 3 == 1:  # whole pixels
            x, y = draw.randrange(width), draw.randrange(height)
            box = (x, y, draw.randint(x + 1, width), draw.randint(y + 1, height))
        if case % 3 == 2:
            left, right = sorted(draw.uniform(0, width) for _ in "01")
            top, bottom = sorted(draw.uniform(0, height) for _ in "01")
            box = tuple(float(np.float32(v)) for v in (left, top, right, bottom))
        name = "nearest" if case % 8 == 7 else "bilinear"
        yield resize_case(width, height, draw.choice([1, 3, 3]), name, box, size)
    yield resize_case(500, 375, 3, "bilinear", (0, 0, 500, 375), (224, 224))
    yield resize_case(3, 2000, 3, "bilinear", (0, 0, 3, 2000), (2, 4))  # rows first


def fit_cases():
    for width, height in [(500, 375), (375, 500), (100, 301), (1, 1), (7, 300), (224, 224),
                          (28, 29)]:
        for size in (28, 32, 224):
            for channels, name, fit in [(3, "bilinear", "crop"), (1, "bilinear", "crop"),
                                        (3, "bilinear", "stretch"), (3, "nearest", "crop")]:
                yield fit_case(width, height, channels, name, size, fit)


def bicubic_cases():
    draw = random.Random(3)
    sides = [1, 2, 3, 5, 16, 33, 100, 224, 301]
    for case in range(80):
        width, height = draw.choice(sides), draw.choice(sides)
        size = draw.choice([*sides, width]), draw.choice([*sides, height])
        box = (0, 0, width, height)
        if case % 2 == 1:
            left, right = sorted(draw.uniform(0, width) for _ in "01")
            top, bottom = sorted(draw.uniform(0, height) for _ in "01")
            box = tuple(float(np.float32(v)) for v in (left, top, right, bottom))
        yield resize_case(width, height, draw.choice([1, 3, 3]), "bicubic", box, size)
    for size in (28, 224):
        for channels, fit in [(3, "crop"), (1, "crop"), (3, "stretch")]:
            yield fit_case(500, 375, channels, "bicubic", size, fit)


def main():
    OUT.mkdir(exist_ok=True)
    lines = []
    for name, data in [*jpegs(), *pngs(), *webps()]:
        lines += decode_cases(name, data)
    lines += [*resize_cases(), *fit_cases(), *bicubic_cases()]
    (OUT / "expected.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
