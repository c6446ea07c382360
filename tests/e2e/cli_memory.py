"""The planned peak against what an outside observer sees: never under, and close."""
import os
import shutil
import time
import unittest

from _ridge import RIDGE, RidgeTest


def observed_peak(process):
    """VmHWM, the process's own peak, read again and again until it ends."""
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as status:
                for line in status:
                    if line.startswith("VmHWM:"):
                        peak = max(peak, int(line.split()[1]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            break
        time.sleep(0.001)
    return peak


def leave_page_cache(path):
    """The next process reads the file's pages one by one, when it first needs them."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Memory(RidgeTest):
    def check(self, *words, env=None):
        process = self.start("train", *words, "--out", "run", "-q", env=env)
        peak = observed_peak(process)
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        summary = self.read_json("run/summary.json")
        planned, measured = summary["planned"], summary["measured"]
        self.assertGreaterEqual(measured["peak_bytes"], 0.99 * peak)
        self.assertLessEqual(peak, planned["peak_bytes"], "the plan is a contract")
        self.assertLessEqual(planned["peak_bytes"], 1.05 * measured["peak_bytes"])
        self.assertLessEqual(measured["arena_bytes"], planned["arena_bytes"] + 4096)
        self.assertGreaterEqual(measured["arena_bytes"], 0.9 * planned["arena_bytes"])
        return os.listdir(self.path("run/checkpoints"))

    def test_cnn(self):
        self.assertTrue(self.check("cnn", "--data", "synthetic", "--batch", "128", "--steps", "40",
                                   "--checkpoint-every", "15"))

    def test_mlp_with_accumulation_and_validation(self):
        self.assertTrue(self.check("mlp", "--data", "synthetic", "--batch", "64", "--accumulate",
                                   "2", "--validation", "0.1", "--steps", "40", "--eval-every",
                                   "10", "--optimizer", "adamw"))

    def test_a_limit_under_which_several_plans_are_compared(self):
        self.check("vit_ti", "--data", "synthetic", "--batch", "8", "--steps", "3", "--fit", "200MiB")

    def test_narrower_instruction_sets(self):
        for isa in ("AVX2", "SSE41"):
            with self.subTest(isa):
                shutil.rmtree(self.path("run"), ignore_errors=True)
                leave_page_cache(RIDGE)
                self.check("mlp", "--data", "synthetic", "--batch", "512", "--steps", "10",
                           env={"ONEDNN_MAX_CPU_ISA": isa})


if __name__ == "__main__":
    unittest.main()
