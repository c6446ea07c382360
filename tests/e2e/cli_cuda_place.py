"""Parameters of a GPU's run that rest on its host, on a driver that runs on the host: --place."""
import json
import os
import shutil
import struct
import unittest

from _ridge import FAKE_GPU, RidgeTest

GPT = ["gpt:layers=1,hidden=32,heads=2,vocab=512,context=8", "--batch", "4"]
PLACED = ["--place", "pos.*=cpu"]
CASES = ([], ["--precision", "bf16"], ["--kernel-launch", "single"], ["--recompute", "all"],
         ["--optimizer", "sgd", "--slices", "2"], ["--offload", "optimizer"],
         ["--precision", "f16"], ["--freeze", "tok.*"],
         ["--accumulate", "2", "--slices", "2", "--clip-norm", "0.1", "--ema", "0.9"])
TABLE = """graph net
  ids = input i64[batch=32,5]
  label = input i64[batch=32]
  table = parameter f32[65536,64] init=normal(1)
  x = gather(table, ids)
  h = reduce_mean(x, axes=[1])
  fc = parameter f32[3,64] init=normal(1)
  logits = matmul(h, fc, transpose_b=1)
  each = softmax_cross_entropy(logits, label)
  loss = reduce_mean(each)
  output loss
  output logits
"""


class Place(RidgeTest):
    def losses(self, out):
        with open(self.path(f"{out}/metrics.jsonl")) as file:
            return [json.loads(line)["loss"] for line in file if '"loss"' in line]

    def parameter(self, out, name):
        """Its numbers of f32 in the last checkpoint."""
        with open(self.path(f"{out}/checkpoints/step-4/parameters.safetensors"), "rb") as file:
            size, = struct.unpack("<Q", file.read(8))
            begin, end = json.loads(file.read(size))[name]["data_offsets"]
            file.seek(8 + size + begin)
            return struct.unpack(f"<{(end - begin) // 4}f", file.read(end - begin))

    def assert_updated_alike(self, plain, there, words):
        """Each update of adam moves most numbers by the learning rate, 1e-3."""
        for name in ("pos.weight", "tok.weight"):
            pairs = list(zip(self.parameter(plain, name), self.parameter(there, name)))
            mean = sum(abs(a - b) for a, b in pairs) / len(pairs)
            self.assertLess(mean, 1e-4, f"{name} {words}")

    def test_a_placed_run_learns_what_the_gpu_learns(self):
        for i, words in enumerate(CASES):
            self.train_on_gpu(f"plain{i}", *GPT, *words)
            there = self.train_on_gpu(f"there{i}", *GPT, *words, *PLACED, "--place", "tok.*=cpu")
            losses = self.losses(f"plain{i}")
            self.assertGreater(len(losses), 0)
            self.assertEqual(len(losses), len(self.losses(f"there{i}")))
            for have, want in zip(self.losses(f"there{i}"), losses):
                self.assertAlmostEqual(have, want, delta=1e-3 * abs(want), msg=str(words))
            self.assert_updated_alike(f"plain{i}", f"there{i}", words)
            self.assertLessEqual(there["measured"]["peak_bytes"], there["planned"]["peak_bytes"])
            self.assertEqual(there["device_bytes"]["verdict"], "proven", words)

    def test_two_runs_and_one_that_is_resumed_have_the_same_bits(self):
        first = self.train_on_gpu("first", *GPT, *PLACED)
        second = self.train_on_gpu("second", *GPT, *PLACED, "--checkpoint-every", "2",
                                   RIDGE_FAKE_CUDA_DELAY_US="30")
        self.assertEqual(first["parameters_sha256"], second["parameters_sha256"])
        shutil.rmtree(self.path("second/checkpoints/step-4"))
        os.remove(self.path("second/summary.json"))
        done = self.ridge("train", "--resume", "second", env=FAKE_GPU)
        self.assertRegex(done.stderr, "second: resuming at step 2 of 4")
        self.assertRegex(self.ok("compare", "first", "second"), "^equal: ")

    def test_a_profile_judges_by_the_gpu_only_what_the_gpu_runs(self):
        words = ["profile", *GPT, "--device", "cuda", "--steps", "3"]
        placed = json.loads(self.ok(*words, "--place", "*=cpu", "--json", env=FAKE_GPU))
        hosts = [group for group in placed["groups"] if group["on_host"]]
        self.assertIn("head.weight.updated", [n["name"] for n in placed["nodes"] if n["on_host"]])
        for group in hosts:
            self.assertEqual((group["limit_s"], group["level"], group["cause"]), (0, "host", ""))
        self.assertLess(len(hosts), len(placed["groups"]))
        apart = [row for row in placed["rows"] if row["name"].endswith(" by the host")]
        self.assertEqual(sum(row["limit_s"] for row in apart), 0)
        self.assertGreater(sum(row["nodes"] for row in apart), 0)
        plain = json.loads(self.ok(*words, "--json", env=FAKE_GPU))
        self.assertFalse(any(node["on_host"] for node in plain["nodes"]))

    def test_a_resumed_run_has_the_threads_of_its_host(self):
        done = self.ridge("train", *GPT, "--data", "synthetic", "--steps", "2", "--device", "cuda",
                          "--place", "*=cpu", "--threads", "2", "--out", "run", env=FAKE_GPU)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("run/options.json")) as file:
            self.assertEqual(json.load(file)["threads"], 2)
        other = self.ridge("train", "--resume", "run", "--steps", "4", "--threads", "1",
                           env=FAKE_GPU)
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertRegex(other.stderr.splitlines()[-1],
                         "resuming with 1 threads; the run has used 2: ")
        again = self.ridge("train", "--resume", "run", "--steps", "4", "--place", "auto",
                           env=FAKE_GPU)
        self.assertEqual(again.returncode, 0, again.stderr)  # auto is what was chosen then

    def test_auto_places_tables_where_the_plan_does_not_fit_without(self):
        table = ["gpt:layers=1,hidden=64,heads=2,vocab=20000,context=8", "--batch", "4"]
        for memory, placed in (("64MiB", []), ("37MiB", ["tok.weight"])):
            done = self.ridge("plan", *table, "--device", "cuda", "--device-memory", memory,
                              "--place", "auto", "--json", env=FAKE_GPU)
            self.assertEqual(done.returncode, 0, done.stderr)
            plan = json.loads(done.stdout)
            self.assertEqual(plan.get("offload", {}).get("placed", []), placed, memory)
        run = self.train_on_gpu("run", *table, "--device-memory", "37MiB", "--place", "auto")
        self.assertEqual(run["device_bytes"]["verdict"], "proven")
        with open(self.path("run/options.json")) as file:
            self.assertEqual(json.load(file)["place"], ["tok.weight=cpu"])

    # Tables for which a copy crosses in each step come last.
    def test_auto_places_a_tied_head_where_nothing_else_makes_room(self):
        tied = ["gpt:layers=1,hidden=64,heads=2,vocab=16384,context=8,tied=1", "--batch", "2"]
        run = self.train_on_gpu("run", *tied, "--device-memory", "20MiB", "--place", "auto")
        self.assertEqual(run["device_bytes"]["verdict"], "proven")
        self.assertEqual(self.read_json("run/options.json")["place"], ["tok.weight=cpu"])

    def test_evaluations_and_predictions_keep_on_the_host_what_the_run_has_there(self):
        """Of a table of 16 MiB, which the GPU has no memory for by then."""
        with open(self.path("net.ridge"), "w") as file:
            file.write(TABLE)
        small = {**FAKE_GPU, "RIDGE_FAKE_CUDA_BYTES": str(12 << 20)}
        for out, words in (("run", []), ("averaged", ["--ema", "0.9"])):
            self.train_on_gpu(out, "net.ridge", "--batch", "32", "--place", "table=cpu", *words)
            losses = []
            for device, env in (("cuda", small), ("cpu", None)):
                done = self.ridge("eval", out, "--data", "synthetic", "--device", device, "--json",
                                  env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
                losses.append(json.loads(done.stdout)["loss"])
            self.assertAlmostEqual(*losses, delta=1e-4)
            with open(self.path("rows.csv"), "w") as file:
                file.write("a,b,c,d,e\n1,2,3,4,5\n65535,9,8,7,6\n")
            chances = []
            for device, env in (("cuda", small), ("cpu", None)):
                done = self.ridge("predict", out, "rows.csv", "--device", device, "--json",
                                  env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
                chances.append([row["probability"] for row in json.loads(done.stdout)["predictions"]])
            for on_gpu, on_cpu in zip(*chances, strict=True):
                self.assertAlmostEqual(on_gpu, on_cpu, delta=1e-4)

    def test_the_plan_says_what_rests_on_the_host_and_what_crosses(self):
        done = self.ridge("plan", *GPT, "--device", "cuda", "--place", "tok.*=cpu", env=FAKE_GPU)
        self.assertRegex(done.stdout, r"\n  on the host: tok\.weight, 2\.00 MiB of its memory; "
                                      r"4\.00 KiB to the device and 4\.26 KiB back in an update\n")

    def test_what_has_no_host_is_refused(self):
        def refused(code, text, *words):
            done = self.ridge("plan", *GPT, "--threads", "1", *words, env=FAKE_GPU)
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1]),
                             (code, "ridge: " + text))
        refused(2, "--place is 'tok': 'tok' is not PATTERN=cpu. hint: --place 'embed.*=cpu', or "
                   "--place auto", "--device", "cuda", "--place", "tok")
        refused(5, "--place is 'tok.*=cpu'; h100-sxm has no memory beside its host's, or is not "
                   "here. hint: --device cuda", "--on", "h100-sxm", "--place", "tok.*=cpu")


if __name__ == "__main__":
    unittest.main()
