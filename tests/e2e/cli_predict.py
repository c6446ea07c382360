"""`ridge predict`: pictures, tables, arrays; a run and its exported file; what is left out."""
import csv
import io
import json
import os
import unittest

import numpy as np
import onnx
from PIL import Image

from _ridge import RidgeTest


class Predict(RidgeTest):
    pictures = [f"photos/{name}/{i:02}.png" for name in ("dark", "light") for i in range(12)]

    def setUp(self):
        super().setUp()
        for at, path in enumerate(self.pictures):
            os.makedirs(self.path(os.path.dirname(path)), exist_ok=True)
            grey = at * 3 if "dark" in path else 200 + at
            Image.new("RGB", (20 + at, 30), (grey, grey, grey)).save(self.path(path))
        self.ok("train", "cnn", "--data", "images:photos,fit=stretch", "--epochs", "4", "--batch",
                "8", "--threads", "1", "--out", "run", "-q")

    def answers(self, *words):
        return json.loads(self.ok("predict", *words, "--json", "-q"))

    def test_accuracy_and_loss_are_those_of_eval(self):
        evaluated = json.loads(self.ok("eval", "run", "--data", "images:photos", "--json"))
        answers = self.answers("run", "photos")["predictions"]
        self.assertEqual([a["input"] for a in answers], self.pictures)
        hits = sum(a["class"] in a["input"] for a in answers)
        self.assertEqual(hits / len(answers), evaluated["accuracy"])

    def test_an_exported_file_answers_without_the_run(self):
        told = self.ok("export", "run", "--to", "onnx", "--out", "net.onnx")
        self.assertIn("carries the names of 2 classes, pictures of 28x28: `ridge predict net.onnx "
                      "INPUT` reads it", told)
        wanted = self.answers("run", "photos")["predictions"]
        os.rename(self.path("run"), self.path("gone"))
        answered = self.answers("net.onnx", "photos", "--batch", "8")["predictions"]
        self.assertEqual(answered, wanted)
        model = onnx.load(self.path("net.onnx"))
        carried = {p.key: json.loads(p.value) for p in model.metadata_props}["ridge.prediction"]
        self.assertEqual(carried["version"], 1)
        self.assertEqual(carried["preprocessing"]["classes"], ["dark", "light"])
        self.assertEqual(carried["preprocessing"]["pictures"]["fit"], "stretch")
        model.metadata_props[0].value = model.metadata_props[0].value[:40]
        onnx.save(model, self.path("cut.onnx"))
        self.fails(5, "cut.onnx: ridge.prediction: cannot be read: ", "predict", "cut.onnx",
                     "photos")
        del model.metadata_props[:]
        onnx.save(model, self.path("foreign.onnx"))
        self.fails(5, "foreign.onnx: carries no ridge.prediction, so how a picture or a row "
                     "becomes its input is not known. hint: export it from a run", "predict",
                     "foreign.onnx", "photos")

    def test_a_bad_file_is_named_or_left_out(self):
        with open(self.path("photos/dark/00.png"), "rb") as file:
            whole = file.read()
        for name, content in (("text.jpg", b"hello"), ("cut.png", whole[:-20])):
            with open(self.path(name), "wb") as file:
                file.write(content)
        self.fails(4, "text.jpg: is no JPEG, PNG or WebP file", "predict", "run", "text.jpg")
        self.fails(4, "cut.png: its PNG data is damaged", "predict", "run", "cut.png")
        words = ["run", "text.jpg", "cut.png", *self.pictures[:2], "--bad-records", "skip"]
        answers = self.answers(*words)
        self.assertEqual([a["input"] for a in answers["predictions"]], self.pictures[:2])
        self.assertEqual([a["input"] for a in answers["skipped"]], ["text.jpg", "cut.png"])
        done = self.ridge("predict", *words)
        self.assertIn("warning: left out: cut.png: its PNG data is damaged", done.stderr)

    def test_a_table_has_a_line_for_each_input(self):
        self.ok("predict", "run", "photos", "--csv", "out.csv", "--top", "2")
        with open(self.path("out.csv"), encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["input"] for row in rows], self.pictures)
        for row, answer in zip(rows, self.answers("run", "photos")["predictions"]):
            self.assertEqual(float(row["probability"]), answer["probability"])
            self.assertEqual(row["class_2"], answer["top"][1]["class"])
        piped = self.ok("predict", "run", "photos", "--csv", "-", "-q")
        self.assertEqual(len(list(csv.reader(io.StringIO(piped)))), 25)
        text = self.ok("predict", "run", self.pictures[0])
        self.assertEqual(len(text.splitlines()), 3)


class Numbers(RidgeTest):
    def test_a_number_is_in_the_unit_of_the_label(self):
        with open(self.path("rooms.csv"), "w", encoding="utf-8") as file:
            file.write("area,rent\n")
            for i in range(64):
                file.write(f"{20 + i},{(20 + i) * 0.01 + 0.5}\n")
        with open(self.path("net.ridge"), "w", encoding="utf-8") as file:
            file.write("graph rent\n  x = input f32[batch,1]\n  w = parameter f32[1,1]\n"
                       "  b = parameter f32[1]\n  y = matmul(x, w, b, transpose_b=1)\n"
                       "  output y\n")
        self.ok("train", "net.ridge", "--data", "csv:rooms.csv,label=rent,number=area", "--loss", "mse:y", "--optimizer",
                "sgd", "--lr", "0.2", "--epochs", "40", "--batch", "16", "--out", "run", "-q")
        with open(self.path("new.csv"), "w", encoding="utf-8") as file:
            file.write("area\n40\n70\n")
        answers = json.loads(self.ok("predict", "run", "new.csv", "--json", "-q"))
        self.assertEqual(answers["label"], "rent")
        for answer, wanted in zip(answers["predictions"], (0.9, 1.2)):
            self.assertAlmostEqual(answer["value"], wanted, places=2)
        text = self.ok("predict", "run", "new.csv")
        self.assertEqual(text.splitlines()[0].split(), ["input", "rent"])
        self.assertIn("new.csv row 2", text)

    def test_arrays_are_counted_from_zero(self):
        np.savez(self.path("x.npz"), x=np.arange(16, dtype="f4").reshape(8, 2),
                 y=np.arange(8) % 2)
        self.ok("train", "mlp:inputs=2,classes=2,hidden=4", "--data", "npz:x.npz", "--batch", "4",
                "--out", "run", "-q")
        answers = json.loads(self.ok("predict", "run", "x.npz", "--json", "-q"))
        self.assertEqual([a["input"] for a in answers["predictions"]],
                         [f"x.npz[{i}]" for i in range(8)])
        self.assertEqual({a["class"] for a in answers["predictions"]} - {"class 0", "class 1"},
                         set())

    def test_a_model_without_one_answer_a_sample_says_so(self):
        self.ok("train", "gpt:layers=1,hidden=16,heads=2,vocab=32,context=8", "--data", "synthetic",
                "--steps", "1", "--batch", "2", "--out", "run", "-q")
        self.fails(5, "'logits' is not one answer for each sample", "predict", "run",
                     "x.npz")


if __name__ == "__main__":
    unittest.main()
