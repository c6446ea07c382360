"""Threads, the environment, full disks and help; what a user types wrongly is in tests/text/cli/."""
import json
import os
import re
import shutil
import subprocess
import time
import unittest

from _ridge import RIDGE, SMALL, RidgeTest


class Usage(RidgeTest):
    def test_the_team_is_never_smaller_than_the_threads_that_kernels_are_made_for(self):
        limit = {"OMP_THREAD_LIMIT": "1"}
        message = ("--threads is 2; OMP_THREAD_LIMIT allows 1. hint: a larger OMP_THREAD_LIMIT")
        self.refused(2, message, "plan", "mlp", "--threads", "2", env=limit)
        self.refused(2, message[2:], "bench", "device", "--threads", "2", env=limit)
        step = ["bench", "step", "resnet18:image=32", "--batch", "2", "--steps", "2", "--conv",
                "direct", "--json"]
        said = {}
        for threads in (1, 2):
            self.ridge("plan", "mlp", "--threads", str(threads))  # the profile
            done = json.loads(self.ok(*step, "--threads", str(threads)))
            said[threads] = (done["threads"], done["loss"])
        for threads, env in [
            (None, limit),
            (2, {"OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "2"}),
            (2, {"OMP_MAX_ACTIVE_LEVELS": "0"}),
            (2, {"OMP_MAX_ACTIVE_LEVELS": "4", "OMP_NUM_THREADS": "3,3,3"}),
            (2, {"OMP_PROC_BIND": "spread"}),
            (2, {"OMP_NUM_THREADS": "1"}),
        ]:
            words = [] if threads is None else ["--threads", str(threads)]
            done = json.loads(self.ok(*step, *words, env=env))
            self.assertEqual((done["threads"], done["loss"]), said[threads or 1], env)

    def spin_count(self, env):
        """GOMP_SPINCOUNT in the environment of a run, and the name of its process."""
        process = self.start("train", *SMALL, "--epochs", "1000", "--out", "run", env=env)
        try:
            deadline = time.monotonic() + 60
            while not os.path.exists(self.path("run")) and time.monotonic() < deadline:
                time.sleep(0.01)
            with open(f"/proc/{process.pid}/environ", encoding="utf-8") as file:
                variables = dict(v.split("=", 1) for v in file.read().split("\0") if v)
            with open(f"/proc/{process.pid}/comm", encoding="utf-8") as file:
                return variables.get("GOMP_SPINCOUNT"), file.read().strip()
        finally:
            process.kill()
            process.communicate()
            shutil.rmtree(self.path("run"), ignore_errors=True)

    def test_waiting_threads_spin_for_a_short_time_unless_the_user_says_how_long(self):
        self.assertEqual(self.spin_count({}), ("10000", "ridge"))
        self.assertEqual(self.spin_count({"GOMP_SPINCOUNT": "7"}), ("7", "ridge"))
        self.assertEqual(self.spin_count({"OMP_WAIT_POLICY": "active"}), (None, "ridge"))

    def test_flags_win_over_the_environment(self):
        bad = {"RIDGE_BATCH": "0"}
        self.ok("plan", "mlp", "--batch", "2", env=bad)
        self.assertIn("batch 7,", self.ok("plan", "mlp", env={"RIDGE_BATCH": "7"}))
        self.assertIn("batch 32,", self.ok("plan", "mlp", env={"RIDGE_BATCH": ""}))
        # The flag switches off what it excludes.
        self.ok("plan", "mlp", "--epochs", "2", env={"RIDGE_STEPS": "5"})

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([RIDGE, "models"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: No space left on device", done.stderr)


class Help(RidgeTest):
    def test_every_verb_has_help_with_an_example_within_80_columns(self):
        for verb in ("", "train", "plan", "eval", "run", "opt", "compare", "runs", "watch", "bench",
                     "bench step", "bench run", "bench device", "models", "doctor", "completion"):
            text = self.ok(*verb.split(), "--help")
            self.assertIn(f"Usage: ridge {verb}".rstrip(), text)
            self.assertIn("\nExamples:\n  ", text)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 86, verb)

    def test_a_verb_with_many_options_lists_the_everyday_ones_and_all_on_demand(self):
        for verb in ("train", "plan"):
            text, whole = self.ok(verb, "--help"), self.ok(verb, "--help", "all")
            count = len(re.findall(r"^  (?:-\w, )?--", whole, re.MULTILINE))
            self.assertIn(f"\nridge {verb} --help all lists all {count} options.\n", text)
            self.assertLess(len(re.findall(r"^  (?:-\w, )?--", text, re.MULTILINE)), 20)
            self.assertIn("--data SPEC", text)
            self.assertIn("--device cpu|cuda[:N]", text)
            self.assertNotIn("--inter-op", text)
            self.assertIn("--inter-op", whole)
            for words in ([verb, "-h", "all"], ["help", verb, "all"], [verb, "help", "all"]):
                self.assertEqual(self.ok(*words), whole)
        self.assertEqual(self.ok("compare", "--help", "all"), self.ok("compare", "--help"))

    def test_help_is_also_a_word_before_or_behind_a_verb(self):
        for verb in ("train", "plan", "bench", "bench step"):
            text = self.ok(*verb.split(), "--help")
            self.assertEqual(self.ok(*verb.split(), "help"), text)
            self.assertEqual(self.ok("help", *verb.split()), text)
        self.assertEqual(self.ok("help"), self.ok("--help"))

    def test_ridge_alone_prints_help_and_version_is_one_line(self):
        self.assertEqual(self.ok(), self.ok("--help"))
        self.assertRegex(self.ok("--version"), r"^ridge \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
