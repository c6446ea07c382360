"""Pictures with masks: training, metrics by pixel, predicted masks, and what is wrong with files."""
import os
import random
import shutil
import unittest

from _png import png, read_png
from _ridge import RidgeTest

SIDE = 32


class Masks(RidgeTest):
    def shape(self, folder, name, seed, kind=3, ids=(0, 1, 2)):
        """A bright disc (class 1) and a darker box (class 2) on noise; a frame of 255."""
        draw = random.Random(seed)
        cy, cx, r = draw.randint(8, 23), draw.randint(8, 23), draw.randint(4, 7)
        top, left = draw.randint(2, 20), draw.randint(2, 20)
        mask = [[ids[0]] * SIDE for _ in range(SIDE)]
        for y in range(SIDE):
            for x in range(SIDE):
                if top <= y < top + 9 and left <= x < left + 9:
                    mask[y][x] = ids[2]
                if (y - cy) ** 2 + (x - cx) ** 2 <= r * r:
                    mask[y][x] = ids[1]
        level = {ids[0]: (20, 20, 20), ids[1]: (220, 60, 40), ids[2]: (40, 60, 200)}
        rows = [[max(0, min(255, c + draw.randint(-15, 15))) for x in range(SIDE)
                 for c in level[mask[y][x]]] for y in range(SIDE)]
        if 255 not in ids:
            mask[0] = [255] * SIDE
        os.makedirs(self.path(f"{folder}/images"), exist_ok=True)
        os.makedirs(self.path(f"{folder}/masks"), exist_ok=True)
        self.write(f"{folder}/images/{name}.png", png(SIDE, SIDE, rows, 2))
        self.write(f"{folder}/masks/{name}.png", png(SIDE, SIDE, mask, kind))

    def put(self, folder="shapes", train=24, val=8):
        for i in range(train):
            self.shape(f"{folder}/train", f"{i:02}", i)
        for i in range(val):
            self.shape(f"{folder}/val", f"{i:02}", 1000 + i)

    def run_unet(self, *words, out="run", model="unet:base=4"):
        self.ok("train", model, "--data", "masks:shapes,size=32", "--batch", "4", "--out", out,
                "-q", *words)
        return self.read_json(f"{out}/summary.json")

    def test_a_unet_learns_shapes(self):
        self.put()
        words = ["--lr", "2e-3", "--dice", "0.5", "--augment", "flip,crop:2", "--seed", "3"]
        self.run_unet("--epochs", "1", *words, model="unet:base=8", out="short")
        first = self.read_json("short/evaluation.json")
        self.run_unet("--epochs", "40", *words, model="unet:base=8")
        last = self.read_json("run/evaluation.json")
        self.assertEqual(last["data"], "validation")
        self.assertTrue(last["pixels"])
        self.assertEqual(sum(c["support"] for c in last["classes"]), 8 * SIDE * (SIDE - 1))
        self.assertGreater(last["metrics"]["mean_iou"], first["metrics"]["mean_iou"] + 0.2)
        self.assertGreater(last["metrics"]["mean_iou"], 0.8)
        for c in last["classes"]:
            self.assertAlmostEqual(c["iou"], c["f1"] / (2 - c["f1"]), places=12)
        table = self.ok("eval", "run", "--data", "masks:shapes")
        for text in ("IoU", "Dice", "pixel accuracy", "mean IoU", "mean Dice"):
            self.assertIn(text, table)
        self.predicts()

    def predicts(self):
        """Of the run that test_a_unet_learns_shapes has trained."""
        picture = "shapes/val/images/03.png"
        out = self.ok("predict", "run", picture, "--out", "said", "--json")
        self.assertIn('"answer": "mask"', out)
        with open(self.path("said/03.png"), "rb") as file:
            width, height, kind, said = read_png(file.read())
        self.assertEqual((width, height, kind), (SIDE, SIDE, 3))
        with open(self.path("shapes/val/masks/03.png"), "rb") as file:
            want = read_png(file.read())[3]
        same = sum(a == b for s, w in zip(said, want) for a, b in zip(s, w))
        self.assertGreater(same / SIDE / SIDE, 0.85)
        with open(self.path("said/03.overlay.png"), "rb") as file:
            self.assertEqual(read_png(file.read())[:3], (SIDE, SIDE, 2))
        self.ok("export", "run", "--to", "onnx", "--out", "net.onnx")
        self.ok("predict", "net.onnx", picture, "--out", "file", "-q")
        with open(self.path("file/03.png"), "rb") as file:
            self.assertEqual(read_png(file.read())[3], said)
        self.ok("predict", "run", "shapes/val/images", "shapes/train/images", "--out", "all", "-q")
        self.assertEqual(len(os.listdir(self.path("all"))), 64)

    def test_losses_of_pixels_train(self):
        self.put(train=8, val=4)
        hashes = set()
        for i, words in enumerate(([], ["--dice", "0.5"], ["--dice", "1"], ["--focal", "2"],
                                   ["--class-weights", "auto"],
                                   ["--dice", "0.5", "--class-weights", "0.2,1,1"])):
            summary = self.run_unet("--steps", "2", *words, out=f"run{i}")
            hashes.add(summary["parameters_sha256"])
        self.assertEqual(len(hashes), 6)
        self.run_unet("--steps", "2", "--dice", "1", "--slices", "2", out="sliced")
        self.fails(2, "--dice needs several labels a sample, as masks have",
                   "train", "cnn", "--data", "synthetic", "--dice", "0.5", "--steps", "1", "-q")
        self.fails(2, "--dice is 2; it must be at most 1", "train", "unet", "--data", "synthetic",
                   "--dice", "2", "-q")

    def test_a_resumed_run_has_the_same_bits_with_any_number_of_workers(self):
        self.put(train=12, val=4)
        words = ["--epochs", "4", "--checkpoint-every", "1", "--dice", "0.5",
                 "--augment", "rrc:0.5,flip,vflip,rotate:20,jitter:0.3,erase,randaugment"]
        whole = self.run_unet(*words, out="whole")
        self.run_unet(*words, "--workers", "3", out="cut")
        self.cut("cut", 5)
        self.ok("train", "--resume", "cut", "-q")
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"],
                         whole["parameters_sha256"])

    def test_the_survey_counts_pixels(self):
        self.put(train=3, val=1)
        text = self.ok("data", "masks:shapes,size=32")
        self.assertIn("Pixels of the training set", text)
        self.assertIn("ignored", text)
        self.ok("data", "shapes", "--contact-sheet", "sheet.png", "--augment", "flip,rotate:20")
        with open(self.path("sheet.png"), "rb") as file:
            self.assertEqual(file.read(4), b"\x89PNG")
        guessed = self.ridge("data", "shapes")
        self.assertIn("is read as masks:shapes", guessed.stderr)

    def test_a_run_keeps_what_its_masks_mean(self):
        for i in range(8):
            self.shape("shapes", f"{i}", i, kind=0, ids=(0, 255, 0))
        self.run_unet("--steps", "1")
        self.assertEqual(self.read_json("run/preprocessing.json")["masks"],
                         {"classes": 2, "binary": True})
        os.makedirs(self.path("other/images"))
        os.makedirs(self.path("other/masks"))
        shutil.copy(self.path("shapes/images/1.png"), self.path("other/images/1.png"))
        self.write("other/masks/1.png", png(SIDE, SIDE, [[0] * SIDE] * SIDE, 0))
        self.ok("eval", "run", "--data", "masks:other")

    def test_bad_masks_name_the_file(self):
        self.put(train=8, val=4)
        os.remove(self.path("shapes/train/masks/03.png"))
        self.refused(4, "shapes/train/images/03.png: has no mask shapes/train/masks/03.png",
                     "train", "unet:base=4", "--data", "masks:shapes,size=32", "--batch", "4", "-q")
        self.write("shapes/train/masks/03.png", png(4, 5, [[0] * 5] * 4, 0))
        self.refused(4, "shapes/train/masks/03.png: has 4x5 pixels (height x width); its picture "
                     "shapes/train/images/03.png has 32x32",
                     "train", "unet:base=4", "--data", "masks:shapes,size=32", "--batch", "4", "-q")
        self.run_unet("--steps", "1", "--bad-records", "skip:1")
        self.fails(4, "mixup and cutmix need a 'label' that is one class a sample",
                   "train", "unet:base=4", "--data", "masks:shapes,size=32", "--batch", "4",
                   "--augment", "mixup:0.2", "--bad-records", "skip:1", "-q")


if __name__ == "__main__":
    unittest.main()
