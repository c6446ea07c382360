"""Training steps in ONNX files (TrainingInfoProto): written, run by ONNX's reference evaluator, and
trained from again."""
import json
import os
import unittest

from _ridge import RidgeTest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError:  # scripts/setup.sh --test-tools brings them
    onnx = None

PREVIEW = "ai.onnx.preview.training"
SAMPLES = 24


def random(*dims, seed=0):
    return np.random.default_rng(seed).standard_normal(dims).astype("float32")


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "BOOL": np.bool_}
    tensors = {}
    for name, info in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = info["data_offsets"]
        flat = np.frombuffer(data[8 + length + begin:8 + length + end], kinds[info["dtype"]])
        tensors[name] = flat.reshape(info["shape"])
    return tensors


def value(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def opset_imports():
    return [helper.make_opsetid("", 17), helper.make_opsetid(PREVIEW, 1)]


class Step:
    """A file's training step as the standard describes it: graph and algorithm in a row in one
    scope, then the bindings.  The reference evaluator runs all nodes; it has no Gradient, so the
    derivatives are central differences of the nodes before it."""

    def __init__(self, path):
        self.model = onnx.load(path)
        self.info = self.model.training_info[0]
        tensors = list(self.model.graph.initializer) + list(self.info.algorithm.initializer)
        self.variables = {t.name: numpy_helper.to_array(t) for t in tensors}
        self.bind(self.info.initialization_binding, self.evaluate(self.info.initialization, {}))

    def whole(self):
        """Graph and algorithm in a row."""
        graph, algorithm = self.model.graph, self.info.algorithm
        both = helper.make_graph(*(list(getattr(graph, part)) + list(getattr(algorithm, part))
                                   if part else "whole"
                                   for part in ("node", "", "input", "output", "initializer")))
        return helper.make_model(both, opset_imports=list(self.model.opset_import),
                                 ir_version=self.model.ir_version)

    def bind(self, bindings, values):
        new = {b.key: values[b.value] for b in bindings}
        for name, array in new.items():
            assert array.shape == self.variables[name].shape, name
        # numpy computes some scalars of the optimizers in f64.
        self.variables.update({n: a.astype(self.variables[n].dtype) for n, a in new.items()})

    def evaluate(self, graph, feeds, names=None):
        names = names or [o.name for o in graph.output]
        if not names:
            return {}
        infos = [helper.make_value_info(n, onnx.TypeProto()) for n in names]
        copy = helper.make_graph(list(graph.node), "part", [
            value(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
            infos, list(graph.initializer))
        model = helper.make_model(copy, opset_imports=list(self.model.opset_import))
        return dict(zip(names, ReferenceEvaluator(model).run(names, feeds)))

    def nodes(self, first, last):
        whole = list(self.model.graph.node) + list(self.info.algorithm.node)
        return helper.make_graph(whole[first:last], "part", [], [])

    def gradients(self, node, before, feeds):
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        y = attributes["y"].decode()

        def loss(changed):
            return float(self.evaluate(before, {**feeds, **changed}, [y])[y])

        result = {}
        for x, output in zip(attributes["xs"], node.output):
            x = x.decode()
            start = feeds[x].astype("float64")
            gradient = np.zeros_like(start)
            for at in np.ndindex(*start.shape):
                step = np.zeros_like(start)
                step[at] = 1e-5
                gradient[at] = (loss({x: start + step}) - loss({x: start - step})) / 2e-5
            result[output] = gradient.astype("float32")
        return result

    def run(self, **data):
        """One update; gives the loss.  Differences are taken in f64."""
        feeds = {**self.variables, **data}
        wide = {n: a.astype("float64") if a.dtype == np.float32 else a for n, a in feeds.items()}
        whole = list(self.model.graph.node) + list(self.info.algorithm.node)
        at = next(i for i, n in enumerate(whole) if n.op_type == "Gradient")
        before = self.nodes(0, at)
        made = self.gradients(whole[at], before, wide)
        loss = self.info.algorithm.output[0].name
        result = self.evaluate(before, feeds, [loss])[loss]
        feeds = {**feeds, **made, loss: result}
        bound = [b.value for b in self.info.update_binding]
        self.bind(self.info.update_binding,
                  self.evaluate(self.nodes(at + 1, len(whole)), feeds, bound))
        return float(result)


@unittest.skipIf(onnx is None, "needs numpy and onnx")
class TrainingInfoTest(RidgeTest):

    def setUp(self):
        super().setUp()
        x = random(SAMPLES, 4, seed=2)
        self.data = {"x": x, "label": np.argmax(x[:, :3], axis=1).astype("int64"),
                     "target": random(SAMPLES, 3, seed=5)}

    def write_model(self, end="Identity", extra=()):
        """x [N,4] -> [N,5] -> y [N,3], tanh between."""
        attributes = {"axis": -1} if end == "Softmax" else {}
        graph = helper.make_graph(
            [helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["a"], "fc1"),
             helper.make_node("Tanh", ["a"], ["h"], "tanh"),
             helper.make_node("MatMul", ["h", "fc2.weight"], ["z"], "fc2"),
             helper.make_node(end, ["z"], ["y"], "end", **attributes), *extra],
            "net", [value("x", TensorProto.FLOAT, ["N", 4])],
            [value("y", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(random(4, 5), "fc1.weight"),
             numpy_helper.from_array(np.zeros(5, "float32"), "fc1.bias"),
             numpy_helper.from_array(random(5, 3, seed=1), "fc2.weight")])
        onnx.save(helper.make_model(graph, opset_imports=opset_imports()[:1], ir_version=8),
                  self.path("net.onnx"))

    def save_data(self, *names):
        np.savez(self.path("data.npz"), **{n: self.data[n] for n in names})

    def train(self, model, *words, out="run", steps=3):
        """Losses of each step, and the variables afterwards.  The batch is all of the data, so its
        order means nothing."""
        self.ok("train", model, "--data", "npz:data.npz", "--batch", str(SAMPLES), "--steps",
                str(steps), "--checkpoint-every", "1", "--keep", "99", "--threads", "1", "--out",
                out, "-q", *words)
        with open(self.path(f"{out}/metrics.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        tensors = {}
        for name in ("parameters", "state"):
            tensors.update(read_safetensors(
                self.path(f"{out}/checkpoints/step-{steps}/{name}.safetensors")))
        return [line["loss"] for line in lines if "loss" in line], tensors

    def export(self, model, *words, out="step.onnx"):
        self.ok("export", model, "--to", "onnx", "--with-training", "--out", out, "-q", *words)
        step = Step(self.path(out))
        onnx.checker.check_model(step.model)
        onnx.checker.check_model(step.whole())  # which the standard calls the training graph
        return step

    # adam divides by the gradient's own size, so where that is small its rounding is not.
    ADAM = 5e-4

    def compare(self, kind, data, words, tolerance=2e-5):
        self.save_data("x", data)
        step = self.export("net.onnx", "--loss", f"{kind}:y", "--lr", "0.1", *words)
        expected = [step.run(x=self.data["x"], **{data: self.data[data]}) for _ in range(3)]
        plain, plain_tensors = self.train("net.onnx", "--loss", f"{kind}:y", "--lr", "0.1", *words)
        own, own_tensors = self.train("step.onnx", out="own")
        np.testing.assert_allclose(own, expected, rtol=tolerance)
        np.testing.assert_allclose(plain, expected, rtol=tolerance)
        for name in ("fc1.weight", "fc1.bias", "fc2.weight"):
            for tensors in (own_tensors, plain_tensors):
                np.testing.assert_allclose(tensors[name], step.variables[name], atol=tolerance)
        self.assertEqual(int(own_tensors["training.step"]), 4)

    def test_sgd(self):
        self.write_model()
        self.compare("cross_entropy", "label", ["--optimizer", "sgd"])

    def test_momentum_and_weight_decay(self):
        self.write_model()
        self.compare("mse", "target", ["--optimizer", "sgd", "--momentum", "0.9",
                                       "--weight-decay", "0.01"])

    def test_adam_behind_a_softmax(self):
        self.write_model(end="Softmax")
        self.compare("cross_entropy", "label", ["--optimizer", "adam"], self.ADAM)

    def test_adamw(self):
        self.write_model()
        self.compare("mse", "target", ["--optimizer", "adamw", "--weight-decay", "0.1"],
                     self.ADAM)

    def test_bce_behind_a_sigmoid(self):
        self.write_model(end="Sigmoid")
        self.data["target"] = (self.data["target"] > 0).astype("float32")
        self.compare("bce", "target", ["--optimizer", "sgd"])

    def test_names_of_the_model_are_left_alone(self):
        extra = [helper.make_node("Identity", ["z"], ["loss"], "loss"),
                 helper.make_node("Identity", ["z"], ["label"], "label")]
        self.write_model(extra=extra)
        self.save_data("x", "label")
        step = self.export("net.onnx", "--loss", "cross_entropy:y", "--optimizer", "sgd")
        self.assertEqual(step.info.algorithm.input[0].name, "label_2")
        loss = step.run(x=self.data["x"], label_2=self.data["label"])
        np.savez(self.path("data.npz"), x=self.data["x"], label_2=self.data["label"])
        own, _ = self.train("step.onnx", steps=1)
        self.assertAlmostEqual(own[0], loss, places=5)

    def test_an_output_that_does_not_say_its_extents(self):
        self.write_model()
        model = onnx.load(self.path("net.onnx"))
        for dim in model.graph.output[0].type.tensor_type.shape.dim:
            dim.Clear()
        onnx.save(model, self.path("net.onnx"))
        self.compare("cross_entropy", "label", ["--optimizer", "sgd"])

    def test_a_run_exports_the_step_that_it_was_trained_with(self):
        self.write_model()
        self.save_data("x", "target")
        words = ["--loss", "mse:y", "--optimizer", "sgd", "--lr", "0.05", "--momentum", "0.5"]
        self.train("net.onnx", *words, "--freeze", "fc1.*")
        step = self.export("run")
        self.assertEqual({b.key for b in step.info.update_binding},
                         {"fc2.weight", "fc2.weight.momentum", "training.step"})
        self.assertAlmostEqual(float(step.variables["training.rate"]), 0.05)
        node = next(n for n in step.info.algorithm.node if n.op_type == "Momentum")
        alpha = next(a.f for a in node.attribute if a.name == "alpha")
        self.assertAlmostEqual(alpha, 0.5)

    def test_a_run_exports_the_loss_that_it_was_trained_with(self):
        shapes = (["--class-weights", "1,2.5,0.5"], ["--label-smoothing", "0.1"], ["--focal", "2"],
                  ["--label-smoothing", "0.2", "--class-weights", "1,2.5,0.5", "--focal", "1.5"])
        self.write_model()
        self.save_data("x", "label")
        for number, shape in enumerate(shapes):
            with self.subTest(shape=shape):
                words = ["--loss", "cross_entropy:y", "--optimizer", "sgd", *shape]
                self.train("net.onnx", *words, "--lr", "1e-12", steps=1, out=f"start{number}")
                step = self.export(f"start{number}", "--lr", "0.1", out=f"step{number}.onnx")
                expected = [step.run(x=self.data["x"], label=self.data["label"]) for _ in range(3)]
                plain, _ = self.train("net.onnx", *words, "--lr", "0.1", out=f"plain{number}")
                own, _ = self.train(f"step{number}.onnx", out=f"own{number}")
                np.testing.assert_allclose(plain, expected, rtol=2e-5)
                np.testing.assert_allclose(own, expected, rtol=2e-5)

    def test_a_language_model_has_its_classes_last(self):
        model = "gpt:vocab=20,context=4,hidden=8,layers=1,heads=2"
        tokens = np.random.default_rng(1).integers(0, 20, (SAMPLES, 4))
        np.savez(self.path("data.npz"), tokens=tokens, label=(tokens + 1) % 20)
        plain, _ = self.train(model, "--optimizer", "sgd", "--lr", "0.1", out="plain")
        self.ok("export", model, "--to", "onnx", "--with-training", "--optimizer", "sgd", "--lr",
                "0.1", "--out", "gpt.onnx", "-q")
        own, _ = self.train("gpt.onnx", out="own")
        np.testing.assert_allclose(own, plain, rtol=1e-5)

    def test_a_run_of_a_file_with_a_step_goes_on_evaluates_and_exports(self):
        self.write_model()
        self.save_data("x", "label")
        self.export("net.onnx", "--loss", "cross_entropy:y", "--optimizer", "adam")
        whole, tensors = self.train("step.onnx", out="whole", steps=4)
        os.remove(self.path("step.onnx"))
        result = json.loads(self.ok("eval", "whole", "--data", "npz:data.npz", "--json"))
        self.assertEqual(result["samples"], SAMPLES)
        np.savez(self.path("in.npz"), x=self.data["x"])
        self.ok("run", "whole", "--inputs", "in.npz", "--outputs", "out.npz", "-q")
        self.ok("export", "whole", "--to", "onnx", "--out", "trained.onnx", "-q")
        trained = Step(self.path("trained.onnx"))
        np.testing.assert_array_equal(trained.variables["fc1.weight"], tensors["fc1.weight"])
        stored = {t.name: numpy_helper.to_array(t)
                  for t in trained.info.algorithm.initializer}
        np.testing.assert_array_equal(stored["fc1.weight.m"], tensors["fc1.weight.m"])
        y = ReferenceEvaluator(trained.model).run(["y"], {"x": self.data["x"]})[0]
        np.testing.assert_allclose(np.load(self.path("out.npz"))["y"], y, rtol=1e-4, atol=1e-5)

    def test_resumed_is_bit_equal(self):
        self.write_model()
        self.save_data("x", "label")
        self.export("net.onnx", "--loss", "cross_entropy:y", "--optimizer", "adam")
        self.train("step.onnx", out="whole", steps=4)
        self.train("step.onnx", out="part", steps=4)
        for step in (3, 4):  # as if it had been killed in step 3
            folder = self.path(f"part/checkpoints/step-{step}")
            for name in os.listdir(folder):
                os.remove(os.path.join(folder, name))
            os.rmdir(folder)
        os.remove(self.path("part/summary.json"))
        self.ok("train", "--resume", "part", "--threads", "1", "-q")
        self.assertEqual(self.read_json("part/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])

    def test_rate_and_count_are_given_when_the_file_asks_for_them(self):
        """A step of somebody else's making: R and T are inputs, the gradient is one node, and the
        loss is what it derives."""
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"], "fc")], "net",
            [value("x", TensorProto.FLOAT, ["N", 4])], [value("y", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(random(4, 3), "w")])
        algorithm = helper.make_graph(
            [helper.make_node("Sub", ["y", "t"], ["e"]),
             helper.make_node("Mul", ["e", "e"], ["ee"]),
             helper.make_node("ReduceMean", ["ee"], ["mean"], keepdims=0),
             helper.make_node("Gradient", ["w"], ["dw"], domain=PREVIEW, xs=["w"], y="mean"),
             helper.make_node("Adagrad", ["R", "T", "w", "dw", "h"], ["w_new", "h_new"],
                              domain=PREVIEW, decay_factor=0.5, epsilon=1e-6,
                              norm_coefficient=0.0)],
            "algorithm",
            [value("t", TensorProto.FLOAT, ["N", 3]), value("R", TensorProto.FLOAT, []),
             value("T", TensorProto.INT64, [])],
            [value("w_new", TensorProto.FLOAT, [4, 3])],
            [numpy_helper.from_array(np.zeros((4, 3), "float32"), "h")])
        model = helper.make_model(graph, opset_imports=opset_imports(), ir_version=8)
        info = model.training_info.add()
        info.algorithm.CopyFrom(algorithm)
        helper.set_metadata_props(model, {})
        for key, name in (("w", "w_new"), ("h", "h_new")):
            binding = info.update_binding.add()
            binding.key, binding.value = key, name
        onnx.save(model, self.path("own.onnx"))
        np.savez(self.path("data.npz"), x=self.data["x"], t=self.data["target"])
        losses, tensors = self.train("own.onnx", "--lr", "0.5", "--schedule", "cosine")
        w, h = random(4, 3).astype("float64"), np.zeros((4, 3))
        for count, loss in enumerate(losses):
            error = self.data["x"] @ w - self.data["target"]
            self.assertAlmostEqual(loss, (error ** 2).mean(), places=5)
            dw = 2 * self.data["x"].T @ error / error.size
            h += dw * dw
            rate = 0.5 * (1 + np.cos(np.pi * count / 3)) / 2
            w -= rate / (1 + 0.5 * count) * dw / (np.sqrt(h) + 1e-6)
        np.testing.assert_allclose(tensors["w"], w, atol=1e-5)

    def test_a_step_may_update_statistics_too(self):
        """Batch norm in training mode; the gradient descent is written in plain nodes."""
        ones, zeros = np.ones(4, "float32"), np.zeros(4, "float32")
        graph = helper.make_graph(
            [helper.make_node("BatchNormalization", ["x", "s", "b", "mean", "var"],
                              ["n", "mean_new", "var_new"], training_mode=1, momentum=0.9),
             helper.make_node("MatMul", ["n", "w"], ["y"])], "net",
            [value("x", TensorProto.FLOAT, ["N", 4])], [value("y", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(a, n) for n, a in
             (("s", ones), ("b", zeros), ("mean", zeros), ("var", ones), ("w", random(4, 3)))])
        nodes = [helper.make_node("SoftmaxCrossEntropyLoss", ["y", "label"], ["cost"]),
                 helper.make_node("Gradient", ["w", "s"], ["dw", "ds"], domain=PREVIEW,
                                  xs=["w", "s"], y="cost")]
        for name in "ws":
            nodes += [helper.make_node("Mul", ["rate", "d" + name], ["u" + name]),
                      helper.make_node("Sub", [name, "u" + name], [name + "_new"])]
        algorithm = helper.make_graph(
            nodes, "algorithm", [value("label", TensorProto.INT64, ["N"])],
            [value("cost", TensorProto.FLOAT, [])],
            [numpy_helper.from_array(np.float32(0.1), "rate")])
        model = helper.make_model(graph, opset_imports=opset_imports(), ir_version=8)
        info = model.training_info.add()
        info.algorithm.CopyFrom(algorithm)
        for name in ("w", "s", "mean", "var"):
            binding = info.update_binding.add()
            binding.key, binding.value = name, name + "_new"
        onnx.save(model, self.path("bn.onnx"))
        self.save_data("x", "label")
        losses, tensors = self.train("bn.onnx", "--validation", "npz:data.npz", out="run", steps=8)
        self.assertLess(losses[-1], losses[0])
        x = self.data["x"]
        np.testing.assert_allclose(tensors["mean"], (1 - 0.9 ** 8) * x.mean(axis=0), rtol=1e-4)
        # Evaluated by the statistics, not by the batch.
        normal = (x - tensors["mean"]) / np.sqrt(tensors["var"] + 1e-5) * tensors["s"]
        hits = np.argmax(normal @ tensors["w"], axis=1) == self.data["label"]
        result = json.loads(self.ok("eval", "run", "--data", "npz:data.npz", "--json"))
        self.assertAlmostEqual(result["accuracy"], hits.mean(), places=6)

    def test_options_that_a_step_of_the_file_cannot_follow_are_refused(self):
        self.write_model()
        self.save_data("x", "label")
        self.export("net.onnx", "--loss", "cross_entropy:y", "--lr", "0.1")
        start = ["train", "step.onnx", "--data", "npz:data.npz", "--batch", str(SAMPLES)]
        for words in (["--optimizer", "sgd"], ["--lr", "0.2"], ["--warmup", "2"],
                      ["--freeze", "*"], ["--accumulate", "2", "--batch", "8"],
                      ["--clip-norm", "1"]):
            done = self.fails(2, f"{words[0]}", *start, *words)
            self.assertIn("brings its own training step", done.stderr)
        # With a loss the step is ridge's.
        self.ok(*start, "--loss", "cross_entropy:y", "--optimizer", "sgd", "--steps", "1", "--out",
                "run", "-q")

    def test_training_options_without_a_step_are_refused(self):
        self.write_model()
        for words in (["--loss", "mse:y"], ["--optimizer", "sgd"], ["--lr", "1"],
                      ["--momentum", "0.9"], ["--weight-decay", "0.1"]):
            self.fails(2, f"{words[0]} says how to train", "export", "net.onnx", "--to", "onnx",
                       "--out", "x.onnx", *words)
        self.fails(2, "is for --to onnx", "export", "net.onnx", "--to", "safetensors", "--out",
                   "x.safetensors", "--with-training")
        self.fails(2, "needs a loss; the outputs are y", "export", "net.onnx", "--to", "onnx",
                   "--out", "x.onnx", "--with-training")
        self.fails(2, "no float output 'z'", "export", "net.onnx", "--to", "onnx", "--out",
                   "x.onnx", "--with-training", "--loss", "mse:z")


if __name__ == "__main__":
    unittest.main()
