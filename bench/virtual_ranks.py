#!/usr/bin/env python3
"""The plan of a step on several ranks beside the step itself, whose kernels only sleep.

    sudo bench/virtual_ranks.py --ridge build/release/bin/ridge --ranks 2,4,8 --mbit 100,1000 gpt:8 resnet50:8

One rank of one thread in each network namespace of this machine (namespaces.py).  Kernels last as
long as they are planned (RIDGE_TEST_COMPUTE=virtual), and everything between ranks is real: so eight
ranks need not eight cores.  Sums are priced by what the ranks measured on the same network before.
A workload is MODEL:BATCH with the batch of a rank, or MODEL:BATCH:MESH[:SHARD] for a mesh.

model       what `ridge bench step` plans
hidden      (in line - overlapped) / (in line - kernels): the share of the exchange that the step hides
allowed     the same with the seconds of the model
by the plan --overlap auto: each rank has a core to spare here, so the plan decides
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from namespaces import Network
from side_by_side import machine

PASSED_ON = ("RIDGE_TEST_COMPUTE", "XDG_CACHE_HOME", "XDG_STATE_HOME")
STEP_S = 3.0  # of steps in one run, about
MOST_STEPS = 30
SUM_ROUNDS = 3


def measured(command, environment, seconds=300):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=seconds)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


class Ranks:
    """`ridge` on the ranks of a network, with a cache of their own: its times of sums are this network's."""

    def __init__(self, args, network, folder):
        self.args, self.network = args, network
        self.environment = dict(os.environ, RIDGE_TEST_COMPUTE="virtual", XDG_CACHE_HOME=f"{folder}/cache", XDG_STATE_HOME=f"{folder}/state",
                                RIDGE_RECEIPTS="off")
        home = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        profiles = pathlib.Path(folder, "cache/ridge/profiles")
        profiles.mkdir(parents=True)
        for profile in (home / "ridge/profiles").glob("*-1.json"):  # of one thread
            if "mpi" not in profile.name:
                facts = json.loads(profile.read_text(encoding="utf-8"))
                # One for all runs: the machine may be too busy to trust what is measured, and kernels last as long as it says.
                facts.update(steadiness={"others_share": 0.0, "processor_share": 1.0, "spread": 0.0}, confirmed=True, contradicted=False)
                (profiles / profile.name).write_text(json.dumps(facts), encoding="utf-8")

    def ridge(self, *words):
        return measured(self.network.mpirun([self.args.ridge, *words], PASSED_ON), self.environment)

    def sums(self):
        """Seconds of sums by bytes: of each size the least of SUM_ROUNDS tables, which plans count."""
        rounds = []
        for _ in range(SUM_ROUNDS):
            self.ridge("bench", "collective", "--quick", "--threads", "1")
            (path,) = pathlib.Path(self.environment["XDG_CACHE_HOME"], "ridge/profiles").glob("*mpi*.json")
            table = json.loads(path.read_text(encoding="utf-8"))
            rounds.append([row["s"] for row in table["sums"]])
        for row, seconds in zip(table["sums"], zip(*rounds)):
            row["s"] = min(seconds)
        path.write_text(json.dumps(table), encoding="utf-8")
        return {row["bytes"]: row["s"] for row in table["sums"]}

    def step(self, workload, overlap, steps):
        model, batch, *layout = workload.split(":")
        words = ["bench", "step", model, "--batch-per-device", batch, "--threads", "1", "--json", "-q", "--steps", str(steps)]
        if layout:
            words += ["--mesh", layout[0], *(["--shard", layout[1]] if len(layout) > 1 else [])]
        words += ["--overlap", overlap]
        return json.loads(self.ridge(*words))

    def best(self, workload, overlap):
        """Of several rounds the one with the fastest median step."""
        steps = 2
        rounds = []
        for _ in range(self.args.rounds + 1):
            rounds.append(self.step(workload, overlap, steps))
            steps = min(MOST_STEPS, max(4, int(STEP_S / rounds[0]["measured"]["step_s"])))
        return min(rounds[1:], key=lambda one: one["measured"]["step_s"])


def row_of(one):
    planned, done = one["planned"], one["measured"]
    return {"model_s": planned["step_s"], "step_s": done["step_s"], "kernels_s": planned["compute_s"],
            "model_exposed_s": planned["communication_s"], "exposed_s": done["communication_s"],
            "error": planned["step_s"] / done["step_s"] - 1}


def compare(ranks, workload):
    """Rows by way; what an overlapped step hides, and what the model says that it can."""
    rows = {"in line": row_of(ranks.best(workload, "off"))}
    if len(workload.split(":")) == 2:
        rows["overlapped"] = row_of(ranks.best(workload, "on"))
        line, beside = rows["in line"], rows["overlapped"]
        beside["hidden"] = (line["step_s"] - beside["step_s"]) / (line["step_s"] - line["kernels_s"])
        beside["allowed"] = (line["model_s"] - beside["model_s"]) / (line["model_s"] - line["kernels_s"])
        rows["by the plan"] = row_of(ranks.best(workload, "auto"))
    return rows


def text_of(row):
    text = (f"kernels {1e3 * row['kernels_s']:7.1f}  model {1e3 * row['model_s']:7.1f}  step {1e3 * row['step_s']:7.1f} ms"
            f"  {100 * row['error']:+5.1f} %")
    return text + (f"  hidden {100 * row['hidden']:.0f} % of {100 * row['allowed']:.0f} %" if "hidden" in row else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--mbit", default="100,1000", help="rates of the links")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--most-error", type=float, help="fail where the mean error is above it, or one above twice of it")
    parser.add_argument("--out")
    parser.add_argument("workloads", nargs="+")
    args = parser.parse_args()
    args.ridge = os.path.abspath(args.ridge)
    record = {"machine": machine(), "load": os.getloadavg(), "networks": []}
    errors = []
    for mbit in args.mbit.split(","):
        for count in args.ranks.split(","):
            with tempfile.TemporaryDirectory(prefix="ridge-virtual-") as folder, Network(int(count), int(mbit), folder) as network:
                ranks = Ranks(args, network, folder)
                entry = {"ranks": int(count), "mbit": int(mbit), "sums": ranks.sums(), "workloads": {}}
                record["networks"].append(entry)
                for workload in args.workloads:
                    entry["workloads"][workload] = rows = compare(ranks, workload)
                    for way, row in rows.items():
                        errors.append(abs(row["error"]))
                        print(f"{count} x {mbit:>4} Mbit/s  {workload:18} {way:11}  {text_of(row)}", flush=True)
                    record["mean_error"], record["most_error"] = sum(errors) / len(errors), max(errors)
                    if args.out:
                        pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    mean, most = record["mean_error"], record["most_error"]
    print(f"{len(errors)} steps: error {100 * mean:.1f} % in the mean, {100 * most:.1f} % at most")
    return int(args.most_error is not None and (mean > args.most_error or most > 2 * args.most_error))


if __name__ == "__main__":
    sys.exit(main())
