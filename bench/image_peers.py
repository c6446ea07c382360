#!/usr/bin/env python3
"""Microseconds a picture on one core, from the file to a normalized [3,224,224]: read, decode,
antialiased resize and crop to 224, (x / 255 - mean) / std.

Runs with a Python that has Pillow, torchvision, tensorflow.

Each that is there is timed stage by stage, as `ridge data images:FOLDER,size=224,normalize=imagenet
--bench` times ours: run the two in turn, since times of one sitting compare and those of two do not.
FOLDER/all holds the pictures (bench/make_photos.py).
"""
import argparse
import io
import os
import pathlib
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

ROUNDS, SIDE = 15, 224
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def least_us(work, count):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) / count * 1e6


def report(name, paths, stages):
    """`stages`: functions, each of what the one before gave; the first takes a path."""
    text, values = "", paths
    for stage, function in stages:
        text += f"  {stage} {least_us(lambda: [function(x) for x in values], len(paths)):6.0f}"
        values = [function(value) for value in values]

    def whole(value):
        for _, function in stages:
            value = function(value)
        return value

    together = least_us(lambda: [whole(path) for path in paths], len(paths))
    print(f"{name:<12}{text}  all {together:6.0f}")


def scaled_sides(width, height):
    scale = SIDE / min(width, height)
    return [max(SIDE, int(side * scale)) for side in (width, height)]


def time_pillow(paths):
    import numpy
    from PIL import Image
    mean, deviation = numpy.float32(MEAN), numpy.float32(DEVIATION)

    def resize(image):
        scaled = image.resize(scaled_sides(*image.size), Image.BILINEAR)
        left, top = ((side - SIDE) // 2 for side in scaled.size)
        return scaled.crop((left, top, left + SIDE, top + SIDE))

    def normalize(image):
        values = (numpy.asarray(image).astype(numpy.float32) / 255 - mean) / deviation
        return numpy.ascontiguousarray(values.transpose(2, 0, 1))

    report("Pillow", paths, [
        ("read", lambda path: path.read_bytes()),
        ("decode", lambda data: Image.open(io.BytesIO(data)).convert("RGB")),
        ("resize", resize), ("normalize", normalize)])


def time_torchvision(paths):
    import torch
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms.v2 import functional
    torch.set_num_threads(1)

    def resize(image):
        return functional.center_crop(functional.resize(image, SIDE, antialias=True), SIDE)

    report("torchvision", paths, [
        ("read", lambda path: read_file(str(path))),
        ("decode", lambda data: decode_image(data, ImageReadMode.RGB)), ("resize", resize),
        ("normalize", lambda image: functional.normalize(image.float().div_(255), MEAN, DEVIATION))])


def time_tf_data(paths):
    """As a tf.data pipeline on one thread: its graph is timed whole, and with fewer stages."""
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    names = [str(path) for path in paths]
    mean, deviation = tf.constant(MEAN), tf.constant(DEVIATION)

    def resize(image):
        shape = tf.shape(image)
        scale = SIDE / tf.cast(tf.reduce_min(shape[:2]), tf.float32)
        sides = tf.maximum(SIDE, tf.cast(tf.cast(shape[:2], tf.float32) * scale, tf.int32))
        scaled = tf.image.resize(image, sides, antialias=True)
        top, left = (sides[0] - SIDE) // 2, (sides[1] - SIDE) // 2
        return scaled[top:top + SIDE, left:left + SIDE]

    def normalize(values):
        return tf.transpose((values / 255 - mean) / deviation, [2, 0, 1])

    stages = [("read", tf.io.read_file),
              ("decode", lambda data: tf.io.decode_jpeg(data, channels=3,
                                                        dct_method="INTEGER_ACCURATE")),
              ("resize", resize), ("normalize", normalize)]
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    text, before = "", 0
    data = tf.data.Dataset.from_tensor_slices(names)
    for stage, function in stages:
        data = data.map(function)
        pipeline = data.with_options(options)
        taken = least_us(lambda: [None for _ in pipeline], len(paths))
        text += f"  {stage} {max(0, taken - before):6.0f}"
        before = taken
    print(f"{'tf.data':<12}{text}  all {before:6.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    paths = sorted((parser.parse_args().folder / "all").iterdir())
    for work in (time_pillow, time_torchvision, time_tf_data):
        try:
            work(paths)
        except ImportError as missing:
            print(f"{missing.name} is not there")


if __name__ == "__main__":
    main()
