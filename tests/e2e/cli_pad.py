"""fit=pad on pictures that are not square: the same bits as of pictures with margins drawn by hand,
and boxes and masks that come back in the picture's pixels."""
import json
import os
import random
import unittest

from _png import png, read_png
from _ridge import RidgeTest

try:
    from PIL import Image
except ImportError:  # scripts/setup.sh --test-tools brings it
    Image = None

SIDE = 64
MARGIN = 114  # the level of the margins
NO_CLASS = 255
SHAPES = [(64, 32), (32, 64), (64, 31), (15, 64)]  # width and height; odd margins end larger
COLOURS = [(250, 40, 40), (40, 250, 40)]


def margins(width, height):
    """Left and top."""
    return (SIDE - width) // 2, (SIDE - height) // 2


def framed(rows, width, height, level, channels):
    """The rows in the middle of a square of `level`."""
    left, top = margins(width, height)
    wide = [[level] * channels * left + list(row) + [level] * channels * (SIDE - width - left)
            for row in rows]
    empty = [[level] * channels * SIDE]
    return empty * top + wide + empty * (SIDE - height - top)


def boxes_text(boxes, width, height):
    """Lines of YOLO's labels."""
    return "".join(f"{c} {(x1 + x2) / 2 / width!r} {(y1 + y2) / 2 / height!r} "
                   f"{(x2 - x1) / width!r} {(y2 - y1) / height!r}\n" for c, x1, y1, x2, y2 in boxes)


class Pad(RidgeTest):
    def put(self, folder, name, content):
        os.makedirs(self.path(folder), exist_ok=True)
        self.write(f"{folder}/{name}", content)

    def shapes(self, count=16):
        """A rectangle on noise: yolo and masks, in pictures of their own size and in squares."""
        draw = random.Random(5)
        for i in range(count):
            width, height = SHAPES[i % len(SHAPES)]
            left, top = margins(width, height)
            c, w, h = draw.randrange(2), draw.randrange(6, 14), draw.randrange(6, 14)
            x, y = draw.randrange(width - w + 1), draw.randrange(height - h + 1)
            rows = [[draw.randrange(60, 120) for _ in range(3 * width)] for _ in range(height)]
            mask = [[0] * width for _ in range(height)]
            for row in range(y, y + h):
                rows[row][3 * x:3 * (x + w)] = COLOURS[c] * w
                mask[row][x:x + w] = [1 + c] * w
            name, box = f"{i:02}", (c, x, y, x + w, y + h)
            moved = (c, x + left, y + top, x + w + left, y + h + top)
            square = framed(rows, width, height, MARGIN, 3)
            own, whole = png(height, width, rows, 2), png(SIDE, SIDE, square, 2)
            self.put("own/images/train", f"{name}.png", own)
            self.put("own/labels/train", f"{name}.txt", boxes_text([box], width, height))
            self.put("square/images/train", f"{name}.png", whole)
            self.put("square/labels/train", f"{name}.txt", boxes_text([moved], SIDE, SIDE))
            self.put("own-masks/images", f"{name}.png", own)
            self.put("own-masks/masks", f"{name}.png", png(height, width, mask, 3))
            self.put("square-masks/images", f"{name}.png", whole)
            self.put("square-masks/masks", f"{name}.png",
                     png(SIDE, SIDE, framed(mask, width, height, NO_CLASS, 1), 3))

    def weights(self, model, spec, out, *words):
        self.ok("train", model, "--data", spec, "--out", out, "-q", "--batch", "4", "--threads",
                "1", *words, timeout=300)
        return self.read_json(f"{out}/summary.json")["parameters_sha256"]

    def boxes(self, run, folder):
        """By the picture's number."""
        said = json.loads(self.ok("predict", run, folder, "--json", "--score", "0.0005"))
        return [answer["boxes"] for answer in said["predictions"]]

    def same_boxes(self, own, square, size, scale=(1, 1)):
        """Boxes of a picture, and those of the square with it in the middle; returns how many."""
        expected = []
        for box in square:
            places = [min(max(side - margin, 0), extent) * factor
                      for side, margin, extent, factor in zip(box["box"], 2 * margins(*size),
                                                              2 * size, 2 * scale)]
            if places[0] < places[2] and places[1] < places[3]:
                expected.append((box["class"], box["score"], places))
        inside = [b for b in own if b["box"][0] < b["box"][2] and b["box"][1] < b["box"][3]]
        self.assertEqual([(b["class"], b["score"]) for b in inside],
                         [(c, score) for c, score, _ in expected])
        for box, (_, _, places) in zip(inside, expected):
            for side, wish in zip(box["box"], places):
                self.assertAlmostEqual(side, wish, delta=1e-3)
        return len(expected)

    def test_boxes_come_back_in_the_pixels_of_the_picture(self):
        self.shapes()
        words = ["--epochs", "4", "--lr", "2e-3", "--augment", "flip,vflip"]
        wanted = self.weights("yolov8n:image=64", "yolo:square", "square-run", *words)
        self.assertEqual(self.weights("yolov8n:image=64", "yolo:own,fit=pad", "own-run", *words),
                         wanted)
        self.assertNotEqual(self.weights("yolov8n:image=64", "yolo:own", "stretch-run", *words),
                            wanted)
        own = self.boxes("own-run", "own/images/train")
        square = self.boxes("square-run", "square/images/train")
        compared = sum(self.same_boxes(mine, others, SHAPES[i % len(SHAPES)])
                       for i, (mine, others) in enumerate(zip(own, square)))
        self.assertGreater(compared, 20)

    @unittest.skipIf(Image is None, "needs Pillow")
    def test_boxes_come_back_in_the_scale_of_the_picture(self):
        self.shapes()
        self.weights("yolov8n:image=64", "yolo:own,fit=pad", "run", "--epochs", "4", "--lr", "2e-3")
        draw = random.Random(6)
        compared = 0
        for width, height, w, h in (150, 70, 64, 30), (21, 30, 45, 64):
            rows = [[draw.randrange(60, 120) for _ in range(3 * width)] for _ in range(height)]
            for y in range(height // 3, height // 2):
                rows[y][12:36] = COLOURS[0] * 8
            pixels = Image.frombytes("RGB", (width, height), bytes(sum(rows, [])))
            small = pixels.resize((w, h), Image.Resampling.BILINEAR).tobytes()
            rows_of_small = [small[3 * w * y:3 * w * (y + 1)] for y in range(h)]
            self.write("picture.png", png(height, width, rows, 2))
            self.write("square.png", png(SIDE, SIDE, framed(rows_of_small, w, h, MARGIN, 3), 2))
            compared += self.same_boxes(self.boxes("run", "picture.png")[0],
                                        self.boxes("run", "square.png")[0], (w, h),
                                        (width / w, height / h))
        self.assertGreater(compared, 10)

    def test_masks_come_back_in_the_pixels_of_the_picture(self):
        self.shapes()
        words = ["--epochs", "6", "--lr", "2e-3", "--augment", "flip,crop:2"]
        wanted = self.weights("unet:base=4", "masks:square-masks,size=64", "square-run", *words)
        got = self.weights("unet:base=4", "masks:own-masks,size=64,fit=pad", "own-run", *words)
        self.assertEqual(got, wanted)
        self.ok("predict", "own-run", "own-masks/images", "--out", "own-said", "-q")
        self.ok("predict", "square-run", "square-masks/images", "--out", "square-said", "-q")
        for i in range(16):
            width, height = SHAPES[i % len(SHAPES)]
            left, top = margins(width, height)
            with open(self.path(f"own-said/{i:02}.png"), "rb") as file:
                own = read_png(file.read())
            with open(self.path(f"square-said/{i:02}.png"), "rb") as file:
                square = read_png(file.read())
            self.assertEqual(own[:2], (width, height))
            self.assertEqual(own[3], [row[left:left + width] for row in
                                      square[3][top:top + height]], i)


if __name__ == "__main__":
    unittest.main()
