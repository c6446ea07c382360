"""Mixtures of sources and samplers of classes: shares of an epoch, resuming, workers, refusals."""
import os
import shutil
import unittest

from _ridge import SOURCE, RidgeTest

CONTAINERS = os.path.join(SOURCE, "tests", "golden", "containers")


def table(rows, kinds=2, first=0, header="x,y,label"):
    lines = [header] + [f"{i % 7},{i * i % 11},{'abcd'[i % kinds]}"
                        for i in range(first, first + rows)]
    return "\n".join(lines) + "\n"


class Mixtures(RidgeTest):
    def setUp(self):
        super().setUp()
        self.write("a.csv", table(30))
        self.write("b.csv", table(50, first=30))

    def train(self, data, out, *words, model="mlp:hidden=8"):
        done = self.ridge("train", model, "--data", data, "--batch", "8", "--threads", "1", "--out",
                          out, "-q", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read_json(f"{out}/summary.json"), done.stderr

    def test_weights_share_an_epoch_as_long_as_all_sources(self):
        for data, counts in (("a.csv,b.csv", (40, 40)), ("a.csv*3,b.csv", (60, 20)),
                             ("csv:a.csv*0.25,csv:b.csv*0.75,label=label", (20, 60))):
            out = f"run-{counts[0]}"
            summary, notes = self.train(data, out)
            self.assertEqual(summary["steps"], 10, data)
            self.assertIn(f"a.csv: {counts[0]} of 80 samples of an epoch; it has 30", notes)
            self.assertRegex(notes, f"b.csv(,label=label)?: {counts[1]} of 80 samples of an epoch; "
                             "it has 50")

    def test_a_run_cut_anywhere_ends_with_the_same_bits(self):
        words = ["--validation", "0.2", "--checkpoint-every", "1"]
        data = "a.csv*3,b.csv"
        whole, _ = self.train(data, "whole", *words, "--steps", "23")
        for steps in (1, 7, 8, 15):
            self.train(data, f"cut-{steps}", *words, "--steps", str(steps))
            self.ok("train", "--resume", f"cut-{steps}", "--steps", "23", "-q")
            got = self.read_json(f"cut-{steps}/summary.json")
            self.assertEqual(got["parameters_sha256"], whole["parameters_sha256"], steps)

    def test_any_number_of_workers_gives_the_same_bits(self):
        shutil.copytree(CONTAINERS, self.path("c"))
        data = "tar:c/photos-{000..001}.tar*2,json=kind,tar:c/photos-000.tar,json=kind"
        hashes = {self.train(data, f"w{workers}", "--batch", "2", "--workers", workers,
                             model="cnn")[0]["parameters_sha256"] for workers in ("1", "2", "4")}
        self.assertEqual(len(hashes), 1)

    def test_a_run_evaluates_on_a_mixture_by_what_its_first_source_said(self):
        self.train("a.csv*2,b.csv", "run")
        self.ok("eval", "run", "--data", "b.csv,a.csv")

    def test_what_does_not_fit_is_refused_with_both_names(self):
        words = ["mlp:hidden=8", "-q", "--out", "no", "--data"]
        self.write("one.csv", "x,label\n1,a\n4,b\n")
        self.fails(4, "one.csv", "train", *words, "a.csv,one.csv")
        self.write("classes.csv", table(20, kinds=4))
        done = self.fails(4, "classes.csv", "train", *words, "a.csv,classes.csv")
        self.assertIn("mixed with a.csv", done.stderr)
        for weight in ("0", "-1", "inf", "nan"):
            done = self.fails(2, "it must be above 0", "train", *words, f"a.csv*{weight},b.csv")
            self.assertIn("a.csv", done.stderr)
        self.fails(4, "none.csv", "train", *words, "a.csv,none.csv")
        self.assertFalse(os.path.exists(self.path("no")))

    def test_a_bad_record_names_the_file_it_stands_in(self):
        self.write("bad.csv", table(20) + "1,two,a\n")
        self.fails(4, "bad.csv", "train", "mlp:hidden=8", "--data", "a.csv,bad.csv", "-q")

    def test_a_bad_picture_counts_once_however_often_it_is_drawn(self):
        shutil.copytree(os.path.join(SOURCE, "tests", "golden", "pictures"), self.path("all"))
        names = sorted(n for n in os.listdir(self.path("all")) if n.endswith(".jpg"))[:8]
        for i, name in enumerate(names):
            os.makedirs(self.path(f"photos/{i % 2}"), exist_ok=True)
            shutil.copy(self.path(f"all/{name}"), self.path(f"photos/{i % 2}/{name}"))
        bad = self.path(f"photos/0/{names[0]}")
        with open(bad, "r+b") as file:
            file.truncate(os.path.getsize(bad) // 2)
        for data, more in (("images:photos*3,images:photos", []),
                           ("images:photos", ["--sampler", "1,9"])):
            out = f"run-{len(more)}"
            self.fails(4, names[0], "train", "cnn", "--data", data, "--batch", "4", "--epochs", "6",
                       "-q", *more)
            self.ok("train", "cnn", "--data", data, "--batch", "4", "--epochs", "6", "--out", out,
                    "-q", "--bad-records", "skip:1", *more)


class Sampler(RidgeTest):
    def setUp(self):
        super().setUp()
        rows = [f"{i % 7},{i * i % 11},{'ab'[i % 10 == 0]}" for i in range(80)]
        self.write("t.csv", "x,y,label\n" + "\n".join(rows) + "\n")

    def train(self, out, *words):
        done = self.ridge("train", "mlp:hidden=8", "--data", "t.csv", "--batch", "8", "--out", out,
                          "--threads", "1", "-q", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read_json(f"{out}/summary.json"), done.stderr

    def test_classes_are_drawn_as_often_and_the_steps_stay(self):
        plain, _ = self.train("plain", "--epochs", "3")
        even, notes = self.train("even", "--epochs", "3", "--sampler", "balanced")
        self.assertIn("--sampler: of the 80 samples of an epoch 40 are drawn of each of 2 classes, "
                      "which have 8 to 72", notes)
        self.assertEqual(plain["steps"], even["steps"])
        self.assertNotEqual(plain["parameters_sha256"], even["parameters_sha256"])

    def test_a_run_cut_anywhere_ends_with_the_same_bits(self):
        words = ["--validation", "0.2", "--checkpoint-every", "1", "--sampler", "1,3"]
        whole, _ = self.train("whole", *words, "--steps", "21")
        for steps in (1, 8, 13):
            self.train(f"cut-{steps}", *words, "--steps", str(steps))
            self.ok("train", "--resume", f"cut-{steps}", "--steps", "21", "-q")
            got = self.read_json(f"cut-{steps}/summary.json")
            self.assertEqual(got["parameters_sha256"], whole["parameters_sha256"], steps)

    def test_labels_that_are_no_classes_are_refused(self):
        self.write("n.csv", "x,y\n" + "".join(f"{i},{i * 0.37}\n" for i in range(40)))
        self.fails(2, "--sampler draws samples by their class; mlp has not one class a sample as its "
                   "label. hint: leave --sampler out", "train", "mlp:hidden=8,classes=1", "--loss",
                   "mse:logits", "--data", "csv:n.csv,label=y", "--sampler", "balanced", "-q")
        self.fails(2, "--sampler has 3 shares; mlp has 2 classes", "train", "mlp:hidden=8", "--data",
                   "t.csv", "--sampler", "1,1,1", "-q")


if __name__ == "__main__":
    unittest.main()
