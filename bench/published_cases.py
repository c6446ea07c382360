"""Plans published trainings on devices that are not here, and compares: `ridge plan --on` against what people measured.

    python3 bench/published_cases.py                 # the table
    python3 bench/published_cases.py --write         # and software.toml, docs/planner.md
    python3 bench/published_cases.py --json FILE     # every case

One scale a software stack turns the roofline's seconds into its seconds: the median of measured over
modelled.  A case is judged by the scale of the stack's *other* devices; where a stack has one device,
by its other models.  Beside it the error without any model: floating-point operations at a constant
share of the device's peak, fitted in the same way.  A second table has a scale for each precision of
a stack, as software.toml has for each precision of a program.
Rows of bench/published/cases.csv without a model that ridge builds are counted, not judged.
A last table plans for a GPU on which ridge itself was measured (OWN), as if it was not here; each
training is judged by the scale of the other models.
"""
import argparse
import collections
import csv
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(HERE, "published", "cases.csv")
PAGE = os.path.join(HERE, "..", "docs", "planner.md")
BEGIN, END = "<!-- published cases -->\n", "<!-- end -->"
BEGIN_MEMORY = "<!-- published memory -->\n"
BEGIN_OWN = "<!-- own trainings -->\n"
CATALOG = os.path.join(HERE, "..", "ridge", "plan", "hardware", "software.toml")

# Trainings by ridge on a GPU, with the device's id in devices.toml.
OWN = os.path.join(HERE, "results", "2026-11-28-gpu-beside-torch-h200.json")
OWN_DEVICE = "h200-sxm"

DEVICES = {
    "LambdaCloud V100 16GB": "v100-sxm2-16g",
    "LambdaCloud A10": "a10",
    "LambdaCloud A100 40GB PCIe": "a100-pcie-40g",
    "RTX 3090": "rtx3090",
    "RTX 3090 24GB": "rtx3090",
    "RTX 4090": "rtx4090",
    "RTX 6000 Ada": "rtx6000-ada",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80g",
    "Tesla V100-PCIE-32GB": "v100-pcie-32g",
    "AMD Instinct MI100": "mi100",
    "AMD Instinct MI210": "mi210",
    "AMD Instinct MI250": "mi250",
    "V100-SXM-16GB": "v100-sxm2-16g",
    "V100-SXM-32GB": "v100-sxm2-32g",
    "V100-SXM-32GB (DGX-2)": "v100-sxm2-32g",
}

# How a row's model begins: the spec and the optimizer.
MODELS = [
    ("ResNet-50 v1.5", "resnet50", "sgd --momentum 0.9"),
    ("BERT-Large", "bert_large:tokens={size}", "adam"),
    ("BERT-Base", "bert_base:tokens={size}", "adam"),
    ("GPT2-Large", "gpt2_large:context={size}", "sgd"),
    ("GPT3-2.7B", "gpt:vocab=50257,hidden=2560,layers=32,heads=32,context={size}", "sgd"),
    ("GPT3-XL*", "gpt:vocab=50257,hidden=3072,layers=24,heads=24,context={size}", "sgd"),
    ("OPT-1.3B", "gpt:vocab=50272,hidden=2048,layers=24,heads=32,context={size}", "sgd"),
]
TIMM = {
    "mobilenetv3_large_100": "mobilenet_v3_large",
    "efficientnetv2_s": "efficientnet_v2_s:image={size}",
    "efficientnetv2_m": "efficientnet_v2_m:image={size}",
    "vit_tiny_patch16_224": "vit_ti",
    "vit_small_patch16_224": "vit_s",
    "vit_base_patch16_224": "vit_b",
    "vit_base_patch32_224": "vit_b:patch=32",
    "vit_large_patch16_224": "vit_l14:patch=16",
    "deit_base_patch16_224": "vit_b",  # the same network
}
SAME_NAME = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "convnext_tiny",
             "convnext_small", "convnext_base")
RATES = ("throughput", "train images/s", "images/s (total)", "sequences/s (total)",
         "forward+backward time")

# 19 sequences of 512 tokens a second are 20 TFLOP/s of f32 on a device whose peak is 15.7.
ABOVE_PEAK = ("DLE-061",)


def model_of(row):
    """(spec, optimizer), or None."""
    name, size = row["model"], row["seq_or_image"]
    if row["id"].startswith("TIMM"):
        spec = TIMM.get(name, name if name in SAME_NAME else None)
        return spec and (spec.format(size=size), "sgd --momentum 0.9")
    for begin, spec, optimizer in MODELS:
        if name.startswith(begin):
            return spec.format(size=size), optimizer
    return None


def precision_of(row, device):
    text = row["precision"]
    if "AMP" in text or text == "fp16":
        return "f16"
    # tf32 exists from Ampere on.
    return "tf32" if "TF32" in text and not device.startswith("v100") else "f32"


def program_of(row):
    """The id in software.toml; None: a program that it does not list."""
    if "(TF" in row["model"] or "TF2" in row["model"]:
        return "tf"
    return None if "MXNet" in row["model"] else "torch"


def foreign_of(row):
    """What --foreign takes.  NVIDIA's published trainings in mixed precision run with
    --memory-format nhwc, Lambda's scripts leave the default, timm's rows say it."""
    program = program_of(row)
    mixed = precision_of(row, "") == "f16"
    source = row["id"].split("-")[0]
    channels_last = mixed and (source == "DLE" or "NHWC" in row["precision"])
    return "torch-channels-last" if program == "torch" and channels_last else program


def stack_of(row):
    """What is calibrated by one scale: a program in one container with one code."""
    return precise_stack_of(row).rpartition(", ")[0]


def precise_stack_of(row):
    """The stack and its precision."""
    source = row["id"].split("-")[0]
    kinds = {"LAMBDA": "PyTorch, NGC containers of 2022, NVIDIA's examples",
             "DLE": "NVIDIA's examples, PyTorch" if program_of(row) == "torch"
                    else "NVIDIA's examples, TensorFlow",
             "TIMM": "PyTorch, timm", "NSIGHT": "PyTorch 2.1, transformers"}
    mixed = "mixed" if precision_of(row, "") == "f16" else "f32"
    return f"{kinds.get(source, source)}, {mixed}"


def measured_s(row):
    value = float(row["value"])
    if row["metric"].endswith("time"):
        return value / 1000
    return int(row["batch_per_device"]) / value


def accumulate_of(row):
    words = row["notes"].split()
    return int(words[words.index("accumulation") - 1]) if "accumulation" in words else 1


def plan(ridge, row, device, spec, optimizer, precision):
    command = [ridge, "plan", spec, "--batch", row["batch_per_device"], "--precision", precision,
               "--on", device, "--foreign", foreign_of(row), "--recompute", "off", "--slices", "1",
               "--loss-chunks", "1",
               "--accumulate", str(accumulate_of(row)), "--json",
               "--optimizer", *optimizer.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{row['id']}: {done.stderr}")
    return json.loads(done.stdout)[0]


def cases(ridge):
    left_out = collections.Counter()
    found = []
    for row in csv.DictReader(open(ROWS)):
        if row["count"] != "1" or row["metric"] not in RATES:
            continue
        device, model = DEVICES.get(row["hardware"]), model_of(row)
        if "ANOMALOUS" in row["notes"]:
            left_out["its source calls it anomalous"] += 1
        elif device is None or model is None or program_of(row) is None:
            left_out["no model or program that is known"] += 1
        elif row["id"] in ABOVE_PEAK:
            left_out["faster than the device's peak"] += 1
        else:
            precision = precision_of(row, device)
            planned = plan(ridge, row, device, *model, precision)
            accumulate = accumulate_of(row)
            flops = sum(n["flops"] * n["runs"] for n in planned["nodes"] if n["step"] != "eval")
            found.append({
                "id": row["id"], "stack": stack_of(row), "precise_stack": precise_stack_of(row),
                "program": program_of(row), "precision": precision, "device": device, "model": model[0],
                "batch": int(row["batch_per_device"]), "measured_s": measured_s(row),
                "modelled_s": planned["step_s"] / planned["scale"] / accumulate,
                "peak_s": flops / accumulate / planned["peak_flops_per_s"]})
    return found, left_out


def own_cases(ridge):
    """Trainings of OWN, planned as for a GPU that is not here."""
    found = []
    for row in json.load(open(OWN))["steps"]:
        command = [ridge, "plan", row["model"], "--batch", str(row["batch"]), "--precision",
                   row["prec"], *row["options"].split(), "--on", OWN_DEVICE, "--json",
                   "--loss-chunks", "1"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        planned = json.loads(done.stdout)[0]
        found.append({"program": "ridge", "precision": "f16", "device": OWN_DEVICE,
                      "model": row["model"], "batch": row["batch"], "options": row["options"],
                      "measured_s": row["ms_med"] / 1000,
                      "modelled_s": planned["step_s"] / planned["scale"],
                      "measured_bytes": row["peak_mb"] * 2**20,
                      "planned_bytes": planned["peak_bytes"]})
    return found


def judge_own(found):
    for case in found:
        planned_s = held_out(case, found, "modelled_s")
        case["planned_s"], case["error"] = planned_s, planned_s / case["measured_s"] - 1
        case["memory_error"] = case["planned_bytes"] / case["measured_bytes"] - 1


def own_table(found):
    lines = ["| training in bf16 | planned for | measured | error | peak planned | measured | error |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for c in found:
        name = f"`{c['model']}` {c['batch']}" + (f", `{c['options']}`" if c["options"] else "")
        lines.append(f"| {name} | {1e3 * c['planned_s']:.1f} ms | {1e3 * c['measured_s']:.1f} ms | "
                     f"{100 * c['error']:+.1f} % | {c['planned_bytes'] / 2**30:.2f} GiB | "
                     f"{c['measured_bytes'] / 2**30:.2f} GiB | {100 * c['memory_error']:+.1f} % |")
    return "\n".join(lines)


# Purposes that a program's memory scale is of; the others are the same for all.
SCALED = ("activations", "workspace")
MEMORY_DEVICE = "v100-pcie-32g"


def memory_cases(ridge):
    """Peaks of whole cards.  The plan's bytes do not depend on the device that is planned for."""
    found = []
    for row in csv.DictReader(open(ROWS)):
        model = model_of(row)
        if not row["metric"].startswith("peak device memory") or model is None:
            continue
        planned = plan(ridge, row, MEMORY_DEVICE, *model, precision_of(row, MEMORY_DEVICE))
        scaled, fixed = memory_parts(planned)
        found.append({"id": row["id"], "card": row["hardware"], "model": model[0],
                      "batch": int(row["batch_per_device"]),
                      "precision": precision_of(row, MEMORY_DEVICE), "fixed": fixed, "scaled": scaled,
                      "measured": float(row["value"]) * 2**20})
    return found


def memory_parts(planned):
    """Bytes of ridge's plan that take the program's scale, and those that stay."""
    parts = planned["breakdown"]
    scale = planned.get("memory_scale", 1)
    scaled = sum(parts[p] for p in SCALED) / scale
    fixed = sum(b for p, b in parts.items() if p not in SCALED + ("gradients",))
    return scaled, fixed + parts["parameters"]  # all gradients live at once


def memory_scale(members):
    return statistics.median((c["measured"] - c["fixed"]) / c["scaled"] for c in members)


def judge_memory(found):
    for case in found:
        others = [c for c in found if c["card"] != case["card"] and
                  c["precision"] == case["precision"]]
        case["planned"] = case["fixed"] + memory_scale(others) * case["scaled"]
        case["error"] = case["planned"] / case["measured"] - 1


def memory_table(found):
    lines = ["| precision | trainings | cards | median | mean | max | bias |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for name in ("f32", "f16", "**all**"):
        members = [c for c in found if name in (c["precision"], "**all**")]
        size = [abs(c["error"]) for c in members]
        lines.append(f"| {name} | {len(members)} | {len({c['card'] for c in members})} | "
                     f"{100 * statistics.median(size):.1f} | {100 * statistics.mean(size):.1f} | "
                     f"{100 * max(size):.1f} | "
                     f"{100 * statistics.median(c['error'] for c in members):+.1f} |")
    return "\n".join(lines)


def held_out(case, stack, key):
    """What the stack's other devices (else its other models) say of this case, in seconds."""
    others = [c for c in stack if c["device"] != case["device"]]
    if not others:
        others = [c for c in stack if c["model"] != case["model"]]
    if not others:
        return None
    return case[key] * statistics.median(c["measured_s"] / c[key] for c in others)


def judge(found, by):
    stacks = collections.defaultdict(list)
    for case in found:
        stacks[case[by]].append(case)
    for stack in stacks.values():
        for case in stack:
            for key, name in (("modelled_s", "error"), ("peak_s", "no_skill_error")):
                seconds = held_out(case, stack, key)
                case[name] = None if seconds is None else seconds / case["measured_s"] - 1
    return stacks


def quantile(values, share):
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def summary(name, members):
    judged = [c for c in members if c["error"] is not None]
    errors, without = [c["error"] for c in judged], [abs(c["no_skill_error"]) for c in judged]
    size = [abs(e) for e in errors]
    percent = lambda x: f"{100 * x:.1f}"
    return [name, len(judged), len({c["device"] for c in judged}),
            percent(statistics.median(size)), percent(statistics.mean(size)),
            percent(quantile(size, 0.9)), percent(max(size)),
            f"{100 * statistics.median(errors):+.1f}", percent(statistics.median(without)),
            percent(statistics.mean(without))]


FEWEST = 10
HEAD = ["stack", "cases", "devices", "median", "mean", "p90", "max", "bias", "no skill, median",
        "mean"]


def table(stacks, found):
    rows = [summary(name, members) for name, members in sorted(stacks.items())]
    rows.append(summary("**all**", found))
    lines = ["| " + " | ".join(HEAD) + " |", "|---" + "|---:" * (len(HEAD) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def ratios(members):
    return [c["measured_s"] / c["modelled_s"] for c in members]


def memory_of(found, precision):
    """Lines of software.toml: PyTorch's memory.  Too few trainings for quantiles: all lie between."""
    members = [c for c in found if c["precision"] == ("f16" if precision == "f16" else "f32")]
    scale = memory_scale(members)
    ratios = [c["measured"] / (c["fixed"] + scale * c["scaled"]) for c in members]
    return (f"memory_scale = {scale:.3f}\nmemory_low = {min(ratios):.3f}\n"
            f"memory_high = {max(ratios):.3f}\n"
            f'memory_evidence = "{len(members)} published trainings of ResNet-50 that fill their '
            f'{len({c["card"] for c in members})} cards"\n')


def software(found, own):
    """The rows of software.toml: (id, precision) -> scale, low, high, evidence."""
    rows = {}
    for program in ("torch", "tf"):
        for precision in ("f32", "tf32", "f16"):
            members = [c for c in found if (c["program"], c["precision"]) == (program, precision)]
            if not members:
                continue
            scale = statistics.median(ratios(members))
            relative = [r / scale for r in ratios(members)]
            low, high = min(1, quantile(relative, 0.1)), max(1, quantile(relative, 0.9))
            evidence = (f"8 of 10 of {len(members)} published trainings on "
                        f"{len({c['device'] for c in members})} devices")
            if len(members) < FEWEST:  # too few for a spread of their own
                low, high = (f(mine, other) for f, mine, other in
                             zip((min, max), (low, high), rows["torch", precision][1:3]))
                evidence = (f"{len(members)} published trainings, with the spread of PyTorch's")
            rows[program, precision] = (scale, low, high, evidence)
    for precision in ("f32", "tf32"):
        # Nothing was measured yet of ridge itself on these devices.
        members = [c for c in found if c["precision"] == precision and c["program"] == "torch"]
        rows["ridge", precision] = (
            1, min(1, quantile(ratios(members), 0.1)), max(1, quantile(ratios(members), 0.9)),
            f"ridge was not measured there; {len(members)} published trainings of PyTorch spread so "
            "about the same roofline")
    scale = statistics.median(ratios(own))
    _, low, high, _ = rows["torch", "f16"]
    rows["ridge", "f16"] = (
        scale, min(low, min(ratios(own)) / scale), max(high, max(ratios(own)) / scale),
        f"{len(own)} trainings of ridge on {OWN_DEVICE}, with the spread of PyTorch's")
    return rows


def write(rows, memory):
    names = {"ridge": "ridge", "torch": "PyTorch, eager",
             "torch-channels-last": "PyTorch, eager, channels-last", "tf": "TensorFlow"}
    text = ("# Programs that train, and how long they take where the roofline of a device says 1 s.\n"
            "# Written by `python3 bench/published_cases.py --write`; the rows are "
            "bench/published/cases.csv.\n")
    for program in names:
        for precision in ("f32", "tf32", "f16"):
            calibrated = "torch" if program.startswith("torch") else program
            if (calibrated, precision) not in rows:
                continue
            scale, low, high, evidence = rows[calibrated, precision]
            text += (f'\n[[software]]\nid = "{program}"\nname = "{names[program]}"\n'
                     f'precision = "{precision}"\neager = {str(program != "ridge").lower()}\n'
                     + ("channels_first = true\n" if program == "torch" else "") +
                     f"scale = {scale:.3f}\nlow = {low:.3f}\nhigh = {high:.3f}\n"
                     f'evidence = "{evidence}"\n')
            if calibrated == "torch":
                text += memory_of(memory, precision)
    with open(CATALOG, "w") as file:
        file.write(text)


def write_page(text, first, last):
    """Replaces what stands between the two lines."""
    with open(PAGE) as file:
        page = file.read()
    begin = page.index(first) + len(first)
    end = page.index(last, begin)
    with open(PAGE, "w") as file:
        file.write(page[:begin] + text + "\n" + page[end:])


def arguments(description):
    parser = argparse.ArgumentParser(description=description.split("\n\n")[0])
    parser.add_argument("--ridge", default=os.path.join(HERE, "../build/release/bin/ridge"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser.parse_args()


def with_left_out(text, left_out):
    return text + "\n\nLeft out: " + "; ".join(
        f"{n} ({why})" for why, n in sorted(left_out.items())) + "."


def main():
    options = arguments(__doc__)
    found, left_out = cases(options.ridge)
    by_precision = table(judge(found, "precise_stack"), found)
    by_stack = table(judge(found, "stack"), found)  # last: its errors stay in the cases
    memory = memory_cases(options.ridge)
    judge_memory(memory)
    if options.verbose:
        for c in found:
            error = "     -" if c["error"] is None else f"{100 * c['error']:+6.1f}"
            print(f"{c['id']:11} {c['device']:14} {c['model'][:40]:40} {c['batch']:4} "
                  f"{1e3 * c['measured_s']:8.1f} {1e3 * c['modelled_s']:8.1f} {error} {c['stack']}")
    own = own_cases(options.ridge)
    judge_own(own)
    text = with_left_out(f"{by_stack}\n\nWith a scale for each precision of a stack:\n\n"
                         f"{by_precision}", left_out)
    print("\n\n".join((text, memory_table(memory), own_table(own))))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"cases": found, "left_out": left_out, "memory": memory, "own": own}, file,
                      indent=1)
    if options.write:
        write(software(found, own), memory)
        write_page(text, BEGIN, END)
        write_page(memory_table(memory), BEGIN_MEMORY, END)
        write_page(own_table(own), BEGIN_OWN, END)


if __name__ == "__main__":
    main()
