#!/usr/bin/env python3
"""Writes average_precision.txt: random boxes and their mean average precisions by pycocotools.

    make_average_precision.py [--cases 60] [--out tests/golden/average_precision.txt]

Lines of a case: `case CLASSES`, `picture`, `found CLASS SCORE X1 Y1 X2 Y2`,
`true CLASS CROWD X1 Y1 X2 Y2`, and last `expect MAP50 MAP50_95`, then `class C AP50 AP50_95` for each
class with true boxes.  -1 is no number.

Needs numpy and pycocotools.
"""
import argparse
import contextlib
import io

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def draw_box(random):
    x, y = random.integers(0, 40, 2)
    w, h = random.integers(4, 24, 2)
    return [int(x), int(y), int(x + w), int(y + h)]


def draw_picture(random, classes, crowded):
    """True boxes, and boxes found near them, elsewhere, or twice; scores have ties."""
    truths, found = [], []
    for _ in range(random.integers(0, 6)):
        truths.append((int(random.integers(classes)), int(crowded and random.random() < 0.2),
                       draw_box(random)))
    for label, _, box in truths:
        for _ in range(random.integers(0, 3)):
            moved = [int(v + random.integers(-2, 3)) for v in box]
            moved[2], moved[3] = max(moved[2], moved[0] + 1), max(moved[3], moved[1] + 1)
            label = label if random.random() < 0.9 else int(random.integers(classes))
            found.append((label, int(random.integers(1, 20)) / 20, moved))
    for _ in range(random.integers(0, 4)):
        found.append((int(random.integers(classes)), int(random.integers(1, 20)) / 20,
                      draw_box(random)))
    return truths, found


def crowded_picture(random):
    """More boxes of a class than are counted."""
    truths = [(0, 0, [5, 5, 15, 15])]
    found = [(0, float(i % 50 + 1) / 64, draw_box(random)) for i in range(120)]
    return truths, found + [(0, 0.001, [5, 5, 15, 15])]


def as_coco_box(box):
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def evaluate(pictures, classes):
    """Precisions [thresholds, recalls, classes]."""
    truths, found = [], []
    for image, (true_boxes, found_boxes) in enumerate(pictures, 1):
        for label, crowd, box in true_boxes:
            x, y, w, h = as_coco_box(box)
            truths.append({"id": len(truths) + 1, "image_id": image, "category_id": label + 1,
                           "iscrowd": crowd, "bbox": [x, y, w, h], "area": w * h})
        for label, score, box in found_boxes:
            found.append({"image_id": image, "category_id": label + 1, "score": score,
                          "bbox": as_coco_box(box)})
    coco = COCO()
    coco.dataset = {"info": {}, "images": [{"id": i + 1} for i in range(len(pictures))],
                    "categories": [{"id": c + 1} for c in range(classes)], "annotations": truths}
    with contextlib.redirect_stdout(io.StringIO()):
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(found), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
    return evaluation.eval["precision"][:, :, :, 0, 2]


def mean(values):
    known = values[values > -1]
    return float(np.mean(known)) if known.size else -1.0


def write_case(out, pictures, classes):
    out.append(f"case {classes}")
    for truths, found in pictures:
        out.append("picture")
        out += [f"found {c} {s!r} {' '.join(map(str, b))}" for c, s, b in found]
        out += [f"true {c} {crowd} {' '.join(map(str, b))}" for c, crowd, b in truths]
    precisions = evaluate(pictures, classes)
    out.append(f"expect {mean(precisions[0])!r} {mean(precisions)!r}")
    for c in range(classes):
        if mean(precisions[0, :, c]) >= 0:
            out.append(f"class {c} {mean(precisions[0, :, c])!r} {mean(precisions[:, :, c])!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--out", default="tests/golden/average_precision.txt")
    options = parser.parse_args()
    random = np.random.default_rng(5)
    out = []
    for case in range(options.cases):
        classes = int(random.integers(1, 5))
        pictures = [draw_picture(random, classes, case % 2) for _ in range(random.integers(1, 6))]
        pictures.append(([(0, 0, [1, 1, 9, 9])], [(0, 0.5, [1, 1, 9, 8])]))
        write_case(out, pictures, classes)
    write_case(out, [crowded_picture(random)], 1)
    with open(options.out, "w") as file:
        file.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
