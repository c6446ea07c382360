"""Adapters and averages of ONNX files and tables: what is trained, used and exported."""
import csv
import io
import json
import unittest

import onnx_train as base
from _ridge import RidgeTest

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError:  # scripts/setup.sh --test-tools brings them
    onnx = None


@unittest.skipIf(onnx is None, "needs numpy and onnx")
class OnnxTuning(RidgeTest):
    write_mlp = base.OnnxTrainTest.write_mlp
    write_data = base.OnnxTrainTest.write_data
    train_mlp = base.OnnxTrainTest.train_mlp
    parameters = base.OnnxTrainTest.parameters

    def setUp(self):
        super().setUp()
        self.write_mlp()
        self.write_data()

    def exported(self):
        self.ok("export", "run", "--to", "onnx", "--out", "trained.onnx")
        graph = onnx.load(self.path("trained.onnx")).graph
        return {t.name: numpy_helper.to_array(t) for t in graph.initializer}

    def outputs(self, model):
        np.savez(self.path("x.npz"), x=base.random(5, 4, seed=7))
        self.ok("run", model, "--inputs", "x.npz", "--outputs", "y.npz")
        return np.load(self.path("y.npz"))["y"]

    def loss(self, model, *words):
        return json.loads(self.ok("eval", model, "--data", "npz:data.npz", "--json", *words))["loss"]

    def test_adapters_are_merged_into_the_exported_file(self):
        self.train_mlp("--lora", "rank=2,alpha=8,target=fc*.weight", "--trainable", "fc2.bias")
        left = self.parameters()
        start = {"fc1": base.random(4, 16), "fc2": base.random(16, 3, seed=1) * np.float32(0.1)}
        merged = self.exported()
        for name, weight in start.items():
            np.testing.assert_array_equal(left[f"{name}.weight"], weight)
            a, b = left[f"{name}.lora_A.weight"], left[f"{name}.lora_B.weight"]
            self.assertGreater(np.abs(b).max(), 0)
            np.testing.assert_allclose(merged[f"{name}.weight"], weight + 4 * (b @ a).T, atol=1e-6)
        self.assertEqual(sorted(merged), ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"])
        np.testing.assert_array_equal(merged["fc1.bias"], np.zeros(16))
        np.testing.assert_array_equal(merged["fc2.bias"], left["fc2.bias"])
        np.testing.assert_allclose(self.outputs("run"), self.outputs("trained.onnx"), atol=1e-5)
        self.assertAlmostEqual(self.loss("run"), self.loss("trained.onnx", "--loss",
                                                           "cross_entropy:y"), places=5)

    def test_averages_are_what_is_evaluated_and_exported(self):
        self.train_mlp("--ema", "0.9")
        left = self.parameters()
        for name, array in self.exported().items():
            np.testing.assert_array_equal(array, left[f"{name}.ema"])
            self.assertFalse(np.array_equal(array, left[name]))
        self.assertAlmostEqual(self.loss("run"), self.loss("trained.onnx", "--loss",
                                                           "cross_entropy:y"), places=5)

    def test_a_run_with_adapters_predicts_as_its_exported_file(self):
        rows = "".join(f"{i % 7},{i % 5},{'abc'[(i % 7 + i % 5) // 4]}\n" for i in range(70))
        self.write("data.csv", "u,v,kind\n" + rows)
        self.ok("train", "mlp:hidden=16", "--data", "csv:data.csv", "--validation", "0.2", "--lora",
                "rank=4,alpha=8", "--ema", "0.8", "--label-smoothing", "0.1", "--class-weights",
                "auto", "--lr", "0.05", "--epochs", "5", "--out", "table", "-q")
        self.ok("export", "table", "--checkpoint", "best", "--to", "onnx", "--out", "table.onnx")
        answers = []
        for model in (["table", "--checkpoint", "best"], ["table.onnx"]):
            text = self.ok("predict", *model, "data.csv", "--csv", "-")
            answers.append(list(csv.reader(io.StringIO(text))))
        self.assertEqual(len(answers[0]), 71)
        for ours, files in zip(*answers):
            self.assertEqual(len(ours), len(files))
            for a, b in zip(ours, files):
                if a != b:
                    self.assertAlmostEqual(float(a), float(b), places=4)

    def test_options_for_the_step_are_refused_beside_a_step_of_the_file(self):
        self.ok("export", "mlp.onnx", "--to", "onnx", "--out", "step.onnx", "--with-training",
                "--loss", "cross_entropy:y")
        for words in (["--lora", "rank=1"], ["--ema", "0.9"], ["--lr-for", "fc1.*=2"],
                      ["--label-smoothing", "0.1"], ["--class-weights", "1,1,1"], ["--focal", "1"]):
            self.refused(2, f"step.onnx: brings its own training step, which {words[0]} cannot "
                         "change. hint: leave it out, or give --loss: then the step is ridge's",
                         "train", "step.onnx", "--data", "npz:data.npz", "--batch", "16", *words)


if __name__ == "__main__":
    unittest.main()
