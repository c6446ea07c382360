#!/usr/bin/env python3
"""Whether "fits" and "does not fit" are true: short trainings under a memory limit of the kernel.

    bench/fits.py --ridge build/release/bin/ridge [--out bench/results/NAME.json] [CELL...]

Each run is a process in a memory cgroup of its own (version 1 or 2; needs the right to make one).
Its limit is the least that its plan can do with, times a factor between 0.85 and 1.25.  A run that
ridge accepts must end well: a kill by the kernel is a wrong "fits".  A run that it refuses is tried
nevertheless, with the bytes that it asks for as --fit: when it ends well, the refusal was false.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from side_by_side import machine

MODELS = ["mlp:512", "cnn:1024", "resnet18:16", "resnet50:4", "bert:16", "gpt:4", "unet:2", "vit_ti:8", "efficientnet_v2_s:2",
          "mobilenet_v3_small:16", "lstm:16", "bert:16 --precision f16", "gpt:4 --optimizer sgd", "llama:2", "cnn:1024 --slices 1"]
LEAST, MOST = 0.85, 1.25
NOT_FITTING = 3  # exit code


class Cgroup:
    """A memory cgroup with a limit; commands run inside it."""

    def __init__(self):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.limit_file = "memory.limit_in_bytes" if v1.is_dir() else "memory.max"
        self.folder = (v1 if v1.is_dir() else pathlib.Path("/sys/fs/cgroup")) / f"ridge-fits-{os.getpid()}"
        self.folder.mkdir()

    def run(self, limit, command):
        (self.folder / self.limit_file).write_text(str(limit))
        join = f"echo $$ > {self.folder}/cgroup.procs && exec \"$@\""
        return subprocess.run(["bash", "-c", join, "bash", *command], capture_output=True, text=True, check=False)

    def remove(self):
        self.folder.rmdir()


def words_of(cell):
    model, *options = cell.split()
    name, batch = model.rsplit(":", 1)
    return [name, "--batch", batch, *options]


def least_bytes(ridge, words):
    done = subprocess.run([ridge, "plan", *words, "--fit", "1MiB", "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["peak_bytes"]


def judge(ridge, group, words, factor):
    """One run: its limit, what ridge said and what happened."""
    least = least_bytes(ridge, words)
    limit = int(least * factor)
    folder = tempfile.mkdtemp()
    train = [ridge, "train", *words, "--data", "synthetic", "--steps", "3", "--quiet", "--out", f"{folder}/run"]
    done = group.run(limit, train)
    accepted = done.returncode != NOT_FITTING
    ran = done.returncode == 0
    if not accepted:
        ran = group.run(limit, [*train, "--fit", str(least)]).returncode == 0
    elif not ran:
        print(done.stderr, file=sys.stderr)
    shutil.rmtree(folder)
    return {"limit_bytes": limit, "least_bytes": least, "factor": round(factor, 3), "accepted": accepted, "ran": ran}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--out")
    parser.add_argument("cells", nargs="*")
    args = parser.parse_args()
    cells = args.cells or [cell for cell in MODELS for _ in range(2)]
    group = Cgroup()
    rows = []
    for i, cell in enumerate(cells):
        # The golden ratio spreads the factors evenly, whatever the number of cells.
        factor = LEAST + (MOST - LEAST) * ((i + 1) * 0.6180339887 % 1)
        row = {"cell": cell, **judge(os.path.abspath(args.ridge), group, words_of(cell), factor)}
        row["verdict"] = {(True, True): "fits: true", (True, False): "fits: WRONG", (False, False): "does not fit: true",
                          (False, True): "does not fit: false"}[row["accepted"], row["ran"]]
        rows.append(row)
        print(f"{cell:28} limit {row['limit_bytes'] / 2**20:7.0f} MiB, {row['factor']:5.3f} of the least  {row['verdict']}", flush=True)
    group.remove()
    wrong = sum(row["accepted"] and not row["ran"] for row in rows)
    false = sum(not row["accepted"] and row["ran"] for row in rows)
    refused = sum(not row["accepted"] for row in rows)
    print(f"{len(rows)} runs: {len(rows) - refused} accepted, {wrong} of them killed; {refused} refused, {false} of them ran nevertheless")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
