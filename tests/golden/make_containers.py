#!/usr/bin/env python3
"""Writes tests/golden/containers/: records and archives by the writers that people use.

usage: make_containers.py tfrecord     needs tensorflow
       make_containers.py tar          needs webdataset, numpy and Pillow

The numbers are formulas of the sample's number, which tests/e2e/cli_containers.py has too.
"""
import io
import pathlib
import sys

OUT = pathlib.Path(__file__).parent / "containers"
SAMPLES = 12
SIZES = [("train-00000-of-00002", 0, 5), ("train-00001-of-00002", 5, 9), ("test-00000-of-00001", 9, 12)]


def features(k):
    return [k + i / 8 for i in range(4)]


def label(k):
    return k * 5 % 3


def pixels(k):
    return bytes((k * 31 + i * 7) % 256 for i in range(6 * 5 * 3))


def tfrecord():
    import tensorflow as tf

    def feature(**kind):
        return tf.train.Feature(**kind)

    def example(k):
        return tf.train.Example(features=tf.train.Features(feature={
            "features": feature(float_list=tf.train.FloatList(value=features(k))),
            "label": feature(int64_list=tf.train.Int64List(value=[label(k)])),
            "name": feature(bytes_list=tf.train.BytesList(value=[b"sample %d" % k])),
        })).SerializeToString()

    for name, begin, end in SIZES:
        with tf.io.TFRecordWriter(str(OUT / f"{name}.tfrecord")) as writer:
            for k in range(begin, end):
                writer.write(example(k))
    with tf.io.TFRecordWriter(str(OUT / "all.tfrecord.gz"), options="GZIP") as writer:
        for k in range(SAMPLES):
            writer.write(example(k))
    with tf.io.TFRecordWriter(str(OUT / "pictures.tfrecord")) as writer:
        for k in range(SAMPLES):
            picture = tf.io.encode_png(tf.reshape(tf.io.decode_raw(pixels(k), tf.uint8), (6, 5, 3)))
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "image/encoded": feature(bytes_list=tf.train.BytesList(value=[picture.numpy()])),
                "image/class/label": feature(int64_list=tf.train.Int64List(value=[label(k)])),
            })).SerializeToString())


def tar():
    import numpy
    import webdataset
    from PIL import Image

    def png(k):
        file = io.BytesIO()
        Image.frombytes("RGB", (5, 6), pixels(k)).save(file, "png")
        return file.getvalue()

    for shard, (begin, end) in enumerate([(0, 2), (2, 4)]):
        with webdataset.TarWriter(str(OUT / f"photos-{shard:03d}.tar")) as writer:
            for k in range(begin, end):
                writer.write({"__key__": f"photos/{k:04d}", "png": png(k), "cls": label(k),
                              "json": {"kind": "cat dog emu".split()[label(k)]}})
    with webdataset.TarWriter(str(OUT / "arrays.tar.gz")) as writer:
        for k in range(SAMPLES):
            writer.write({"__key__": f"{k}", "features.npy": numpy.array(features(k), "float32"),
                          "cls": label(k)})


if __name__ == "__main__":
    OUT.mkdir(exist_ok=True)
    {"tfrecord": tfrecord, "tar": tar}[sys.argv[1]]()
