"""The optimizer's state in the host's memory, on a driver that runs on the host: the same bits, and
fewer bytes of the GPU, as planned."""
import json
import os
import shutil
import unittest

from _ridge import FAKE_GPU, RidgeTest

MIB = 1 << 20
MLP = ["mlp:hidden=256,layers=3,inputs=128,classes=8", "--batch", "8"]
GPT = ["gpt:layers=1,hidden=32,heads=2,vocab=64,context=8", "--batch", "4"]
CASES = ([*MLP, "--accumulate", "2"], [*MLP, "--optimizer", "sgd", "--momentum", "0.9"],
         [*MLP, "--precision", "f16"], [*MLP, "--precision", "bf16", "--slices", "2"],
         [*MLP, "--optimizer-state", "8bit"], [*MLP, "--kernel-launch", "single"],
         [*GPT, "--clip-norm", "0.1"], ["cnn:filters=4", "--batch", "2", "--recompute", "all"])


class Offload(RidgeTest):
    def test_the_state_of_the_optimizer_leaves_the_gpu_and_no_bit_changes(self):
        for i, words in enumerate(CASES):
            plain = self.train_on_gpu(f"plain{i}", *words)
            there = self.train_on_gpu(f"there{i}", *words, "--offload", "optimizer")
            self.assertEqual(there["parameters_sha256"], plain["parameters_sha256"], words)
            self.assertRegex(self.ok("compare", f"plain{i}", f"there{i}"), "^equal: ")
            for summary in (plain, there):
                self.assertLessEqual(summary["measured"]["peak_bytes"],
                                     summary["planned"]["peak_bytes"], words)
            self.assertLessEqual(there["measured"]["arena_bytes"], plain["measured"]["arena_bytes"])

    def test_the_gpu_holds_as_much_less_as_the_state_has(self):
        state = 2 * 4 * 512 * 512 * 3  # two moments, mostly of three layers
        plain = self.train_on_gpu("plain", "mlp:hidden=512,layers=4,inputs=8,classes=8", "--batch", "8")
        there = self.train_on_gpu("there", "mlp:hidden=512,layers=4,inputs=8,classes=8", "--batch", "8",
                           "--offload", "optimizer")
        saved = plain["measured"]["arena_bytes"] - there["measured"]["arena_bytes"]
        self.assertGreaterEqual(saved, state - 2 * MIB)
        self.assertEqual(there["device_bytes"]["verdict"], "proven")

    def test_a_resumed_run_may_keep_its_state_elsewhere(self):
        self.train_on_gpu("whole", *MLP)
        for i, (first, then) in enumerate((("optimizer", "optimizer"), ("optimizer", "none"),
                                           ("none", "optimizer"))):
            out = f"cut{i}"
            self.train_on_gpu(out, *MLP, "--offload", first, "--checkpoint-every", "2")
            shutil.rmtree(self.path(f"{out}/checkpoints/step-4"))
            os.remove(self.path(f"{out}/summary.json"))
            done = self.ridge("train", "--resume", out, "--offload", then, env=FAKE_GPU)
            self.assertRegex(done.stderr, f"{out}: resuming at step 2 of 4")
            self.assertRegex(self.ok("compare", "whole", out), "^equal: ")

    def test_the_plan_says_what_rests_on_the_host(self):
        done = self.ridge("train", *MLP, "--data", "synthetic", "--steps", "2", "--device", "cuda",
                          "--offload", "optimizer", "--out", "run", env=FAKE_GPU)
        self.assertRegex(done.stdout, r"\n  optimizer .* [0-9.]+ KiB\n")
        self.assertRegex(done.stdout, r"\n  offload: 2\.00 MiB in the host's memory; its link takes "
                                      r"[0-9.]+ us of an update\n")
        self.assertRegex(done.stdout, r"\n  locked on the host +[0-9.]+ MiB +[0-9.]+ MiB +\+0\.0 %\n")

    def test_what_does_not_run_is_refused(self):
        def refused(code, text, *words, **variables):
            done = self.ridge("train", *MLP, "--data", "synthetic", "--steps", "1", *words,
                              env={**FAKE_GPU, **variables})
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1]),
                             (code, "ridge: " + text))
        refused(2, "--offload is 'all'; a run has no windows for parameters. hint: --offload "
                   "optimizer, or ridge plan MODEL --on h100-sxm --offload all",
                "--device", "cuda", "--offload", "all")
        refused(5, "cuda:0: Test GPU 0 maps no memory of the host. hint: a driver of CUDA 13 or "
                   "newer, or neither --offload nor --place",
                "--device", "cuda", "--offload", "optimizer", RIDGE_FAKE_CUDA_MAPS_HOST="0")


if __name__ == "__main__":
    unittest.main()
