"""Trains small ONNX files, made here, on arrays in npz files."""
import json
import os
import shutil
import unittest

from _ridge import RidgeTest

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:  # scripts/setup.sh --test-tools brings them
    onnx = None


def tensor(name, array):
    return numpy_helper.from_array(array, name)


def value(name, kind, dims):
    return helper.make_tensor_value_info(name, kind, dims)


def save(path, nodes, inputs, outputs, initializers):
    graph = helper.make_graph(nodes, "net", inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)


def random(*dims, kind="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(dims).astype(kind)


@unittest.skipIf(onnx is None, "needs numpy and onnx")
class OnnxTrainTest(RidgeTest):

    def write_mlp(self, end="Identity", kind="float32", batch="N"):
        """x [N,4] -> h [N,16] -> y [N,3]."""
        dtype = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        end_attributes = {"axis": -1} if end == "Softmax" else {}
        save(self.path("mlp.onnx"),
             [helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["a"], "fc1"),
              helper.make_node("Relu", ["a"], ["h"], "relu"),
              helper.make_node("Gemm", ["h", "fc2.weight", "fc2.bias"], ["z"], "fc2"),
              helper.make_node(end, ["z"], ["y"], "end", **end_attributes)],
             [value("x", dtype, [batch, 4])], [value("y", dtype, [batch, 3])],
             [tensor("fc1.weight", random(4, 16, kind=kind)),
              tensor("fc1.bias", np.zeros(16, kind)),
              tensor("fc2.weight", random(16, 3, kind=kind, seed=1) * kind_of(kind, 0.1)),
              tensor("fc2.bias", np.zeros(3, kind))])

    def write_data(self, samples=64, kind="float32"):
        x = random(samples, 4, kind=kind, seed=2)
        y = np.argmax(x[:, :3], axis=1).astype("int64")
        np.savez(self.path("data.npz"), x=x, y=y)

    def train_mlp(self, *words, out="run", steps=60):
        self.ok("train", "mlp.onnx", "--data", "npz:data.npz", "--loss", "cross_entropy:y",
                "--batch", "16", "--lr", "0.02", "--threads", "1", "--steps", str(steps), "--out",
                out, "-q", *words)
        return self.read_json(f"{out}/summary.json")

    def losses(self, out="run"):
        with open(self.path(f"{out}/metrics.jsonl")) as file:
            return [json.loads(line)["loss"] for line in file]

    def parameters(self, out="run"):
        """name -> array, of the newest checkpoint."""
        folder = self.path(f"{out}/checkpoints")
        steps = [int(n[5:]) for n in os.listdir(folder) if n.startswith("step-")]
        tensors = {}
        for name in ("parameters", "state"):
            tensors.update(read_safetensors(f"{folder}/step-{max(steps)}/{name}.safetensors"))
        return tensors

    def test_a_classifier_learns_and_its_accuracy_is_reported(self):
        self.write_mlp()
        self.write_data()
        self.train_mlp()
        result = self.ok("eval", "run", "--data", "npz:data.npz", "--json", "--threads", "1")
        self.assertGreater(json.loads(result)["accuracy"], 0.9)

    def test_a_softmax_at_the_end_is_looked_through(self):
        self.write_data()
        self.write_mlp()
        plain = self.train_mlp(out="plain", steps=10)
        self.write_mlp(end="Softmax")
        softmax = self.train_mlp(out="softmax", steps=10)
        self.assertEqual(plain["parameters_sha256"], softmax["parameters_sha256"])

    def test_resumed_is_bit_equal_and_needs_no_original(self):
        self.write_mlp()
        self.write_data()
        whole = self.train_mlp(out="whole", steps=40)
        self.train_mlp("--checkpoint-every", "20", out="part", steps=40)
        shutil.rmtree(self.path("part/checkpoints/step-40"))  # as if it had been killed at step 30
        os.remove(self.path("part/summary.json"))
        os.remove(self.path("mlp.onnx"))
        self.ok("train", "--resume", "part", "--threads", "1", "-q")
        self.assertEqual(self.read_json("part/summary.json")["parameters_sha256"],
                         whole["parameters_sha256"])

    def test_frozen_parameters_keep_their_bits(self):
        self.write_mlp()
        self.write_data()
        self.train_mlp("--freeze", "fc1.*", steps=10)
        weights = self.parameters()
        np.testing.assert_array_equal(weights.get("fc1.weight", random(4, 16)), random(4, 16))
        self.assertFalse([n for n in weights if n.startswith("fc1") and n.endswith((".m", ".v"))])
        self.assertFalse(np.array_equal(self.parameters()["fc2.weight"],
                                        random(16, 3, seed=1) * np.float32(0.1)))

    def test_trainable_wins_over_freeze(self):
        self.write_mlp()
        self.write_data()
        self.train_mlp("--freeze", "*", "--trainable", "fc1.*", steps=10)
        weights = self.parameters()
        self.assertFalse(np.array_equal(weights["fc1.weight"], random(4, 16)))
        self.assertEqual(sorted({n.split(".")[0] for n in weights if n.endswith(".m")}), ["fc1"])
        np.testing.assert_array_equal(weights.get("fc2.weight", random(16, 3, seed=1) *
                                                  np.float32(0.1)),
                                      random(16, 3, seed=1) * np.float32(0.1))

    def test_a_double_file_trains_in_double(self):
        self.write_mlp(kind="float64")
        self.write_data(kind="float64")
        self.train_mlp(steps=10)
        self.assertEqual(self.parameters()["fc1.weight"].dtype, np.float64)

    def test_two_inputs_are_matched_by_name(self):
        save(self.path("two.onnx"),
             [helper.make_node("Gather", ["table", "tokens"], ["e"], "embed"),
              helper.make_node("ReduceMean", ["e"], ["t"], "pool", axes=[1], keepdims=0),
              helper.make_node("MatMul", ["picture", "w"], ["p"], "project"),
              helper.make_node("Add", ["t", "p"], ["score"], "head")],
             [value("picture", TensorProto.FLOAT, ["N", 6]),
              value("tokens", TensorProto.INT64, ["N", "length"])],
             [value("score", TensorProto.FLOAT, ["N", 3])],
             [tensor("table", random(10, 3)), tensor("w", random(6, 3, seed=1))])
        tokens = np.random.default_rng(3).integers(0, 10, (32, 5))
        np.savez(self.path("two.npz"), tokens=tokens, picture=random(32, 6, seed=4),
                 target=random(32, 3, seed=5))
        self.ok("train", "two.onnx", "--data", "npz:two.npz", "--loss", "mse:score", "--batch", "8",
                "--epochs", "20", "--lr", "0.05", "--threads", "1", "--out", "run", "-q")
        losses = self.losses()
        self.assertLess(losses[-1], 0.8 * losses[0])

    def test_names_that_do_not_match_print_the_table(self):
        self.write_mlp()
        np.savez(self.path("data.npz"), first=random(32, 4), second=random(32, 4, seed=1),
                 y=np.zeros(32, "int64"))
        done = self.fails(4, "its fields cannot fill the model's inputs", "train", "mlp.onnx",
                          "--data", "npz:data.npz", "--loss", "cross_entropy:y", "--batch", "16")
        self.assertIn("first f32[4]", done.stderr)

    def test_a_file_without_a_loss_says_what_to_write(self):
        self.write_mlp()
        self.write_data()
        self.fails(2, "--loss cross_entropy:y", "train", "mlp.onnx", "--data", "npz:data.npz")

    def test_a_fixed_batch_and_an_open_dimension_are_named(self):
        self.write_mlp(batch=8)
        self.write_data()
        self.fails(2, "hint: --batch 8", "plan", "mlp.onnx", "--loss", "cross_entropy:y")
        save(self.path("open.onnx"), [helper.make_node("Relu", ["x"], ["y"])],
             [value("x", TensorProto.FLOAT, ["N", "length"])],
             [value("y", TensorProto.FLOAT, ["N", "length"])], [])
        self.fails(2, "--dim length=N", "plan", "open.onnx", "--loss", "mse:y")

    def test_frozen_batch_norm_keeps_its_statistics(self):
        ones = np.ones(4, "float32")
        save(self.path("bn.onnx"),
             [helper.make_node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["b"],
                               "bn"),
              helper.make_node("MatMul", ["b", "w"], ["y"], "fc")],
             [value("x", TensorProto.FLOAT, ["N", 4])], [value("y", TensorProto.FLOAT, ["N", 3])],
             [tensor("scale", ones), tensor("shift", 0 * ones), tensor("mean", 3 * ones),
              tensor("var", 2 * ones), tensor("w", random(4, 3))])
        self.write_data()
        for mode, same in (("frozen", True), ("train", False)):
            self.ok("train", "bn.onnx", "--data", "npz:data.npz", "--loss", "cross_entropy:y",
                    "--batch", "16", "--steps", "10", "--threads", "1", "--batch-norm", mode,
                    "--out", mode, "-q")
            mean = self.parameters(mode).get("mean", 3 * ones)
            self.assertEqual(np.array_equal(mean, 3 * ones), same, mode)

    def test_weights_in_constant_nodes_are_trained_and_exported_there(self):
        self.write_mlp()
        self.write_data()
        model = onnx.load(self.path("mlp.onnx"))
        constants = [helper.make_node("Constant", [], [t.name], value=t)
                     for t in model.graph.initializer]
        nodes = constants + list(model.graph.node)
        save(self.path("mlp.onnx"), nodes, model.graph.input, model.graph.output, [])
        self.train_mlp(steps=5)
        self.ok("export", "run", "--to", "onnx", "--out", "trained.onnx", "-q")
        trained = onnx.load(self.path("trained.onnx")).graph
        weights = self.parameters()
        self.assertEqual([n.op_type for n in trained.node], [n.op_type for n in nodes])
        for before, after in zip(constants, trained.node):
            old, new = (numpy_helper.to_array(n.attribute[0].t) for n in (before, after))
            np.testing.assert_array_equal(new, weights[after.output[0]])
            self.assertFalse(np.array_equal(old, new), after.output[0])

    def test_run_gives_the_trained_outputs(self):
        self.write_mlp()
        self.write_data()
        self.train_mlp(steps=10)
        np.savez(self.path("in.npz"), x=random(5, 4, seed=9))
        self.ok("run", "run", "--inputs", "in.npz", "--outputs", "out.npz", "--threads", "1")
        weights = self.parameters()
        hidden = np.maximum(random(5, 4, seed=9) @ weights["fc1.weight"] + weights["fc1.bias"], 0)
        expected = hidden @ weights["fc2.weight"] + weights["fc2.bias"]
        np.testing.assert_allclose(np.load(self.path("out.npz"))["y"], expected, rtol=1e-4,
                                   atol=1e-5)

    def check_memory(self, weight_bytes):
        """The process holds weights in its arena alone, before, during and after the rehearsal."""
        shutil.rmtree(self.path("run"), ignore_errors=True)
        self.ok("train", "net.onnx", "--data", "npz:data.npz", "--loss", "mse:y", "--optimizer",
                "sgd", "--batch", "8", "--steps", "2", "--out", "run", "-q")
        summary = self.read_json("run/summary.json")
        planned, measured = summary["planned"], summary["measured"]
        beside = measured["peak_bytes"] - measured["arena_bytes"]
        self.assertLess(beside, weight_bytes / 2 + (40 << 20))
        self.assertGreaterEqual(planned["peak_bytes"], measured["peak_bytes"])
        self.assertLessEqual(planned["peak_bytes"], 1.05 * measured["peak_bytes"])

    def test_large_weights_are_in_memory_once(self):
        """In the message, in a file of their own, and of half precision; 96 MiB of f32."""
        x = random(16, 4096)
        np.savez(self.path("data.npz"), x=x, y=x[:, :8])
        for kind, external in (("float32", False), ("float32", True), ("float16", False)):
            with self.subTest(kind=kind, external=external):
                dtype = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
                weight = (random(4096, 6144) / 100).astype(kind)
                save(self.path("net.onnx"),
                     [helper.make_node("Cast", ["x"], ["xc"], "cast", to=dtype),
                      helper.make_node("MatMul", ["xc", "w"], ["a"], "a"),
                      helper.make_node("MatMul", ["a", "v"], ["b"], "b"),
                      helper.make_node("Cast", ["b"], ["y"], "out", to=TensorProto.FLOAT)],
                     [value("x", TensorProto.FLOAT, ["N", 4096])],
                     [value("y", TensorProto.FLOAT, ["N", 8])],
                     [tensor("w", weight), tensor("v", random(6144, 8, kind=kind))])
                if external:
                    onnx.save(onnx.load(self.path("net.onnx")), self.path("net.onnx"),
                              save_as_external_data=True, location="net.data")
                self.check_memory(96 << 20)



def kind_of(kind, number):
    return np.dtype(kind).type(number)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
    result = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + o for o in entry["data_offsets"])
        result[name] = np.frombuffer(data[begin:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return result


if __name__ == "__main__":
    unittest.main()
