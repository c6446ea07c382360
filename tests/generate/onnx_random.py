"""Random ONNX graphs: `ridge run` must give what onnxruntime gives.

usage: onnx_random.py [--seeds A:B] [--keep FOLDER] [--jobs N] [--reasons]

Seed s makes the same graph on every machine with the same versions of onnx, onnxruntime and numpy.
A difference beyond what rounding explains, an end by a signal, an internal error and a refusal that
REFUSALS does not list are findings, except where ONNX's own reference implementation agrees with
ridge and not with onnxruntime.  A finding is shrunk: nodes become inputs, outputs and nodes
that do not matter go, extents become smaller; FOLDER gets the model, its inputs and its text.

As a test (without arguments) it runs the seeds of SHORT_RANGE.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx.reference import ReferenceEvaluator
except ImportError:  # scripts/setup.sh --test-tools brings them
    print("skipped: needs numpy, onnx and onnxruntime")
    sys.exit(0)

import _onnx_layers  # noqa: F401  both add their makers
import _onnx_moves  # noqa: F401
from _onnx_net import OPSETS, Model, Net, Value, difference, reads_of
from _onnx_ops import MAKERS

RIDGE = os.environ["RIDGE"]
SHORT_RANGE = "0:1000"
# What ridge may refuse, as messages without names and numbers.
REFUSALS = [
    r"depends on data; it must be known before planning",
]


def environment():
    result = {k: v for k, v in os.environ.items() if not k.startswith(("RIDGE_", "OMP_"))}
    result["XDG_CACHE_HOME"] = os.path.join(os.path.dirname(RIDGE), "..", "test-cache")
    result["LC_ALL"] = "C.UTF-8"
    return result


def make_model(seed):
    rng = np.random.default_rng(seed)
    net = Net(OPSETS[int(rng.integers(len(OPSETS)))], rng)
    wanted = net.integer(1, 25)
    makers = [make for make, since in MAKERS if since <= net.opset]
    for _ in range(4 * wanted):
        if len(net.nodes) >= wanted:
            break
        net.pick(makers)(net)
    read = {name for node in net.nodes for name in reads_of(node)}
    outputs = [
        name for node in net.nodes for name in node.output if name not in read or net.chance(0.15)
    ]
    known = {v.name for v in net.values}
    outputs = [name for name in outputs if name in known]  # bf16 has no array
    return Model(net.opset, net.nodes, net.values, outputs, named_dims=net.chance(0.3))


class Answer:
    """How ridge ended: outputs by name, or why there are none."""
    def __init__(self, code, message, outputs=None):
        self.code, self.message, self.outputs = code, message, outputs or {}

    def refused(self):
        return self.code == 5 and "internal error" not in self.message

    def kind(self):
        """The message without names and numbers."""
        text = re.sub(r"'[^']*'", "'..'", self.message.replace("ridge: ", ""))
        return re.sub(r"-?\d+(\.\d+)?", "N", text.split("\n")[0])[:160]


def run_ridge(model, folder):
    path, given, made = (os.path.join(folder, n) for n in ("net.onnx", "in.npz", "out.npz"))
    onnx.save(model.proto(), path)
    np.savez(given, **model.feeds())
    if os.path.exists(made):
        os.remove(made)
    words = [
        RIDGE, "run", path, "--inputs", given, "--outputs", made, "-q", "--threads",
        "1" if len(model.nodes) % 2 else "2"
    ]
    try:
        done = subprocess.run(words,
                              env=environment(),
                              capture_output=True,
                              text=True,
                              timeout=60,
                              check=False)
    except subprocess.TimeoutExpired:
        return Answer(-1, "more than 60 s")
    if done.returncode != 0:
        return Answer(done.returncode, done.stderr.strip().replace(folder + "/", ""))
    with np.load(made) as arrays:
        return Answer(0, "", {name: arrays[name] for name in arrays.files})


def complaint(model, answer):
    """(what kind, text) of a finding, or None."""
    if answer.code != 0:
        if answer.refused() and any(re.search(r, answer.message) for r in REFUSALS):
            return None
        return "end", f"exit {answer.code}: {answer.message}"
    for name in model.outputs:
        if name not in answer.outputs:
            return "missing", f"no output {name}"
        differs = difference(model.values[name], answer.outputs[name])
        if differs:
            return "differs", f"{name}: {differs}"
    return None


def second_opinion(model, answer):
    """Whether ONNX's reference implementation gives what ridge gives."""
    try:
        results = ReferenceEvaluator(model.proto()).run(model.outputs, model.feeds())
    except Exception:  # it knows less than onnxruntime
        return False
    for name, result in zip(model.outputs, results):
        value = model.values[name]
        twin = value.twin if value.twin.shape == np.shape(result) else result
        got = answer.outputs.get(name)
        if got is None or difference(Value(name, np.asarray(result), twin, "node"), got):
            return False
    return True


class Shrinker:
    """Smaller models with the same kind of finding."""
    def __init__(self, model, kind, folder):
        self.model, self.kind, self.folder, self.tries = model, kind, folder, 0

    def still(self, model):
        self.tries += 1
        if self.tries > 400 or not model.outputs or not model.nodes:
            return False
        found = complaint(model, run_ridge(model, self.folder))
        if found is None or found[0] != self.kind[0]:
            return False
        if self.kind[0] == "end" and Answer(0, found[1]).kind() != Answer(0, self.kind[1]).kind():
            return False
        self.model = model
        return True

    def run(self):
        m = self.model
        for name in m.outputs:
            if len(m.outputs) > 1 and self.still(Model(m.opset, m.nodes, m.values.values(),
                                                       [name])):
                break
        self.cut_nodes()
        self.simplify_leaves()
        self.shrink_extents()
        return self.model

    def cut_nodes(self):
        """A node whose results become inputs, as onnxruntime computed them."""
        for node in list(self.model.nodes):
            m = self.model
            if node not in m.nodes or len(m.nodes) == 1:
                continue
            rest = [n for n in m.nodes if n is not node]
            outputs = [o for o in m.outputs if o not in node.output]
            if outputs:
                self.still(Model(m.opset, rest, m.values.values(), outputs))
        for node in reversed(list(self.model.nodes)):  # an earlier output instead
            m = self.model
            if node in m.nodes and len(m.nodes) > 1:
                for name in [n for n in node.output if n not in m.outputs]:
                    if self.still(Model(m.opset, m.nodes, m.values.values(), [name])):
                        break

    def simplify_leaves(self):
        """Constants as inputs, whose extents can shrink."""
        for leaf in list(self.model.leaves):
            if leaf.kind in ("initializer", "constant"):
                m = self.model
                values = {**m.values, leaf.name: Value(leaf.name, leaf.array, leaf.twin, "input")}
                self.still(Model(m.opset, m.nodes, values.values(), m.outputs))

    def shrink_extents(self):
        """Every axis of one extent shorter, and everything computed anew."""
        for extent in sorted({e for v in self.model.fed() for e in v.shape if e > 1}, reverse=True):
            for smaller in range(1, extent):
                model = self.with_extent(extent, smaller)
                if model is not None and self.still(model):
                    break

    def with_extent(self, extent, smaller):
        m, values = self.model, {}
        for v in m.leaves:
            array = v.array
            if v.kind in ("input", "node"):
                array = array[tuple(slice(0, smaller if e == extent else e) for e in v.shape)]
            values[v.name] = Value(v.name, array, array, v.kind)
        outs = {o: Value(o, m.values[o].array, m.values[o].array, "node") for o in m.outputs}
        model = Model(m.opset, m.nodes, {**values, **outs}.values(), m.outputs)
        judged = model.judged()
        if judged is None:
            return None
        for name, array in judged.items():
            model.values[name] = Value(name, array, array, "node")
        return model


def keep(folder, seed, model, text):
    base = os.path.join(folder, f"seed{seed}")
    onnx.save(model.proto(), base + ".onnx")
    np.savez(base + ".npz", **model.feeds())
    with open(base + ".txt", "w", encoding="utf-8") as file:
        file.write(f"seed {seed}: {text}\n\n{model.text()}\n")
        for v in model.leaves:
            file.write(f"{v.name} = {v.array.dtype.name} {json.dumps(v.array.tolist())}\n")
        for name in model.outputs:
            file.write(f"want {name} = {json.dumps(model.values[name].array.tolist())}\n")


def work(first, last, folder, progress):
    """Runs the seeds; `progress` gets one line each as it begins and ends."""
    scratch = tempfile.mkdtemp(prefix="ridge-onnx-")
    try:
        for seed in range(first, last):
            print(f"begin {seed}", file=progress, flush=True)
            model = make_model(seed)
            if not model.nodes:
                print(f"end {seed} " + json.dumps({"nodes": []}), file=progress, flush=True)
                continue
            answer = run_ridge(model, scratch)
            found = complaint(model, answer)
            line = {
                "nodes": [n.op_type for n in model.nodes],
                "refused": answer.kind() if answer.refused() else None
            }
            if found is not None:
                small = Shrinker(model, found, scratch).run()
                answer = run_ridge(small, scratch)
                found = complaint(small, answer) or found
                what = f"{'+'.join(n.op_type for n in small.nodes)} opset {small.opset}"
                agrees = answer.code == 0 and second_opinion(small, answer)
                key = "disputed" if agrees else "finding"
                line[key] = f"{what}: {found[1]}"
                if folder:
                    keep(folder, seed, small, found[1])
            print(f"end {seed} " + json.dumps(line), file=progress, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class Tally:
    def __init__(self):
        self.seeds, self.nodes, self.refused, self.findings = 0, collections.Counter(
        ), collections.Counter(), []
        self.judge_ended, self.disputed = [], []

    def add(self, seed, line):
        self.seeds += 1
        self.nodes.update(line["nodes"])
        if line.get("refused"):
            self.refused[line["refused"]] += 1
        if line.get("disputed"):
            self.disputed.append(f"{line['disputed'].split(' ')[0]} {seed}")
        if line.get("finding"):
            self.findings.append((seed, line["finding"]))
            print(f"seed {seed}: {line['finding']}", flush=True)

    def show(self, reasons):
        print(
            f"{self.seeds} graphs, {self.nodes.total()} nodes of {len(self.nodes)} operators, "
            f"{sum(self.refused.values())} refused, {len(self.findings)} findings")
        if self.disputed:
            print("onnxruntime against ridge and ONNX's reference: " +
                  ", ".join(self.disputed))
        if self.judge_ended:
            print(f"onnxruntime itself ended at seeds {self.judge_ended}")
        for reason, count in self.refused.most_common() if reasons else []:
            print(f"  refused {count}: {reason}")
        if reasons:
            print("  " + ", ".join(f"{op} {n}" for op, n in self.nodes.most_common()))


def drive(first, last, folder, jobs, tally):
    """Workers, each with every jobs-th block of seeds; one that ends by a signal is started again
    behind the seed that ended it."""
    blocks = [(a, min(a + 50, last)) for a in range(first, last, 50)]
    running = {}
    while blocks or running:
        while blocks and len(running) < jobs:
            a, b = blocks.pop(0)
            words = [sys.executable,
                     os.path.abspath(__file__), "--worker", f"{a}:{b}"
                    ] + (["--keep", folder] if folder else [])
            running[subprocess.Popen(words, stdout=subprocess.PIPE, text=True)] = (a, b)
        process, (a, b) = next(iter(running.items()))
        now, done = a, a
        for text in process.stdout:
            word, seed, *rest = text.rstrip("\n").split(" ", 2)
            if word == "begin":
                now = int(seed)
            elif word == "end":
                tally.add(int(seed), json.loads(rest[0]))
                done = int(seed) + 1
        process.wait()
        del running[process]
        if done < b:
            if process.returncode >= 0:
                raise SystemExit(f"the worker of seeds {a}:{b} failed at seed {now}")
            tally.judge_ended.append(now)
            blocks.insert(0, (now + 1, b))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default=SHORT_RANGE)
    parser.add_argument("--keep", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--worker", default="")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    first, last = (int(n) for n in (options.worker or options.seeds).split(":"))
    if options.worker:
        work(first, last, options.keep, sys.stdout)
        return 0
    tally = Tally()
    drive(first, last, options.keep, options.jobs, tally)
    print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}, {len(MAKERS)} makers")
    tally.show(options.reasons)
    return 1 if tally.findings else 0


if __name__ == "__main__":
    sys.exit(main())
