#!/usr/bin/env python3
"""Asks cuDNN about GPUs that are not here, and keeps the tables of its answers.

    scripts/build_cudnn_ask.sh
    bench/cudnn_workspaces.py --ridge build/release/bin/ridge [--check] [CELL...]

Asks again what ridge/plan/hardware/conv_workspaces.txt has, and what the plans of the cells
(MODEL:BATCH:PRECISION) have only bounds for, and writes the table.  Asks again what
ridge/plan/hardware/attention_workspaces.txt has, with which tests compare the formula of plans; a
question is added as a line of it, with - for each device.  With --check it writes nothing: it exits
with 1 where an answer differs from a table.  Needs no GPU and no driver, but NVRTC.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONVOLUTIONS = ROOT / "ridge/plan/hardware/conv_workspaces.txt"
ATTENTION = ROOT / "ridge/plan/hardware/attention_workspaces.txt"
PLUGIN = ROOT / "plugins/cudnn"
NVRTC = [ROOT / "build/deps/nvrtc/nvidia/cu13/lib", "/usr/local/cuda/lib64"]  # one of them, or the system has it
DEVICES = ["a100-sxm4-40g", "a100-sxm4-80g", "h100-pcie", "h100-sxm", "h200-sxm", "b200", "rtx3090", "rtx4090", "l40s"]
STEPS = {"bias", "bias,relu", "relu"}  # of plans that cudnn_ask knows
OPS = ("conv ", "conv_grad_input ", "conv_grad_weight ")
CONVOLUTIONS_HEADER = """# Bytes of cuDNN's workspaces for convolutions, by bench/cudnn_workspaces.py.
# Columns: one device each, then the question (conv_workspaces.h).  An answer is the bytes of the
# first deterministic engine, BYTES/FIRST where cuDNN's first choice takes others, or - where cuDNN
# has no engine; convolutions that none of the devices has an engine for are left out.
"""
ATTENTION_HEADER = """# Bytes of cuDNN's workspaces for attention, by bench/cudnn_workspaces.py; at the end those for
# norms and sums, which ridge gives to kernels of its own.
# Columns: one device each, then the question (plugins/cudnn).  An answer is the bytes of the first
# deterministic engine, BYTES/FIRST where cuDNN's first choice takes others, or - where cuDNN has no
# deterministic engine.
"""


def cells(models, batches, precisions):
    return [f"{m}:{b}:{p}" for m in models for b in batches for p in precisions]


CELLS = (cells(["resnet50"], [32, 64, 128, 256], ["bf16", "f16", "tf32"]) + cells(["resnet50"], [64, 256], ["f32"])
         + cells(["resnet18"], [64, 256], ["bf16", "tf32"]) + cells(["unet"], [4, 8, 16, 32], ["bf16", "tf32"])
         + cells(["vit_ti"], [64, 256], ["bf16"]))
# What the rows of tests/text/cli/plan_gpus*.test ask.
CELLS += ["mobilenet_v3_large:128:f16", "conformer_s:16:bf16"]
for batch, models in {
        1: ["sam_vit_b", "sam_vit_l", "sam_vit_h"],
        8: ["whisper_tiny", "whisper_base", "whisper_small", "whisper_medium", "whisper_large", "conformer_m",
            "conformer_l"],
        16: ["efficientnet_v2_m", "efficientnet_v2_l", "yolov8n", "yolov8s", "yolov8m", "yolov8l", "yolov8x"],
        32: ["efficientnet_v2_s", "vit_ti", "vit_s", "vit_l14", "convnext_small", "convnext_base", "pointnet2",
             "resnet50_bert"],
        64: ["resnet34", "resnet101", "resnet152", "vit_b", "mobilenet_v3_small", "convnext_tiny"]}.items():
    CELLS += cells(models, [batch], ["bf16"])


def stem(op, channels):
    return f"{op} bf16 bf16 256x{channels}x224x224 64x{channels}x7x7 stride 2x2 padding 3x3x3x3 dilation 1x1"


# Of the first measurements, and of a plan with fused steps.
OTHERS = ([stem(op, channels) for op in ("conv", "conv_grad_weight") for channels in (3, 4, 8)]
          + ["conv bf16 bf16 256x64x56x56 64x64x3x3 stride 1x1 padding 1x1x1x1 dilation 1x1 with bias,relu"])
MULTIPLES = {"bf16": 8, "f16": 4}  # of channels, to which plans pad images (padded_channels.cc)


def padded(question):
    """The same of a padded image, which a plan may take instead."""
    op, dtype, out, x, w, *rest = question.split(" ")
    extents, weights = x.split("x"), w.split("x")
    if op not in ("conv", "conv_grad_weight") or dtype not in MULTIPLES or extents[1] != weights[1]:
        return question
    extents[1] = weights[1] = str(-(-int(extents[1]) // MULTIPLES[dtype]) * MULTIPLES[dtype])
    return " ".join([op, dtype, out, "x".join(extents), "x".join(weights), *rest])


def is_asked(question):
    steps = question.partition(" with ")[2]
    return question.startswith(OPS) and (not steps or steps in STEPS)


def table_rows(text):
    """{question: [answer of each device]} of the table; the first two lines are no rows."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    rows, devices = {}, lines[1].split()
    for line in lines[2:]:
        *answers, question = line.split(" ", len(devices))
        rows[question] = answers
    return rows


def bounded(ridge, cell):
    """The questions whose answers the plans of a cell lack."""
    model, batch, precision = cell.split(":")
    command = [ridge, "plan", model, "--batch", batch, "--precision", precision, "--on", ",".join(DEVICES),
               "--slices", "1", "--recompute", "off", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return {q for plan in json.loads(done.stdout) for q in plan["workspaces"]["bounded"]}


def answer_text(line):
    if line.startswith("refused "):
        return "-"
    first, deterministic, *_ = line.split(" ")
    return deterministic if first == deterministic else f"{deterministic}/{first}"


def version_text(number):
    return f"cuDNN {number // 10000}.{number // 100 % 100}.{number % 100}"


def ask(folder, device, questions):
    """(version, [answer]) of cuDNN for a device."""
    done = subprocess.run([folder / "cudnn_ask", folder / "nvidia/cudnn/lib/libcudnn.so.9",
                           PLUGIN / f"devices/{device}.json"], input="\n".join(questions) + "\n",
                          env=os.environ | {"LD_LIBRARY_PATH": ":".join(map(str, NVRTC))}, capture_output=True, text=True, timeout=3600)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or len(lines) != len(questions) + 1:
        sys.exit(f"cudnn_ask for {device} ended with {done.returncode} after {max(0, len(lines) - 1)} of {len(questions)} answers: {done.stderr}")
    return version_text(int(lines[0])), [answer_text(line) for line in lines[1:]]


def ask_all(options, questions):
    """The version of cuDNN, and {question: [answer of each device]}."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = list(pool.map(lambda device: ask(options.cudnn.resolve(), device, questions), DEVICES))
    columns = [column for _, column in answers]
    print(f"{answers[0][0]}: {len(questions)} questions about {len(DEVICES)} devices, "
          f"{sum(column.count('-') for column in columns)} without an engine", flush=True)
    return answers[0][0], dict(zip(questions, map(list, zip(*columns))))


def keep(options, path, text):
    """Writes a table, or says where it differs."""
    before = path.read_text()
    if not options.check:
        path.write_text(text)
    elif text != before:
        differing = sorted(set(text.splitlines()) ^ set(before.splitlines()))
        sys.exit(f"{path.name} differs:\n" + "\n".join(differing[:20]))


def table_text(header, version, rows):
    lines = [version, " ".join(DEVICES)]
    lines += [" ".join([*rows[question], question]) for question in sorted(rows)]
    return header + "\n".join(lines) + "\n"


def keep_convolutions(options):
    questions = set(table_rows(CONVOLUTIONS.read_text())) | set(OTHERS)
    if not options.check:
        for cell in options.cells or CELLS:
            questions |= bounded(options.ridge, cell)
        questions |= {padded(q) for q in questions if is_asked(q)}
    version, rows = ask_all(options, sorted(q for q in questions if is_asked(q)))
    answered = {q: row for q, row in rows.items() if set(row) != {"-"}}
    keep(options, CONVOLUTIONS, table_text(CONVOLUTIONS_HEADER, version, answered))


def keep_attention(options):
    version, rows = ask_all(options, sorted(table_rows(ATTENTION.read_text())))
    keep(options, ATTENTION, table_text(ATTENTION_HEADER, version, rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--cudnn", type=pathlib.Path, default=ROOT / "build/deps/cudnn")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("cells", nargs="*", metavar="CELL")
    options = parser.parse_args()
    keep_attention(options)
    keep_convolutions(options)


if __name__ == "__main__":
    main()
