#!/usr/bin/env python3
"""Writes the tables and the chart of docs/performance.md and README.md from records in bench/results.

    bench/results_table.py            rewrites the text between the markers
    bench/results_table.py --check    exits 1 when a text differs from the records

A marker is a line `<!-- results NAME -->`; the text up to the next `<!-- end -->` is generated.
NAME is table, chart, job or short.  The row of a workload is one sitting of RECORD: ridge, and the
peer whose step is the shortest there.  The leanest peer is that of all sittings in LEANEST_OF.
"""
import argparse
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
RECORD = "2026-11-22-side-by-side-two-cores-zen4-b.json"
JOB = "2026-11-22-side-by-side-two-cores-zen4.json"
LEANEST_OF = ["2026-11-21-all-sides-two-cores-zen4.json", JOB, RECORD]
TEXTS = ["README.md", "docs/performance.md"]
SHORT = ["cnn:64", "unet:4", "bert:16", "resnet50:16", "gpt:8", "mlp:1024"]  # README's rows
SIDES = {"torch eager": "PyTorch eager", "torch cl": "PyTorch channels-last",
         "torch compile": "torch.compile", "tf graph": "TensorFlow graph",
         "tf xla": "TensorFlow XLA", "jax jit": "JAX", "tf": "Keras", "torch": "PyTorch"}
BAR_CELLS = 20  # of a bar as long as the peer's


def load(name):
    return json.loads((RESULTS / name).read_text())


def peers(workload, key):
    """(figure, side) of each peer that has the figure, the smallest first."""
    return sorted((figures[key], side) for side, figures in workload.items()
                  if side in SIDES and figures.get(key))


def row(name, record, others):
    """The figures of one workload."""
    workload = record["workloads"][name]
    ridge = workload["ridge"]
    peer_ms, peer = peers(workload, "ms_min")[0]
    lean_mib, lean = min(peers(other["workloads"][name], "peak_mb")[0] for other in others
                         if name in other["workloads"])
    return {"model": name.split(":")[0], "batch": name.split(":")[1],
            "ms": ridge["ms_min"], "peer": SIDES[peer], "peer_ms": peer_ms,
            "time_ratio": ridge["ms_min"] / peer_ms,
            "mib": ridge["peak_mb"], "lean": SIDES[lean], "lean_mib": lean_mib,
            "memory_ratio": ridge["peak_mb"] / lean_mib,
            "start_s": ridge["first_step_s"] - ridge["ms_min"] / 1e3,
            "peer_start_s": workload[peer]["first_step_s"] - peer_ms / 1e3}


def digits(number):
    """Three digits, but no digit of a whole number is lost."""
    decimals = max(0, 2 - math.floor(math.log10(number)))
    return f"{number:.{decimals}f}"


def table(rows):
    yield "| model, batch | ridge ms | fastest peer ms | ratio | ridge MiB | leanest peer MiB | ratio | start s | that peer's s |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for r in rows:
        yield (f"| {r['model']} {r['batch']} | {digits(r['ms'])} | {r['peer']} {digits(r['peer_ms'])} | {r['time_ratio']:.2f} "
               f"| {r['mib']:.0f} | {r['lean']} {r['lean_mib']:.0f} | {r['memory_ratio']:.2f} "
               f"| {r['start_s']:.2f} | {r['peer_start_s']:.1f} |")


def bar(ratio):
    """`ratio` of BAR_CELLS cells, to an eighth of a cell."""
    eighths = round(ratio * BAR_CELLS * 8)
    return ("█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8]).rstrip().ljust(BAR_CELLS)


def chart(rows):
    scale = "├" + "─" * (BAR_CELLS - 2) + "┤"
    name_width = max(len(r["model"]) + 1 + len(r["batch"]) for r in rows)
    yield "```"
    yield f"{'':{name_width}}  {'step, fastest peer = 1':{BAR_CELLS + 9}}memory, leanest peer = 1"
    yield f"{'':{name_width}}  {scale:{BAR_CELLS + 9}}{scale}"
    for r in sorted(rows, key=lambda r: r["time_ratio"]):
        name = f"{r['model']} {r['batch']}"
        yield (f"{name:{name_width}}  {bar(r['time_ratio'])} {r['time_ratio']:.2f}    "
               f"{bar(r['memory_ratio'])} {r['memory_ratio']:.2f}")
    yield "```"


def job(record):
    name, workload = next((n, w) for n, w in record["workloads"].items() if n.startswith("e2e:"))
    peer_s, peer = peers(workload, "wall_s")[0]
    ridge = workload["ridge"]
    yield (f"The whole job ({name.split(':')[1]} epochs of `cnn` on Fashion-MNIST, from the start of the process to its end): "
           f"{digits(ridge['wall_s'])} s,")
    yield (f"{SIDES[peer]} {digits(peer_s)} s, ratio {ridge['wall_s'] / peer_s:.2f}; {ridge['peak_mb']:.0f} MiB "
           f"against {workload[peer]['peak_mb']:.0f}, the whole process (`{JOB}`).")


def short(rows):
    yield "| model, batch | ridge | fastest peer | ratio | ridge, MiB | leanest peer, MiB |"
    yield "|---|---|---|---|---|---|"
    for r in rows:
        yield (f"| `{r['model']}` {r['batch']} | {digits(r['ms'])} ms | {r['peer']} {digits(r['peer_ms'])} ms "
               f"| {r['time_ratio']:.2f} | {r['mib']:.0f} | {r['lean_mib']:.0f} |")


def generated():
    """The text of each marker."""
    record = load(RECORD)
    others = [load(name) for name in LEANEST_OF]
    rows = [row(name, record, others) for name in record["workloads"]]
    return {"table": table(rows), "chart": chart(rows), "job": job(load(JOB)),
            "short": short([row(name, record, others) for name in SHORT])}


def filled(text, parts):
    """`text` with what stands between its markers replaced."""
    def fill(match):
        if match[1] not in parts:
            raise SystemExit(f"unknown marker 'results {match[1]}'; known are {', '.join(parts)}")
        return f"<!-- results {match[1]} -->\n{parts[match[1]]}\n<!-- end -->"
    return re.sub(r"<!-- results (\w+) -->\n.*?<!-- end -->", fill, text, flags=re.S)


def main(arguments=None, root=ROOT):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a text differs")
    args = parser.parse_args(arguments)
    parts = {name: "\n".join(lines) for name, lines in generated().items()}
    stale = []
    for name in TEXTS:
        path = pathlib.Path(root) / name
        old = path.read_text()
        new = filled(old, parts)
        if new == old:
            continue
        stale.append(name)
        if not args.check:
            path.write_text(new)
    if args.check and stale:
        print(f"{', '.join(stale)}: differs from bench/results; run bench/results_table.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
