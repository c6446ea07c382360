#!/usr/bin/env python3
"""The fine-tuning of docs/recipes/fine-tune-a-text-encoder.md beside the same in PyTorch.

    bench/fine_tuning.py --ridge RIDGE --torch PYTHON --encoder FOLDER --out FILE   accuracy, per seed
    bench/fine_tuning.py ... --out FILE --times 40    the times of 40 steps, added to FILE

Both read the same texts: the records of six of Debian's `fortunes`, of which a hash holds out two
fifths.  PYTHON needs torch and transformers.  Times want a quiet machine, accuracy does not.
"""
import argparse
import datetime
import hashlib
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent
FORTUNES = "/usr/share/games/fortunes"
KINDS = ["art", "food", "law", "love", "medicine", "sports"]
HELD_OUT, EPOCHS, ROUNDS = 0.4, 2, 2


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


def run_ridge(arguments, folder, seed, steps):
    out = f"{folder}/run"
    length = ["--steps", str(steps)] if steps else ["--epochs", str(EPOCHS)]
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run([os.path.abspath(arguments.ridge), "train", arguments.encoder, "--data",
                    f"text:{folder}/texts,record=%,length=48", "--batch", "16", "--lr", "1e-4",
                    "--schedule", "cosine", "--seed", str(seed), "--out", out, "-q", *length],
                   check=True)
    summary = json.loads(pathlib.Path(f"{out}/summary.json").read_text())
    return {"accuracy": summary.get("validation_accuracy"), "steps": summary["steps"],
            "step_ms": summary["measured"]["step_s"] * 1e3,
            "peak_mb": summary["measured"]["peak_bytes"] / 2 ** 20, "wall_s": summary["wall_s"]}


def run_torch(arguments, folder, seed, steps):
    done = subprocess.run([arguments.torch, ROOT / "peers/fine_tune_torch.py", arguments.encoder,
                           f"{folder}/texts", str(seed), str(EPOCHS), str(steps)], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


SIDES = {"ridge": run_ridge, "torch": run_torch}


def summarize(runs):
    values = [run["accuracy"] for run in runs]
    return {"mean": statistics.mean(values),
            "standard_error": statistics.stdev(values) / math.sqrt(len(values))}


def take_times(arguments, folder, record):
    """Least of the rounds, the sides in turn."""
    rounds = [{side: run(arguments, folder, 0, arguments.times) for side, run in SIDES.items()}
              for _ in range(ROUNDS)]
    record["times"] = {side: {"step_ms": min(r[side]["step_ms"] for r in rounds),
                              "peak_mb": min(r[side]["peak_mb"] for r in rounds),
                              "rounds": [r[side] for r in rounds]} for side in SIDES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--torch", required=True)
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--times", type=int, default=0, metavar="STEPS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(f"{folder}/texts")
        out = pathlib.Path(arguments.out)
        if arguments.times:
            record = json.loads(out.read_text())
            take_times(arguments, folder, record)
        else:
            record = {"machine": {"system": platform.platform(), "cores": os.cpu_count()},
                      "date": datetime.date.today().isoformat(), "kinds": KINDS, "runs": {}}
            for seed in range(arguments.seeds):
                for side, run in SIDES.items():
                    record["runs"].setdefault(side, []).append(run(arguments, folder, seed, 0))
                    print(seed, side, record["runs"][side][-1], flush=True)
            record["accuracy"] = {side: summarize(runs) for side, runs in record["runs"].items()}
        out.write_text(json.dumps(record, indent=1) + "\n")
        print(json.dumps(record.get("times") or record["accuracy"], indent=1))


if __name__ == "__main__":
    main()
