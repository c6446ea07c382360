#!/usr/bin/env python3
"""Two fine-tunings beside the same in PyTorch: of a text encoder, and of a network for pictures.

    bench/fine_tuning.py --ridge RIDGE --torch PYTHON --encoder FOLDER --out FILE
    bench/fine_tuning.py --ridge RIDGE --torch PYTHON --pictures --out FILE

Texts: the records of six of Debian's `fortunes`, of which a hash holds out two fifths, as in
docs/recipes/fine-tune-a-text-encoder.md.  Pictures: a resnet18 that ridge has trained on six classes
of Fashion-MNIST learns the other four from 100 pictures each.  Both sides read the same files and
start from the same weights.  They take turns, a seed at a time.  PYTHON needs torch, and
transformers or torchvision.
"""
import argparse
import datetime
import gzip
import hashlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np
from PIL import Image

from side_by_side import machine

ROOT = pathlib.Path(__file__).resolve().parent
FORTUNES = "/usr/share/games/fortunes"
KINDS = ["art", "food", "law", "love", "medicine", "sports"]
HELD_OUT, EPOCHS = 0.4, 2
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
KNOWN, NEW = range(6), range(6, 10)  # classes
PICTURES = {"train": 100, "val": 500}  # of each new class
PICTURE_EPOCHS = 6


def lay_texts_out(folder):
    """FOLDER/{train,val}/KIND.txt; equal texts are on one side."""
    for part in ("train", "val"):
        os.makedirs(f"{folder}/{part}")
    for kind in KINDS:
        parts = {"train": [], "val": []}
        for record in pathlib.Path(f"{FORTUNES}/{kind}").read_text(errors="replace").split("\n%\n"):
            record = record.strip().strip("%").strip()
            share = int(hashlib.sha256(record.encode()).hexdigest()[:8], 16) / 2 ** 32
            if record:
                parts["val" if share < HELD_OUT else "train"].append(record)
        for part, records in parts.items():
            pathlib.Path(f"{folder}/{part}/{kind}.txt").write_text("\n%\n".join(records) + "\n")


def read_idx(part, name, header):
    with gzip.open(f"{FASHION_MNIST}/{part}-{name}-ubyte.gz") as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def lay_pictures_out(folder, part, classes, count, into):
    """FOLDER/INTO/CLASS/N.png, 32x32; the first `count` of each class."""
    pixels = read_idx(part, "images-idx3", 16).reshape(-1, 28, 28)
    labels = read_idx(part, "labels-idx1", 8)
    for label in classes:
        os.makedirs(f"{folder}/{into}/class{label}")
        for n, k in enumerate(np.where(labels == label)[0][:count]):
            picture = Image.fromarray(np.pad(pixels[k], 2)).convert("RGB")
            picture.save(f"{folder}/{into}/class{label}/{n}.png")


class Texts:
    name, epochs = "texts", EPOCHS

    def __init__(self, arguments, folder):
        self.encoder, self.data = arguments.encoder, f"{folder}/texts"
        lay_texts_out(self.data)

    def ridge(self):
        return [self.encoder, "--data", f"text:{self.data},record=%,length=48", "--batch", "16",
                "--lr", "1e-4"]

    def torch(self):
        return ["fine_tune_torch.py", self.encoder, self.data]


class Pictures:
    name, epochs = "pictures", PICTURE_EPOCHS

    def __init__(self, arguments, folder):
        self.data, self.weights = f"{folder}/new", f"{folder}/known.safetensors"
        lay_pictures_out(folder, "train", KNOWN, 2000, "known")
        for part, count in PICTURES.items():
            lay_pictures_out(folder, "train" if part == "train" else "t10k", NEW, count,
                             f"new/{part}")
        ridge = os.path.abspath(arguments.ridge)
        subprocess.run([ridge, "train", "resnet18:image=32", "--data",
                        f"images:{folder}/known,normalize=0.5", "--augment", "flip", "--epochs", "4",
                        "--batch", "64", "--schedule", "cosine", "--out", f"{folder}/start", "-q"],
                       check=True)
        subprocess.run([ridge, "export", f"{folder}/start", "--to", "safetensors", "--out",
                        self.weights, "-q"], check=True)

    def ridge(self):
        return ["resnet18:image=32", "--data", f"images:{self.data},normalize=0.5", "--weights",
                self.weights, "--weights-skip", "fc.*", "--augment", "flip", "--batch", "32", "--lr",
                "3e-4"]

    def torch(self):
        return ["fine_tune_pictures_torch.py", self.weights, self.data]


def run_ridge(arguments, task, folder, seed):
    out = f"{folder}/run"
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run([os.path.abspath(arguments.ridge), "train", *task.ridge(), "--schedule",
                    "cosine", "--seed", str(seed), "--out", out, "-q", "--epochs",
                    str(task.epochs)], check=True)
    summary = json.loads(pathlib.Path(f"{out}/summary.json").read_text())
    return {"accuracy": summary["validation_accuracy"], "steps": summary["steps"],
            "step_ms": summary["measured"]["step_s"] * 1e3,
            "peak_mb": summary["measured"]["peak_bytes"] / 2 ** 20, "wall_s": summary["wall_s"]}


def run_torch(arguments, task, _folder, seed):
    script, *inputs = task.torch()
    done = subprocess.run([arguments.torch, ROOT / "peers" / script, *inputs, str(seed),
                           str(task.epochs)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


SIDES = {"ridge": run_ridge, "torch": run_torch}


def summarize(runs):
    values = [run["accuracy"] for run in runs]
    return {"accuracy": statistics.mean(values),
            "standard_error": statistics.stdev(values) / math.sqrt(len(values)),
            "step_ms_least": min(run["step_ms"] for run in runs),
            "step_ms_median": statistics.median(run["step_ms"] for run in runs),
            "peak_mb_least": min(run["peak_mb"] for run in runs),
            "wall_s_median": statistics.median(run["wall_s"] for run in runs)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--torch", required=True)
    task = parser.add_mutually_exclusive_group(required=True)
    task.add_argument("--encoder", metavar="FOLDER")
    task.add_argument("--pictures", action="store_true")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        task = (Pictures if arguments.pictures else Texts)(arguments, folder)
        record = {"machine": machine(), "date": datetime.date.today().isoformat(),
                  "task": task.name}
        runs = {side: [] for side in SIDES}
        for seed in range(arguments.seeds):
            for side, run in SIDES.items():
                runs[side].append(run(arguments, task, folder, seed))
                print(seed, side, runs[side][-1], flush=True)
    record["summary"] = {side: summarize(of) for side, of in runs.items()}
    record["runs"] = runs
    pathlib.Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record["summary"], indent=1))


if __name__ == "__main__":
    main()
