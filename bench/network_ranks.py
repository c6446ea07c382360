#!/usr/bin/env python3
"""Training on two ranks with a network of a given rate between them, in line and overlapped.

    sudo bench/network_ranks.py --ridge build/release/bin/ridge --mbit 1000 gpt:8 mlp:1024

Two network namespaces of this machine, joined by a pair of virtual links whose rate `tc tbf` limits;
Open MPI starts one rank of one thread in each, over TCP.  Needs root, iproute2 and Open MPI.

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

from side_by_side import machine

NAMES = ("ridge-a", "ridge-b")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
STEPS = {"resnet50": 4, "gpt": 6, "bert": 12}


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


class Network:
    """Two namespaces, each of which is a machine to MPI."""

    def __init__(self, mbit, folder):
        self.mbit, self.folder = mbit, folder
        self.agent = pathlib.Path(folder, "agent.sh")

    def __enter__(self):
        self.remove()
        for name in NAMES:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", "ridge-va", "netns", NAMES[0], "type", "veth", "peer", "name", "ridge-vb", "netns", NAMES[1])
        for name, link, address in zip(NAMES, ("ridge-va", "ridge-vb"), ADDRESSES):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", link)
            run("ip", "-n", name, "link", "set", link, "up")
            run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", f"{self.mbit}mbit", "burst", "256kb",
                "latency", "50ms")
        # What mpirun takes for ssh: HOST COMMAND...
        self.agent.write_text("#!/bin/sh\nhost=$1; shift\ncase $host in 10.77.0.1) ns=ridge-a;; *) ns=ridge-b;; esac\n"
                              "exec ip netns exec $ns unshare -u sh -c 'hostname \"$0\"; eval \"$@\"' $ns \"$*\"\n", encoding="utf-8")
        self.agent.chmod(0o755)
        return self

    def remove(self):
        for name in NAMES:
            run("ip", "netns", "del", name, check=False)

    def __exit__(self, *_):
        self.remove()

    def mpirun(self, command):
        """One rank in each namespace; the launcher is in the first."""
        # Two machines to MPI need two session folders.
        return ["ip", "netns", "exec", NAMES[0], "unshare", "-u", "sh", "-c", 'hostname ridge-a; exec "$@"', "sh", "mpirun.openmpi",
                "--allow-run-as-root", "--host", ",".join(ADDRESSES), "-n", "2", "--bind-to", "none", "--mca", "plm_rsh_agent", str(self.agent),
                "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24",
                *command]


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
    with tempfile.TemporaryDirectory(prefix="ridge-agent-") as folder, Network(args.mbit, folder) as network:
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
