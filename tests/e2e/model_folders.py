"""Public models as folders of config.json, model.safetensors and a tokenizer."""
import json
import os
import shutil
import unittest

import numpy as np
import onnx

from _ridge import SOURCE, RidgeTest

FOLDERS = f"{SOURCE}/tests/golden/folders"
# What `ridge run` needs to know of the arrays, and the largest difference from transformers.
GOLDEN = {"bert_classifier": "mask=1,tokens=12", "bert_sentences": "mask=1,tokens=12,classes=12",
          "gpt2": "context=10", "llama": "context=10", "llama_tied": "context=10", "vit": ""}
NEAR = 2e-6
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghijklmnopqrstuvwxyz"]


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def read_tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[8 + length:][slice(*entry["data_offsets"])],
                                "<f4").reshape(entry["shape"]) for name, entry in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.writelines(array.tobytes() for array in tensors.values())


class ModelFolders(RidgeTest):
    def take(self, name):
        """A copy of a golden folder."""
        for item in os.listdir(f"{FOLDERS}/{name}"):
            copy = shutil.copytree if os.path.isdir(f"{FOLDERS}/{name}/{item}") else shutil.copy
            os.makedirs(self.path(name), exist_ok=True)
            copy(f"{FOLDERS}/{name}/{item}", self.path(f"{name}/{item}"))
        return name

    def logits(self, model, arrays, *words):
        np.savez(self.path("in.npz"), **arrays)
        self.ok("run", model, *words, "--inputs", "in.npz", "--outputs", "out.npz", "-q")
        return np.load(self.path("out.npz"))["logits"]

    def arrays(self, name):
        floats = {"image": "float32"}
        return {key: np.array(value, floats.get(key, "int64"))
                for key, value in read_json(f"{FOLDERS}/{name}", "input.json").items()}

    def sentences(self, tensors=None):
        """bert_sentences with a head of twelve classes, which hands the pooled vector through."""
        self.take("bert_sentences")
        path = self.path("bert_sentences/model.safetensors")
        head = {"classifier.weight": np.eye(12, dtype="<f4"),
                "classifier.bias": np.zeros(12, "<f4")}
        write_tensors(path, {**read_tensors(path), **head, **(tensors or {})})

    def test_logits_are_those_of_transformers(self):
        self.sentences()
        for name, arguments in GOLDEN.items():
            with self.subTest(name):
                if name != "bert_sentences":
                    self.take(name)
                ours = self.logits("./" + name + (":" if arguments else "") + arguments,
                                   self.arrays(name))
                theirs = np.array(read_json(f"{FOLDERS}/{name}", "logits.json"))
                self.assertEqual(ours.shape, theirs.shape)
                self.assertLess(np.abs(ours - theirs).max(), NEAR * np.abs(theirs).max())

    def test_losses_of_ten_steps_are_those_of_pytorch(self):
        self.take("bert_classifier")
        arrays = self.arrays("bert_classifier")
        np.savez(self.path("data.npz"), label=np.arange(3), **arrays)
        self.ok("train", "bert_classifier:mask=1,tokens=12", "--data", "npz:data.npz", "--batch", "3",
                "--epochs", "10", "--lr", "1e-3", "--threads", "1", "--out", "run", "-q")
        with open(self.path("run/metrics.jsonl"), encoding="utf-8") as file:
            ours = [json.loads(line)["loss"] for line in file]
        theirs = read_json(f"{FOLDERS}/bert_classifier", "losses.json")
        self.assertLess(np.abs(np.array(ours) - theirs).max(), 1e-5)

    def test_padding_of_any_length_gives_the_same_logits(self):
        self.sentences()
        short = self.arrays("bert_sentences")
        longer = {key: np.pad(value, ((0, 0), (0, 8))) for key, value in short.items()}
        longer["tokens"][:, 12:] = 7  # what is hidden may be anything
        for pooling in ("mean", "first", "pooler"):
            model = f"bert_sentences:mask=1,classes=12,pooling={pooling}"
            a = self.logits(model + ",tokens=12", short)
            b = self.logits(model + ",tokens=20", longer)
            self.assertLess(np.abs(a - b).max(), NEAR * np.abs(a).max())
            unmasked = self.logits(model.replace("mask=1,", "") + ",tokens=20",
                                   {"tokens": longer["tokens"]})
            self.assertGreater(np.abs(a - unmasked).max(), 1e-2)

    def test_names_may_have_the_prefix(self):
        self.sentences()
        arrays = self.arrays("bert_sentences")
        model = "bert_sentences:" + GOLDEN["bert_sentences"]
        bare = self.logits(model, arrays)
        path = self.path("bert_sentences/model.safetensors")
        write_tensors(path, {name if name.startswith("classifier") else "bert." + name: array
                             for name, array in read_tensors(path).items()})
        self.assertTrue((self.logits(model, arrays) == bare).all())

    def write_texts(self):
        with open(self.path("bert_sentences/vocab.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(VOCAB))
        os.makedirs(self.path("texts"))
        for kind, letters in (("left", "abc"), ("right", "xyz")):
            lines = [f"{letters[i % 3]} {letters[i // 3 % 3]} {letters[i // 9]}" for i in range(27)]
            self.write(f"texts/{kind}.txt", "\n".join(lines))

    def train_on_texts(self, *words, model="bert_sentences", out="run"):
        return self.ridge("train", model, "--data", "text:texts,length=8", "--batch", "9",
                          "--lr", "1e-2", "--threads", "1", "--out", out, *words)

    def test_a_run_of_a_folder_needs_it_no_more(self):
        self.take("bert_sentences")
        self.write_texts()
        done = self.train_on_texts("--epochs", "4", "-v")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = done.stdout + done.stderr
        self.assertIn("these keep their starting values: classifier.weight, classifier.bias", told)
        self.assertIn("Normalize is left out: the head reads the pooled vector as it is", told)
        self.assertIn("hidden_dropout_prob is 0.1; 'bert' trains without dropout", told)
        options = read_json(self.path("run"), "options.json")
        self.assertEqual(options["model"], "bert:vocab=40,hidden=12,layers=2,heads=3,inner=20,"
                                           "positions=24,types=3,activation=relu,pooling=mean")
        self.assertEqual(options["data-dim"], ["mask=1", "classes=2", "tokens=8"])
        shutil.rmtree(self.path("bert_sentences"))
        result = json.loads(self.ok("eval", "run", "--data", "text:texts", "--json"))
        self.assertEqual(result["accuracy"], 1)

    def losses(self, length):
        data = f"text:texts,length={length}"
        self.ok("train", "bert_sentences", "--data", data, "--batch", "9", "--lr", "1e-3",
                "--steps", "10", "--threads", "1", "--out", f"run{length}", "-q")
        with open(self.path(f"run{length}/metrics.jsonl"), encoding="utf-8") as file:
            return [line["loss"] for line in map(json.loads, file) if "loss" in line]

    def test_padding_of_any_length_trains_the_same(self):
        self.take("bert_sentences")
        self.write_texts()
        short, long = self.losses(6), self.losses(20)
        self.assertEqual(len(short), len(long))
        self.assertLess(np.abs(np.array(short) - long).max(), 1e-5)

    def test_predict_takes_texts_and_files_of_them(self):
        self.take("bert_sentences")
        self.write_texts()
        self.assertEqual(self.train_on_texts("--epochs", "4").returncode, 0)
        answers = json.loads(self.ok("predict", "run", "a b c", "texts/right.txt", "z", "--json"))
        answers = answers["predictions"]
        self.assertEqual([a["input"] for a in answers],
                         ["a b c", *(f"texts/right.txt:{i}" for i in range(1, 28)), "z"])
        self.assertEqual([a["class"] for a in answers], ["left"] + ["right"] * 28)
        self.assertIn("z\n  right ", self.ok("predict", "run", "z"))
        record = json.loads(self.ok("predict", "run", "text:texts/left.txt,record=file", "--json"))
        self.assertEqual([a["input"] for a in record["predictions"]], ["texts/left.txt:1"])
        self.fails(4, "there is no file or folder gone.txt", "predict", "run", "gone.txt")

    def test_an_exported_file_carries_the_tokenizer(self):
        self.take("bert_sentences")
        self.write_texts()
        self.assertEqual(self.train_on_texts("--epochs", "4").returncode, 0)
        told = self.ok("export", "run", "--to", "onnx", "--out", "net.onnx")
        self.assertIn("the names of 2 classes, the tokenizer (wordpiece)", told)
        words = ["a b c", "texts/right.txt", "--json", "--batch", "8"]
        wanted = json.loads(self.ok("predict", "run", *words))["predictions"]
        shutil.rmtree(self.path("run"))
        answers = json.loads(self.ok("predict", "net.onnx", *words))["predictions"]
        for ours, theirs in zip(answers, wanted, strict=True):
            self.assertEqual((ours["input"], ours["class"]), (theirs["input"], theirs["class"]))
            self.assertAlmostEqual(ours["probability"], theirs["probability"], places=5)
        model = onnx.load(self.path("net.onnx"))
        signature = json.loads(model.metadata_props[0].value)
        for changed, part in (({"vocab.txt": "?"}, "vocab.txt of the tokenizer is no base64"),
                              ({}, "carries no vocab.txt, so how a text becomes its input")):
            model.metadata_props[0].value = json.dumps({**signature, "tokenizer": changed})
            onnx.save(model, self.path("bad.onnx"))
            self.fails(5, part, "predict", "bad.onnx", "a")

    def test_the_same_command_goes_on(self):
        self.take("bert_sentences")
        self.write_texts()
        self.assertEqual(self.train_on_texts("--epochs", "1").returncode, 0)
        done = self.train_on_texts("--epochs", "2", "--resume")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.train_on_texts("--epochs", "2", out="whole").returncode, 0)
        hashes = {run: read_json(self.path(run), "summary.json")["parameters_sha256"]
                  for run in ("run", "whole")}
        self.assertEqual(hashes["run"], hashes["whole"])

    def test_the_head_is_drawn_by_the_seed(self):
        self.take("bert_sentences")
        self.write_texts()
        heads = []
        for out, seed in (("a", "1"), ("b", "1"), ("c", "2")):
            self.assertEqual(self.train_on_texts("--steps", "1", "--seed", seed, out=out).returncode, 0)
            self.ok("export", out, "--to", "safetensors", "--out", out + ".safetensors", "-q")
            heads.append(read_tensors(self.path(out + ".safetensors"))["classifier.weight"])
        self.assertTrue((heads[0] == heads[1]).all())
        self.assertFalse((heads[0] == heads[2]).all())

    def test_a_config_alone_starts_at_random(self):
        self.take("bert_sentences")
        self.write_texts()
        self.assertEqual(self.train_on_texts("--steps", "1", model="bert_sentences/config.json").returncode,
                         0)
        options = read_json(self.path("run"), "options.json")
        self.assertEqual((options["weights"], options["weights-skip"]), ("", []))

    def change(self, name, **keys):
        config = read_json(self.path(name), "config.json")
        config.update(keys)
        self.write(f"{name}/config.json",
                   json.dumps({k: v for k, v in config.items() if v != "gone"}))

    def test_what_a_model_lacks_is_refused_by_name(self):
        cases = [
            ("bert_classifier", {"position_embedding_type": "relative_key"}, 5,
             'position_embedding_type is "relative_key"; \'bert\' has "absolute" alone'),
            ("bert_classifier", {"hidden_act": "mish"}, 5, 'hidden_act is "mish"; known are gelu,'),
            ("bert_classifier", {"embedding_size": 3}, 5,
             "embedding_size is 3; what it changes in 'bert' is not known. hint: delete the key"),
            ("bert_classifier", {"hidden_size": "12"}, 5,
             'hidden_size is "12"; it must be an integer'),
            ("bert_classifier", {"model_type": "deberta"}, 5, "known are bert, gpt2, llama, vit"),
            ("llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 5.0}}, 5,
             "rope_parameters is {\"rope_theta\":5.0,\"rope_type\":\"llama3\"}; 'llama' has "
             "rope_type default alone"),
            ("llama", {"head_dim": 8}, 5, "head_dim is 8;"),
            ("llama", {"num_attention_heads": -2 ** 63}, 5, "head_dim is 4;"),
            ("vit", {"num_channels": 1}, 5, "num_channels is 1; 'vit_ti' has 3 alone"),
        ]
        for name, keys, code, part in cases:
            with self.subTest(keys=keys):
                self.take(name)
                self.change(name, **keys)
                self.fails(code, f"{name}/config.json: {part}" if "known" not in part else part,
                           "plan", "./" + name)
                shutil.rmtree(self.path(name))
        self.take("bert_classifier")
        self.write("bert_classifier/config.json", "[" * 100000)
        self.fails(4, "bert_classifier/config.json: is no JSON object", "plan", "bert_classifier")

    def test_missing_files_and_poolings_are_named(self):
        self.take("bert_sentences")
        self.write("bert_sentences/1_Pooling/config.json", '{"pooling_mode_max_tokens": true}')
        self.fails(5, "1_Pooling/config.json: pooling_mode_max_tokens is true; hint: "
                      "FOLDER:pooling=mean pools otherwise", "plan", "bert_sentences")
        self.ok("plan", "bert_sentences:pooling=mean,tokens=8", "--batch", "2")
        os.remove(self.path("bert_sentences/model.safetensors"))
        self.fails(4, "bert_sentences: there is no model.safetensors: it holds none. hint: "
                      "--weights FILE names another file; bert_sentences/config.json as the model "
                      "starts at random", "plan", "bert_sentences:pooling=mean")


if __name__ == "__main__":
    unittest.main()
