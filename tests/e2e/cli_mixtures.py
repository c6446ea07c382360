"""Mixtures of sources with weights: an epoch's shares, resuming, workers, what is refused."""
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


if __name__ == "__main__":
    unittest.main()
