"""Paths that are not UTF-8, and a disk that fails while it is read: each text names file and byte."""
import io
import json
import os
import struct
import subprocess
import unittest
import wave

from PIL import Image

from _ridge import SOURCE, RidgeTest

FOLDER = os.fsdecode(b"caf\xe9")  # Latin-1
FILE = os.fsdecode(b"\xff1")
BYTES = {"errors": "surrogateescape"}
TEXT = ["gpt:layers=1,hidden=16,heads=2", "--batch", "2"]
TABLE = ["mlp:hidden=8", "--batch", "4"]


def picture(shade):
    file = io.BytesIO()
    Image.effect_noise((28, 28), 10 + shade).save(file, "PNG")
    return file.getvalue()


def sound(pitch):
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        frames = [i * pitch % 9000 for i in range(8000)]
        out.writeframes(struct.pack("<8000h", *frames))
    return file.getvalue()


class BadFiles(RidgeTest):
    def put(self, path, content):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        self.write(path, content)

    def put_classes(self, folder, name, make):
        for label in (FOLDER, "dog"):
            for i in range(4):
                self.put(f"{folder}/{label}/{i}.{name}", make(i))
            self.put(f"{folder}/{label}/{FILE}.{name}", make(5))

    def put_table(self, path):
        rows = "".join(f"{i},{i * 2 % 7},{'ab'[i % 2]}\n" for i in range(60))
        self.put(path, "x,y,label\n" + rows)


class PathsOfAnyBytes(BadFiles):
    def check_folder(self, data, emptied):
        self.ok("train", "cnn", "--data", data, "--batch", "4", "--epochs", "1", "--out", "run",
                "-q", **BYTES)
        json.loads(self.ok("data", data, "--json"))  # decoded strictly
        json.loads(self.ok("eval", "run", "--data", data, "--json"))
        self.write(emptied, "")
        self.fails(4, emptied + ": ", "train", "cnn", "--data", data, "--batch", "4", "-q", **BYTES)
        self.ok("train", "cnn", "--data", data, "--batch", "4", "--epochs", "1", "--out", "less",
                "--bad-records", "skip:1", "-q", **BYTES)
        with open(self.path("less/bad_records.jsonl"), encoding="utf-8") as file:
            self.assertEqual(len([json.loads(line) for line in file]), 1)

    def test_pictures(self):
        self.put_classes("photos", "png", picture)
        self.check_folder("images:photos,size=28", f"photos/dog/{FILE}.png")

    def test_sounds(self):
        self.put_classes("sounds", "wav", lambda i: sound(30 + i))
        self.check_folder("audio:sounds,seconds=1", f"sounds/dog/{FILE}.wav")

    def check_resumed(self, data, *words, length):
        """A run in two parts ends with the bits of one in one part."""
        flag, half, whole = length
        self.ok("train", *words, flag, half, "--data", data, "--out", "cut", "-q", **BYTES)
        self.ok("train", "--resume", "cut", flag, whole, "-q", **BYTES)
        self.ok("train", *words, flag, whole, "--data", data, "--out", "whole", "-q", **BYTES)
        hashes = {self.read_json(f"{run}/summary.json")["parameters_sha256"]
                  for run in ("cut", "whole")}
        self.assertEqual(len(hashes), 1)

    def test_a_run_on_texts_is_resumed(self):
        self.put(f"{FOLDER}/{FILE}.txt", "a line of some words\n" * 500)
        self.check_resumed(f"text:{FOLDER},tokenizer=bytes,length=32", *TEXT,
                           length=("--steps", "2", "4"))

    def test_a_run_on_a_table_is_resumed(self):
        self.put_table(f"{FOLDER}.csv")
        self.check_resumed(f"csv:{FOLDER}.csv", *TABLE, length=("--epochs", "1", "2"))

    def test_a_bad_line_is_named(self):
        self.put_table(f"{FOLDER}.csv")
        with open(self.path(f"{FOLDER}.csv"), "a", encoding="utf-8") as file:
            file.write("1;2\n")
        self.refused(4, f"{FOLDER}.csv:62: has 1 cells, the first line has 3", "train", *TABLE,
                     "--data", f"csv:{FOLDER}.csv", **BYTES)


class FailingDisk(BadFiles):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shim = os.path.join(os.path.dirname(os.environ["RIDGE"]), "failing_disk.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", cls.shim,
                        f"{SOURCE}/tests/e2e/failing_disk.c", "-ldl"], check=True)

    def check(self, text, *words, at=0, timeout=120):
        environment = {"LD_PRELOAD": self.shim, "FAIL_AT": str(at)}
        self.fails(4, text + ": Input/output error", "train", *words, env=environment,
                   timeout=timeout)

    def test_pictures(self):
        self.put_classes("photos", "png", picture)
        self.put("photos/dog/failing.png", picture(9))
        words = ["cnn", "--data", "images:photos,size=28", "--batch", "4", "-q"]
        self.check("photos/dog/failing.png: cannot be read at byte 0", *words)
        self.ok("train", *words, "--bad-records", "skip:1", "--out", "run",
                env={"LD_PRELOAD": self.shim})
        with open(self.path("run/bad_records.jsonl"), encoding="utf-8") as file:
            self.assertIn("Input/output error", file.read())

    def test_sounds(self):
        self.put_classes("sounds", "wav", lambda i: sound(30 + i))
        self.put("sounds/dog/failing.wav", sound(7))
        words = ["cnn", "--data", "audio:sounds,seconds=1", "--batch", "4", "-q"]
        self.check("sounds/dog/failing.wav: cannot be read at byte 0", *words)

    def test_records(self):
        with open(f"{SOURCE}/tests/golden/containers/pictures.tfrecord", "rb") as file:
            self.write("failing.tfrecord", file.read())
        self.check("failing.tfrecord: cannot be read at byte 0", "cnn", "--data",
                   "tfrecord:failing.tfrecord", "--batch", "2", "-q")

    def test_tables(self):
        self.put_table("./failing.csv")
        size = os.path.getsize(self.path("failing.csv"))
        self.check(f"failing.csv: cannot be read at byte 0 of {size}", *TABLE, "--data",
                   "csv:failing.csv")

    def test_texts(self):
        self.write("failing.txt", "a line of some words\n" * 500)
        self.check("failing.txt: cannot be read at byte 0 of 10500", *TEXT, "--data",
                   "text:failing.txt,tokenizer=bytes,length=32")

    def test_json_lines(self):
        self.write("failing.jsonl", '{"text": "a line of some words"}\n' * 500)
        self.check("failing.jsonl: cannot be read at byte 0 of 16500", *TEXT, "--data",
                   "jsonl:failing.jsonl,tokenizer=bytes,length=32")


if __name__ == "__main__":
    unittest.main()
