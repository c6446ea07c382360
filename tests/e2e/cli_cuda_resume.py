"""Trainings on a GPU whose steps are recorded, that overflow, end half way or are killed: all have the same
bits.  On a driver that runs on the host."""
import json
import os
import time
import unittest

from _overflows import NET, WithOverflows
from _ridge import FAKE_CUDA, FAKE_GPU, RidgeTest

MODEL = ["mlp:hidden=8,layers=1,inputs=12,classes=3", "--data", "synthetic", "--batch", "4",
         "--device", "cuda"]


class Overflows(WithOverflows):
    net = NET.replace("128", "96")

    def on_gpu(self, out, *words, **options):
        return self.run_net(out, "--device", "cuda", *words, env=FAKE_GPU, **options)[0]

    def same(self, have, want):
        for key in ("parameters_sha256", "loss_scale", "skipped_steps", "steps"):
            self.assertEqual(have[key], want[key], key)

    def test_recorded_steps_skip_what_single_kernels_skip_and_so_does_a_resumed_run(self):
        """A constant scale: each epoch has overflows, before the checkpoint and behind it."""
        words = ["--loss-scale", "4096", "--checkpoint-every", "50"]
        single = self.on_gpu("single", *words, "--kernel-launch", "single", steps=100)
        graph = self.on_gpu("graph", *words, "--kernel-launch", "graph", steps=100)
        self.assertGreater(single["skipped_steps"], 10)
        self.assertLess(single["skipped_steps"], 90)
        self.same(graph, single)
        self.cut("graph", 50)
        self.ok("train", "--resume", "graph", "-q", env=FAKE_GPU)
        self.same(self.read_json("graph/summary.json"), single)

    def test_a_scale_that_falls_does_so_in_recorded_steps_and_in_a_resumed_run(self):
        words = ["--checkpoint-every", "10", "--keep", "10"]
        single = self.on_gpu("single", *words, "--kernel-launch", "single", steps=100)
        self.assertEqual(single["loss_scale"], 32768 / 2**single["skipped_steps"])
        self.same(self.on_gpu("graph", *words, steps=100), single)
        skipped = {line["step"]: line["skipped_steps"] for line in self.metrics("graph")}
        self.assertGreater(skipped[10], 0)
        self.assertGreater(single["skipped_steps"], skipped[10])
        self.cut("graph", 10)
        self.ok("train", "--resume", "graph", "-q", env=FAKE_GPU)
        self.same(self.read_json("graph/summary.json"), single)


class Resumed(RidgeTest):
    def test_a_scale_that_grows_does_so_in_recorded_steps_and_in_a_resumed_run(self):
        """After 2000 updates in a row that happened, 10 of them behind the checkpoint."""
        words = [*MODEL, "--precision", "f16", "--steps", "2020", "--checkpoint-every", "1990", "-q"]
        for launch in ("single", "graph"):
            self.ok("train", *words, "--kernel-launch", launch, "--out", launch, env=FAKE_GPU)
        single = self.read_json("single/summary.json")
        self.assertEqual((single["loss_scale"], single["skipped_steps"]), (65536, 0))
        self.assertRegex(self.ok("compare", "single", "graph"), "^equal: ")
        self.cut("graph", 1990)
        self.ok("train", "--resume", "graph", "-q", env=FAKE_GPU)
        resumed = self.read_json("graph/summary.json")
        for key in ("parameters_sha256", "loss_scale", "skipped_steps", "steps"):
            self.assertEqual(resumed[key], single[key], key)

    def whole(self, *words):
        self.ok("train", *MODEL, *words, "--out", "whole", env=FAKE_GPU)
        return self.read_json("whole/summary.json")["parameters_sha256"]

    def test_a_run_that_ends_half_way_and_goes_on_has_the_bits_of_a_whole_one(self):
        whole = self.whole("--steps", "100")
        for launch in ("graph", "single"):
            self.ok("train", *MODEL, "--steps", "50", "--kernel-launch", launch, "--out", launch,
                    env=FAKE_GPU)
            self.ok("train", "--resume", launch, "--steps", "100", env=FAKE_GPU)
            summary = self.read_json(f"{launch}/summary.json")
            self.assertEqual((summary["parameters_sha256"], summary["steps"]), (whole, 100))

    def test_a_run_killed_at_random_points_ends_with_the_same_bits(self):
        steps = ["--steps", "600", "--checkpoint-every", "10", "-q"]
        begin = time.monotonic()
        whole = self.whole(*steps)
        took = time.monotonic() - begin
        kills, seed = self.train_killed(*MODEL, *steps, kills=5, seconds=(0.1 * took, 0.8 * took),
                                        env=FAKE_GPU)
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"], whole,
                         f"{kills} kills, seed {seed}")
        self.assertGreater(kills, 0)
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")


class Libraries(RidgeTest):
    def train(self, *words, **variables):
        return self.ridge("train", *words, env={**FAKE_GPU, **variables})

    def test_another_cudnn_is_named_and_refused(self):
        done = self.train(*MODEL, "--steps", "4", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.read_json("run/summary.json")
        self.assertEqual(summary["libraries"],
                         ["driver of CUDA 13.0", "NVRTC 13.0", "cuBLASLt 13.1.0", "cuDNN 9.19.0"])
        self.assertEqual(summary["library_paths"],
                         [os.path.realpath(os.path.join(FAKE_CUDA, name)) for name in (
                             "libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9")])
        other = self.train("--resume", "run", "--steps", "8", RIDGE_FAKE_CUDNN_VERSION="92001")
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertEqual(other.stderr.splitlines()[-1],
                         "ridge: run: resuming with cuDNN 9.20.1; the run has used cuDNN 9.19.0: "
                         "the result would not be bit-identical. hint: --allow-different")
        newer = self.train("--resume", "run", "--steps", "8", RIDGE_FAKE_CUDA_VERSION="13010")
        self.assertEqual(newer.returncode, 2, newer.stderr)
        self.assertIn("driver of CUDA 13.1; the run has used driver of CUDA 13.0", newer.stderr)
        allowed = self.train("--resume", "run", "--steps", "8", "--allow-different",
                             RIDGE_FAKE_CUDNN_VERSION="92001")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)


if __name__ == "__main__":
    unittest.main()
