"""`ridge train --find-lr`: a suggestion that trains, the same one again, and nothing left behind."""
import glob
import json
import os
import random
import tempfile
import unittest

from _ridge import RidgeTest


class FindRate(RidgeTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(3)
        with open(self.path("points.csv"), "w") as file:
            file.write("a,b,c,label\n")
            for i in range(600):
                kind = i % 3
                row = [draw.gauss(2 * (kind == k), 0.7) for k in range(3)]
                file.write(",".join(f"{x:.4f}" for x in row) + f",{kind}\n")

    def find(self, *words):
        return json.loads(self.ok("train", "mlp:hidden=32,layers=1", "--data", "csv:points.csv",
                                  "--batch", "64", "--threads", "1", "--find-lr", "--json", *words))

    def test_the_suggestion_trains_and_the_lowest_rate_times_a_hundred_does_not_help(self):
        found = self.find()
        self.assertEqual(len(found["points"]), 100)
        self.assertAlmostEqual(found["points"][0]["lr"], 1e-7)
        self.assertAlmostEqual(found["points"][-1]["lr"], 1)
        self.assertLessEqual(found["suggested_lr"], found["lowest_lr"] / 10 * 1.0001)

        def loss(lr):
            out = f"run{lr}"
            self.ok("train", "mlp:hidden=32,layers=1", "--data", "csv:points.csv", "--batch", "64",
                    "--threads", "1", "--steps", "40", "--lr", str(lr), "--out", out, "-q")
            with open(self.path(f"{out}/metrics.jsonl")) as file:
                return json.loads(file.readlines()[-1])["loss"]
        self.assertLess(loss(found["suggested_lr"]), loss(found["suggested_lr"] / 1000))

    def test_equal_calls_suggest_the_same_and_leave_nothing(self):
        before = sorted(glob.glob(os.path.join(tempfile.gettempdir(), "ridge-find-lr-*")))
        first = self.find("--seed", "4")
        self.assertEqual(self.find("--seed", "4"), first)
        self.assertFalse(os.path.exists(self.path("runs")))
        self.assertEqual(
            sorted(glob.glob(os.path.join(tempfile.gettempdir(), "ridge-find-lr-*"))), before)

    def test_a_loss_that_becomes_infinite_ends_the_curve(self):
        with open(self.path("large.csv"), "w") as file:
            file.write("a,label\n" + "".join(f"{(i % 2) * 1e4:.0f},{i % 2}\n" for i in range(256)))
        found = json.loads(self.ok("train", "mlp:hidden=64,layers=3", "--data",
                                   "csv:large.csv,standardize=no", "--batch", "64", "--find-lr",
                                   "--json", "--optimizer", "sgd", "--threads", "1"))
        self.assertTrue(found["diverged"])
        self.assertLess(found["suggested_lr"], 1e-2)

    def test_the_curve_and_the_option_are_printed(self):
        text = self.ok("train", "mlp:hidden=32,layers=1", "--data", "csv:points.csv", "--batch",
                       "64", "--find-lr", "--steps", "60", "-q")
        self.assertIn("log10 of the learning rate", text)
        self.assertRegex(text, r"\n  --lr \d\.\de-\d\d\n$")

    def test_what_it_cannot_be_combined_with_is_refused(self):
        for words in (["--resume"], ["--sweep", "lr=1e-3,1e-2"]):
            done = self.ridge("train", "mlp", "--data", "csv:points.csv", "--find-lr", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
        done = self.ridge("train", "mlp", "--data", "csv:points.csv", "--json")
        self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
