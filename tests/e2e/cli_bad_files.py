"""Paths that are not UTF-8, a disk that fails while it is read, files that change in between: each
text names file and byte."""
import io
import json
import os
import shutil
import struct
import subprocess
import tarfile
import time
import unittest
import wave

from PIL import Image

from _ridge import SOURCE, RidgeTest, build_failing_disk, write_idx_folder, write_npz

FOLDER = os.fsdecode(b"caf\xe9")  # Latin-1
FILE = os.fsdecode(b"\xff1")
BYTES = {"errors": "surrogateescape"}
TEXT = ["gpt:layers=1,hidden=16,heads=2", "--batch", "2"]
TABLE = ["mlp:hidden=8", "--batch", "4"]


def picture(shade, levels=256, **options):
    file = io.BytesIO()
    noise = Image.effect_noise((28, 28), 10 + shade)
    noise.point(lambda level: level % levels).save(file, "PNG", **options)
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


def archive(shade=20):
    """A tar of WebDataset: pictures and their classes."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for i in range(12):
            for suffix, content in (("png", picture(shade + i)), ("cls", str(i % 2).encode())):
                member = tarfile.TarInfo(f"{i:04}.{suffix}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
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


class HostilePictures(BadFiles):
    def check(self, suffix, content, reason):
        self.put_classes("photos", "png", picture)
        self.put(f"photos/dog/bad.{suffix}", content)
        self.refused(4, f"photos/dog/bad.{suffix}: {reason}", "train", "cnn", "--data",
                     "images:photos,size=28", "--batch", "4", "-q", **BYTES)

    def test_a_text_chunk_of_two_gigabytes(self):
        whole = picture(0)
        chunk = struct.pack(">I", 0x7FFFFFF0) + b"iTXt" + b"x" * 200
        self.check("png", whole[:33] + chunk + whole[33:],
                   "its PNG data is damaged: iTXt: chunk data is too large")

    def test_animations(self):
        frames = [Image.effect_noise((28, 28), 10 + i).convert("RGB") for i in range(3)]
        for kind, suffix, reason in (
                ("WEBP", "webp", "is an animation, a single picture is needed"),
                ("GIF", "png", "is no JPEG, PNG or WebP file: it begins with 47 49 46 38")):
            with self.subTest(kind):
                file = io.BytesIO()
                frames[0].save(file, kind, save_all=True, append_images=frames[1:])
                self.check(suffix, file.getvalue(), reason)
                os.remove(self.path(f"photos/dog/bad.{suffix}"))

    def test_a_file_that_is_cut_off(self):
        self.check("png", picture(0)[:300], "its PNG data is damaged: the file is cut off")


class FailingDisk(BadFiles):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shim = build_failing_disk()

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

    def test_archives(self):
        self.write("failing.tar", archive())
        words = ["cnn", "--data", "tar:failing.tar", "--batch", "2", "-q"]
        self.check("failing.tar: cannot be read at byte 0", *words)

    def test_arrays(self):
        arrays = {"x": ((16, 2), [i % 7 for i in range(32)]), "label": ((16,), [0, 1] * 8)}
        write_npz(self.path("failing.npz"), arrays)
        size = os.path.getsize(self.path("failing.npz"))
        self.check(f"failing.npz: its zip directory: cannot be read at byte 0 of {size}", *TABLE,
                   "--data", "npz:failing.npz")

    def test_idx_files(self):
        write_idx_folder(self.path("failing"))
        size = os.path.getsize(self.path("failing/train-images-idx3-ubyte"))
        words = ["cnn", "--data", "idx:failing", "--batch", "2", "-q"]
        for at, byte in (0, 0), (1000, 16):
            self.check(f"failing/train-images-idx3-ubyte: cannot be read at byte {byte} of "
                       f"{size}", *words, at=at)


class ReplacedFiles(BadFiles):
    """Files that change while a run reads them."""

    def running(self, *words):
        """A run that has opened its data and takes steps; its folder is `run`."""
        shutil.rmtree(self.path("run"), ignore_errors=True)
        process = self.start("train", *words, "--out", "run")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while process.poll() is None and not os.path.exists(self.path("run/plan.json")):
            time.sleep(0.01)
        self.assertIsNone(process.poll())
        return process

    def replace(self, path, content):
        self.write("new", content)
        os.replace(self.path("new"), self.path(path))

    def disguise(self, path, content):
        """Another file of as many bytes and the same time takes the place."""
        facts = os.stat(self.path(path))
        self.assertEqual(len(content), facts.st_size)
        self.write("new", content)
        os.utime(self.path("new"), ns=(facts.st_atime_ns, facts.st_mtime_ns))
        os.replace(self.path("new"), self.path(path))

    def stops(self, path, content, *words):
        """The run names the file that is another one."""
        self.stops_by(lambda: self.replace(path, content), path, "has changed", *words)

    def stops_by(self, change, path, reason, *words):
        process = self.running(*words, "--epochs", "1000000")
        change()
        text = process.communicate(timeout=300)[1]
        self.assertEqual(process.returncode, 4, text)
        self.assertIn(f"{path}: ", text)
        self.assertIn(reason, text)

    def goes_on(self, path, content, *words):
        """What was opened is in memory: the run ends as if nothing had happened."""
        with open(self.path(path), "rb") as file:
            before = file.read()
        process = self.running(*words)
        self.replace(path, content)
        self.assertEqual(process.wait(timeout=300), 0)
        self.replace(path, before)
        self.ok("train", *words, "--out", "whole", timeout=300)
        self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])

    def test_pictures(self):
        self.put_classes("photos", "png", picture)
        self.stops("photos/dog/2.png", picture(90), "cnn", "--data", "images:photos,size=28",
                   "--batch", "4", "-q")

    def test_sounds(self):
        self.put_classes("sounds", "wav", lambda i: sound(30 + i))
        self.stops("sounds/dog/2.wav", sound(9)[:9000], "cnn", "--data",
                   "audio:sounds,seconds=1", "--batch", "4", "-q")

    def test_clouds(self):
        for label in "ab":
            for i in range(4):
                points = "".join(f"{i} {n * i % 7} {n}\n" for n in range(40))
                self.put(f"clouds/{label}/{i}.off", f"OFF\n40 0 0\n{points}")
        self.stops("clouds/a/2.off", "OFF\n1 0 0\n1 2 3\n", "pointnet2:centers=8,neighbours=4",
                   "--data", "points:clouds,points=32", "--batch", "4", "-q")

    def test_masks(self):
        for i in range(8):
            self.put(f"shapes/images/{i}.png", picture(i))
            self.put(f"shapes/masks/{i}.png", picture(i, levels=3))
        self.stops("shapes/masks/2.png", picture(90), "unet:base=4", "--data",
                   "masks:shapes,size=32,classes=3", "--batch", "4", "-q")

    def test_archives(self):
        self.write("a.tar", archive())
        self.stops("a.tar", archive(30), "cnn", "--data", "tar:a.tar,size=28", "--batch", "2", "-q")

    def test_records(self):
        with open(f"{SOURCE}/tests/golden/containers/pictures.tfrecord", "rb") as file:
            records = file.read()
        self.write("a.tfrecord", records)
        self.stops("a.tfrecord", records + records, "cnn", "--data", "tfrecord:a.tfrecord",
                   "--batch", "2", "-q")

    def check_each_change(self, path, other, *words):
        with open(self.path(path), "rb") as file:
            before = file.read()
        path_of = self.path(path)
        self.stops_by(lambda: self.disguise(path, other), path, "has changed", *words)
        self.write(path, before)
        self.stops_by(lambda: os.truncate(path_of, len(before) // 2), path, "has changed", *words)
        self.write(path, before)
        self.stops_by(lambda: os.remove(path_of), path, "No such file", *words)

    def test_other_pictures_of_the_same_size_and_time(self):
        self.put_classes("photos", "png", lambda i: picture(i, compress_level=0))
        self.check_each_change("photos/dog/2.png", picture(90, compress_level=0), "cnn", "--data",
                               "images:photos,size=28", "--batch", "4", "-q")

    def test_other_sounds_of_the_same_size_and_time(self):
        self.put_classes("sounds", "wav", lambda i: sound(30 + i))
        self.check_each_change("sounds/dog/2.wav", sound(9), "cnn", "--data",
                               "audio:sounds,seconds=1", "--batch", "4", "-q")

    def test_other_archives_of_the_same_size_and_time(self):
        before, other = (archive(shade).ljust(1 << 16, b"\0") for shade in (20, 30))
        self.write("a.tar", before)
        self.check_each_change("a.tar", other, "cnn", "--data", "tar:a.tar,size=28", "--batch", "2",
                               "-q")

    def test_tables(self):
        self.put_table("./a.csv")
        self.goes_on("a.csv", "x,y,label\n1,2,a\n", *TABLE, "--data", "csv:a.csv", "--steps", "5000",
                     "-q")

    def test_texts(self):
        self.write("a.txt", "a line of some words\n" * 500)
        self.goes_on("a.txt", "no", *TEXT, "--data", "text:a.txt,tokenizer=bytes,length=32",
                     "--steps", "5000", "-q")

    def test_json_lines(self):
        self.write("a.jsonl", '{"text": "a line of some words"}\n' * 500)
        self.goes_on("a.jsonl", "no", *TEXT, "--data", "jsonl:a.jsonl,tokenizer=bytes,length=32",
                     "--steps", "5000", "-q")

    def test_arrays(self):
        rows = [i % 7 for i in range(64 * 784)]
        write_npz(self.path("a.npz"), {"image": ((64, 784), rows), "label": ((64,), [0, 1] * 32)})
        self.goes_on("a.npz", "no", *TABLE, "--data", "npz:a.npz", "--steps", "5000", "-q")

    def test_idx_files(self):
        write_idx_folder(self.path("digits"))
        self.goes_on("digits/train-images-idx3-ubyte", "no", *TABLE, "--data", "idx:digits",
                     "--steps", "5000", "-q")


if __name__ == "__main__":
    unittest.main()
