"""--bucket: batches of texts of one length each."""
import json
import os
import random
import shutil
import unittest

from _ridge import RidgeTest

MODEL = "bert:hidden=16,layers=2,heads=2,mask=1"
LENGTHS = ((8, 16), (16, 8), (32, 4))  # tokens, batch


class Bucket(RidgeTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        words = ["alpha", "beta", "gamma", "delta", "epsilon"]
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words
        os.mkdir(self.path("tokenizer"))
        self.write("tokenizer/vocab.txt", "\n".join(vocabulary) + "\n")
        os.mkdir(self.path("texts"))
        for kind in range(2):
            lines = [" ".join(draw.choice(words[2 * kind:2 * kind + 3])
                              for _ in range(draw.choice([3, 4, 5, 9, 25]))) for _ in range(120)]
            self.write(f"texts/{'ab'[kind]}.txt", "\n".join(lines))
        self.words = ["train", MODEL, "--data", "text:texts,tokenizer=tokenizer,length=32",
                      "--validation", "0.2", "--batch", "4", "--threads", "1", "--lr", "3e-3",
                      "--checkpoint-every", "5", "-q"]

    def summary(self, run):
        with open(self.path(f"{run}/summary.json")) as file:
            return json.load(file)

    def inputs_beside_the_plan(self, run):
        """Bytes that were measured and not planned, such as the tables of a tokenizer."""
        measured, planned = (self.summary(run)[k]["input_bytes"] for k in ("measured", "planned"))
        return measured - planned

    def plan(self, run):
        with open(self.path(f"{run}/plan.json")) as file:
            return json.load(file)

    def test_it_learns_in_fewer_steps_and_the_run_goes_on_as_any_other(self):
        self.ok(*self.words, "--epochs", "8", "--bucket", "8,16", "--out", "run")
        plan, summary = self.plan("run"), self.summary("run")
        self.assertEqual([(of["length"], of["batch"]) for of in plan["lengths"]], list(LENGTHS))
        self.assertEqual([of["step"] for of in plan["lengths"]], ["train.8", "train.16", "train"])
        batches = sum(of["batches"] for of in plan["lengths"])
        samples = sum(of["batches"] * of["batch"] for of in plan["lengths"])
        self.assertEqual(summary["steps"], 8 * batches)
        self.assertLess(batches, 192 // 4)
        self.assertLess(summary["skipped_samples"], 4)
        self.assertAlmostEqual(samples + summary["skipped_samples"], 192, delta=8)
        mean = sum(of["batches"] * of["step_s"] for of in plan["lengths"]) / batches
        self.assertAlmostEqual(plan["step_s"], mean, delta=1e-6 * mean)
        words = list(self.words)
        words[words.index("--batch") + 1] = "64"
        for run, more in (("plain", []), ("large", ["--bucket", "8,16"])):
            self.ok(*words, "--epochs", "1", "--out", run, *more)
        # Slots of the two shorter lengths take 128 KiB.
        self.assertAlmostEqual(self.inputs_beside_the_plan("large"),
                               self.inputs_beside_the_plan("plain"), delta=16 << 10)
        shutil.rmtree(self.path("tokenizer"))
        evaluation = json.loads(self.ok("eval", "run", "--data", "text:texts,length=32", "--json"))
        self.assertGreater(evaluation["accuracy"], 0.8)
        self.ok("export", "run", "--to", "onnx", "--out", "net.onnx")
        said = json.loads(self.ok("predict", "run", "alpha beta gamma", "--json"))
        self.assertIn("a", json.dumps(said))
        self.ok("train", "--resume", "run", "--epochs", "9", "--threads", "1", "-q")
        self.assertEqual(self.summary("run")["steps"], 9 * batches)

    def test_a_resumed_run_and_one_with_other_workers_have_the_same_bits(self):
        words = [*self.words, "--bucket", "8,16", "--ema", "0.9", "--clip-norm", "1"]
        self.ok(*words, "--epochs", "2", "--out", "whole")
        self.ok(*words, "--epochs", "2", "--workers", "3", "--out", "shared")
        steps = self.summary("whole")["steps"]
        for stop in (3, steps // 2, steps - 1):
            run = f"cut{stop}"
            self.ok(*words, "--steps", str(stop), "--out", run)
            self.ok("train", "--resume", run, "--epochs", "2", "--threads", "1", "-q")
            self.assertEqual(self.summary(run)["parameters_sha256"],
                             self.summary("whole")["parameters_sha256"], stop)
        self.assertEqual(self.summary("shared")["parameters_sha256"],
                         self.summary("whole")["parameters_sha256"])

    def test_it_crosses_with_slices_recomputation_adapters_weights_and_precision(self):
        for more in (["--slices", "4"], ["--recompute", "all"], ["--lora", "rank=2"],
                     ["--class-weights", "auto"], ["--label-smoothing", "0.1"],
                     ["--freeze", "bert.embeddings.*"], ["--lr-for", "classifier.*=2"],
                     ["--passes=-layout"], ["--threads", "2"]):
            with self.subTest(more=more):
                run = "_".join(more)
                self.ok(*self.words, "--bucket", "8", "--epochs", "2", "--out", run, *more)
                measured, planned = (self.summary(run)[k] for k in ("measured", "planned"))
                self.assertLessEqual(measured["peak_bytes"], planned["peak_bytes"])

    def test_a_plan_without_data_has_the_steps(self):
        plan = json.loads(self.ok("plan", MODEL + ",tokens=32", "--batch", "4", "--bucket", "8,16",
                                  "--threads", "1", "--json"))
        self.assertEqual([(of["length"], of["batch"]) for of in plan["lengths"]], list(LENGTHS))
        self.assertEqual([step["name"] for step in plan["steps"]],
                         ["train", "train.8", "train.16", "eval"])
        text = self.ok("plan", MODEL + ",tokens=32", "--batch", "4", "--bucket", "8,16", "--threads",
                       "1")
        self.assertIn("tokens  batch  batches an epoch", text)

    def test_what_cannot_be_is_refused(self):
        data = ["--data", "text:texts,tokenizer=tokenizer,length=32", "--batch", "4", "-q"]
        self.refused(5, "mlp: batches of several lengths need the input attention_mask, which hides "
                     "the padding. hint: leave --bucket out, or take a model with that input, such as "
                     "bert:mask=1", "train", "mlp", "--data", "synthetic", "--bucket", "8", "-q")
        self.refused(5, "bert_tiny: batches of several lengths need the input attention_mask, which "
                     "hides the padding. hint: mask=1 behind the model, or leave --bucket out",
                     "train", "bert_tiny", "--data", "synthetic", "--bucket", "8", "-q")
        self.refused(2, "--bucket is '64'; the samples are 32 tokens long, and lengths must be below "
                     "that. hint: length=N behind the data sets it",
                     "train", MODEL, *data, "--bucket", "64")
        self.refused(2, "--bucket is '16,8'; it must be ascending lengths, such as 64,128",
                     "train", MODEL, *data, "--bucket", "16,8")
        self.refused(2, "--bucket makes an update of one batch of texts of one length, each text "
                     "once an epoch; --accumulate does not. hint: leave one of both out",
                     "train", MODEL, *data, "--bucket", "8", "--accumulate", "2")
        self.refused(2, "--slices is 4; with --bucket 12 it must divide each batch, so 2",
                     "train", MODEL, *data, "--bucket", "12", "--slices", "4")


if __name__ == "__main__":
    unittest.main()
