"""Built-in models start from safetensors files under the names of public models."""
import json
import os
import struct
import unittest

from _ridge import RidgeTest, read_npz, write_npz


def write_safetensors(path, tensors):
    """tensors: name -> (dims, floats)."""
    header, at = {}, 0
    for name, (dims, floats) in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(dims),
                        "data_offsets": [at, at + 4 * len(floats)]}
        at += 4 * len(floats)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, floats in tensors.values():
            file.write(struct.pack(f"<{len(floats)}f", *floats))


def read_safetensors(path):
    """name -> (dims, floats); F32 only."""
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    result = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + o for o in entry["data_offsets"])
        result[name] = (entry["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return result


def transposed(dims, floats):
    rows, columns = dims
    return [columns, rows], [floats[r * columns + c] for c in range(columns) for r in range(rows)]


MLP = "mlp:inputs=3,hidden=2,layers=1,classes=2"
GPT = "gpt:vocab=11,context=4,hidden=8,layers=1,heads=2,gelu_tanh=1"
BERT = "bert:vocab=11,tokens=4,hidden=8,layers=1,heads=2"


class Weights(RidgeTest):
    def write_mlp(self, **changes):
        tensors = {"0.weight": ([2, 3], [1, 2, 3, 4, 5, 6]), "0.bias": ([2], [-1, -2]),
                   "2.weight": ([2, 2], [1, 0, 0, 1]), "2.bias": ([2], [10, 20])}
        tensors.update(changes)
        write_safetensors(self.path("w.safetensors"), tensors)
        write_npz(self.path("in.npz"), {"image": ([1, 3], [1, 1, 1])})

    def logits(self, *words, inputs="in.npz"):
        self.ok("run", *words, "--inputs", inputs, "--outputs", "out.npz", "--threads", "1", "-q")
        return read_npz(self.path("out.npz"))["logits"][1]

    def test_run_uses_the_file(self):
        self.write_mlp()
        # 1 + 2 + 3 - 1 = 5 and 4 + 5 + 6 - 2 = 13, plus the biases of the second layer.
        self.assertEqual(self.logits(MLP, "--weights", "w.safetensors"), (15, 33))

    def test_another_number_of_classes_needs_a_word(self):
        self.write_mlp()
        model = MLP.replace("classes=2", "classes=5")
        done = self.fails(4, "hint: --weights-skip '2.*'", "run", model, "--weights",
                          "w.safetensors", "--inputs", "in.npz", "--outputs", "out.npz")
        self.assertIn("2.weight  f32[5,2]; the file has 2.weight f32[2,2]", done.stderr)
        logits = self.logits(model, "--weights", "w.safetensors", "--weights-skip", "2.*")
        self.assertEqual(len(logits), 5)

    def test_eval_and_export_take_weights_too(self):
        self.write_mlp()
        # Logits 15 and 33 for each sample of ones: the loss of label 0 is 18.
        write_npz(self.path("data.npz"), {"image": ([4, 3], [1] * 12), "label": ([4], [0] * 4)})
        words = [MLP, "--weights", "w.safetensors", "--data", "npz:data.npz", "--batch", "4"]
        result = json.loads(self.ok("eval", *words, "--json", "--threads", "1"))
        self.assertAlmostEqual(result["loss"], 18, places=4)
        self.assertEqual(result["accuracy"], 0)
        self.ok("export", MLP, "--weights", "w.safetensors", "--to", "onnx", "--out", "net.onnx",
                "-q")
        self.assertEqual(self.logits("net.onnx"), (15, 33))
        self.fails(2, "net.onnx is an ONNX file", "export", "net.onnx", "--weights",
                   "w.safetensors", "--to", "onnx", "--out", "again.onnx")

    def test_missing_unexpected_and_unreadable(self):
        self.write_mlp(extra=([1], [0]))
        words = ["plan", MLP, "--weights", "w.safetensors"]
        self.fails(4, "in the file, but not in the model:\n    extra  f32[1]", *words)
        self.ok(*words, "--weights-skip", "extra", "-q")
        self.fails(2, "--weights-skip 'ext' fits no tensor", *words, "--weights-skip", "ext")
        self.fails(2, "--weights-skip is given without --weights", "plan", MLP, "--weights-skip",
                   "extra")
        self.fails(4, "none.safetensors", "plan", MLP, "--weights", "none.safetensors")
        self.write("text.safetensors", "no weights at all")
        self.fails(4, "text.safetensors", "plan", MLP, "--weights", "text.safetensors")

    def test_training_starts_there_and_resumes_without_the_file(self):
        self.write_mlp()
        words = ["train", MLP, "--data", "synthetic", "--batch", "8", "--threads", "1",
                 "--steps", "6", "--lr", "1e-12", "-q"]
        self.ok(*words, "--weights", "w.safetensors", "--out", "whole")
        # With such a rate nothing moves: the run holds the file's values.
        trained = read_safetensors(self.path("whole/checkpoints/step-6/parameters.safetensors"))
        for value, expected in zip(trained["0.weight"][1], [1, 2, 3, 4, 5, 6]):
            self.assertAlmostEqual(value, expected, places=5)
        self.ok(*words, "--weights", "w.safetensors", "--out", "part", "--checkpoint-every", "3")
        os.remove(self.path("w.safetensors"))
        os.remove(self.path("part/summary.json"))
        os.rename(self.path("part/checkpoints/step-6"), self.path("gone"))
        self.ok("train", "--resume", "part", "--threads", "1", "-q")
        self.assertEqual(self.read_json("part/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])
        self.ok("eval", "part", "--data", "synthetic", "--threads", "1")

    def test_a_run_has_its_own_weights(self):
        self.write_mlp()
        self.ok("train", MLP, "--data", "synthetic", "--batch", "8", "--threads", "1", "--steps",
                "2", "--out", "run", "-q")
        self.fails(2, "run is a run, which has trained weights", "run", "run", "--weights",
                   "w.safetensors", "--inputs", "in.npz", "--outputs", "out.npz")
        self.fails(2, "--weights is for a model", "eval", "run", "--weights", "w.safetensors",
                   "--data", "synthetic")

    def start_of(self, model):
        """Values that a model starts from, by our names, and its logits for four tokens."""
        self.ok("export", model, "--to", "safetensors", "--out", "own.safetensors", "-q")
        self.ok_tokens()
        return read_safetensors(self.path("own.safetensors"))

    def ok_tokens(self):
        write_npz(self.path("tokens.npz"), {})
        import zipfile  # i64, which write_npz does not know
        header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 4), }"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        with zipfile.ZipFile(self.path("tokens.npz"), "w") as archive:
            archive.writestr("tokens.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                             header.encode() + struct.pack("<4q", 1, 7, 0, 10))

    def test_gpt2_of_hugging_face(self):
        own = self.start_of(GPT)
        own["head.weight"] = own["tok.weight"]  # tied there
        write_safetensors(self.path("own.safetensors"), own)
        layer = {"ln1": "ln_1", "qkv": "attn.c_attn", "proj": "attn.c_proj", "ln2": "ln_2",
                 "up": "mlp.c_fc", "down": "mlp.c_proj"}
        theirs = {"wte.weight": own["tok.weight"], "ln_f.weight": own["lnf.weight"],
                  "ln_f.bias": own["lnf.bias"], "h.0.attn.bias": ([1, 1, 6, 6], [1.0] * 36),
                  "wpe.weight": ([6, 8], list(own["pos.weight"][1]) + [9.0] * 16)}
        for ours, name in layer.items():
            weight = own[f"blocks.0.{ours}.weight"]
            theirs[f"h.0.{name}.weight"] = weight if "ln" in ours else transposed(*weight)
            theirs[f"h.0.{name}.bias"] = own[f"blocks.0.{ours}.bias"]
        expected = self.logits(GPT, "--weights", "own.safetensors", inputs="tokens.npz")
        for prefix in ("", "transformer."):
            write_safetensors(self.path("w.safetensors"),
                              {prefix + name: value for name, value in theirs.items()})
            self.assertEqual(expected, self.logits(GPT, "--weights", "w.safetensors",
                                                   inputs="tokens.npz"))

    def test_bert_with_the_names_of_its_first_years(self):
        own = self.start_of(BERT)
        own["bert.embeddings.LayerNorm.weight"] = ([8], [0.5] * 8)
        write_safetensors(self.path("own.safetensors"), own)
        expected = self.logits(BERT, "--weights", "own.safetensors", inputs="tokens.npz")
        legacy = {n.replace("LayerNorm.weight", "LayerNorm.gamma")
                  .replace("LayerNorm.bias", "LayerNorm.beta"): v for n, v in own.items()}
        write_safetensors(self.path("w.safetensors"), legacy)
        self.assertEqual(expected, self.logits(BERT, "--weights", "w.safetensors",
                                               inputs="tokens.npz"))

    def test_vit_with_query_key_and_value_apart(self):
        model = "vit_ti:image=16,classes=2"
        self.ok("export", model, "--to", "safetensors", "--out", "own.safetensors", "-q")
        own = read_safetensors(self.path("own.safetensors"))
        write_npz(self.path("image.npz"),
                  {"image": ([1, 3, 16, 16], [i % 7 / 7 for i in range(768)])})
        expected = self.logits(model, "--weights", "own.safetensors", inputs="image.npz")
        outer = {"cls_token": "vit.embeddings.cls_token",
                 "pos_embed": "vit.embeddings.position_embeddings",
                 "patch_embed.proj": "vit.embeddings.patch_embeddings.projection",
                 "norm": "vit.layernorm", "head": "classifier"}
        inner = {"norm1": "layernorm_before", "norm2": "layernorm_after",
                 "attn.proj": "attention.output.dense", "mlp.fc1": "intermediate.dense",
                 "mlp.fc2": "output.dense"}
        theirs = {}
        for name, (dims, values) in own.items():
            stem, end = name, ""
            if name.endswith((".weight", ".bias")):
                stem, end = name.rsplit(".", 1)
                end = "." + end
            if not stem.startswith("blocks."):
                theirs[outer[stem] + end] = (dims, values)
                continue
            _, layer, stem = stem.split(".", 2)
            layer = f"vit.encoder.layer.{layer}."
            if stem != "attn.qkv":
                theirs[layer + inner[stem] + end] = (dims, values)
                continue
            third = len(values) // 3
            for i, part in enumerate(("query", "key", "value")):
                theirs[f"{layer}attention.attention.{part}{end}"] = (
                    [dims[0] // 3] + dims[1:], values[i * third:(i + 1) * third])
        write_safetensors(self.path("w.safetensors"), theirs)
        self.assertEqual(expected, self.logits(model, "--weights", "w.safetensors",
                                               inputs="image.npz"))

    def test_large_weights_are_in_memory_once_and_as_planned(self):
        model = "mlp:hidden=4096"  # 77 MiB
        self.ok("export", model, "--to", "safetensors", "--out", "w.safetensors", "-q")
        self.ok("train", model, "--weights", "w.safetensors", "--data", "synthetic", "--optimizer",
                "sgd", "--batch", "8", "--steps", "2", "--out", "run", "-q")
        summary = self.read_json("run/summary.json")
        planned, measured = summary["planned"], summary["measured"]
        weights = os.path.getsize(self.path("w.safetensors"))
        self.assertGreater(weights, 60 << 20)
        beside = measured["peak_bytes"] - measured["arena_bytes"]
        self.assertLess(beside, weights / 2 + (40 << 20))
        self.assertGreaterEqual(planned["peak_bytes"], measured["peak_bytes"])
        self.assertLessEqual(planned["peak_bytes"], 1.05 * measured["peak_bytes"])


if __name__ == "__main__":
    unittest.main()
