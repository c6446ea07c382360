#!/usr/bin/env python3
"""Times ridge and the peers in turn on the same cores and records minima and ratios.

    bench/side_by_side.py --ridge build/release/bin/ridge --tf PYTHON --jax PYTHON --torch PYTHON \
        --rounds 3 --out bench/results/NAME.json cnn:64 cnn:1024 mlp:128 mlp:1024 e2e:3

A workload is MODEL:BATCH, or e2e:EPOCHS for the whole Fashion-MNIST job.  Sides that are not given
are left out.  Every side runs once a round, so that a slow minute of the machine meets all of them.
A control (the step of a small network) is timed between all runs: a run counts where it differs by
at most 3 % before and after; where none of a side's runs does, the record says by how much.
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
# How each library is told to use no more than AVX2: ridge and oneDNN (in PyTorch and TensorFlow),
# PyTorch's own kernels, MKL, and XLA (TensorFlow and JAX), whose YNNPACK knows no limit (its
# products stay above what AVX2 can reach) and so makes way for Eigen.
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type="}
CONTROL_LIMIT = 0.03


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
                    "--precision", args.precision, "--json"]
    for peer, modes in MODES.items():
        python = getattr(args, peer)
        if args.precision == "bf16" and peer != "torch":
            continue  # only PyTorch's script has it
        if not python or model in MISSING.get(peer, ()):
            continue
        for mode in modes:
            if args.sides and f"{peer} {mode}" not in args.sides:
                continue
            yield f"{peer} {mode}", [python, str(PEERS / f"bench_{peer}.py"), model, str(batch),
                                     mode, steps, "adam", args.precision]


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


def control(args):
    """Milliseconds of a step that has nothing to do with what is timed."""
    return run([args.ridge, "bench", "step", "mlp", "--batch", "1024", "--steps", "40", "--json"],
               False, None)["ms_min"]


def rounds(args, commands, is_e2e):
    """By side its runs; each says by how much the control differed before and after."""
    rows = {side: [] for side, _ in commands}
    before = control(args)
    for _ in range(args.rounds):
        for side, command in commands:
            with busy_processes(args.busy):
                row = run(command, is_e2e, args.limit)
            after = control(args)
            if row:
                row["control"] = round(abs(after / before - 1), 3)
                rows[side].append(row)
            before = after
    return rows


def figures(rows, keys):
    """The best of the runs beside which the control held still, or of all runs if it never did."""
    steady = [row for row in rows if row["control"] <= CONTROL_LIMIT]
    found = {key: best(steady or rows, key) for key in keys}
    if rows and not steady:
        found["control"] = best(rows, "control")
    return found


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
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32",
                        help="bf16: PyTorch runs under autocast, the other peers not at all")
    parser.add_argument("--isa", choices=["avx2"], help="every side uses no more than this")
    parser.add_argument("--prefix", default="", help="a command that runs each side, such as nice")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.ridge = str(pathlib.Path(args.ridge).resolve())
    if args.isa:
        os.environ.update(AVX2)
    record = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rounds": args.rounds,
              "busy": args.busy, "precision": args.precision, "isa": args.isa or "all",
              "workloads": {}}
    for workload in args.workloads:
        model, _, size = workload.partition(":")
        is_e2e = model == "e2e"
        commands = list(e2e_commands(args, int(size)) if is_e2e
                        else step_commands(args, model, int(size)))
        commands = [(side, args.prefix.split() + command) for side, command in commands]
        rows = rounds(args, commands, is_e2e)
        keys = ["wall_s", "test_accuracy", "peak_mb"] if is_e2e else [
            "ms_min", "ms_med", "first_step_s", "peak_mb"]
        if args.busy and not is_e2e:
            keys.insert(0, "ms_mean")  # a step that waits for a core is the slowest, not the fastest
        table = {side: figures(runs, keys) for side, runs in rows.items()}
        record["workloads"][workload] = table
        main_key = keys[0]
        peers = {s: t[main_key] for s, t in table.items() if s != "ridge" and t[main_key]}
        print(f"{workload}:")
        for side, cells in table.items():
            print("  %-12s" % side, "  ".join(f"{k} {v:.4g}" for k, v in cells.items() if v))
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
