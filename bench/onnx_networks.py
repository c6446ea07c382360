#!/usr/bin/env python3
"""Times the training step of public networks from their ONNX files beside PyTorch.

    bench/onnx_networks.py --torch PYTHON --ridge build/release/bin/ridge --work FOLDER \
        --batch 8 --rounds 2 --out bench/results/NAME.json timm/lcnet_050 transformers/bert

`PYTHON bench/peers/onnx_torch.py draw SEED timm=6,torchvision=5,transformers=5` draws names.  Each
is exported once to FOLDER; then every side runs once a round.  A network is of the published size
with random weights; its loss is the cross entropy of ten classes, its optimizer Adam, all in f32.
"""
import argparse
import json
import math
import pathlib
import sys
import time

from side_by_side import PEERS, best, machine, run

PEER = PEERS / "onnx_torch.py"
MODES = ("eager", "cl", "compile")
KEYS = ("ms_min", "ms_med", "first_step_s", "peak_mb")


def export(args, name):
    """The network's file; None when PyTorch does not write it."""
    file = args.work / f"{name.replace('/', '-')}-{args.batch}.onnx"
    command = [args.torch, str(PEER), "export", name, str(args.batch), str(file)]
    return file if file.exists() or run(command, False, args.limit) else None


def commands(args, name, file):
    steps = str(args.steps)
    yield "ridge", [args.ridge, "bench", "step", str(file), "--batch", str(args.batch), "--steps",
                    steps, "--loss", "cross_entropy:logits", "--json", *args.ridge_options.split()]
    for mode in args.modes.split(","):
        yield mode, [args.torch, str(PEER), "time", name, str(args.batch), mode, steps]


def times(args, name, file):
    """By side the best figures of all rounds; None for a side that fails, which runs once."""
    runs = {}
    for _ in range(args.rounds):
        for side, command in commands(args, name, file):
            if None not in runs.setdefault(side, []):
                runs[side].append(run(command, False, args.limit))
    return {side: {key: best(rows, key) for key in KEYS} if rows[0] else None
            for side, rows in runs.items()}


def ratios(table):
    """ridge over the faster, and over the leaner mode of PyTorch."""
    peers = {side: f for side, f in table.items() if side != "ridge" and f}
    if not peers or not table["ridge"]:
        return {}
    found = {}
    for label, key in (("time", "ms_min"), ("memory", "peak_mb")):
        peer = min(peers, key=lambda side: peers[side][key])
        found[label] = round(table["ridge"][key] / peers[peer][key], 3)
        found[f"{label}_peer"] = peer
    return found


def show(name, table, ratio):
    print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in ratio.items()))
    for side, figures in table.items():
        text = "  ".join(f"{k} {v:.4g}" for k, v in figures.items()) if figures else "failed"
        print("  %-8s" % side, text, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+", metavar="SOURCE/NAME")
    parser.add_argument("--ridge", default="build/release/bin/ridge")
    parser.add_argument("--ridge-options", default="", help="for ridge alone: '--recompute all'")
    parser.add_argument("--torch", required=True)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=240, help="seconds that one run may take")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    args.ridge = str(pathlib.Path(args.ridge).resolve())
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    record = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "batch": args.batch,
              "rounds": args.rounds, "networks": {}}
    for name in args.networks:
        file = export(args, name)
        table = times(args, name, file) if file else {"ridge": None}
        ratio = ratios(table)
        record["networks"][name] = {**table, "ratios": ratio}
        show(name, table, ratio)
        if args.out:
            args.out.write_text(json.dumps(record, indent=1) + "\n")
    for label in ("time", "memory"):
        all_of = [n["ratios"][label] for n in record["networks"].values() if n.get("ratios")]
        if all_of:
            mean = math.exp(sum(map(math.log, all_of)) / len(all_of))
            print(f"{label}: geometric mean {mean:.2f}, worst {max(all_of):.2f}, of {len(all_of)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
