#!/usr/bin/env python3
"""Plants bugs in rewrites and gradients, one at a time, and checks that ridge_generate finds each.

usage: planted_bugs.py [--seeds A:B] [--only NAME]... [--folder DIR] [--keep] [--list]

Works in a git worktree of HEAD in a temporary folder (or in DIR, which is made again where it is
there and kept), so the tree itself stays as it is.  Exit code 1 when a bug is not found, or when
the program finds something without one.  Takes one build, and half a minute for each bug.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass
class Bug:
    name: str
    file: str
    right: str  # occurs once
    wrong: str


OPS, PASSES, LOWER = "ridge/graph/ops/", "ridge/graph/passes/", "ridge/lower/"
BUGS = [
    Bug("one way of two is forgotten", "ridge/graph/autodiff.cc",
        "sum = sum.valid() ? sum + grad : grad;", "sum = grad;"),
    Bug("stretched extents are not summed", "ridge/graph/value.cc",
        "dims[d - extra] == 1 && from[d] != 1", "dims[d - extra] == 1 && from[d] > 3"),
    Bug("division's slope has the wrong sign", OPS + "arithmetic.cc",
        "g.dx(1) = -(da * g.y())", "g.dx(1) = da * g.y()"),
    Bug("where sends both ways to one side", OPS + "where.cc",
        "g.dx(2) = Where(condition, zero, dy)", "g.dx(2) = Where(condition, dy, zero)"),
    Bug("the permutation is not inverted", OPS + "transpose.cc",
        "Transpose(g.dy(), inverse)",
        "Transpose(g.dy(), permutation[0] == inverse[0] ? permutation : inverse)"),
    Bug("all parts of a concat read the first", OPS + "concat.cc", "begin = end;",
        "begin = dims.size() == 4 ? begin : end;"),
    Bug("softmax forgets what is shared", OPS + "softmax.cc", "y * (dy - dot)",
        "y * (dy - (g.integer(\"axis\") == 0 ? dot * 0 : dot))"),
    Bug("cumsum keeps its direction when exclusive", OPS + "cumsum.cc",
        "attrs[\"reverse\"] = 1 - g.integer(\"reverse\");",
        "attrs[\"reverse\"] = g.integer(\"exclusive\") != 0 ? g.integer(\"reverse\")"
        " : 1 - g.integer(\"reverse\");"),
    Bug("dk of attention misses the scale", OPS + "attention_grad.cc",
        "AddScaled(ds, in[0] + q_at, dk + k_at, e.head_dim);",
        "AddScaled(ds / scale, in[0] + q_at, dk + k_at, e.head_dim);"),
    Bug("attention's query heads do not share keys", OPS + "attention_grad.cc",
        "const int64_t k_at = views.k.At(b, h / e.group(), j)",
        "const int64_t k_at = views.k.At(b, h % e.kv_heads, j)"),
    Bug("layer norm's second mean has the wrong sign", OPS + "layer_norm_grad.cc",
        "dn[k] - sum / count - n[k] * dot / count", "dn[k] - sum / count + n[k] * dot / count"),
    Bug("a pad's gradient is cut from its start", OPS + "pad.cc",
        "{{\"starts\", g.integers(\"before\")}, {\"ends\", std::move(ends)}}",
        "{{\"starts\", std::vector<int64_t>(dims.size(), 0)}, {\"ends\", dims}}"),
    Bug("a gate is taken for silu", OPS + "activations.cc",
        "sigmoid->inputs[0] == x", "graph.type(sigmoid->inputs[0]) == graph.type(x)"),
    Bug("attention divides by the scale's inverse", PASSES + "attention_match.cc",
        "scale *= divides ? 1 / *factor : *factor;", "scale *= *factor;"),
    Bug("transposes are joined in the wrong order", PASSES + "algebra_rules.cc",
        "for (int64_t& from : outer) from = first[static_cast<size_t>(from)];",
        "std::vector<int64_t> joined = first;\n"
        "  for (int64_t& from : joined) from = outer[static_cast<size_t>(from)];\n"
        "  outer = joined;"),
    Bug("a scatter of one counts from the front alone", PASSES + "algebra_rules.cc",
        "place = given < 0 ? given + extent : given;", "place = given < 0 ? 0 : given;"),
    Bug("a chain of factors loses one", PASSES + "algebra_rules.cc",
        "Tensor product = Tensor::Scalar(call.type.dtype, *outer * *factor);",
        "Tensor product = Tensor::Scalar(call.type.dtype, *outer);"),
    Bug("later results of equal nodes are numbered anew", PASSES + "cse.cc",
        "std::iota(first_.begin(), first_.end(), ValueId{0});\n"
        "    for (size_t i = 0; i < first_.size(); ++i) {\n",
        "for (size_t i = 0; i < first_.size(); ++i) {\n"
        "      first_[i] = static_cast<ValueId>(i);\n"),
    Bug("the epilogue runs backward", LOWER + "fuse_epilogue.cc",
        "epilogue += (epilogue.empty() ? \"\" : \",\") + step.op->name;\n"
        "      if (step.op->name == \"add\") {",
        "epilogue = step.op->name + (epilogue.empty() ? \"\" : \",\") + epilogue;\n"
        "      if (step.op->name == \"add\") {"),
    Bug("an epilogue takes a value that others read", LOWER + "fuse_epilogue.cc",
        "const NodeId reader = uses_.OnlyReader(value);",
        "const auto readers = uses_.ReadersOf(value);\n"
        "    const NodeId reader = readers.size() == 1 ? readers.front() : -1;"),
    Bug("the mask of relu before a pool is the gradient itself", PASSES + "pool_mask.cc",
        "rewriter.Map({grad.inputs[1], found.pool->outputs[0]})",
        "rewriter.Map({found.pool->outputs[0], grad.inputs[1]})"),
    Bug("rows that two slices read are those of the second", PASSES + "slice_pushdown.cc",
        "const int64_t first = std::min(need.rows.first, rows.first);\n"
        "      need.rows = {rows.axis, first, std::max(need.rows.end(), rows.end()) - first};",
        "const int64_t first = std::max(need.rows.first, rows.first);\n"
        "      need.rows = {rows.axis, first, std::max(need.rows.end(), rows.end()) - first};"),
]


def run(command, folder, timeout=3600):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=timeout)


def must(command, folder):
    done = run(command, folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n"
                 f"{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def make_tree(folder):
    if folder.exists():
        run(["git", "worktree", "remove", "--force", str(folder)], ROOT)
        shutil.rmtree(folder, ignore_errors=True)
    must(["git", "worktree", "add", "--detach", str(folder), "HEAD"], ROOT)
    (folder / "build").mkdir(exist_ok=True)
    deps = ROOT / "build" / "deps"
    if deps.exists():
        (folder / "build" / "deps").symlink_to(deps.resolve())
    must(["cmake", "--preset", "release"], folder)


def build(folder):
    return run(["ninja", "-C", "build/release", "ridge_generate"], folder)


def first_finding(folder, seeds):
    """(seed, law) of the first finding, or None."""
    program = folder / "build/release/bin/ridge_generate"
    done = run([str(program), "--seeds", seeds, "--most", "1", "--no-shrink"], folder)
    found = re.search(r"^seed (\d+): ([^:]*)", done.stdout, re.M)
    if found:
        return int(found[1]), found[2]
    if done.returncode != 0:
        return -1, f"exit code {done.returncode}"
    return None


def try_bug(bug, folder, seeds):
    path = folder / bug.file
    text = path.read_text()
    if text.count(bug.right) != 1:
        return f"STALE: {bug.file} holds {text.count(bug.right)} times: {bug.right}"
    path.write_text(text.replace(bug.right, bug.wrong))
    try:
        built = build(folder)
        if built.returncode != 0:
            return f"DOES NOT BUILD: {built.stdout[-1500:]}"
        found = first_finding(folder, seeds)
    finally:
        path.write_text(text)
    if found is None:
        return f"NOT FOUND in {seeds}"
    first = int(seeds.split(":")[0])
    return f"found by graph {found[0] - first + 1}: {found[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:2000")
    parser.add_argument("--only", action="append", help="part of a name")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true", help="take DIR as it is")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    bugs = [b for b in BUGS if not args.only or any(part in b.name for part in args.only)]
    if args.list:
        for bug in bugs:
            print(f"{bug.file}: {bug.name}")
        return 0
    folder = args.folder or pathlib.Path(tempfile.mkdtemp(prefix="ridge_planted_")) / "tree"
    start = time.monotonic()
    if not (args.keep and folder.exists()):
        make_tree(folder)
    built = build(folder)
    if built.returncode != 0:
        sys.exit(built.stdout[-3000:])
    clean = first_finding(folder, args.seeds)
    if clean:
        sys.exit(f"without a bug seed {clean[0]} finds: {clean[1]}")
    found = 0
    for bug in bugs:
        said = try_bug(bug, folder, args.seeds)
        found += said.startswith("found")
        print(f"{bug.name}: {said}", flush=True)
    print(f"{found} of {len(bugs)} planted bugs found, {time.monotonic() - start:.0f} s")
    if args.folder is None:
        run(["git", "worktree", "remove", "--force", str(folder)], ROOT)
    return 0 if found == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
