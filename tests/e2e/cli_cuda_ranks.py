"""Ranks with a GPU each, on a driver and an NCCL that run on the host: the bits of one GPU, bytes as
planned, and what fails as a sentence."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from _ranks import MPIRUN, children
from _ridge import FAKE_GPU, RIDGE, RidgeTest, environment

GPUS = {**FAKE_GPU, "RIDGE_FAKE_CUDA_DEVICES": "4", "RIDGE_FAKE_CUDA_ALIKE": "1"}
NORM_NET = """graph net
  x = input f32[batch,2,6,6]
  label = input i64[batch]
  k = parameter f32[8,2,3,3] init=uniform(0.3)
  c = conv(x, k, padding=[1,1,1,1])
  scale = parameter f32[8] init=constant(1)
  shift = parameter f32[8] init=zeros
  n, n.mean, n.var = batch_norm(c, scale, shift)
  r = relu(n)
  p = reduce_mean(r, axes=[2,3])
  w = parameter f32[5,8] init=uniform(0.3)
  logits = matmul(p, w, transpose_b=1)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output logits
  output loss
"""
MLP = ["mlp:hidden=32,layers=2,inputs=16,classes=4", "--clip-norm", "0.1"]
GPT = ["gpt:layers=1,hidden=16,heads=2,context=8,vocab=32"]
COMMON = ["--data", "synthetic", "--batch", "12", "--slices", "4", "--sums", "tree", "--threads", "1", "--device", "cuda"]


class Ranks(RidgeTest):
    def setUp(self):
        super().setUp()
        self.gpus = {**GPUS, "RIDGE_FAKE_NCCL_FOLDER": self.folder}  # what killed ranks leave goes with it

    def train(self, out, ranks, *words, mpi=None, **variables):
        command = ["train", *words, *COMMON, "--out", out]
        env = {**self.gpus, **variables}
        if ranks == 1 or mpi is None:
            done = self.ridge(*command, "--devices", str(ranks), env=env)
        else:
            done = subprocess.run([*MPIRUN[mpi], "-n", str(ranks), RIDGE, *command], cwd=self.folder, text=True,
                                  env=environment(env), capture_output=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read_json(f"{out}/summary.json"), done

    def test_each_number_of_gpus_leaves_the_bits_of_one(self):
        with open(self.path("net.ridge"), "w") as file:
            file.write(NORM_NET)
        for i, words in enumerate((MLP, GPT, ["net.ridge"], [*MLP, "--kernel-launch", "single"],
                                   [*GPT, "--precision", "bf16"])):
            with self.subTest(words):
                alone, _ = self.train(f"alone{i}", 1, *words, "--steps", "5")
                for ranks, mpi in ((2, "openmpi"), (2, "mpich"), (3, "openmpi")):
                    summary, _ = self.train(f"{mpi}{ranks}.{i}", ranks, *words, "--steps", "5", mpi=mpi)
                    self.assertEqual(summary["parameters_sha256"], alone["parameters_sha256"], (ranks, mpi))
                    for rank in summary["ranks"]:
                        self.assertLessEqual(rank["measured"]["peak_bytes"], rank["planned"]["peak_bytes"])

    def test_the_report_names_the_library_and_the_sums(self):
        _, done = self.train("run", 2, *MLP, "--steps", "3")
        self.assertRegex(done.stderr, r"ridge: ranks exchange by NCCL 2\.28\.3 \(.*/libnccl\.so\.2\)\n")
        self.assertRegex(done.stdout, r"\n  train: all_reduce of [0-9.]+ KiB, this rank sends [0-9.]+ KiB\n")

    def test_a_plan_takes_the_times_that_a_training_measured(self):
        self.gpus["XDG_CACHE_HOME"] = self.path("cache")
        plan = ["plan", *MLP, *COMMON, "--devices", "2"]
        done = self.ridge(*plan, env=self.gpus)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ridge: warning: the sums over the devices were not measured: 2 GPUs of this kind have not exchanged "
                      "here yet. hint: ridge train --device cuda --devices 2 measures them\n", done.stderr)
        self.train("run", 2, *MLP, "--steps", "1", XDG_CACHE_HOME=self.path("cache"))
        done = self.ridge(*plan, env=self.gpus)
        self.assertNotIn("warning", done.stderr)
        self.assertRegex(done.stdout, r"\n  communication: .* \(Open MPI .*, measured 20")
        self.assertNotIn("--wire bf16", done.stdout)  # which these GPUs refuse

    def test_a_list_says_which_gpus(self):
        done = self.ridge("train", *MLP, *COMMON, "--steps", "2", "--devices", "2,1", "--out", "run", env=self.gpus)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ridge: cuda:2 Test GPU 0: kernels", done.stderr)
        self.assertIn("\n  bytes of cuda:2 ", done.stdout)

    def test_a_killed_run_goes_on_with_another_number_of_gpus(self):
        whole, _ = self.train("whole", 2, *MLP, "--steps", "60")
        words = [*MPIRUN["openmpi"], "-n", "3", RIDGE, "train", *MLP, *COMMON, "--steps", "60", "--checkpoint-every", "5",
                 "--out", "cut", "-q"]
        job = subprocess.Popen(words, cwd=self.folder, env=environment(self.gpus), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not os.path.isdir(self.path("cut/checkpoints/step-10")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        for process in children(job.pid)[:1]:
            os.kill(process, signal.SIGKILL)
        job.wait(timeout=60)
        done = self.ridge("train", "--resume", "cut", "--devices", "2", env=self.gpus)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"], whole["parameters_sha256"])

    def refused(self, code, text, ranks, *words, **variables):
        done = self.ridge("train", *MLP, *COMMON, "--steps", "2", "--devices", str(ranks), *words, "--out", "refused",
                          env={**self.gpus, **variables})
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        shutil.rmtree(self.path("refused"), ignore_errors=True)

    def test_what_cannot_be_is_refused(self):
        self.refused(6, "ridge: ranks 0 and 1 have one GPU, GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0. hint: as many "
                        "--devices as GPUs, and --device cuda without a number\n", 2, RIDGE_FAKE_CUDA_DEVICES="1")

    def test_what_a_training_refuses_its_plan_refuses_too(self):
        on_host = "exchanges on the host, which does not reach the memory of 'cuda'. hint: "
        for words, text, planned in (
                (["--devices", "2", "--wire", "bf16"],
                 "--wire bf16 is for memory that the host reaches, and --device is 'cuda'. hint: --wire f32", True),
                (["--mesh", "d=2"], f"--mesh d=2: a mesh {on_host}--devices 2 without --mesh", True),
                (["--mesh", "p=2", "--accumulate", "4"], f"--mesh p=2: a mesh {on_host}--devices 2 without --mesh", True),
                (["--devices", "2", "--overlap", "on"], f"--overlap on {on_host}--overlap off", False)):
            with self.subTest(words):
                job = [*MLP, "--data", "synthetic", "--batch", "12", "--device", "cuda", *words]
                for verb in (["train", "--out", "refused"], *([["plan"]] if planned else [])):
                    done = self.ridge(*verb, *job, env=self.gpus)
                    self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (5, f"ridge: {text}"))
                self.assertFalse(os.path.exists(self.path("refused")))
        elsewhere = [*MLP, "--batch", "12", "--on", "h100-sxm"]
        for words in (["--mesh", "d=2"], ["--mesh", "p=2", "--accumulate", "4"], ["--devices", "2", "--wire", "bf16"]):
            self.ok("plan", *elsewhere, *words, env=self.gpus)

    def test_an_nccl_that_fails_ends_all_ranks_with_its_reason(self):
        for call, text in (("ncclGetUniqueId:1:2", "ncclGetUniqueId failed: unhandled system error (2)"),
                           ("ncclCommInitRank:1:2", "ncclCommInitRank failed: unhandled system error (2)"),
                           ("ncclSend:3:1", "ncclSend failed: unhandled cuda error (1)")):
            self.refused(6, text, 2, RIDGE_FAKE_NCCL_FAIL=call)

    def test_a_late_rank_is_named(self):
        words = [*MPIRUN["openmpi"], "-n", "2", RIDGE, "train", *MLP, *COMMON, "--steps", "100000", "--out", "late", "-q",
                 "--late-after", "2"]
        job = subprocess.Popen(words, cwd=self.folder, env=environment(self.gpus), text=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while not os.path.exists(self.path("late/status.json")) or len(children(job.pid)) < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        time.sleep(1)
        stopped = children(job.pid)[1]
        os.kill(stopped, signal.SIGSTOP)
        _, err = job.communicate(timeout=60)
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(err, "rank 1")


if __name__ == "__main__":
    unittest.main()
