"""What a plan says its inputs take (slots, data, buffers and threads) is what the run measured."""
import io
import json
import os
import random
import struct
import unittest
import wave

import numpy as np
from PIL import Image

from _ridge import RidgeTest

CLOSE = 0.03  # of what is measured
WORKERS = (1, 2, 4)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def example(picture, label):
    """A tf.train.Example of a picture and its label, as a record."""
    features = {b"image": message(1, message(1, picture)),
                b"label": message(3, message(1, varint(label)))}
    entries = [message(1, message(1, key) + message(2, value)) for key, value in features.items()]
    data = message(1, b"".join(entries))
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def jpeg(draw, side):
    file = io.BytesIO()
    Image.fromarray(draw.integers(0, 255, side, np.uint8)).save(file, "JPEG", quality=30)
    return file.getvalue()


class Inputs(RidgeTest):
    def check(self, data, *words, workers=WORKERS, out="run"):
        for count in workers:
            folder = f"{out}{count}"
            text = self.ok("train", *words, "--data", data, "--steps", "6", "--threads", "1",
                           "--workers", str(count), "--out", folder)
            with open(self.path(f"{folder}/summary.json"), encoding="utf-8") as file:
                summary = json.load(file)
            planned = summary["planned"]["input_bytes"]
            measured = summary["measured"]["input_bytes"]
            self.assertRegex(text, r"inputs +[0-9.]+ [KM]iB")
            self.assertLess(abs(planned / measured - 1), CLOSE,
                            f"{data}, {count} workers: {planned} planned, {measured} measured")

    def test_pictures(self):
        draw = np.random.default_rng(1)
        for label in ("cat", "dog"):
            os.makedirs(self.path(f"photos/{label}"))
            for i in range(40):
                self.write(f"photos/{label}/{i}.jpg", jpeg(draw, (900, 1200)))
        self.check("images:photos,size=28", "cnn", "--batch", "16")

    def test_pictures_in_memory(self):
        draw = np.random.default_rng(6)
        for label in ("cat", "dog"):
            os.makedirs(self.path(f"photos/{label}"))
            for i in range(12):
                self.write(f"photos/{label}/{i}.jpg", jpeg(draw, (300, 400)))
        for out, cache in ("whole", "memory"), ("part", "memory:1MB"):
            self.check("images:photos", "resnet18", "--batch", "2", "--cache", cache,
                       workers=(1, 3), out=out)

    def test_records(self):
        draw = np.random.default_rng(2)
        pictures = [jpeg(draw, (900, 1200)) for _ in range(2)]
        self.write("all.tfrecord", b"".join(example(pictures[i % 2], i % 2) for i in range(8)))
        self.check("tfrecord:all.tfrecord,size=28", "cnn", "--batch", "4")

    def test_tables(self):
        draw = random.Random(3)
        rows = [f"{draw.random():.4f},{draw.random():.4f},{draw.choice('ab')}\n"
                for _ in range(60000)]
        self.write("t.csv", "x,y,label\n" + "".join(rows))
        self.check("csv:t.csv", "mlp:hidden=8", "--batch", "16")

    def test_texts(self):
        lines = [f"a line of some words, number {i}\n" for i in range(60000)]
        self.write("t.txt", "".join(lines))
        self.check("text:t.txt,tokenizer=bytes,length=32", "gpt:layers=1,hidden=16,heads=2",
                   "--batch", "16")

    def test_packed_texts(self):
        self.write("t.txt", "".join(f"a line of some words, number {i}\n" for i in range(60000)))
        self.check("text:t.txt,tokenizer=bytes,length=128,packing=on",
                   "gpt:layers=1,hidden=16,heads=2", "--batch", "16", workers=(1,))

    def test_sounds(self):
        draw = np.random.default_rng(4)
        for label in ("hum", "hiss"):
            os.makedirs(self.path(f"sounds/{label}"))
            for i in range(12):
                with wave.open(self.path(f"sounds/{label}/{i}.wav"), "wb") as file:
                    file.setnchannels(1)
                    file.setsampwidth(2)
                    file.setframerate(16000)
                    file.writeframes(draw.integers(-9000, 9000, 320000, np.int16).tobytes())
        self.check("audio:sounds,seconds=20", "cnn", "--batch", "4")

    def test_transcripts(self):
        draw = np.random.default_rng(4)
        lines = []
        for i in range(24):
            with wave.open(self.path(f"{i}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(16000)
                file.writeframes(draw.integers(-9000, 9000, 160000, np.int16).tobytes())
            lines.append(json.dumps({"path": f"{i}.wav", "text": f"number {i}"}) + "\n")
        self.write("all.jsonl", "".join(lines))
        self.check("transcripts:all.jsonl", "conformer_s:hidden=8,layers=1,heads=2", "--batch", "4")

    def test_clouds(self):
        draw = np.random.default_rng(5)
        for label in ("cone", "cube"):
            os.makedirs(self.path(f"clouds/{label}"))
            for i in range(12):
                np.save(self.path(f"clouds/{label}/{i}.npy"), draw.normal(size=(60000, 3)))
        self.check("points:clouds,points=64", "pointnet2:centers=16,neighbours=4", "--batch", "4")


if __name__ == "__main__":
    unittest.main()
