#!/usr/bin/env python3
"""Training on two ranks beside one, and beside PyTorch's DistributedDataParallel over Gloo.

    bench/ranks.py --ridge build/release/bin/ridge --torchrun TORCHRUN --rounds 3 --out bench/results/NAME.json gpt:8 bert:16

A workload is MODEL:BATCH, the global batch.  Every rank has one thread.  Sides run in turn, so that
a slow minute of the machine meets all of them; of each the run with the least median step counts.
Step: of ridge the mean of a short training, of PyTorch the median.  Memory: the peak of one rank; of
PyTorch what it took after its imports.  A second line has what the two ranks planned of what they measured.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from side_by_side import machine

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
STEPS = {"resnet50": 4, "gpt": 6, "bert": 12}


def steps_of(model):
    return str(STEPS.get(model, 40))


def ridge(args, model, batch, ranks):
    with tempfile.TemporaryDirectory(prefix="ridge-ranks-") as folder:
        command = [args.ridge, "train", model, "--data", "synthetic", "--batch", batch, "--steps", steps_of(model), "--threads", "1",
                   "--checkpoint-every", "1000000", "--out", f"{folder}/run", "-q"]
        command += ["--devices", str(ranks)] if ranks > 1 else ["--sums", "tree", "--slices", "2"] if args.same_slices else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
        summary = json.loads(pathlib.Path(folder, "run", "summary.json").read_text(encoding="utf-8"))
        planned, measured = summary["planned"], summary["measured"]
        result = {"ms": 1e3 * measured["step_s"], "mb": measured["peak_bytes"] / 2**20,
                  "planned_ms": 1e3 * planned["step_s"], "planned_mb": planned["peak_bytes"] / 2**20}
        if ranks > 1:
            result |= {"sums_ms": 1e3 * measured["communication_s"], "planned_sums_ms": 1e3 * planned["communication_s"]}
        return result


def torch(args, model, batch, ranks):
    done = subprocess.run([args.torchrun, "--nproc-per-node", str(ranks), str(PEERS / "bench_torch_ddp.py"), model, batch, steps_of(model)],
                          env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"torchrun {model} {batch}: {done.stderr.strip()[-2000:]}")
    line = json.loads(done.stdout.strip().splitlines()[-1])
    return {"ms": line["ms_med"], "mb": line["peak_mb"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--torchrun", help="of a Python with torch; without it ridge alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--same-slices", action="store_true", help="one rank computes the two slices of two ranks")
    parser.add_argument("--out")
    parser.add_argument("workloads", nargs="+")
    args = parser.parse_args()
    rows = {}
    for workload in args.workloads:
        model, batch = workload.rsplit(":", 1)
        sides = {"ridge 1": lambda: ridge(args, model, batch, 1), "ridge 2": lambda: ridge(args, model, batch, 2)}
        if args.torchrun:
            sides |= {"torch 1": lambda: torch(args, model, batch, 1), "torch 2": lambda: torch(args, model, batch, 2)}
        runs = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, run in sides.items():
                runs[side].append(run())
        best = {side: min(of, key=lambda one: one["ms"]) for side, of in runs.items()}
        rows[workload] = {"best": best, "runs": runs}
        print(f"{workload:16} two ranks {best['ridge 1']['ms'] / best['ridge 2']['ms']:.2f} x one  " +
              "  ".join(f"{side} {of['ms']:.1f} ms {of['mb']:.0f} MiB" for side, of in best.items()), flush=True)
        two = best["ridge 2"]
        errors = (f"{name} {two['planned_' + key]:.4g} of {two[key]:.4g} {unit} ({two['planned_' + key] / two[key] - 1:+.1%})"
                  for name, key, unit in (("step", "ms", "ms"), ("sums", "sums_ms", "ms"), ("peak", "mb", "MiB")))
        print(f"{'':16} planned of measured, two ranks: " + "  ".join(errors), flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
