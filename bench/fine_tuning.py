#!/usr/bin/env python3
"""The fine-tuning of docs/recipes/fine-tune-a-text-encoder.md beside the same in PyTorch.

    bench/fine_tuning.py --ridge RIDGE --torch PYTHON --encoder FOLDER --out FILE

Both read the same texts: the records of six of Debian's `fortunes`, of which a hash holds out two
fifths.  The sides take turns, a seed at a time.  PYTHON needs torch and transformers.
"""
import argparse
import datetime
import hashlib
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile

from side_by_side import machine

ROOT = pathlib.Path(__file__).resolve().parent
FORTUNES = "/usr/share/games/fortunes"
KINDS = ["art", "food", "law", "love", "medicine", "sports"]
HELD_OUT, EPOCHS = 0.4, 2


def lay_out(folder):
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


def run_ridge(arguments, folder, seed):
    out = f"{folder}/run"
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run([os.path.abspath(arguments.ridge), "train", arguments.encoder, "--data",
                    f"text:{folder}/texts,record=%,length=48", "--batch", "16", "--lr", "1e-4",
                    "--schedule", "cosine", "--seed", str(seed), "--out", out, "-q", "--epochs",
                    str(EPOCHS)], check=True)
    summary = json.loads(pathlib.Path(f"{out}/summary.json").read_text())
    return {"accuracy": summary["validation_accuracy"], "steps": summary["steps"],
            "step_ms": summary["measured"]["step_s"] * 1e3,
            "peak_mb": summary["measured"]["peak_bytes"] / 2 ** 20, "wall_s": summary["wall_s"]}


def run_torch(arguments, folder, seed):
    done = subprocess.run([arguments.torch, ROOT / "peers/fine_tune_torch.py", arguments.encoder,
                           f"{folder}/texts", str(seed), str(EPOCHS)], check=True,
                          capture_output=True, text=True)
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
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(f"{folder}/texts")
        record = {"machine": machine(), "date": datetime.date.today().isoformat(), "kinds": KINDS}
        runs = {side: [] for side in SIDES}
        for seed in range(arguments.seeds):
            for side, run in SIDES.items():
                runs[side].append(run(arguments, folder, seed))
                print(seed, side, runs[side][-1], flush=True)
    record["summary"] = {side: summarize(of) for side, of in runs.items()}
    record["runs"] = runs
    pathlib.Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record["summary"], indent=1))


if __name__ == "__main__":
    main()
