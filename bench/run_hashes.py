#!/usr/bin/env python3
"""The SHA-256 of the parameters after a fixed list of short runs: what a refactoring keeps.

    bench/run_hashes.py --ridge build/release/bin/ridge --out before.json
    bench/run_hashes.py --ridge build/release/bin/ridge --against before.json

Bits depend on the processor's instruction set and on the number of threads (two here), so `before`
must be made on the same machine.  A run that is refused is recorded with its exit code.  Exit 1 names
the runs whose bits moved.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SYNTHETIC = ["--data", "synthetic", "--progress", "none", "--threads", "2"]

EXPORTED = "net.onnx"

# Name of a run: the words behind `ridge train`.
TRAIN = {
    "mlp": ["mlp", "--batch", "64", "--steps", "5"],
    "mlp sgd clip": ["mlp", "--batch", "64", "--steps", "5", "--optimizer", "sgd", "--momentum", "0.9",
                     "--clip-norm", "0.5"],
    "mlp accumulate": ["mlp", "--batch", "32", "--accumulate", "2", "--steps", "5"],
    "mlp bf16": ["mlp", "--batch", "64", "--steps", "5", "--precision", "bf16"],
    "cnn": ["cnn", "--batch", "128", "--steps", "5"],
    "cnn slices 4": ["cnn", "--batch", "128", "--steps", "5", "--slices", "4"],
    "cnn direct": ["cnn", "--batch", "128", "--steps", "5", "--conv", "direct"],
    "resnet18": ["resnet18:image=64", "--batch", "4", "--steps", "3"],
    "resnet18 no passes": ["resnet18:image=64", "--batch", "4", "--steps", "2", "--passes", "none"],
    "resnet50": ["resnet50:image=64", "--batch", "4", "--steps", "2"],
    "resnet50 bf16": ["resnet50:image=64", "--batch", "4", "--steps", "2", "--precision", "bf16"],
    "unet": ["unet:image=64", "--batch", "2", "--steps", "2"],
    "gpt": ["gpt:layers=2", "--batch", "2", "--steps", "3"],
    "gpt slices 2": ["gpt:layers=2", "--batch", "2", "--steps", "3", "--slices", "2"],
    "gpt recompute all": ["gpt:layers=2", "--batch", "2", "--steps", "3", "--recompute", "all"],
    "gpt bf16": ["gpt:layers=2", "--batch", "2", "--steps", "3", "--precision", "bf16"],
    "bert": ["bert:layers=2", "--batch", "4", "--steps", "3"],
    "bert inter-op": ["bert:layers=2", "--batch", "4", "--steps", "3", "--inter-op", "2"],
    "vit_ti": ["vit_ti", "--batch", "2", "--steps", "2"],
    "efficientnet_v2_s": ["efficientnet_v2_s:image=64", "--batch", "2", "--steps", "2"],
    "mobilenet_v3_small": ["mobilenet_v3_small:image=64", "--batch", "4", "--steps", "2"],
    "lstm": ["lstm", "--batch", "4", "--steps", "2"],
    "mlp adam": ["mlp", "--batch", "64", "--steps", "5", "--optimizer", "adam"],
    "mlp adamw": ["mlp", "--batch", "64", "--steps", "5", "--optimizer", "adamw"],
    "cnn bf16": ["cnn", "--batch", "128", "--steps", "5", "--precision", "bf16"],
    "cnn accumulate": ["cnn", "--batch", "64", "--accumulate", "3", "--steps", "3"],
    "cnn recompute all": ["cnn", "--batch", "128", "--steps", "5", "--recompute", "all"],
    "cnn inter-op": ["cnn", "--batch", "128", "--steps", "5", "--inter-op", "2"],
    "resnet18 bf16": ["resnet18:image=64", "--batch", "4", "--steps", "2", "--precision", "bf16"],
    "resnet18 recompute all": ["resnet18:image=64", "--batch", "4", "--steps", "2", "--recompute", "all"],
    "resnet50 recompute all": ["resnet50:image=64", "--batch", "4", "--steps", "2", "--recompute", "all"],
    "unet bf16": ["unet:image=64", "--batch", "2", "--steps", "2", "--precision", "bf16"],
    "unet slices 2": ["unet:image=64", "--batch", "2", "--steps", "2", "--slices", "2"],
    "gpt slices recompute": ["gpt:layers=2", "--batch", "2", "--steps", "3", "--slices", "2",
                             "--recompute", "all"],
    "gpt slices bf16": ["gpt:layers=2", "--batch", "2", "--steps", "3", "--slices", "2",
                        "--precision", "bf16"],
    "bert slices 2": ["bert:layers=2", "--batch", "4", "--steps", "3", "--slices", "2"],
    "bert bf16": ["bert:layers=2", "--batch", "4", "--steps", "3", "--precision", "bf16"],
    "vit_ti slices 2": ["vit_ti", "--batch", "2", "--steps", "2", "--slices", "2"],
    "vit_ti bf16": ["vit_ti", "--batch", "2", "--steps", "2", "--precision", "bf16"],
    "efficientnet_v2_s bf16": ["efficientnet_v2_s:image=64", "--batch", "2", "--steps", "2",
                               "--precision", "bf16"],
    "mobilenet bf16": ["mobilenet_v3_small:image=64", "--batch", "4", "--steps", "2", "--precision",
                       "bf16"],
    "lstm slices 2": ["lstm", "--batch", "4", "--steps", "2", "--slices", "2"],
    "lstm bf16": ["lstm", "--batch", "4", "--steps", "2", "--precision", "bf16"],
    # The model behind the file's name is exported first.
    "onnx resnet18": [EXPORTED, "resnet18:image=64", "--batch", "4", "--steps", "2", "--loss",
                      "cross_entropy:logits"],
    "onnx cnn": [EXPORTED, "cnn", "--batch", "32", "--steps", "3", "--loss", "cross_entropy:logits"],
    "onnx vit_ti": [EXPORTED, "vit_ti", "--batch", "2", "--steps", "2", "--loss",
                    "cross_entropy:logits"],
}


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def trained(ridge, words):
    with tempfile.TemporaryDirectory() as folder:
        if words[0] == EXPORTED:
            done = run([ridge, "export", words[1], "--to", "onnx", "--out", EXPORTED], folder)
            words = [EXPORTED, *words[2:]]
        done = run([ridge, "train", *words, *SYNTHETIC, "--out", "run"], folder)
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.strip().splitlines()[0]}"
        summary = json.loads(pathlib.Path(folder, "run/summary.json").read_text())
        return summary["parameters_sha256"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--out", help="writes the hashes here")
    parser.add_argument("--against", help="compares with the hashes in this file")
    args = parser.parse_args()
    ridge = str(pathlib.Path(args.ridge).resolve())
    before = json.loads(pathlib.Path(args.against).read_text()) if args.against else {}
    hashes, moved = {}, []
    for name, words in TRAIN.items():
        hashes[name] = trained(ridge, words)
        same = before.get(name) == hashes[name]
        if args.against and not same:
            moved.append(name)
        print(f"{name:22} {hashes[name][:60]}{'' if not args.against or same else '  MOVED'}", flush=True)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(hashes, indent=1) + "\n")
    if args.against:
        print(f"{len(hashes) - len(moved)} of {len(hashes)} runs have the same bits")
    sys.exit(1 if moved else 0)


if __name__ == "__main__":
    main()
