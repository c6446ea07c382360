"""Where the bytes of a GPU go in a run, on a driver that runs on the host: parts as planned and as
measured, leaks, other processes."""
import json
import os
import re
import unittest

from _ridge import FAKE_GPU, RidgeTest

MIB = 1 << 20
PARTS = ("context", "arena", "kernels", "graphs")
MLP = ["mlp:hidden=8,layers=1,inputs=12,classes=3", "--batch", "4"]
MODELS = (MLP, [*MLP, "--kernel-launch", "single"], [*MLP, "--accumulate", "2"],
          ["cnn", "--batch", "4"],
          ["gpt:layers=1,hidden=16,heads=2,vocab=32,context=8", "--batch", "4", "--slices", "2"],
          ["lstm:layers=1,hidden=8,vocab=16,tokens=4", "--batch", "2"])
# What a GPU of today takes, but for a smaller context.
TAKES = {"RIDGE_FAKE_CUDA_CONTEXT_BYTES": str(8 * MIB), "RIDGE_FAKE_CUDA_MODULE_BYTES": "40960",
         "RIDGE_FAKE_CUDA_WORK_BYTES": "10240"}


class Bytes(RidgeTest):
    def run_on_gpu(self, *words, **variables):
        env = {**FAKE_GPU, **TAKES, **variables}
        done = self.ridge(*words, "--device", "cuda", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def train(self, *words, **variables):
        """stdout and `device_bytes` of the summary."""
        out = f"run{len(os.listdir(self.folder))}"
        done = self.run_on_gpu("train", *words, "--data", "synthetic", "--steps", "4", "--out", out,
                               **variables)
        with open(self.path(f"{out}/summary.json")) as file:
            summary = json.load(file)
        self.assertEqual(summary["device_bytes"]["used"]["end"], summary["measured"]["peak_bytes"])
        self.assertEqual(summary["device_bytes"]["peak_bytes"], summary["planned"]["peak_bytes"])
        return done.stdout, summary["device_bytes"]

    def test_a_run_proves_its_bytes_part_by_part(self):
        text, told = self.train(*MLP, RIDGE_FAKE_CUDA_OTHERS_BYTES=str(3 * MIB))
        used, measured = told["used"], told["measured"]
        self.assertEqual((used["before"], measured["context"]), (3 * MIB, 8 * MIB))
        self.assertEqual(measured["arena"] % (2 * MIB), 0)
        self.assertGreaterEqual(measured["kernels"], 2 * MIB)
        self.assertGreaterEqual(measured["graphs"], 2 * MIB)
        self.assertEqual(used["before"] + sum(measured[part] for part in PARTS), used["graphs"])
        self.assertEqual((told["growth"], told["verdict"]), (0, "proven"))
        self.assertEqual(told["other_processes"], {"count": 0, "bytes": 0})
        self.assertRegex(text, r"\n  bytes of cuda:0 +planned +measured +error\n"
                               r"  before the run +- +3\.00 MiB +-\n"
                               r"  context +8\.00 MiB +8\.00 MiB +\+0\.0 %\n"
                               r"  arena .*\n  kernels .*\n  graphs .*\n"
                               r"  growth in the run +0 B +0 B +-\n"
                               r"  locked on the host .*\n"
                               r"cuda:0: bytes proven: [0-9.]+ MiB planned, [0-9.]+ MiB in use at "
                               r"the end\n")

    def test_every_part_is_planned(self):
        for words in MODELS:
            with self.subTest(words=words):
                _, told = self.train(*words)
                self.assertEqual((told["growth"], told["verdict"]), (0, "proven"), told)
                for part in (*PARTS, "staging"):
                    self.assertGreaterEqual(told["planned"][part], told["measured"][part], part)
                graphs = "single" not in words
                self.assertEqual(told["measured"]["graphs"] > 0, graphs, told)

    def test_what_a_first_launch_takes_is_taken_before_the_run(self):
        """Evaluations and checkpoints too.  Each module and each piece of work of a graph takes a page,
        so none can hide."""
        for words in MODELS:
            with self.subTest(words=words):
                _, told = self.train(*words, "--validation", "0.01",
                                     RIDGE_FAKE_CUDA_MODULE_BYTES=str(2 * MIB),
                                     RIDGE_FAKE_CUDA_WORK_BYTES=str(2 * MIB),
                                     RIDGE_FAKE_CUDA_BYTES=str(64 << 30))
                self.assertGreater(told["measured"]["kernels"], 8 * MIB)
                self.assertEqual((told["growth"], told["verdict"]), (0, "proven"), told)

    def test_what_grows_in_the_run_is_a_leak(self):
        text, told = self.train(*MLP, RIDGE_FAKE_CUDA_LEAK="cuGraphLaunch:1:1024")
        self.assertEqual(told["verdict"], "leak")
        self.assertGreaterEqual(told["growth"], 4 << 10)
        self.assertEqual(told["growth"] % 1024, 0)
        self.assertRegex(text, r"\ncuda:0: a leak: [0-9.]+ KiB more are in use at the end than "
                               r"before the first step\n")

    def test_other_processes_are_named_and_nothing_is_proven(self):
        for script, sentence in [
                ("processes=2", "2 other processes hold 2.00 MiB"),
                ("processes=0/0/1", "1 other process holds 1.00 MiB"),
                ("processes=1,process_bytes=-",
                 "1 other process uses it, and NVML does not tell how much")]:
            with self.subTest(script=script):
                text, told = self.train(*MLP, RIDGE_FAKE_NVML=script)
                self.assertEqual(told["verdict"], "shared")
                self.assertIn(f"\ncuda:0: shared, bytes not proven: {sentence}\n", text)

    def test_bytes_that_are_given_back_are_of_another_process(self):
        text, told = self.train(*MLP, RIDGE_FAKE_CUDA_LEAK="cuGraphLaunch:1:-1024",
                                RIDGE_FAKE_CUDA_OTHERS_BYTES=str(16 * MIB))
        self.assertEqual(told["verdict"], "shared")
        self.assertRegex(text, r"\ncuda:0: shared, bytes not proven: [0-9.]+ [KM]iB were given back "
                               r"during the run, by another process\n")

    def test_without_nvml_the_report_begins_with_the_context(self):
        text, told = self.train(*MLP, RIDGE_FAKE_NVML="init=9",
                                RIDGE_FAKE_CUDA_OTHERS_BYTES=str(3 * MIB))
        self.assertEqual((told["used"]["before"], told["measured"]["context"]), (None, 11 * MIB))
        self.assertEqual(told["verdict"], "proven")
        self.assertRegex(text, r"\n  before the run +- +- +-\n")
        self.assertIn("\ncuda:0: the context is counted with all that was in use before it: "
                      "nvmlInit_v2 failed: Driver Not Loaded (9)\n", text)

    def test_steps_that_are_timed_have_them_too(self):
        bench = ["bench", "step", *MLP, "--steps", "3"]
        self.assertNotIn(" thread", self.run_on_gpu(*bench).stdout.splitlines()[0])
        self.assertIn(", 1 thread, ", self.ok(*bench, "--threads", "1").splitlines()[0])
        told = json.loads(self.run_on_gpu(*bench, "--json").stdout)["device_bytes"]
        self.assertEqual((told["growth"], told["verdict"]), (0, "proven"), told)
        self.assertIn("\ncuda:0: bytes proven: ", self.run_on_gpu(*bench).stdout)

    def test_the_cpu_has_none(self):
        done = self.ridge("train", *MLP, "--data", "synthetic", "--steps", "1", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("run/summary.json")) as file:
            self.assertNotIn("device_bytes", json.load(file))
        self.assertIsNone(re.search(r"bytes of|cuda", done.stdout))


if __name__ == "__main__":
    unittest.main()
