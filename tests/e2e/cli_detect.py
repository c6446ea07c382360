"""Detection: coloured shapes on noise as a YOLO folder; training finds them, resuming and workers
change no bit, and what is wrong is named."""
import json
import os
import random
import unittest

from _png import png
from _ridge import RidgeTest

SIDE = 64
COLOURS = [(250, 40, 40), (40, 250, 40), (60, 60, 255)]


def picture(draw):
    """Pixels, and (class, x1, y1, x2, y2) of one or two squares and discs."""
    pixels = [[tuple(draw.randrange(60, 120) for _ in range(3)) for _ in range(SIDE)]
              for _ in range(SIDE)]
    objects = []
    for half in draw.sample(range(2), draw.choice([1, 2])):  # left or right, so that none overlap
        size = draw.randrange(14, 28)
        x1 = half * 32 + draw.randrange(0, 32 - size)
        y1 = draw.randrange(0, SIDE - size)
        kind = draw.randrange(3)
        middle, radius = (size - 1) / 2, size / 2
        for y in range(size):
            for x in range(size):
                if kind != 2 or (x - middle)**2 + (y - middle)**2 <= radius**2:
                    pixels[y1 + y][x1 + x] = COLOURS[kind]
        objects.append((kind, x1, y1, x1 + size, y1 + size))
    return pixels, objects


def label(o):
    c, x1, y1, x2, y2 = o
    return (f"{c} {(x1 + x2) / 2 / SIDE} {(y1 + y2) / 2 / SIDE} {(x2 - x1) / SIDE} "
            f"{(y2 - y1) / SIDE}\n")


def overlap(a, b):
    w = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    h = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    area = lambda r: (r[2] - r[0]) * (r[3] - r[1])
    return w * h / (area(a) + area(b) - w * h)


class Detect(RidgeTest):
    def setUp(self):
        super().setUp()
        self.objects = {}

    def put(self, name, count, seed):
        draw = random.Random(seed)
        for kind in ("images", "labels"):
            os.makedirs(self.path(f"shapes/{kind}/{name}"))
        for i in range(count):
            pixels, objects = picture(draw)
            self.objects[f"{name}/{i:03}"] = (pixels, objects)
            rows = [sum(row, ()) for row in pixels]
            self.write(f"shapes/images/{name}/{i:03}.png", png(SIDE, SIDE, rows, 2))
            self.write(f"shapes/labels/{name}/{i:03}.txt", "".join(map(label, objects)))
        self.write("shapes/data.yaml", "names: [red, green, disc]\n")

    def train(self, *words, out="run"):
        self.ok("train", "yolov8n:image=64", "--data", "yolo:shapes", "--out", out, "-q",
                "--threads", "2", *words, timeout=600)
        return self.summary(out)

    def test_training_finds_the_shapes(self):
        import numpy as np
        self.put("train", 96, 1)
        self.put("val", 16, 2)
        self.train("--epochs", "60", "--batch", "16", "--lr", "2e-3", "--augment", "flip,vflip",
                   "--schedule", "cosine", "--seed", "3")
        with open(self.path("run/preprocessing.json")) as file:
            self.assertEqual(json.load(file)["classes"], ["red", "green", "disc"])
        names = sorted(n for n in self.objects if n.startswith("val"))
        images = np.array([self.objects[n][0] for n in names], "float32").transpose(0, 3, 1, 2)
        np.savez(self.path("in.npz"), image=images / 255)
        self.ok("run", "run", "--inputs", "in.npz", "--outputs", "out.npz")
        detections = np.load(self.path("out.npz"))["detections"]
        self.assertEqual(detections.shape, (16, 84, 7))
        found = total = 0
        for name, rows in zip(names, detections):
            for c, *box in self.objects[name][1]:
                total += 1
                same = [r for r in rows if r[4:].argmax() == c and r[4 + c] > 0.25]
                found += any(overlap(r[:4], box) > 0.5 for r in same)
        self.assertGreater(found, 0.7 * total, f"{found} of {total}")
        self.check_precision(found / total)
        self.check_predictions(names)

    def check_precision(self, found):
        """The evaluation's mean average precision, the same from `ridge eval`, by class, and best
        by it."""
        with open(self.path("run/evaluation.json")) as file:
            record = json.load(file)
        self.assertGreater(record["metrics"]["map50"], 0.6 * found)
        self.assertGreater(record["metrics"]["map50"], record["metrics"]["map50_95"])
        self.assertEqual([c["name"] for c in record["classes"]], ["red", "green", "disc"])
        boxes = sum(len(objects) for name, (_, objects) in self.objects.items() if "val" in name)
        self.assertEqual(sum(c["support"] for c in record["classes"]), boxes)
        for key, of_class in (("map50", "ap50"), ("map50_95", "ap50_95")):
            mean = sum(c[of_class] for c in record["classes"]) / 3
            self.assertAlmostEqual(record["metrics"][key], mean, 12)
        evaluated = json.loads(self.ok("eval", "run", "--data", "yolo:shapes", "--json"))
        self.assertEqual(evaluated["metrics"], record["metrics"])
        self.assertTrue(evaluated["boxes"])
        text = self.ok("eval", "run", "--data", "yolo:shapes")
        self.assertRegex(text, r"class +boxes +AP50 +AP50-95\n")
        self.assertRegex(text, r"step 360: mAP50 \d+\.\d %, mAP50-95 \d+\.\d %, loss ")
        with open(self.path("run/metrics.jsonl")) as file:
            lines = [json.loads(line) for line in file]
        self.assertTrue(any("validation/map50_95" in line or "validation_map50_95" in line
                            for line in lines))

    def check_predictions(self, names):
        """Boxes in pixels of pictures of another size, drawn and listed."""
        import numpy as np
        folder = "shapes/images/val"
        answers = json.loads(self.ok("predict", "run", folder, "--json", "--out", "drawn"))
        self.assertEqual(answers["answer"], "boxes")
        found = total = 0
        for name, answer in zip(names, answers["predictions"]):
            for box in answer["boxes"]:
                self.assertGreater(box["score"], 0.25)
                self.assertEqual(box["class"], ["red", "green", "disc"][box["index"]])
            for c, *box in self.objects[name][1]:
                total += 1
                found += any(b["index"] == c and overlap(b["box"], box) > 0.5
                             for b in answer["boxes"])
            with open(self.path(answer["picture"]), "rb") as file:
                self.assertEqual(file.read(4), b"\x89PNG")
        self.assertGreater(found, 0.7 * total, f"{found} of {total}")
        # twice as wide and three times as high: the same shapes, their boxes stretched
        pixels = np.array(self.objects[names[0]][0]).repeat(3, 0).repeat(2, 1)
        rows = [tuple(map(int, row.reshape(-1))) for row in pixels]
        self.write("wide.png", png(3 * SIDE, 2 * SIDE, rows, 2))
        wide = json.loads(self.ok("predict", "run", "wide.png", "--json"))["predictions"][0]
        small = answers["predictions"][0]["boxes"]
        self.assertEqual([b["class"] for b in wide["boxes"]], [b["class"] for b in small])
        for large, box in zip(wide["boxes"], small):
            for side, factor, expected in zip(large["box"], (2, 3, 2, 3), box["box"]):
                self.assertAlmostEqual(side / factor, expected, delta=1.5)
        few = json.loads(self.ok("predict", "run", folder, "--json", "--top", "1", "--score", "0"))
        self.assertTrue(all(len(p["boxes"]) == 1 for p in few["predictions"]))
        csv = self.ok("predict", "run", folder, "--csv", "-").splitlines()
        self.assertEqual(csv[0], "input,class,score,x1,y1,x2,y2")
        self.assertEqual(len(csv) - 1, sum(len(p["boxes"]) for p in answers["predictions"]))
        self.assertIn("class", self.ok("predict", "run", "wide.png"))
        self.ok("export", "run", "--to", "onnx", "--out", "shapes.onnx")
        again = json.loads(self.ok("predict", "shapes.onnx", folder, "--json"))
        for mine, its in zip(answers["predictions"], again["predictions"]):
            self.assertEqual(len(mine["boxes"]), len(its["boxes"]))

    def test_workers_and_resuming_change_no_bit(self):
        self.put("train", 12, 1)
        words = ["--batch", "4", "--epochs", "3", "--augment", "flip", "--checkpoint-every", "2"]
        whole = self.train(*words, out="whole")
        self.train(*words, "--workers", "3", out="cut")
        self.cut("cut", 4)
        self.ok("train", "--resume", "cut", "-q")
        self.assertEqual(self.summary("cut")["parameters_sha256"], whole["parameters_sha256"])

    def test_the_same_boxes_from_coco_train_the_same_bits(self):
        self.put("train", 8, 1)
        names = sorted(self.objects)
        annotations = [{"id": 10 * i, "image_id": i, "category_id": 5 + c,
                        "bbox": [x1, y1, x2 - x1, y2 - y1]}
                       for i, name in enumerate(names)
                       for c, x1, y1, x2, y2 in self.objects[name][1]]
        images = [{"id": i, "file_name": name.split("/")[1] + ".png", "width": SIDE, "height": SIDE}
                  for i, name in enumerate(names)]
        categories = [{"id": 5 + c, "name": n} for c, n in enumerate(["red", "green", "disc"])]
        self.write("all.json", json.dumps({"images": images, "annotations": annotations,
                                           "categories": categories}))
        words = ["train", "yolov8n:image=64", "--batch", "4", "--steps", "4", "-q", "--data"]
        self.ok(*words, "yolo:shapes", "--out", "a")
        self.ok(*words, "coco:all.json,images=shapes/images/train", "--out", "b")
        self.assertEqual(self.summary("a")["parameters_sha256"],
                         self.summary("b")["parameters_sha256"])

    def summary(self, run):
        with open(self.path(f"{run}/summary.json")) as file:
            return json.load(file)

    def test_what_is_wrong_is_named(self):
        self.put("train", 4, 1)
        self.write("shapes/labels/train/002.txt", "0 0.5 0.5 0.5 0.5\n0 2 0.5 0.5 0.5\n")
        self.refused(4, "shapes/labels/train/002.txt:2: '2' must be a number from 0 to 1, a part of "
                     "the picture", "train", "yolov8n:image=64", "--data", "yolo:shapes",
                     "--batch", "2", "-q")


if __name__ == "__main__":
    unittest.main()
