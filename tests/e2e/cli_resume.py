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


class Alone(RidgeTest):
    def running(self, *words):
        process = self.start("train", *SMALL, "--epochs", "100000", "--progress", "plain", "--out",
                             "run", *words)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        for line in process.stderr:
            if "step" in line and "loss" in line:
                return process
        self.fail("the run did not start")

    def test_a_second_process_is_refused_by_the_number_of_the_first(self):
        process = self.running("--checkpoint-every", "50")
        before = os.listdir(self.path("run"))
        self.refused(1, f"run: process {process.pid} is training in this folder. hint: wait until "
                     "it has ended, or stop it: its checkpoint is kept", "train", "--resume", "run")
        self.assertIsNone(process.poll())
        self.assertEqual(sorted(os.listdir(self.path("run"))), sorted(before))
        process.kill()
        process.wait()
        resumed = self.start("train", "--resume", "run", "--progress", "plain")
        self.addCleanup(lambda: (resumed.kill(), resumed.communicate()))
        self.assertTrue(any("going on at step" in line or "no checkpoint yet" in line
                            for line in resumed.stderr))

    def test_of_two_that_start_together_one_trains(self):
        words = ["train", *SMALL, "--steps", "30", "-q", "--out", "both"]
        processes = [self.start(*words) for _ in range(4)]
        codes = sorted(p.wait(timeout=120) for p in processes)
        errors = [p.communicate()[1] for p in processes]
        self.assertEqual(codes[0], 0, errors)
        self.assertTrue(all(code in (1, 2) for code in codes[1:]), errors)
        for process, error in zip(processes, errors):
            if process.returncode != 0:
                self.assertRegex(error, "^ridge: both: (process \\d+ is training|another process is"
                                 " training|holds a run already)")
        with open(self.path("both/metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], [30])


if __name__ == "__main__":
    unittest.main()
