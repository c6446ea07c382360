"""Published trainings on many devices beside `ridge plan --mesh`: the rows of bench/published/cases.csv
whose layout, model and program are known.

    python3 bench/published_layouts.py                 # the table
    python3 bench/published_layouts.py --write         # and docs/planner.md
    python3 bench/published_layouts.py --json FILE     # every case

Of each row the plan has seconds of computing (kernels, those that are computed again, the pipeline's
bubble, the update), seconds of sending, and how many kernels a micro-batch launches.  A stack is two
numbers, a scale of computing and the seconds in which its host launches a kernel:

    step = max(scale * computing + sending, launch * kernels * (micro-batches + stages - 1))

They are those that fit the stack's other models best, else its other layouts; with fewer than ten of
them the launches count nothing.  NVIDIA's examples, all data parallel, are fitted on single devices.
The error without any model is as in published_cases.py: floating-point operations, the recomputed
ones too, at a constant share of the peak, fitted on the same rows.
"""
import collections
import csv
import json
import os
import re
import statistics
import subprocess
import sys

import published_cases as single

BEGIN, END = "<!-- published layouts -->\n", "<!-- end -->"
CLUSTERS = os.path.join(single.HERE, "published", "clusters.toml")

# llm-foundry, scripts/train/yamls/pretrain: hidden, layers, heads.
MPT = {"125m": (768, 12, 12), "350m": (1024, 24, 16), "760m": (1536, 24, 12), "1b": (2048, 24, 16),
       "3b": (2560, 32, 20), "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 48, 56),
       "70b": (8192, 80, 64)}
GPT = "gpt:vocab={vocab},hidden={hidden},layers={layers},heads={heads},context={size},tied=1"

Layout = collections.namedtuple("Layout", "mesh shard samples micro_batches recompute")


def mesh(pipeline, data, tensor):
    return f"p={pipeline},d={data},t={tensor}"


def batch_of(row):
    return int(row["batch_per_device"])


def mpt(row):
    """FSDP: parameters, gradients and optimizer states in parts, gathered block by block."""
    hidden, layers, heads = MPT[row["model"].removeprefix("MPT-")]
    spec = GPT.format(vocab=50368, hidden=hidden, layers=layers, heads=heads,
                      size=row["seq_or_image"])
    words = dict(re.findall(r"(\w+)=(\w+)", row["parallelism"]))
    layout = Layout(mesh(1, int(words["dp"]), 1), "zero3", batch_of(row), int(words["grad_accum"]),
                    words["act_ckpt"] == "full")
    tokens = batch_of(row) * layout.micro_batches * int(row["seq_or_image"])
    return {"stack": "llm-foundry, FSDP, bf16", "spec": spec, "precision": "bf16",
            "program": None,  # its attention is one kernel, as ridge's
            "on": "mosaicml-a100", "optimizer": "adam", "layout": layout,
            "measured_s": tokens / float(row["value"])}


def megatron(row, spec, on, stack, seconds):
    tensor, pipeline, data = (int(re.search(kind + r"(\d+)", row["parallelism"])[1])
                              for kind in ("TP", "PP", "DP"))
    batch = int(re.search(r"GBS (\d+)", row["parallelism"])[1])
    layout = Layout(mesh(pipeline, data, tensor), "none", batch_of(row),
                    batch // data // batch_of(row), "full" in row["parallelism"])
    return {"stack": stack, "spec": spec, "precision": "f16", "on": on, "optimizer": "adam",
            "layout": layout, "measured_s": seconds}


def vtrain(row):
    layers, hidden, heads = (int(n) for n in re.findall(r"\d+", row["model"]))
    spec = GPT.format(vocab=51200, hidden=hidden, layers=layers, heads=heads,
                      size=row["seq_or_image"])
    return megatron(row, spec, "a100-sxm4-40g", "Megatron-DeepSpeed, f16, one DGX A100",
                    float(row["value"]) / 1000)


def bigscience(row):
    if row["metric"] != "iteration time":
        return None
    spec = GPT.format(vocab=50304, hidden=2048, layers=24, heads=16, size=row["seq_or_image"])
    return megatron(row, spec, CLUSTERS + (":jean-zay-16g" if "16GB" in row["hardware"]
                                           else ":jean-zay-32g"),
                    "Megatron-DeepSpeed, f16, two nodes of V100", float(row["value"]))


def neusight(row):
    spec = f"gpt2_large:context={row['seq_or_image']}"
    batch, count = batch_of(row), int(row["count"])  # of all devices
    kind = row["parallelism"][:2]
    layout = Layout(mesh(count if kind == "PP" else 1, count if kind == "DP" else 1,
                         count if kind == "TP" else 1), "none",
                    batch // count if kind == "DP" else batch, 1, False)
    return {"stack": "Megatron-LM, f32, four A100", "spec": spec, "precision": "f32",
            "on": "a100-sxm4-40g", "optimizer": "adam", "layout": layout,
            "measured_s": float(row["value"]) / 1000}


def nvidia(row):
    """Data parallel in one machine; gradients of a batch are summed once an update."""
    device, model = single.DEVICES.get(row["hardware"]), single.model_of(row)
    if device is None or model is None or single.program_of(row) is None:
        return None
    if row["metric"] not in single.RATES:
        return None
    count, micro_batches = int(row["count"]), single.accumulate_of(row)
    layout = Layout(mesh(1, count, 1), "none", batch_of(row), micro_batches, False)
    return {"stack": single.precise_stack_of(row), "spec": model[0], "optimizer": model[1],
            "precision": single.precision_of(row, device), "on": device, "layout": layout,
            "program": single.foreign_of(row),
            "measured_s": batch_of(row) * micro_batches * count / float(row["value"])}


READERS = {"LLMF": mpt, "VTS": vtrain, "BIGS": bigscience, "NSIGHT": neusight, "DLE": nvidia}


def plan(ridge, case):
    layout = case["layout"]
    data = int(re.search(r"d=(\d+)", layout.mesh)[1])
    program = case.get("program", "torch")
    command = [ridge, "plan", case["spec"], *(["--foreign", program] if program else []), "--on",
               case["on"], "--precision", case["precision"], "--mesh", layout.mesh, "--batch",
               str(data * layout.samples), "--accumulate", str(layout.micro_batches), "--json",
               "--recompute", "full" if layout.recompute else "off", "--optimizer",
               *case["optimizer"].split()]
    if layout.shard != "none":
        command += ["--shard", layout.shard]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def flops_s(planned):
    """Of a rank's arithmetic at its device's peak."""
    return planned["mfu"] * planned["step_s"]


def cases(ridge):
    left_out, found = collections.Counter(), []
    for row in csv.DictReader(open(single.ROWS)):
        if row["count"] == "1" and not row["id"].startswith("DLE"):
            continue
        if row["id"] in single.ABOVE_PEAK:
            continue
        reader = READERS.get(row["id"].split("-")[0])
        case = reader(row) if reader else None
        if case is None and row["count"] == "1":
            continue
        if case is None:
            left_out["no model, layout or program that is known, or no time"] += 1
            continue
        try:
            planned = plan(ridge, case)
        except RuntimeError as error:
            left_out["no plan: " + str(error).split(";")[0]] += 1
            continue
        s = planned["seconds"]
        sending_s = s["tensor"] + s["send"] + s["data"]
        peak_s = flops_s(planned)
        if peak_s > case["measured_s"]:
            left_out["faster than the devices' peak"] += 1
            continue
        pipeline = int(re.search(r"p=(\d+)", case["layout"].mesh)[1])
        turns = case["layout"].micro_batches + pipeline - 1
        found.append({"id": row["id"], **case, "sending_s": sending_s,
                      "count": int(row["count"]), "launches": turns * planned["kernels"],
                      "computing_s": planned["step_s"] - sending_s,
                      "peak_s": peak_s * (4 / 3 if case["layout"].recompute else 1),
                      "peak_bytes": planned["peak_bytes"]})
    return found, left_out


LAUNCHES_US = (0, 2, 4, 6, 8, 10, 12, 15, 18, 21, 25, 30, 35, 40, 50, 60, 70, 80, 100, 120)
SCALES = [0.3 * 1.03 ** i for i in range(75)]
FEWEST = 10


def others_of(case, stack):
    """What a case is fitted on: never its own model, or its own layout where there is one model."""
    alone = [c for c in stack if c["count"] == 1]
    if alone:
        model = lambda c: c["spec"].split(":")[0]
        return ([c for c in alone if c["spec"] == case["spec"]] or
                [c for c in alone if model(c) == model(case)] or alone)
    others = [c for c in stack if c["spec"] != case["spec"]]
    return others or [c for c in stack if c["layout"].mesh != case["layout"].mesh]


def seconds_of(case, scale, launch_s):
    return max(scale * case["computing_s"] + case["sending_s"], launch_s * case["launches"])


def fit(others):
    """The scale and the launch with the least mean error of others."""
    launches = [us * 1e-6 for us in LAUNCHES_US] if len(others) >= FEWEST else [0]
    facts = [(c["computing_s"] / c["measured_s"], c["sending_s"] / c["measured_s"],
              c["launches"] / c["measured_s"]) for c in others]
    def error(pair):
        return sum(abs(max(pair[0] * f[0] + f[1], pair[1] * f[2]) - 1) for f in facts)
    return min(((scale, launch) for launch in launches for scale in SCALES), key=error)


def judge(found):
    stacks = collections.defaultdict(list)
    for case in found:
        stacks[case["stack"]].append(case)
    fits = {}
    for stack in stacks.values():
        for case in stack:
            case["device"] = case["layout"].mesh
            case["error"] = case["no_skill_error"] = None
            others = others_of(case, stack)
            if case["count"] == 1 or not others:
                continue
            ids = tuple(c["id"] for c in others)
            if ids not in fits:
                fits[ids] = fit(others)
            case["scale"], case["launch_s"] = fits[ids]
            share = statistics.median(c["measured_s"] / c["peak_s"] for c in others)
            case["error"] = seconds_of(case, *fits[ids]) / case["measured_s"] - 1
            case["no_skill_error"] = share * case["peak_s"] / case["measured_s"] - 1
    return {name: stack for name, stack in stacks.items()
            if any(c["error"] is not None for c in stack)}


def table(stacks):
    judged = [c for stack in stacks.values() for c in stack if c["error"] is not None]
    text = single.table(stacks, judged)
    return text.replace("| devices |", "| layouts |", 1)


def main():
    options = single.arguments(__doc__)
    found, left_out = cases(options.ridge)
    stacks = judge(found)
    if options.verbose:
        for c in found:
            percent = lambda name: "-" if c[name] is None else f"{100 * c[name]:+.1f}"
            if c["error"] is None:
                continue
            fitted = f"{c['scale']:.2f} {1e6 * c['launch_s']:.0f} us"
            print(f"{c['id']:10} {c['spec'][:58]:58} {c['layout'].mesh:16} {c['measured_s']:8.3f} "
                  f"{c['computing_s']:8.3f} {c['sending_s']:7.3f} {percent('error'):>7} "
                  f"{percent('no_skill_error'):>7} {fitted} {c['stack']}")
    text = single.with_left_out(table(stacks), left_out)
    print(text)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"cases": [{**c, "layout": c["layout"]._asdict()} for c in found],
                       "left_out": left_out}, file, indent=1)
    if options.write:
        single.write_page(text, BEGIN, END)


if __name__ == "__main__":
    sys.exit(main())
