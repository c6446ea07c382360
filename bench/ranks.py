#!/usr/bin/env python3
"""Training on two ranks beside one, and beside PyTorch's DistributedDataParallel and DeepSpeed over Gloo.

    bench/ranks.py --ridge build/release/bin/ridge --torchrun TORCHRUN --rounds 3 --out bench/results/NAME.json gpt:8 bert:16

A workload is MODEL:BATCH, the global batch.  Every rank has one thread.  Sides run in turn, so that
a slow minute of the machine meets all of them.  Step: the median of a short training, the least of all
rounds.  Memory: the peak of one rank; of PyTorch what it took after its imports.  A second line has what
the two ranks planned of what they measured.

--limit adds what the cores allow: two trainings that know nothing of each other, each of half the
batch, beside each other; their longer step.
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


class Training:
    """A training of ridge that runs beside others."""

    def __init__(self, args, model, batch, options):
        self.folder = tempfile.TemporaryDirectory(prefix="ridge-ranks-")
        self.command = [args.ridge, "train", model, "--data", "synthetic", "--batch", str(batch), "--steps", steps_of(model), "--threads",
                        "1", "--checkpoint-every", "1000000", "--out", f"{self.folder.name}/run", "-q", *options]
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def measured(self):
        _, errors = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit(f"{' '.join(self.command)}: {errors.strip()}")
        summary = pathlib.Path(self.folder.name, "run", "summary.json").read_text(encoding="utf-8")
        self.folder.cleanup()
        planned, measured = json.loads(summary)["planned"], json.loads(summary)["measured"]
        result = {"ms": 1e3 * measured["step_s"], "mb": measured["peak_bytes"] / 2**20,
                  "planned_ms": 1e3 * planned["step_s"], "planned_mb": planned["peak_bytes"] / 2**20}
        if "communication_s" in measured:
            result |= {"sums_ms": 1e3 * measured["communication_s"], "planned_sums_ms": 1e3 * planned["communication_s"]}
        return result


def ridge(args, model, batch, ranks):
    options = ["--devices", str(ranks)] if ranks > 1 else ["--sums", "tree", "--slices", "2"] if args.same_slices else []
    return Training(args, model, batch, options).measured()


def apart(args, model, batch):
    both = [Training(args, model, int(batch) // 2, []) for _ in range(2)]
    return max((one.measured() for one in both), key=lambda one: one["ms"])


def torch(args, model, batch, ranks, engine):
    done = subprocess.run([args.torchrun, "--nproc-per-node", str(ranks), str(PEERS / "bench_torch_ranks.py"), model, batch, steps_of(model),
                           engine],
                          env=dict(os.environ, OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu"), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{engine} {model} {batch}: {done.stderr.strip()[-2000:]}")
    line = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return {"ms": line["ms_med"], "mb": line["peak_mb"]}


def write(path, rows):
    """After each workload: nothing is lost when a later one is stopped."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": rows}, file, indent=1)
            file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--torchrun", help="of a Python with torch; without it ridge alone")
    parser.add_argument("--engines", default="ddp", help="with --torchrun: ddp,deepspeed, if both are installed there")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--same-slices", action="store_true", help="one rank computes the two slices of two ranks")
    parser.add_argument("--limit", action="store_true", help="two trainings of half the batch that know nothing of each other")
    parser.add_argument("--out")
    parser.add_argument("workloads", nargs="+")
    args = parser.parse_args()
    rows = {}
    for workload in args.workloads:
        model, batch = workload.rsplit(":", 1)
        sides = {"ridge 1": lambda: ridge(args, model, batch, 1), "ridge 2": lambda: ridge(args, model, batch, 2)}
        if args.limit:
            sides["apart"] = lambda: apart(args, model, batch)
        if args.torchrun:
            sides["torch 1"] = lambda: torch(args, model, batch, 1, "ddp")
            for engine in args.engines.split(","):
                sides[f"{engine} 2"] = lambda engine=engine: torch(args, model, batch, 2, engine)
        runs = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, run in sides.items():
                runs[side].append(run())
        best = {side: min(of, key=lambda one: one["ms"]) for side, of in runs.items()}
        rows[workload] = {"best": best, "runs": runs}
        limit = f" (at most {best['ridge 1']['ms'] / best['apart']['ms']:.2f})" if args.limit else ""
        print(f"{workload:16} two ranks {best['ridge 1']['ms'] / best['ridge 2']['ms']:.2f} x one{limit}  " +
              "  ".join(f"{side} {of['ms']:.1f} ms {of['mb']:.0f} MiB" for side, of in best.items()), flush=True)
        two = best["ridge 2"]
        errors = (f"{name} {two['planned_' + key]:.4g} of {two[key]:.4g} {unit} ({two['planned_' + key] / two[key] - 1:+.1%})"
                  for name, key, unit in (("step", "ms", "ms"), ("sums", "sums_ms", "ms"), ("peak", "mb", "MiB")))
        print(f"{'':16} planned of measured, two ranks: " + "  ".join(errors), flush=True)
        write(args.out, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
