#!/usr/bin/env python3
"""How far a plan is from its run: step time and memory of `ridge bench step`, the arena's bytes from
their lower bound (`ridge plan`), and what starting costs.

    bench/plan_error.py --ridge build/release/bin/ridge --out bench/results/NAME.json cnn:64 gpt:8

Without workloads: those of docs/performance.md.  Each step is a process of its own; of several
rounds the one with the median error of the step's time counts, for memory the one with the most.
Step: planned against the median of the measured steps.  Memory: planned peak of the whole process
against VmHWM; a plan below the measured peak is marked, since that must not be.  Arena: placed bytes
against the largest sum of live values.  Start: first_step_s less the median step.

    bench/plan_error.py --ridge build/release/bin/ridge --table [--memory-only] [--isa AVX2] [CELL...]

The table: runs of `ridge train MODEL --data synthetic`, a process each, over models, batches,
precisions, options and instruction sets (ONEDNN_MAX_CPU_ISA), in --rounds rounds over all of them.  The
error of a cell is the median over its runs, and no run is left out: a shared machine whose speed
moves between rehearsal and run is wrong in both directions, a plan in one.  Synthetic data has epochs of
few batches: without a checkpoint at the end of each, in which the loader gets ahead.  Beside the
rehearsed step stands the modelled one, for which nothing ran, and with --on FILE the one by a record, of
this machine or of another.  For memory the worst run counts.  Ends with 1 when a run held more than its
plan, or when a plan is more than 5 % above.

    bench/plan_error.py --ridge build/release/bin/ridge --measured bench/results/TABLE.json --on bench/machines/FILE.json

Nothing runs: the steps of an earlier table, measured on the machine of the record, beside what the
record says here.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parent))
from side_by_side import machine

WORKLOADS = {"mlp:128": 200, "mlp:1024": 60, "mlp:2048": 60, "cnn:64": 200, "cnn:1024": 60, "cnn:4096": 60,
             "resnet50:16": 4, "unet:4": 12, "gpt:8": 5, "bert:16": 20, "vit_ti:8": 12, "efficientnet_v2_s:8": 3, "mobilenet_v3_small:16": 30, "lstm:16": 20,
             "mlp:512": 60, "cnn:256": 100}


# Cells of the table: instruction set, model:batch, further words of the command line.
NATIVE = ["mlp:128", "mlp:2048", "cnn:64", "cnn:1024", "cnn:4096", "resnet50:2", "resnet50:16", "unet:4", "gpt:2", "gpt:8",
          "bert:8", "bert:16", "vit_ti:4", "vit_ti:8", "efficientnet_v2_s:2", "efficientnet_v2_s:4", "mobilenet_v3_small:16",
          "lstm:8", "lstm:32"]
OPTIONS = ["cnn:1024 --optimizer sgd", "mlp:512 --accumulate 2", "bert:16 --slices 4", "unet:4 --recompute off",
           "resnet50:8 --conv auto", "gpt:4 --optimizer sgd", "vit_ti:8 --threads 1", "bert:16 --precision bf16",
           "gpt:4 --precision bf16", "resnet50:8 --precision bf16", "mlp:512 --precision f16", "bert:8 --precision f16",
           "gpt:2 --precision f16", "resnet50:2 --precision f16", "gpt:4 --recompute 45%", "resnet50:8 --recompute 40%",
           "unet:4 --recompute 60%", "bert:16 --recompute all", "cnn:1024 --optimizer-state 8bit", "vit_ti:8 --fit 200MiB"]
NARROW = ["bert:8", "mlp:512", "gpt:layers=2:4", "vit_ti:4", "gpt:2", "lstm:8", "resnet50:2", "cnn:256"]
TABLE = ([("", cell) for cell in NATIVE + OPTIONS] + [("AVX2", cell) for cell in NARROW]
         + [("SSE41", cell) for cell in NARROW] + [("AVX512_CORE", cell) for cell in NARROW])
MOST_SLACK = 0.05


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


def with_isa(isa):
    return dict(os.environ, **({"ONEDNN_MAX_CPU_ISA": isa} if isa else {}))


def train(args, isa, cell):
    """Summary of one training in a folder of its own; None when this machine cannot run it."""
    workload, *words = cell.split()
    model, batch = workload.rsplit(":", 1)
    steps = str(3 if args.memory_only else WORKLOADS.get(workload, 20))
    with tempfile.TemporaryDirectory(prefix="ridge-plan-") as folder:
        done = subprocess.run([*args.prefix.split(), args.ridge, "train", model, "--data", "synthetic", "--batch", batch, "--steps",
                               steps, "--checkpoint-every", "1000000", *words, "--out", f"{folder}/run", "-q"],
                              env=with_isa(isa), capture_output=True, text=True, check=False)
        if "no instructions for products of bf16" in done.stderr:
            return None
        if done.returncode != 0:
            sys.exit(f"{isa or 'native'} {cell}: {done.stderr.strip()}")
        return json.loads(pathlib.Path(folder, "run", "summary.json").read_text(encoding="utf-8"))


def one_run(args, isa, cell):
    """Plan and measurement of one training; None when this machine cannot run it."""
    summary = train(args, isa, cell)
    if summary is None:
        return None
    planned, measured = summary["planned"], summary["measured"]
    found = {"planned_peak_bytes": planned["peak_bytes"], "measured_peak_bytes": measured["peak_bytes"],
             "slack": planned["peak_bytes"] / measured["peak_bytes"] - 1}
    if not args.memory_only:
        found.update(planned_step_s=planned["step_s"], measured_step_s=measured["step_s"],
                     step_error=planned["step_s"] / measured["step_s"] - 1,
                     modelled_error=planned["modelled_step_s"] / measured["step_s"] - 1)
        if args.on and not isa:
            found["record_error"] = recorded_s(args, cell) / measured["step_s"] - 1
    return found


def table_row(isa, cell, runs):
    """One cell over its runs: the run of the median error of the step, the most memory."""
    row = {"isa": isa or "native", "cell": cell, "slack": max(run["slack"] for run in runs),
           "least_slack": min(run["slack"] for run in runs)}
    errors = {key: [run[key] for run in runs] for key in ("step_error", "modelled_error", "record_error") if key in runs[0]}
    middle = runs[0]
    if errors:
        middle = runs[errors["step_error"].index(statistics.median_low(errors["step_error"]))]
    row.update({key: value for key, value in middle.items() if key not in row})
    row.update({key: statistics.median(values) for key, values in errors.items()})
    row.update({key + "s": values for key, values in errors.items()})
    return row


def recorded_s(args, cell):
    """The step by another machine's record."""
    workload, *words = cell.split()
    model, batch = workload.rsplit(":", 1)
    words = [word for i, word in enumerate(words) if "--threads" not in words[max(0, i - 1):i + 1]]
    return run([args.ridge, "plan", model, "--batch", batch, *words, "--on", args.on, "--json"])[0]["step_s"]


def table_line(row):
    text = (f"{row['isa']:12} {row['cell']:32} {row['planned_peak_bytes'] / 2**20:8.1f} {row['measured_peak_bytes'] / 2**20:8.1f}"
            f" {100 * row['least_slack']:+6.2f} %")
    if "step_error" in row:
        text += (f" {1e3 * row['planned_step_s']:9.2f} {1e3 * row['measured_step_s']:9.2f} {100 * row['step_error']:+6.1f} %"
                 f" {100 * row['modelled_error']:+6.1f} %"
                 + (f" {100 * row['record_error']:+6.1f} %" if "record_error" in row else ""))
    bad = "  BELOW" if row["least_slack"] < 0 else "  WIDE" if row["slack"] > MOST_SLACK else ""
    return text + bad


def table(args):
    wanted = [(isa, cell) for isa, cell in TABLE
              if (not args.isa or (isa or "native") in args.isa) and (not args.workloads or cell in args.workloads)]
    runs = {}
    for turn in range(args.rounds):
        for isa, cell in wanted:
            found = one_run(args, isa, cell)
            if found is None:
                print(f"{isa or 'native':12} {cell:32} not on this machine", flush=True)
                continue
            runs.setdefault((isa, cell), []).append(found)
            print(f"round {turn + 1} of {args.rounds}:", table_line(table_row(isa, cell, [found])), flush=True)
    print(f"{'':45} {'plan MiB':>8} {'peak MiB':>8} {'slack':>8}" + ("" if args.memory_only else
          f" {'plan ms':>9} {'step ms':>9} {'rehearsed':>8} {'modelled':>8}{' record' if args.on else ''}"))
    rows = [table_row(isa, cell, found) for (isa, cell), found in runs.items()]
    for row in rows:
        print(table_line(row), flush=True)
    bad = [row for row in rows if row["least_slack"] < 0 or row["slack"] > MOST_SLACK]
    print(f"{len(rows)} runs: slack mean {100 * statistics.mean(r['slack'] for r in rows):.2f} %, least"
          f" {100 * min(r['least_slack'] for r in rows):.2f} %, most {100 * max(r['slack'] for r in rows):.2f} %; {len(bad)} bad")
    if not args.memory_only:
        for key, name in (("step_error", "rehearsed"), ("modelled_error", "modelled"), ("record_error", "by the record")):
            errors = [abs(r[key]) for r in rows if key in r]
            if errors:
                print(f"{len(errors)} times {name}: error mean {100 * statistics.mean(errors):.1f} %, worst {100 * max(errors):.1f} %")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rounds": args.rounds, "rows": rows}, file, indent=1)
            file.write("\n")
    return 1 if bad else 0


def recorded_table(args):
    """Steps by a record of a machine beside those that were measured there."""
    with open(args.measured, encoding="utf-8") as file:
        rows = [row for row in json.load(file)["rows"] if row["isa"] == "native" and row.get("counts", True)]
    errors = {}
    for row in rows:
        if "--threads" in row["cell"]:
            continue  # the record has the machine's threads
        planned = recorded_s(args, row["cell"])
        errors[row["cell"]] = planned / row["measured_step_s"] - 1
        print(f"{row['cell']:32} {1e3 * planned:9.2f} {1e3 * row['measured_step_s']:9.2f} {100 * errors[row['cell']]:+6.1f} %", flush=True)
    sizes = [abs(error) for error in errors.values()]
    print(f"{len(sizes)} steps by the record: error mean {100 * statistics.mean(sizes):.1f} %,"
          f" median {100 * statistics.median(sizes):.1f} %, worst {100 * max(sizes):.1f} %,"
          f" bias {100 * statistics.mean(errors.values()):+.1f} %")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--rounds", type=int, default=1, help="runs of each workload or cell")
    parser.add_argument("--prefix", default="", help="words in front of every command, such as nice -n -5")
    parser.add_argument("--out")
    parser.add_argument("--table", action="store_true", help="trainings over instruction sets and options")
    parser.add_argument("--on", metavar="FILE", help="with --table: also the step by this record of a machine (ridge bench device --record)")
    parser.add_argument("--measured", metavar="TABLE", help="with --on: an earlier table of that machine; nothing runs")
    parser.add_argument("--memory-only", action="store_true", help="with --table: three steps each, no times")
    parser.add_argument("--isa", action="append", help="with --table: only this one (native, AVX2, SSE41, AVX512_CORE)")
    parser.add_argument("workloads", nargs="*")
    args = parser.parse_args()
    if args.measured:
        return recorded_table(args)
    if args.table:
        return table(args)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
