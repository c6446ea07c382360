#!/usr/bin/env python3
"""Writes tests/golden/pictures/transforms.txt: what torchvision makes of source() of make_pictures.py.

usage: PYTHON tests/golden/make_transforms.py     with a Python that has torchvision and Pillow

A line a case: NAME W H CHANNELS NUMBERS... RESULT.  The result is the SHA-256 of the bytes, or the
bytes in hexadecimal for `blur`, which is compared within a level.
"""
import random

import numpy as np
import torch
from torchvision import transforms
from torchvision.transforms import functional
from torchvision.transforms.autoaugment import _apply_op

from make_pictures import OUT, picture, sha

SIZES = [(41, 29, 3), (64, 64, 3), (7, 50, 3), (33, 20, 1), (2, 2, 3), (1, 1, 3)]
OPERATIONS = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness",
              "Color", "Contrast", "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize"]


def crop(image, padding, top, left):
    return functional.crop(functional.pad(image, padding), top, left, image.height, image.width)


def erase(image, top, left, height, width, red, green, blue):
    values = torch.tensor([red, green, blue][:len(image.getbands())], dtype=torch.uint8)
    tensor = functional.pil_to_tensor(image)
    return functional.to_pil_image(
        functional.erase(tensor, top, left, height, width, values[:, None, None]))


def resized_crop(image, top, left, height, width, out_height, out_width):
    return functional.resized_crop(image, top, left, height, width, [out_height, out_width])


def cases(draw, width, height):
    yield "flip", functional.hflip
    yield "vflip", functional.vflip
    for factor in (0, 0.37, 1, 1.6, 4.25):
        yield "brightness", functional.adjust_brightness, factor
        yield "contrast", functional.adjust_contrast, factor
        yield "saturation", functional.adjust_saturation, factor
        yield "sharpness", functional.adjust_sharpness, factor
    for factor in (-0.5, -0.31, 0, 0.05, 0.5):
        yield "hue", functional.adjust_hue, factor
    yield "grey", lambda image: functional.to_grayscale(image, len(image.getbands()))
    for degrees in (-45, 3.25, 90, 171.5):
        yield "rotate", functional.rotate, degrees
    for _ in range(4):
        yield "crop", crop, 4, draw.randrange(9), draw.randrange(9)
        top, left = draw.randrange(height), draw.randrange(width)
        box = top, left, draw.randint(1, height - top), draw.randint(1, width - left)
        yield "erase", erase, *box, 10, 120, 250
        yield "box", resized_crop, *box, draw.choice([5, 32]), draw.choice([5, 32])


def operation(image, name, magnitude, negative):
    numbers, signed = transforms.RandAugment()._augmentation_space(
        31, (image.height, image.width))[OPERATIONS[name]]
    value = float(numbers[magnitude].item()) if numbers.ndim else 0.0
    return _apply_op(image, OPERATIONS[name], -value if signed and negative else value,
                     transforms.InterpolationMode.NEAREST, None)


def line(name, size, numbers, result):
    return " ".join([name, *map(str, [*size, *numbers]), result])


def main():
    draw = random.Random(3)
    lines = []
    for width, height, channels in SIZES:
        size = width, height, channels
        image = picture(height, width, channels)
        for name, function, *numbers in cases(draw, width, height):
            lines.append(line(name, size, numbers, sha(function(image, *numbers))))
        for index in range(len(OPERATIONS)):
            for magnitude, negative in ((9, 0), (draw.randrange(31), 1), (30, 0)):
                numbers = index, magnitude, negative
                lines.append(line("operation", size, numbers, sha(operation(image, *numbers))))
    for width, height, channels in ((13, 9, 3), (9, 13, 1)):
        image = picture(height, width, channels)
        for size, sigma in ((3, 0.1), (5, 1.3), (9, 2.0), (15, 5.0)):
            blurred = np.asarray(functional.gaussian_blur(image, size, sigma))
            lines.append(line("blur", (width, height, channels), (size, sigma),
                              blurred.tobytes().hex()))
    (OUT / "transforms.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
