"""Exports trained models; onnxruntime and numpy read what was written."""
import json
import os
import unittest

from _ridge import SMALL, RidgeTest

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError:  # scripts/setup.sh --test-tools brings them
    onnx = None

TEXT_GRAPH = """graph net
  x = input f32[batch,4]
  w = parameter f32[4,6] init=normal(1)
  b = parameter f32[6] init=uniform(1)
  h = matmul(x, w, b)
  e = reshape(h, dims=[0,2,3])
  t = transpose(e, permutation=[0,2,1])
  flat = reshape(t, dims=[-1,2])
  y = softmax(flat)
  output y
"""


def outputs(path, **arrays):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, arrays)))


def initializers(path):
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}


def random(*dims, seed=0):
    return np.random.default_rng(seed).standard_normal(dims).astype("float32")


def largest_difference(a, b):
    return np.abs(a - b).max() / np.abs(b).max()


@unittest.skipIf(onnx is None, "needs numpy, onnx and onnxruntime")
class ExportedTest(RidgeTest):

    def run_model(self, model, **arrays):
        np.savez(self.path("in.npz"), **arrays)
        self.ok("run", model, "--inputs", "in.npz", "--outputs", "out.npz", "-q")
        return dict(np.load(self.path("out.npz")))


class BuiltModelTest(ExportedTest):

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def test_runtime_agrees_with_a_trained_built_in_model(self):
        self.ok("train", *SMALL, "--steps", "20", "--batch", "16", "--out", "run", "-q")
        self.ok("export", "run", "--to", "onnx", "--out", "mlp.onnx")
        onnx.checker.check_model(self.path("mlp.onnx"), full_check=True)
        image = random(5, 784)
        ours = self.run_model("run", image=image)["logits"]
        theirs = outputs(self.path("mlp.onnx"), image=image)["logits"]
        self.assertLess(largest_difference(theirs, ours), 1e-5)

    def test_open_batch_stays_open(self):
        self.write("net.ridge", TEXT_GRAPH)
        self.ok("export", "net.ridge", "--to", "onnx", "--out", "net.onnx")
        model = onnx.load(self.path("net.onnx"))
        self.assertEqual(model.graph.input[0].type.tensor_type.shape.dim[0].dim_param, "batch")
        self.assertEqual([o.name for o in model.graph.output], ["y"])
        for batch in (1, 7):
            x = random(batch, 4, seed=batch)
            ours = self.run_model("net.ridge", x=x)["y"]
            theirs = outputs(self.path("net.onnx"), x=x)["y"]
            self.assertEqual(theirs.shape, (3 * batch, 2))
            self.assertLess(largest_difference(theirs, ours), 1e-5)

    def test_products_of_short_operands_keep_their_wide_results(self):
        self.write("net.ridge", """graph net
  x = input f32[batch,2,6,6]
  s = cast(x, to="bf16")
  k = parameter bf16[4,2,3,3] init=normal(0.3)
  c = parameter f32[4] init=normal(1)
  y = conv(s, k, c, out_dtype="f32")
  rows = reshape(s, dims=[0,72])
  w = parameter bf16[72,5] init=normal(0.3)
  b = parameter f32[5] init=normal(1)
  m = matmul(rows, w, b, out_dtype="f32")
  total = reduce_sum(rows, axes=[1], out_dtype="f32")
  g = parameter f32[72] init=normal(1)
  n, mean, rstd = layer_norm(rows, g, g, out_dtype="f32")
  output y
  output m
  output total
  output n
""")
        for opset in ("13", "17", "22"):
            self.ok("export", "net.ridge", "--to", "onnx", "--out", "net.onnx", "--opset", opset)
            onnx.checker.check_model(self.path("net.onnx"), full_check=True)
            x = random(3, 2, 6, 6)
            ours, theirs = self.run_model("net.ridge", x=x), outputs(self.path("net.onnx"), x=x)
            self.assertEqual(set(theirs), {"y", "m", "total", "n"})
            for name, value in theirs.items():
                self.assertEqual((value.dtype, value.shape), ("float32", ours[name].shape))
                self.assertLess(largest_difference(value, ours[name]), 1e-5, name)

    def test_names_and_lowest_versions(self):
        self.write("net.ridge", TEXT_GRAPH)
        self.ok("export", "net.ridge", "--to", "onnx", "--out", "net.onnx")
        model = onnx.load(self.path("net.onnx"))
        self.assertEqual((model.opset_import[0].version, model.ir_version), (9, 4))
        self.assertLessEqual({"w", "b"}, set(initializers(self.path("net.onnx"))))

    def test_a_higher_opset_is_written_on_request(self):
        self.write("net.ridge", TEXT_GRAPH)
        self.ok("export", "net.ridge", "--to", "onnx", "--out", "net.onnx", "--opset", "18")
        self.assertEqual(onnx.load(self.path("net.onnx")).opset_import[0].version, 18)
        refused = self.ridge("export", "net.ridge", "--to", "onnx", "--out", "x", "--opset", "8")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("can be written in 9 to 26", refused.stderr)

    def test_json_names_every_output(self):
        self.write("net.ridge", TEXT_GRAPH)
        report = json.loads(self.ok("export", "net.ridge", "--to", "onnx", "--out", "net.onnx",
                                    "--json"))
        self.assertEqual([o["name"] for o in report["outputs"]], ["y"])
        self.assertTrue(report["accepted"])
        self.assertEqual(len(report["checked_at"]), 2)
        self.assertEqual(report["bytes"], os.path.getsize(self.path("net.onnx")))

    def test_safetensors_hold_the_parameters(self):
        self.write("net.ridge", TEXT_GRAPH)
        self.ok("export", "net.ridge", "--to", "safetensors", "--out", "net.safetensors")
        with open(self.path("net.safetensors"), "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        self.assertEqual(sorted(k for k in header if k != "__metadata__"), ["b", "w"])

    def test_a_file_that_differs_too_much_is_not_written(self):
        self.write("net.ridge", """graph net
  x = input f32[batch,64]
  n, mean, rstd = layer_norm(x)
  y = silu(n)
  output y
""")
        self.write("y.onnx", "what was there before")
        done = self.fails(7, "y.onnx: not written: output 'y' differs by", "export", "net.ridge",
                          "--to", "onnx", "--out", "y.onnx", "--tolerance", "1e-30", "--json")
        report = json.loads(done.stdout)
        self.assertEqual((report["accepted"], report["path"]), (False, None))
        self.assertGreater(report["outputs"][0]["largest_difference"], 0)
        with open(self.path("y.onnx"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "what was there before")

    def test_operators_without_a_form_are_named_with_what_to_do(self):
        self.write("net.ridge", """graph net
  rng = input i64[3]
  x = input f32[batch,4]
  n = random_normal(rng, dims=[1,4])
  y = add(x, n)
  output y
""")
        self.fails(5, "random_normal 'n' (line 4) draws other numbers in every runtime. hint: "
                   "make the numbers an input", "export", "net.ridge", "--to", "onnx", "--out",
                   "y.onnx")

    def test_unwritable_formats_say_so(self):
        done = self.ridge("export", "mlp", "--to", "savedmodel", "--out", "x")
        self.assertEqual(done.returncode, 5)
        self.assertIn("--to onnx", done.stderr)


class ModelWithoutInputsTest(ExportedTest):
    def test_it_runs_on_a_file_without_arrays(self):
        self.write("two.ridge", "graph two\n  a = constant f32[2] [1, 2]\n  y = exp(a)\n  output y\n")
        node = helper.make_node("Range", ["a", "b", "c"], ["y"])
        numbers = [numpy_helper.from_array(np.array(v, "int64"), n) for n, v in zip("abc", (1, 7, 2))]
        graph = helper.make_graph([node], "net", [], [helper.make_tensor_value_info(
            "y", TensorProto.INT64, [3])], numbers)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                                    ir_version=8), self.path("range.onnx"))
        np.testing.assert_allclose(self.run_model("two.ridge")["y"], np.exp([1, 2]), rtol=1e-6)
        np.testing.assert_array_equal(self.run_model("range.onnx")["y"], [1, 3, 5])
        self.write("one.ridge", "graph one\n  x = input f32[2]\n  output x\n")
        self.refused(2, "run: the input file holds no array", "run", "one.ridge", "--inputs",
                     "in.npz", "--outputs", "out.npz")


class EveryBuiltInModelTest(ExportedTest):
    """Each built-in model, at a size of seconds: trained, exported, and run by onnxruntime."""

    SIZES = {
        "mlp": "hidden=16",
        "cnn": "filters=4",
        "resnet18": "image=32",
        "resnet50": "image=32",
        "unet": "image=32,base=4",
        "gpt": "vocab=50,context=8,hidden=16,layers=2,heads=2",
        "bert": "vocab=50,tokens=8,hidden=16,layers=2,heads=2",
        "vit_ti": "image=32",
        "efficientnet_v2_s": "image=32",
        "mobilenet_v3_small": "image=64",
        "lstm": "vocab=50,tokens=5,hidden=8",
        "convnext_tiny": "image=32",
        "llama": "vocab=50,context=8,hidden=16,layers=2,heads=2,kv_heads=1,inner=24",
        "whisper_tiny": "vocab=50,mels=4,frames=10,context=8,hidden=16,layers=2,heads=2",
        "sam_vit_b": "image=48,hidden=16,layers=2,heads=2,global=2,window=2,classes=5",
        "resnet50_bert": "image=32,vocab=50,tokens=8,hidden=16,layers=2,heads=2",
        "conformer_s": "mels=8,frames=20,letters=4,classes=6,hidden=16,layers=2,heads=2,kernel=3",
        "yolov8n": "image=64,classes=5,boxes=4",
    }

    def check(self, name, run, tolerance=1e-4):
        self.ok("export", run, "--to", "onnx", "--out", f"{name}.onnx", "-q")
        model = onnx.load(self.path(f"{name}.onnx"))
        onnx.checker.check_model(model, full_check=True)
        self.assertEqual(helper.find_min_ir_version_for(model.opset_import), model.ir_version)
        self.assertLessEqual(model.opset_import[0].version, 11)
        arrays = {}
        for i, value in enumerate(model.graph.input):
            dims = value.type.tensor_type.shape.dim
            self.assertEqual(dims[0].dim_param, "batch")
            shape = [3] + [d.dim_value for d in dims[1:]]
            floats = value.type.tensor_type.elem_type == TensorProto.FLOAT
            arrays[value.name] = (random(*shape, seed=i) if floats
                                  else np.random.default_rng(i).integers(0, 50, shape))
        ours = self.run_model(run, **arrays)
        for output, theirs in outputs(self.path(f"{name}.onnx"), **arrays).items():
            self.assertLess(largest_difference(theirs, ours[output]), tolerance, name)

    def test_runtime_agrees_after_training(self):
        names = [m["model"] for m in json.loads(self.ok("models", "--json"))
                 if m["variant_of"] is None]
        self.assertEqual(sorted(names), sorted([*self.SIZES, "pointnet2"]))
        for name in self.SIZES:
            with self.subTest(model=name):
                self.ok("train", f"{name}:{self.SIZES[name]}", "--data", "synthetic", "--batch",
                        "2", "--steps", "2", "--lr", "1e-4", "--threads", "1", "--out", name, "-q")
                self.check(name, name)

    def test_later_opsets_hold_the_same_model(self):
        model = f"gpt:{self.SIZES['gpt']}"
        tokens = np.random.default_rng(0).integers(0, 50, (3, 8))
        ours = self.run_model(model, tokens=tokens)["logits"]
        for opset, op in ((17, "LayerNormalization"), (20, "Gelu"), (23, "Attention")):
            path = self.path(f"{opset}.onnx")
            self.ok("export", model, "--to", "onnx", "--opset", str(opset), "--out", path, "-q")
            found = onnx.load(path)
            onnx.checker.check_model(found, full_check=True)
            self.assertIn(op, {n.op_type for n in found.graph.node})
            theirs = outputs(path, tokens=tokens)["logits"]
            self.assertLess(largest_difference(theirs, ours), 1e-5)


class ForeignModelTest(ExportedTest):
    """A file that came in as ONNX keeps everything but its numbers."""

    def write_foreign(self):
        graph = helper.make_graph(
            [helper.make_node("Gemm", ["x", "fc.weight", "fc.bias"], ["z"], "layers/fc", transB=1),
             helper.make_node("Softmax", ["z"], ["p"], "layers/softmax", axis=-1)],
            "foreign",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
            [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(random(3, 4, seed=1), "fc.weight"),
             numpy_helper.from_array(np.zeros(3, "float32"), "fc.bias")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)],
                                  ir_version=8, producer_name="somebody")
        model.metadata_props.add(key="note", value="kept")
        onnx.save(model, self.path("foreign.onnx"))

    def test_only_numbers_change(self):
        self.write_foreign()
        x = random(64, 4, seed=2)
        np.savez(self.path("data.npz"), x=x, y=np.argmax(x[:, :3], axis=1).astype("int64"))
        self.ok("train", "foreign.onnx", "--data", "npz:data.npz", "--loss", "cross_entropy:p",
                "--batch", "16", "--steps", "10", "--threads", "1", "--out", "run", "-q")
        os.remove(self.path("foreign.onnx"))
        self.ok("export", "run", "--to", "onnx", "--out", "trained.onnx")
        trained = onnx.load(self.path("trained.onnx"))
        self.assertEqual([n.name for n in trained.graph.node], ["layers/fc", "layers/softmax"])
        self.assertEqual((trained.opset_import[0].version, trained.ir_version), (15, 8))
        self.assertEqual(trained.metadata_props[0].value, "kept")
        self.assertEqual(trained.graph.input[0].type.tensor_type.shape.dim[0].dim_param, "N")
        self.assertGreater(np.abs(initializers(self.path("trained.onnx"))["fc.weight"]
                                  - random(3, 4, seed=1)).max(), 0)
        ours = self.run_model("run", x=x)["p"]
        self.assertLess(largest_difference(outputs(self.path("trained.onnx"), x=x)["p"], ours),
                        1e-5)

    def write_sequence(self):
        graph = helper.make_graph(
            [helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=0),
             helper.make_node("MatMul", ["m", "w"], ["p"])],
            "sequence",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "length", 4])],
            [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(random(4, 3, seed=1), "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)],
                                    ir_version=8), self.path("sequence.onnx"))

    def test_a_run_knows_its_extents(self):
        self.write_sequence()
        x = random(32, 5, 4, seed=2)
        np.savez(self.path("data.npz"), x=x, y=np.argmax(x[:, 0, :3], axis=1).astype("int64"))
        for name, dims in (("given", ["--dim", "length=5"]), ("from_data", [])):
            with self.subTest(name):
                self.ok("train", "sequence.onnx", "--data", "npz:data.npz", "--loss",
                        "cross_entropy:p", "--batch", "8", "--steps", "3", "--threads", "1",
                        "--out", name, "-q", *dims)
                self.ok("export", name, "--to", "onnx", "--out", name + ".onnx", "-q")
                given = onnx.load(self.path(name + ".onnx")).graph.input[0].type.tensor_type
                self.assertEqual([d.dim_param for d in given.shape.dim], ["N", "length", ""])
                ours = self.run_model(name, x=x)["p"]
                self.assertLess(largest_difference(
                    outputs(self.path(name + ".onnx"), x=x)["p"], ours), 1e-5)

    def test_data_beside_the_file_are_read_and_written_into_it(self):
        self.write_foreign()
        model = onnx.load(self.path("foreign.onnx"))
        os.makedirs(self.path("in"))
        onnx.save(model, self.path("in/net.onnx"), save_as_external_data=True,
                  location="net.weights", size_threshold=0)
        x = random(32, 4, seed=2)
        np.savez(self.path("data.npz"), x=x, y=np.argmax(x[:, :3], axis=1).astype("int64"))
        self.ok("train", "in/net.onnx", "--data", "npz:data.npz", "--loss", "cross_entropy:p",
                "--batch", "16", "--steps", "5", "--threads", "1", "--out", "run", "-q")
        os.remove(self.path("in/net.weights"))  # the run has its own
        self.ok("export", "run", "--to", "onnx", "--out", "trained.onnx", "-q")
        ours = self.run_model("run", x=x)["p"]
        self.assertLess(largest_difference(outputs(self.path("trained.onnx"), x=x)["p"], ours),
                        1e-5)

    def test_dropout_and_batch_norm_in_training_mode_stay_as_they_are(self):
        graph = helper.make_graph(
            [helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"], "bn"),
             helper.make_node("Dropout", ["n", "ratio", "on"], ["d"], "drop"),
             helper.make_node("MatMul", ["d", "w"], ["p"], "fc")], "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
            [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(np.ones(4, "float32"), "s"),
             numpy_helper.from_array(np.zeros(4, "float32"), "b"),
             numpy_helper.from_array(random(4, seed=3), "m"),
             numpy_helper.from_array(random(4, seed=4) ** 2 + 1, "v"),
             numpy_helper.from_array(np.float32(0.5), "ratio"),
             numpy_helper.from_array(np.bool_(True), "on"),
             numpy_helper.from_array(random(4, 3), "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                    ir_version=8), self.path("net.onnx"))
        x = random(32, 4, seed=2)
        np.savez(self.path("data.npz"), x=x, y=np.argmax(x[:, :3], axis=1).astype("int64"))
        self.ok("train", "net.onnx", "--data", "npz:data.npz", "--loss", "cross_entropy:p",
                "--batch", "16", "--steps", "5", "--threads", "1", "--out", "run", "-q")
        self.ok("export", "run", "--to", "onnx", "--out", "trained.onnx", "-q")
        trained = initializers(self.path("trained.onnx"))
        self.assertGreater(np.abs(trained["m"] - random(4, seed=3)).max(), 0)
        found = onnx.load(self.path("trained.onnx")).graph
        self.assertEqual([n.op_type for n in found.node],
                         ["BatchNormalization", "Dropout", "MatMul"])
        # `run` drops nothing.
        normal = ((x - trained["m"]) / np.sqrt(trained["v"] + 1e-5) * trained["s"] + trained["b"])
        self.assertLess(largest_difference(self.run_model("run", x=x)["p"],
                                           normal @ trained["w"]), 1e-4)

    def test_element_types_are_kept(self):
        kinds = {"h": TensorProto.FLOAT16, "b": TensorProto.BFLOAT16, "d": TensorProto.DOUBLE}
        nodes = [helper.make_node("Cast", [name], [name + "_f"], to=TensorProto.FLOAT)
                 for name in kinds]
        nodes.append(helper.make_node("Sum", ["x"] + [n + "_f" for n in kinds], ["y"]))
        graph = helper.make_graph(
            nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 2])],
            [helper.make_tensor(n, kind, [2], [0.5, -1.25]) for n, kind in kinds.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                    ir_version=8), self.path("net.onnx"))
        self.ok("export", "net.onnx", "--to", "safetensors", "--out", "net.safetensors", "-q")
        with open(self.path("net.safetensors"), "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        self.assertEqual({n: header[n]["dtype"] for n in kinds},
                         {"h": "F16", "b": "BF16", "d": "F64"})
        self.ok("export", "net.onnx", "--to", "onnx", "--out", "again.onnx", "-q")
        types = {t.name: t.data_type for t in onnx.load(self.path("again.onnx")).graph.initializer}
        self.assertEqual(types, kinds)

    def test_gradients_have_plain_names(self):
        self.write_foreign()
        x = random(5, 4, seed=3)
        np.savez(self.path("in.npz"), x=x)
        self.ok("grad", "foreign.onnx", "--inputs", "in.npz", "--outputs", "grad.npz", "-q")
        found = dict(np.load(self.path("grad.npz")))
        self.assertEqual(set(found), {"p", "x", "fc.weight", "fc.bias"})
        # The sum of a softmax is constant, so nothing flows.
        self.assertLess(np.abs(found["fc.weight"]).max(), 1e-5)


if __name__ == "__main__":
    unittest.main()
