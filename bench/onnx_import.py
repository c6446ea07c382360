#!/usr/bin/env python3
"""Times `ridge plan FILE.onnx` on graphs of growing size, and on files of 100 MB.

    bench/onnx_import.py --ridge build/release/bin/ridge [--phases build/release/bench/plan_phases_bench] \
        [--sizes 1000,3000,10000,30000,100000] [--shapes chain,wide,transformer,lstm,loop,files] \
        [--rounds 2] [--out bench/results/NAME.json]

One row is one file: the seconds of `ridge plan` end to end (smallest of the rounds) by the clock and
of CPU, which other programs on the machine disturb less, the peak resident memory of that process as
the system counts it (mapped pages too), and with --phases the seconds of each phase.  The last
column before memory is the exponent of the growth of CPU seconds since the row before: 1 is linear.  A graph's size is its number of ONNX nodes, after unrolling for `lstm` and `loop`.

The files are written by hand (the few protobuf messages below), so that this needs no package.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time

FLOAT, INT64, BOOL = 1, 7, 9
FLOATS_OF_A_BLOCK = 1 << 16


# --- protobuf, by hand: field numbers are those of onnx.proto ------------------------------------


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor_head(name, dims, data_type):
    return b"".join(number(1, d) for d in dims) + number(2, data_type) + data(8, name)


def tensor(name, dims, raw, data_type=FLOAT):
    return tensor_head(name, dims, data_type) + data(9, raw)


def attribute(name, value):
    if isinstance(value, float):
        return data(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, int):
        return data(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, bytes):  # a subgraph
        return data(1, name) + data(6, value) + number(20, 5)
    return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)


def node(op, inputs, outputs, **attributes):
    message = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs)
    message += data(3, outputs[0]) + data(4, op)
    return message + b"".join(data(5, attribute(k, v)) for k, v in attributes.items())


def value_info(name, dims, data_type=FLOAT):
    """dims: numbers, or names of open dimensions."""
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, data_type) + data(2, shape)))


class GraphWriter:
    """Collects a graph, and counts its nodes."""

    def __init__(self, seed=1):
        self.nodes, self.tensors, self.inputs, self.outputs = [], [], [], []
        self.random = random.Random(seed)
        self.count = 0

    def fresh(self, kind):
        self.count += 1
        return f"{kind}_{self.count}"

    def op(self, kind, *inputs, **attributes):
        output = self.fresh(kind.lower())
        self.nodes.append(data(1, node(kind, inputs, [output], **attributes)))
        return output

    def weight(self, dims, scale=None):
        name = self.fresh("w")
        count = math.prod(dims)
        scale = scale or 1 / math.sqrt(dims[0])
        raw = struct.pack(f"<{count}f", *(self.random.uniform(-scale, scale) for _ in range(count)))
        self.tensors.append(data(5, tensor(name, dims, raw)))
        return name

    def integers(self, values):
        name = self.fresh("ints")
        raw = struct.pack(f"<{len(values)}q", *values)
        self.tensors.append(data(5, tensor(name, [len(values)], raw, INT64)))
        return name

    def scalar(self, value):
        name = self.fresh("const")
        self.tensors.append(data(5, tensor(name, [], struct.pack("<f", value))))
        return name

    def input(self, name, dims):
        self.inputs.append(data(11, value_info(name, dims)))
        return name

    def output(self, value, dims):
        """The values of `value` under the name of the model's output."""
        self.nodes.append(data(1, node("Identity", [value], ["y"])))
        self.outputs.append(data(12, value_info("y", dims)))

    def write(self, path):
        graph = b"".join(self.nodes) + data(2, "bench") + b"".join(self.tensors)
        graph += b"".join(self.inputs) + b"".join(self.outputs)
        pathlib.Path(path).write_bytes(number(1, 8) + data(7, graph) + data(8, number(2, 17)))


# --- graphs of about `size` nodes ----------------------------------------------------------------


def chain(size):
    """Gemm, Relu, Add with the value before: as deep as it is large; every layer is trained."""
    g = GraphWriter()
    h = g.input("x", ["batch", 8])
    for _ in range(size // 3):
        product = g.op("Gemm", h, g.weight([8, 8]), g.weight([8]))
        h = g.op("Add", g.op("Relu", product), h)
    g.output(h, ["batch", 8])
    return g


def wide(size):
    """Branches of one layer, all from the input and all met by one Concat."""
    g = GraphWriter()
    x = g.input("x", ["batch", 4])
    branches = [g.op("Tanh", g.op("MatMul", x, g.weight([4, 4]))) for _ in range(size // 2)]
    joined = g.op("Concat", *branches, axis=1)
    g.output(g.op("MatMul", joined, g.weight([4 * len(branches), 4])), ["batch", 4])
    return g


def layer_norm(g, x, width):
    centred = g.op("Sub", x, g.op("ReduceMean", x, axes=[-1]))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.scalar(2.0)), axes=[-1])
    deviation = g.op("Sqrt", g.op("Add", variance, g.scalar(1e-5)))
    scaled = g.op("Mul", g.op("Div", centred, deviation), g.weight([width]))
    return g.op("Add", scaled, g.weight([width]))


def linear(g, x, width, out):
    return g.op("Add", g.op("MatMul", x, g.weight([width, out])), g.weight([out]))


def heads(g, x, count, width):
    """[batch, sequence, width] -> [batch, head, sequence, head width], with the shape computed."""
    batch = g.op("Gather", g.op("Shape", x), g.integers([0]), axis=0)
    shape = g.op("Concat", batch, g.integers([-1, count, width // count]), axis=0)
    return g.op("Transpose", g.op("Reshape", x, shape), perm=[0, 2, 1, 3])


def attention(g, x, width):
    q, k, v = (heads(g, linear(g, x, width, width), 2, width) for _ in range(3))
    scores = g.op("Div", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.scalar(2.0))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    merged = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), g.integers([0, 0, width]))
    return linear(g, merged, width, width)


def gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, g.scalar(math.sqrt(2))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.scalar(1.0))), g.scalar(0.5))


def transformer(size):
    """Blocks as PyTorch's older exporter writes them: 64 nodes each, layer norm in primitives."""
    g = GraphWriter()
    width, length = 8, 4
    h = g.input("x", ["batch", length, width])
    while len(g.nodes) < size:
        h = g.op("Add", h, attention(g, layer_norm(g, h, width), width))
        inner = gelu(g, linear(g, layer_norm(g, h, width), width, 2 * width))
        h = g.op("Add", h, linear(g, inner, 2 * width, width))
    g.output(h, ["batch", length, width])
    return g


def lstm(size):
    """One LSTM node over a sequence; unrolled, a step of it is about 18 nodes."""
    g = GraphWriter()
    length, width = max(size // 18, 1), 4
    x = g.input("x", ["batch", length, width])
    sequence_first = g.op("Transpose", x, perm=[1, 0, 2])
    weights = [g.weight([1, 4 * width, width]), g.weight([1, 4 * width, width]),
               g.weight([1, 8 * width])]
    all_h = g.op("LSTM", sequence_first, *weights, hidden_size=width)
    last = g.op("Gather", g.op("Squeeze", all_h, g.integers([1])), g.integers([-1]), axis=0)
    g.output(g.op("Squeeze", last, g.integers([0])), ["batch", width])
    return g


def loop(size):
    """A Loop of `size` / 4 rounds: h = tanh(h w) + h."""
    g = GraphWriter()
    h = g.input("x", ["batch", 4])
    w = g.weight([4, 4])
    body = b"".join(data(1, n) for n in (
        node("Identity", ["go"], ["go_on"]), node("MatMul", ["h", w], ["hw"]),
        node("Tanh", ["hw"], ["t"]), node("Add", ["t", "h"], ["h_next"])))
    body += data(2, "body") + data(11, value_info("round", [], INT64))
    body += data(11, value_info("go", [], BOOL)) + data(11, value_info("h", ["batch", 4]))
    body += data(12, value_info("go_on", [], BOOL)) + data(12, value_info("h_next", ["batch", 4]))
    g.tensors.append(data(5, tensor("rounds", [], struct.pack("<q", size // 4), INT64)))
    g.tensors.append(data(5, tensor("yes", [], b"\1", BOOL)))
    g.output(g.op("Loop", "rounds", "yes", h, body=body), ["batch", 4])
    return g


SHAPES = {"chain": chain, "wide": wide, "transformer": transformer, "lstm": lstm, "loop": loop}


# --- files of 100 MB: layers x -> relu(x w), few and large ----------------------------------------


def numbers(count, offset=0):
    """`count` floats, small; no two blocks are equal."""
    block = struct.pack(f"<{FLOATS_OF_A_BLOCK}f",
                        *(math.sin(i + 0.1) / 1000 for i in range(FLOATS_OF_A_BLOCK)))
    whole, rest = divmod(count, FLOATS_OF_A_BLOCK)
    head = struct.pack("<f", 1e-4 * offset)
    return head + (block * whole + block[:4 * rest])[4:]


def stack_of(layers, width, store):
    """`layers` square products; `store` makes the TensorProto of each."""
    g = GraphWriter()
    h = g.input("x", ["batch", width])
    for i in range(layers):
        g.tensors.append(data(5, store(f"w{i}", [width, width], numbers(width * width, i))))
        h = g.op("Relu", g.op("MatMul", h, f"w{i}"))
    g.output(h, ["batch", width])
    return g


def file_raw(folder):
    """24 tensors of 4.2 MB in raw_data."""
    stack_of(24, 1024, tensor).write(folder / "model.onnx")


def file_large_strings(folder):
    """Two tensors of 52 MB each in raw_data: over what protobuf reserves at once."""
    stack_of(2, 3600, tensor).write(folder / "model.onnx")


def file_float_data(folder):
    """24 tensors of 4.2 MB in float_data."""
    stack_of(24, 1024, lambda name, dims, raw: tensor_head(name, dims, FLOAT) + data(4, raw)).write(
        folder / "model.onnx")


def file_external(folder):
    """24 tensors of 4.2 MB in another file, aligned to pages."""
    parts, at = [], 0

    def store(name, dims, raw):
        nonlocal at
        entries = {"location": "weights.bin", "offset": str(at), "length": str(len(raw))}
        parts.append(raw + b"\0" * (-len(raw) % 4096))
        at += len(parts[-1])
        external = b"".join(data(13, data(1, k) + data(2, v)) for k, v in entries.items())
        return tensor_head(name, dims, FLOAT) + external + number(14, 1)

    stack_of(24, 1024, store).write(folder / "model.onnx")
    (folder / "weights.bin").write_bytes(b"".join(parts))


FILES = {"raw_data": file_raw, "raw_data > 50 MB": file_large_strings,
         "float_data": file_float_data, "external": file_external}


# --- measuring -----------------------------------------------------------------------------------


def machine():
    facts = {"system": platform.platform(), "cores": len(os.sched_getaffinity(0))}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "cpu family", "model") and key.strip() not in facts:
            facts[key.strip()] = value.strip()
    return facts


def measure(command, limit_s):
    """Wall seconds and peak resident MiB of one process, and what it printed."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: resource.setrlimit(
                                 resource.RLIMIT_CPU, (limit_s, limit_s)))
    out, err = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    if child.returncode != 0:
        print(f"{' '.join(map(str, command))}: exit {child.returncode}\n{err[-2000:]}",
              file=sys.stderr)
        return None
    return {"s": wall, "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_mib": usage.ru_maxrss / 1024, "out": out}


def row_of(args, path):
    flags = [str(path), "--loss", "mse:y", "--batch", "2", "--threads", "1"]
    runs = [measure([args.ridge, "plan", *flags, "--json"], args.limit)
            for _ in range(args.rounds)]
    if None in runs:
        return None
    best = min(runs, key=lambda run: run["cpu_s"])
    plan = json.loads(best["out"])
    row = {"s": round(min(run["s"] for run in runs), 3), "cpu_s": round(best["cpu_s"], 3),
           "peak_mib": round(best["peak_mib"], 1),
           "file_mib": round(sum(p.stat().st_size for p in path.parent.iterdir()) / 2**20, 1),
           "arena_over_bound": round(plan["arena_bytes"] / plan["bound_bytes"] - 1, 4)}
    if args.phases:
        phases = measure([args.phases, str(path)], args.limit)
        row["phases_s"] = json.loads(phases["out"]) if phases else None
    return row


def show(label, size, row, before):
    slope = ""
    if before:
        grown = math.log(row["cpu_s"] / before[1]["cpu_s"]) / math.log(size / before[0])
        slope = f"{grown:6.2f}"
    phases = " ".join(f"{k} {v:.3f}" for k, v in (row.get("phases_s") or {}).items())
    print(f"{label:18} {size or '':>7} {row['s']:8.3f} s {row['cpu_s']:8.3f} s of CPU {slope:6} {row['peak_mib']:8.1f} MiB "
          f"(file {row['file_mib']:6.1f}) arena {100 * row['arena_over_bound']:+.2f} %  {phases}",
          flush=True)


def run_shapes(args, results):
    for shape in args.shapes:
        if shape == "files":
            continue
        before = None
        for size in args.sizes:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "model.onnx")
                SHAPES[shape](size).write(path)
                row = row_of(args, path)
            if row is None:
                break
            show(shape, size, row, before)
            results.setdefault(shape, {})[str(size)] = row
            before = (size, row)


def run_files(args, results):
    for name, make in FILES.items():
        with tempfile.TemporaryDirectory() as folder:
            make(pathlib.Path(folder))
            row = row_of(args, pathlib.Path(folder, "model.onnx"))
        if row is None:
            continue
        show(name, 0, row, None)
        results.setdefault("files", {})[name] = row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--phases", help="the program of bench/plan_phases_bench.cc")
    parser.add_argument("--sizes", default="1000,3000,10000,30000,100000")
    parser.add_argument("--shapes", default=",".join([*SHAPES, "files"]))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=int, default=120, help="CPU seconds of one run")
    parser.add_argument("--write", help="only writes SHAPE:SIZE or FILE to this folder")
    parser.add_argument("--out")
    args = parser.parse_args()
    args.sizes = [int(s) for s in args.sizes.split(",")]
    args.shapes = args.shapes.split(",")
    if args.write:
        for shape in args.shapes:
            for size in args.sizes:
                SHAPES[shape](size).write(pathlib.Path(args.write, f"{shape}-{size}.onnx"))
        return
    results = {}
    run_shapes(args, results)
    if "files" in args.shapes:
        run_files(args, results)
    if args.out:
        report = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rows": results}
        pathlib.Path(args.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
