#!/usr/bin/env python3
"""How far a plan is from its run: step time and memory of `ridge bench step`, the arena's bytes from
their lower bound (`ridge plan`), and what starting costs.

    bench/plan_error.py --ridge build/release/bin/ridge --out bench/results/NAME.json cnn:64 gpt:8

Without workloads: those of docs/performance.md.  Each step is a process of its own; of several
rounds the one with the median error of the step's time counts, for memory the one with the most.
Step: planned against the median of the measured steps.  Memory: planned peak of the whole process
against VmHWM; a plan below the measured peak is marked, since that must not be.  Arena: placed bytes
against the largest sum of live values.  Start: first_step_s less the median step.
"""
import argparse
import json
import statistics
import subprocess
import sys

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parent))
from side_by_side import machine

WORKLOADS = {"mlp:128": 200, "mlp:1024": 60, "cnn:64": 200, "cnn:1024": 60, "resnet50:16": 4, "unet:4": 12, "gpt:8": 5,
             "bert:16": 20, "vit_ti:8": 12, "efficientnet_v2_s:8": 3, "mobilenet_v3_small:16": 30, "lstm:16": 20}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def figures(args, workload):
    """One workload's errors, each relative to what was measured."""
    model, batch = workload.rsplit(":", 1)
    words = [*args.prefix.split(), args.ridge]
    steps = str(WORKLOADS.get(workload, 20))
    rounds = [run([*words, "bench", "step", model, "--batch", batch, "--steps", steps, "--json"])
              for _ in range(args.rounds)]
    plan = run([*words, "plan", model, "--batch", batch, "--json"])
    errors = [r["planned"]["step_s"] / r["measured"]["step_s"] - 1 for r in rounds]
    slacks = [r["planned"]["peak_bytes"] / r["measured"]["peak_bytes"] - 1 for r in rounds]
    middle = rounds[errors.index(statistics.median_low(errors))]
    return {"planned_step_s": middle["planned"]["step_s"],
            "measured_step_s": middle["measured"]["step_s"],
            "step_error": statistics.median(errors), "step_errors": errors,
            "planned_peak_bytes": middle["planned"]["peak_bytes"],
            "measured_peak_bytes": middle["measured"]["peak_bytes"],
            "slack": max(slacks, key=abs), "least_slack": min(slacks),
            "arena_bytes": plan["arena_bytes"], "bound_bytes": plan["bound_bytes"],
            "arena_slack": plan["arena_bytes"] / plan["bound_bytes"] - 1,
            "start_s": min(r["first_step_s"] - r["ms_med"] / 1e3 for r in rounds)}


def line(name, row):
    below = "  BELOW" if row["least_slack"] < 0 else ""
    return (f"{name:22} {1e3 * row['planned_step_s']:9.2f} {1e3 * row['measured_step_s']:9.2f} {100 * row['step_error']:+6.1f} %"
            f" {row['planned_peak_bytes'] / 2**20:8.1f} {row['measured_peak_bytes'] / 2**20:8.1f} {100 * row['slack']:+6.1f} %"
            f" {100 * row['arena_slack']:+6.2f} % {row['start_s']:7.2f}{below}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--prefix", default="", help="words in front of every command, such as nice -n -5")
    parser.add_argument("--out")
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    rows = {}
    print(f"{'':22} {'plan ms':>9} {'step ms':>9} {'error':>8} {'plan MiB':>8} {'peak MiB':>8} {'slack':>8} {'arena':>8} {'start s':>7}")
    for workload in args.workloads or WORKLOADS:
        rows[workload] = figures(args, workload)
        print(line(workload, rows[workload]), flush=True)
    means = {key: statistics.mean(abs(row[key]) for row in rows.values())
             for key in ("step_error", "slack", "arena_slack")}
    print("means: " + ", ".join(f"{key} {100 * value:.1f} %" for key, value in means.items()))
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": rows, "means": means}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
