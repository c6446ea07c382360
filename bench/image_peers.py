#!/usr/bin/env python3
"""Microseconds a picture on one core for Pillow and torchvision: decode, resize and crop to 224; of
torchvision also x / 255 and normalize.

usage: PYTHON bench/image_peers.py FOLDER     with a Python that has Pillow, or torchvision too

Run it and `image_bench FOLDER` in turn: times of one sitting compare, those of two do not.
"""
import io
import pathlib
import sys
import time

ROUNDS, SIDE = 15, 224


def least_us(work, count):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) / count * 1e6


def report(name, decode, resize, files):
    pictures = [decode(file) for file in files]
    decoded = least_us(lambda: [decode(file) for file in files], len(files))
    resized = least_us(lambda: [resize(picture) for picture in pictures], len(files))
    print(f"{name:<12} decode {decoded:7.0f}  resize {resized:7.0f}  "
          f"together {decoded + resized:7.0f}")


def time_pillow(files):
    from PIL import Image

    def resize(image):
        scale = SIDE / min(image.size)
        scaled = image.resize([max(SIDE, int(side * scale)) for side in image.size], Image.BILINEAR)
        left, top = ((side - SIDE) // 2 for side in scaled.size)
        return scaled.crop((left, top, left + SIDE, top + SIDE))

    report("Pillow", lambda file: Image.open(io.BytesIO(file)).convert("RGB"), resize, files)


def time_torchvision(files):
    try:
        import torch
        from torchvision.io import ImageReadMode, decode_image
        from torchvision.transforms.v2 import functional
    except ImportError:
        print("torchvision  is not there")
        return
    torch.set_num_threads(1)
    tensors = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files]

    def resize(image):
        return functional.center_crop(functional.resize(image, SIDE, antialias=True), SIDE)

    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    small = [resize(decode_image(tensor, ImageReadMode.RGB)) for tensor in tensors]
    normalized = least_us(lambda: [functional.normalize(picture.float().div_(255), mean, deviation)
                                   for picture in small], len(small))
    print(f"torchvision  normalize {normalized:7.0f}")
    report("torchvision", lambda file: decode_image(file, ImageReadMode.RGB), resize, tensors)


def main():
    folder = pathlib.Path(sys.argv[1])
    files = [path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()]
    time_pillow(files)
    time_torchvision(files)


if __name__ == "__main__":
    main()
