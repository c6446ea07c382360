"""--cache: the same bits with it and without it, files that changed, damage, refusals, removal."""
import json
import os
import shutil
import unittest

from _ridge import SOURCE, RidgeTest, build_failing_disk

PICTURES = os.path.join(SOURCE, "tests", "golden", "pictures")


class CacheTest(RidgeTest):
    def setUp(self):
        super().setUp()
        names = sorted(n for n in os.listdir(PICTURES) if n.endswith((".jpg", ".png")))[:12]
        for i, name in enumerate(names):
            os.makedirs(self.path(f"photos/{i % 2}"), exist_ok=True)
            shutil.copy(os.path.join(PICTURES, name), self.path(f"photos/{i % 2}/{name}"))
        self.first = self.path(f"photos/0/{names[0]}")
        self.runs = 0

    def train(self, *words, data="images:photos"):
        self.runs += 1
        out = f"run-{self.runs}"
        done = self.ridge("train", "cnn", "--data", data, "--batch", "4", "--epochs", "2", "--out",
                          out, "-q", *words, env={"XDG_CACHE_HOME": self.path("xdg")})
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read_json(f"{out}/summary.json")["parameters_sha256"], done.stderr


class DiskCache(CacheTest):
    def files(self):
        folder = self.path("xdg/ridge/samples")
        return sorted(os.path.join(folder, n) for n in os.listdir(folder))

    def test_runs_end_with_the_same_bits_with_a_cache_and_without(self):
        for words in ([], ["--validation", "0.25"], ["--augment", "flip,crop:4"]):
            wanted, _ = self.train(*words)
            for workers in ("1", "3"):
                got, notes = self.train(*words, "--cache", "disk", "--workers", workers)
                self.assertEqual(got, wanted, words)
        self.assertEqual(notes, "")
        self.assertEqual(len(self.files()), 1)

    def test_the_first_run_says_what_it_wrote(self):
        _, notes = self.train("--cache", "disk")
        self.assertIn(f"--cache disk: {self.files()[0]} holds the 12 samples of "
                      "images:photos, ", notes)

    def test_a_disk_that_fills_up_is_named_and_keeps_nothing(self):
        for at in "0", "4000":
            self.fails(1, "cannot be written: No space left on device", "train", "cnn", "--data",
                       "images:photos", "--cache", "disk", "-q",
                       env={"FULL_AT": at, "LD_PRELOAD": build_failing_disk(),
                            "XDG_CACHE_HOME": self.path("xdg")})
            self.assertEqual(self.files(), [])

    def test_another_file_or_size_is_another_cache(self):
        self.train("--cache", "disk")
        with open(self.first, "rb") as file:
            content = bytearray(file.read())
        times = os.stat(self.first)
        content[len(content) // 2] ^= 1
        with open(self.first, "wb") as file:
            file.write(content)
        os.utime(self.first, ns=(times.st_atime_ns, times.st_mtime_ns))
        try:
            self.train("--cache", "disk", "--bad-records", "skip:1")
        finally:
            self.assertEqual(len(self.files()), 2)
        self.train("--cache", "disk", "--bad-records", "skip:1", data="images:photos,resize=nearest")
        self.assertEqual(len(self.files()), 3)

    def test_a_damaged_cache_changes_no_bit_and_is_written_again(self):
        wanted, _ = self.train("--cache", "disk")
        path = self.files()[0]
        with open(path, "rb") as file:
            whole = file.read()
        for damaged in (whole[:-1], b"", whole[:40] + b"x" + whole[41:],
                        whole[:-5000] + b"damage" + whole[-4994:]):
            with open(path, "wb") as file:
                file.write(damaged)
            got, _ = self.train("--cache", "disk")
            self.assertEqual(got, wanted)
            self.train("--cache", "disk")
            with open(path, "rb") as file:
                self.assertEqual(file.read(), whole)

    def test_a_resumed_run_may_use_it(self):
        wanted, _ = self.train("--epochs", "4")
        self.train("--epochs", "2")
        self.ok("train", "--resume", f"run-{self.runs}", "--epochs", "4", "--cache", "disk", "-q",
                env={"XDG_CACHE_HOME": self.path("xdg")})
        summary = self.read_json(f"run-{self.runs}/summary.json")
        self.assertEqual(summary["parameters_sha256"], wanted)

    def test_where_it_brings_nothing(self):
        self.fails(2, "--augment rrc reads parts of the original pictures, which --cache disk does "
                   "not keep", "train", "cnn", "--data", "images:photos", "--augment", "rrc",
                   "--cache", "disk", "-q")
        self.write("t.csv", "x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
        done = self.ridge("train", "mlp:hidden=8", "--data", "t.csv", "--cache", "disk", "-q")
        self.assertIn("takes no time to decode, so nothing is cached", done.stderr)
        self.write("file", "")
        self.fails(1, "cannot", "train", "cnn", "--data", "images:photos", "--cache", "disk",
                   "-q", env={"XDG_CACHE_HOME": self.path("file")})

    def test_caches_are_listed_and_removed(self):
        env = {"XDG_CACHE_HOME": self.path("xdg")}
        folder = self.path("xdg/ridge/samples")
        self.assertEqual(self.ok("data", "--cache-list", env=env), f"{folder}: no caches\n")
        self.train("--cache", "disk")
        kept = os.path.join(folder, "notes.txt")
        self.write(kept, "mine")
        size = os.path.getsize(self.files()[0])
        found = json.loads(self.ok("data", "--cache-list", "--json", env=env))
        self.assertEqual([(c["samples"], c["bytes"]) for c in found["caches"]], [(12, size)])
        self.assertRegex(self.ok("data", "--cache-list", env=env),
                         r"[0-9a-f]{12}\.\.\. +12 +[0-9.]+ KiB +20\d\d-\d\d-\d\d\n"
                         rf"{folder}: 1 cache, [0-9.]+ KiB\n$")
        self.assertRegex(self.ok("data", "--cache-clean", env=env),
                         rf"{folder}: 1 cache, [0-9.]+ KiB, removed\n$")
        self.assertEqual(self.files(), [kept])
        self.assertEqual(self.ok("data", "--cache-clean", env=env), f"{folder}: no caches\n")
        self.fails(2, "--cache-clean is about the files of all data; it takes no SPEC. hint: leave "
                   "it out", "data", "photos", "--cache-clean")
        self.fails(2, "--cache-clean lists what it removes. hint: leave --cache-list out", "data",
                   "--cache-clean", "--cache-list")


class MemoryCache(CacheTest):
    def test_runs_end_with_the_same_bits_with_a_cache_and_without(self):
        for words in ([], ["--validation", "0.25"], ["--augment", "flip,crop:4"],
                      ["--sampler", "balanced"]):
            wanted, _ = self.train(*words)
            for workers in ("1", "3"):
                for cache in ("memory", "memory:1MiB", "memory:5KB", "memory:1"):
                    got, _ = self.train(*words, "--cache", cache, "--workers", workers)
                    self.assertEqual(got, wanted, (words, cache))

    def test_a_resumed_run_may_use_it(self):
        wanted, _ = self.train("--epochs", "4")
        self.train("--epochs", "2")
        self.ok("train", "--resume", f"run-{self.runs}", "--epochs", "4", "--cache", "memory", "-q")
        summary = self.read_json(f"run-{self.runs}/summary.json")
        self.assertEqual(summary["parameters_sha256"], wanted)

    def test_it_says_what_does_not_fit(self):
        _, notes = self.train("--cache", "memory")
        self.assertEqual(notes, "")
        _, notes = self.train("--cache", "memory:5KB")
        self.assertRegex(notes, r"--cache memory: 4.88 KiB holds \d+ of the 12 samples of "
                         r"images:photos; the others are decoded in each epoch")

    def test_no_file_is_written(self):
        self.train("--cache", "memory")
        self.assertFalse(os.path.exists(self.path("xdg/ridge/samples")))

    def test_what_it_refuses(self):
        for wrong in ("ram", "memory:", "memory:0", "memory:-1GB", "memory:2GiBs", "disk:2GiB"):
            self.fails(2, f"--cache is '{wrong}'; it must be disk, memory or memory:SIZE, such as "
                       "memory:2GiB", "train", "cnn", "--data", "images:photos", "--cache", wrong)
        self.fails(2, "--augment rrc reads parts of the original pictures, which --cache memory "
                   "does not keep", "train", "cnn", "--data", "images:photos", "--augment", "rrc",
                   "--cache", "memory", "-q")
        self.fails(5, "its samples do not lie encoded in files, so none are cached", "train", "cnn",
                   "--data", "images:photos*2,images:photos", "--cache", "memory", "-q")
        self.write("t.csv", "x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(40)))
        done = self.ridge("train", "mlp:hidden=8", "--data", "t.csv", "--cache", "memory", "-q")
        self.assertIn("--cache memory: csv:t.csv takes no time to decode, so nothing is cached",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
