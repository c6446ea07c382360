#!/usr/bin/env python3
"""Training on two ranks with a network of a given rate between them, in line and overlapped.

    sudo bench/network_ranks.py --ridge build/release/bin/ridge --mbit 1000 gpt:8 mlp:1024

Two network namespaces of this machine (namespaces.py), in each of which Open MPI starts one rank of
one thread.  Needs root, iproute2 and Open MPI.

in line     the exchange behind the last slice, --overlap off
overlapped  --overlap on
alone       the same step of a rank without its exchange: the slice of one rank in running sums
hidden      (in line - overlapped) / (in line - alone): the share of the exchange that the step hides
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

STEPS = {"resnet50": 4, "gpt": 6, "bert": 12}


def measured(command, folder, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return json.loads(pathlib.Path(folder, "summary.json").read_text(encoding="utf-8"))["measured"]["step_s"]


def step(args, network, model, batch, overlap):
    with tempfile.TemporaryDirectory(prefix="ridge-network-") as folder:
        out = f"{folder}/run"
        train = [args.ridge, "train", model, "--data", "synthetic", "--steps", str(STEPS.get(model, 30)), "--threads", "1", "--checkpoint-every",
                 "1000000", "--out", out, "-q"]
        if overlap is None:
            return measured([*train, "--batch", str(int(batch) // 2)], out)
        return measured(network.mpirun([*train, "--batch", batch, "--overlap", overlap]), out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--mbit", type=int, default=1000, help="rate of the network (1000)")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("workloads", nargs="+")
    args = parser.parse_args()
    args.ridge = os.path.abspath(args.ridge)
    rows = {}
    with tempfile.TemporaryDirectory(prefix="ridge-agent-") as folder, Network(2, args.mbit, folder) as network:
        for workload in args.workloads:
            model, batch = workload.rsplit(":", 1)
            ways = {"in line": "off", "overlapped": "on", "alone": None}
            runs = {way: [] for way in ways}
            for _ in range(args.rounds):
                for way, overlap in ways.items():
                    runs[way].append(step(args, network, model, batch, overlap))
            best = {way: min(of) for way, of in runs.items()}
            hidden = (best["in line"] - best["overlapped"]) / (best["in line"] - best["alone"])
            rows[workload] = {"best": best, "runs": runs, "hidden": hidden}
            print(f"{workload:12} " + "  ".join(f"{way} {1e3 * s:.1f} ms" for way, s in best.items()) + f"  hidden {100 * hidden:.0f} %", flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "mbit": args.mbit, "rows": rows}, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
