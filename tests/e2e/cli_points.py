"""Point clouds in folders: training pointnet2, resuming, predicting, and what is wrong with files."""
import json
import os
import unittest

import numpy as np
from _ridge import RidgeTest

CLASSES = ("cone", "cube", "sphere")


def shape(kind, seed, count):
    """f32[count,3] on the surface of a shape; size, place and noise differ from file to file."""
    draw = np.random.default_rng([CLASSES.index(kind), seed])
    if kind == "sphere":
        points = draw.normal(size=(count, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    elif kind == "cube":
        points = draw.uniform(-1, 1, size=(count, 3))
        points[np.arange(count), draw.integers(0, 3, count)] = draw.choice([-1, 1], count)
    else:  # a cone along y
        angle, along = draw.uniform(0, 2 * np.pi, count), np.sqrt(draw.uniform(0, 1, count))
        points = np.stack([along * np.cos(angle), 1 - 2 * along, along * np.sin(angle)], 1)
    turn = draw.uniform(0, 2 * np.pi)
    c, s = np.cos(turn), np.sin(turn)
    points = points @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    noise = draw.normal(size=points.shape) * 0.01
    return ((points + noise) * draw.uniform(0.5, 20) + draw.uniform(-9, 9, 3)).astype("float32")


def ply(points, form):
    head = (f"ply\nformat {form} 1.0\nelement vertex {len(points)}\n"
            "property float x\nproperty float y\nproperty float z\nend_header\n").encode()
    if form == "ascii":
        return head + "".join("%.9g %.9g %.9g\n" % tuple(p) for p in points).encode()
    order = "<" if form == "binary_little_endian" else ">"
    return head + points.astype(order + "f4").tobytes()


class Points(RidgeTest):
    def setUp(self):
        super().setUp()
        for part, seeds in (("train", range(32)), ("val", range(100, 124))):
            for kind in CLASSES:
                for seed in seeds:
                    self.put(f"clouds/{part}/{kind}/{seed:03}", shape(kind, seed, 200), seed % 4)

    def put(self, path, points, form):
        """As one of the forms that are read; all say the same."""
        path = self.path(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if form == 3:
            np.save(path + ".npy", points)
            return
        name = ("ascii", "binary_little_endian", "binary_big_endian")[form]
        with open(path + ".ply", "wb") as file:
            file.write(ply(points, name))

    def learn(self, *words, out="run"):
        self.ok("train", "pointnet2:centers=32,neighbours=8", "--data", "points:clouds,points=128",
                "--augment", "draw,rotate,jitter", "--batch", "16", "--threads", "2", "--seed", "1",
                "--lr", "0.002", *words, "--out", out, "-q")
        return self.read_json(f"{out}/summary.json")

    def test_shapes_are_told_apart_and_predicted(self):
        summary = self.learn("--epochs", "25", "--schedule", "cosine")
        # By chance a third; with each coordinate shuffled among the points of a cloud 0.625.
        self.assertGreaterEqual(summary["validation_accuracy"], 0.8)
        for form in range(4):
            self.put(f"new/{form}", shape("cube", 999, 300), form)
        answers = json.loads(self.ok("predict", "run", "new", "--json"))["predictions"]
        self.assertEqual([a["class"] for a in answers], [answers[0]["class"]] * 4)
        said = json.loads(self.ok("predict", "run", "clouds/val", "--json"))["predictions"]
        self.assertEqual(len(said), 72)
        right = sum(a["class"] in a["input"].split("/") for a in said)
        self.assertAlmostEqual(right / len(said), summary["validation_accuracy"], delta=0.03)
        for answer in answers[1:]:
            np.testing.assert_allclose(answer["probability"], answers[0]["probability"], atol=1e-4)
        self.fails(5, "farthest_points 'sa1.centers'", "export", "run", "--to", "onnx", "--out",
                   "x.onnx")

    def test_workers_and_resuming_change_no_bit(self):
        self.learn("--steps", "9", "--workers", "1", out="one")
        self.learn("--steps", "9", "--workers", "3", out="three")
        self.learn("--steps", "4", out="cut")
        self.ok("train", "--resume", "cut", "--steps", "9", "-q")
        wanted = self.weights("one")
        self.assertEqual(self.weights("three"), wanted)
        self.assertEqual(self.weights("cut"), wanted)

    def weights(self, run):
        folder = self.path(f"{run}/checkpoints/step-9")
        name = next(n for n in sorted(os.listdir(folder)) if n.endswith(".safetensors"))
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    def test_a_survey_counts_files_and_points(self):
        survey = json.loads(self.ok("data", "clouds", "--json"))
        clouds = survey["sets"][0]["clouds"]
        self.assertEqual(clouds["formats"], {"NumPy": 24, "PLY": 72})
        self.assertEqual((clouds["fewest"], clouds["most"]), (200, 200))
        text = self.ok("data", "points:clouds")
        self.assertIn("Point clouds of the training set: ", text)

    def test_a_damaged_file_is_named(self):
        with open(self.path("clouds/train/cone/000.ply"), "r+b") as file:
            file.truncate(300)
        self.fails(4, "cone/000.ply: its PLY header declares 200 vertices", "train", "pointnet2",
                   "--data", "points:clouds", "--steps", "1")


if __name__ == "__main__":
    unittest.main()
