#!/usr/bin/env python3
"""Times ridge and the peers in turn on the same cores and records minima and ratios.

    bench/side_by_side.py --ridge build/release/bin/ridge --tf PYTHON --jax PYTHON --torch PYTHON \
        --rounds 3 --out bench/results/NAME.json cnn:64 cnn:1024 mlp:128 mlp:1024 e2e:3

A workload is MODEL:BATCH, or e2e:EPOCHS for the whole Fashion-MNIST job.  Sides that are not given
are left out.  Every side runs once a round, so that a slow minute of the machine meets all of them.
"""
import argparse
import contextlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

PEERS = pathlib.Path(__file__).resolve().parent / "peers"
MODES = {"torch": ["eager", "cl", "compile"], "tf": ["graph", "xla"], "jax": ["jit"]}
# What a peer's script has not; Keras has no ResNet-18.
MISSING = {"tf": {"resnet18"},
           "jax": {"resnet18", "unet", "bert", "efficientnet_v2_s", "mobilenet_v3_small"}}


def machine():
    """What a reader needs to know of the machine."""
    facts = {"system": platform.platform(), "cores": len(os.sched_getaffinity(0))}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "cpu family", "model") and key.strip() not in facts:
            facts[key.strip()] = value.strip()
    return facts


def steps_for(model, batch):
    """Enough steps for a minimum, few enough for a big model."""
    big = {"resnet18": 5, "resnet50": 3, "efficientnet_v2_s": 3, "unet": 8, "gpt": 5, "bert": 15,
           "vit_ti": 15, "mobilenet_v3_small": 15, "lstm": 15}
    return big.get(model, 30 if batch >= 512 else 100)


def step_commands(args, model, batch):
    steps = str(args.steps or steps_for(model, batch))
    yield "ridge", [args.ridge, "bench", "step", model, "--batch", str(batch), "--steps", steps,
                    "--json"]
    for peer, modes in MODES.items():
        python = getattr(args, peer)
        if not python or model in MISSING.get(peer, ()):
            continue
        for mode in modes:
            if args.sides and f"{peer} {mode}" not in args.sides:
                continue
            yield f"{peer} {mode}", [python, str(PEERS / f"bench_{peer}.py"), model, str(batch),
                                     mode, steps, "adam"]


def e2e_commands(args, epochs):
    yield "ridge", [args.ridge, "train", "cnn", "--data", "fashion-mnist", "--epochs", str(epochs),
                    "--batch", "128", "--progress", "none", "-q"]
    for peer in ("tf", "torch"):
        if getattr(args, peer):
            yield peer, [getattr(args, peer), str(PEERS / f"e2e_{peer}.py"), str(epochs)]


def run(command, is_e2e, limit_s):
    """One run: the JSON line that the command prints, and its wall time."""
    with tempfile.TemporaryDirectory() as folder:
        if is_e2e and "train" in command:
            command = command + ["--out", folder + "/run"]
        start = time.monotonic()
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=PEERS, check=False,
                                  timeout=limit_s)
        except subprocess.TimeoutExpired:
            print(f"over {limit_s} s: {command[1:]}", file=sys.stderr)
            return None
        wall = time.monotonic() - start
        if done.returncode != 0:
            print(done.stderr[-2000:], file=sys.stderr)
            return None
        if is_e2e and "train" in command:
            summary = json.loads(pathlib.Path(folder, "run", "summary.json").read_text())
            return {"wall_s": wall, "test_accuracy": summary["test_accuracy"],
                    "peak_mb": summary["measured"]["peak_bytes"] / 2**20}
        result = json.loads(done.stdout.strip().splitlines()[-1])
        if is_e2e:
            result["wall_s"] = wall
        return result


@contextlib.contextmanager
def busy_processes(count):
    """So many processes that compute all the time."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def best(rows, key):
    return min((row[key] for row in rows if row), default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workloads", nargs="+")
    parser.add_argument("--ridge", default="build/release/bin/ridge")
    for peer in MODES:
        parser.add_argument(f"--{peer}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, help="seconds that one run may take")
    parser.add_argument("--sides", action="append", metavar="SIDE",
                        help="a peer to run, such as 'tf graph' (all); as often as wanted")
    parser.add_argument("--steps", type=int, help="steps of a run (by the model)")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="N processes compute beside each side; means are compared")
    parser.add_argument("--prefix", default="", help="a command that runs each side, such as nice")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.ridge = str(pathlib.Path(args.ridge).resolve())
    record = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rounds": args.rounds,
              "busy": args.busy,
              "workloads": {}}
    for workload in args.workloads:
        model, _, size = workload.partition(":")
        is_e2e = model == "e2e"
        commands = list(e2e_commands(args, int(size)) if is_e2e
                        else step_commands(args, model, int(size)))
        commands = [(side, args.prefix.split() + command) for side, command in commands]
        rows = {side: [] for side, _ in commands}
        for _ in range(args.rounds):
            for side, command in commands:
                with busy_processes(args.busy):
                    rows[side].append(run(command, is_e2e, args.limit))
        keys = ["wall_s", "test_accuracy", "peak_mb"] if is_e2e else [
            "ms_min", "ms_med", "first_step_s", "peak_mb"]
        if args.busy and not is_e2e:
            keys.insert(0, "ms_mean")  # a step that waits for a core is the slowest, not the fastest
        table = {side: {key: best(runs, key) for key in keys} for side, runs in rows.items()}
        record["workloads"][workload] = table
        main_key = keys[0]
        peers = {s: t[main_key] for s, t in table.items() if s != "ridge" and t[main_key]}
        print(f"{workload}:")
        for side, figures in table.items():
            print("  %-12s" % side, "  ".join(f"{k} {v:.4g}" for k, v in figures.items() if v))
        if peers and table["ridge"][main_key]:
            fastest = min(peers, key=peers.get)
            ratio = table["ridge"][main_key] / peers[fastest]
            record["workloads"][workload]["ratio_to_fastest_peer"] = {
                "peer": fastest, "ratio": round(ratio, 3)}
            print(f"  ridge / {fastest}: {ratio:.2f}")
        sys.stdout.flush()
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
