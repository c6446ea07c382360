"""Runs that go on: with what they were started with."""
import json
import os
import shutil
import unittest

from _ridge import RidgeTest, SMALL

GPT = ["gpt:layers=2,hidden=64,heads=4,context=128,vocab=100", "--batch", "16", "--threads", "1"]


class Resume(RidgeTest):
    def cut(self, out, keep_step):
        """As if the run had been killed after the checkpoint of that step."""
        os.remove(self.path(f"{out}/summary.json"))
        for name in os.listdir(self.path(f"{out}/checkpoints")):
            if name.startswith("step-") and int(name[5:]) > keep_step:
                shutil.rmtree(self.path(f"{out}/checkpoints/{name}"))

    def peak(self, recompute):
        return json.loads(self.ok("plan", *GPT, "--recompute", recompute, "--slices", "1", "--json",
                                  "--fit", "4GiB"))["peak_bytes"]

    def test_a_run_that_had_to_recompute_goes_on_with_more_memory(self):
        kept, again = self.peak("off"), self.peak("all")
        self.assertLess(again, kept - (2 << 20))
        words = ["train", *GPT, "--data", "synthetic", "--steps", "4", "--checkpoint-every", "2",
                 "-q", "--slices", "1"]
        tight = (kept + again) // 2
        for out in ("whole", "cut"):
            self.ok(*words, "--out", out, "--fit", str(tight))
        chosen = self.read_json("whole/options.json")["recompute"]
        self.assertNotIn(chosen, ("auto", "off"))
        self.cut("cut", 2)
        self.ok("train", "--resume", "cut", "--fit", "4GiB", "-q")
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")

    def test_what_was_asked_for_stays_as_it_was_asked(self):
        for words in (["--recompute", "off"], ["--recompute", "all"], ["--slices", "2"]):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            self.train("--checkpoint-every", "10", *words)
            self.assertEqual(self.read_json("run/options.json")[words[0][2:]], words[1])
            self.cut("run", 10)
            self.ok("train", "--resume", "run", "-q", *words)
        self.refused(2, '--slices is "4"; the run was started with "2". hint: leave it out, or '
                     "start a new run with another --out", "train", "--resume", "run", "--slices",
                     "4")


if __name__ == "__main__":
    unittest.main()
