#!/usr/bin/env python3
"""What tools/gpu_check.sh measured, judged.

  gpu_judge.py promises FILE...  plans against measurements; exit 1 where one is not kept
  gpu_judge.py targets FOLDER    each target: met, missed, or why nobody knows
  gpu_judge.py attributes FOLDER what the driver says of the GPU, where the file that describes it differs
  gpu_judge.py record FOLDER     all of it as FOLDER/record.json, for bench/results

FOLDER has what the check wrote: step_NAME.json of `ridge bench step`, train_NAME of `ridge train`,
peer_NAME_MODE.log of PyTorch, profile_NAME.json, bench_device.json, doctor.json and the summary.
NAME is MODEL_BATCH.
"""
import glob
import json
import os
import re
import sys
import time

SPEED, MEMORY, MFU, INPUT_WAIT, FIRST_STEP_S = 1.0, 0.8, 0.4, 0.02, 5.0
BYTES_OF = ("context", "arena", "kernels", "graphs", "staging")
PEER_SPEED, MODEL_FLOPS = "speed of the faster peer", "model FLOPs of the peak"

# Files that describe GPUs: beside this program, or in its source tree.
HERE = os.path.dirname(os.path.abspath(__file__))
DEVICES = (os.path.join(HERE, "devices"), os.path.join(HERE, "../plugins/cudnn/devices"))
# Of a machine, not of a kind of GPU.
OF_MACHINE = ("cudaDeviceId", "driverVer", "pciDeviceId", "isTccDriver")


def limit(name, otherwise):
    """A limit of the environment; "": none."""
    return float(os.environ.get(name, str(otherwise)) or "inf")


def read(name):
    """A file of JSON; None where it is none."""
    try:
        with open(name, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def last_json(name):
    """The last line of a log that is an object; None without one."""
    found = None
    with open(name, encoding="utf-8") as file:
        for line in file:
            if line.startswith("{"):
                found = json.loads(line)
    return found


def promise(told):
    planned, measured = told["planned"], told["measured"]
    off = {name: planned[name] / measured[name] - 1 for name in ("peak_bytes", "step_s")}
    verdict = told["device_bytes"]["verdict"]
    kept = (verdict == "proven" and abs(off["peak_bytes"]) <= limit("BYTES_OFF", 0.02) and
            abs(off["step_s"]) <= limit("STEP_OFF", 0.1))
    return {"model": told["model"], "batch": told["batch"], "peak_bytes": measured["peak_bytes"],
            "peak_bytes_off": off["peak_bytes"], "bytes": verdict, "step_s": measured["step_s"],
            "step_s_off": off["step_s"], "kept": kept}


def promise_text(row):
    return (f"{row['model']} {row['batch']}: {row['peak_bytes'] / 2**20:.0f} MiB, planned "
            f"{row['peak_bytes_off']:+.1%}, {row['bytes']}; {row['step_s'] * 1e3:.3g} ms a step, planned "
            f"{row['step_s_off']:+.1%}{'' if row['kept'] else ': not kept'}")


def judge_promises(names):
    rows = []
    for name in names:
        told = read(name)
        if told is None:
            print(f"{name}: no measurement")
        else:
            rows.append(promise(told))
            print(promise_text(rows[-1]))
    return 0 if len(rows) == len(names) and all(row["kept"] for row in rows) else 1


def peers_of(folder, name):
    """What each mode of the peer told."""
    logs = sorted(glob.glob(os.path.join(folder, f"peer_{name}_*.log")))
    return [told for told in map(last_json, logs) if told is not None]


def train_of(folder, name):
    """The last report of a run: of its last 50 steps, or fewer."""
    try:
        return last_json(os.path.join(folder, name, "metrics.jsonl"))
    except OSError:
        return None


def row_of(step, target, wanted, measured, text, met):
    """`measured` None: `text` says why."""
    verdict = text if measured is None else "met" if met else "missed"
    return {"model": step["model"], "batch": step["batch"], "target": target, "wanted": wanted,
            "measured": measured, "text": "-" if measured is None else text, "verdict": verdict}


def summary_of(folder):
    try:
        with open(os.path.join(folder, "summary"), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def not_run(folder):
    """Why, of each part that has no result, of the peer and of cuDNN."""
    summary = summary_of(folder)
    why = dict(re.findall(r"^(\S.*?): not run, (.*)$", summary, re.MULTILINE))
    for name, line in (("peer", r"^peer not available: (.*)$"), ("cuDNN", r"^no cuDNN: (.*)$")):
        why.update({name: text for text in re.findall(line, summary, re.MULTILINE)})
    return why


def lacks_peer(folder, name):
    why = not_run(folder)
    if "peer" in why:
        return "peer not available"
    return "peer not run" if f"peer_{name}_eager" in why else "peer failed"


def beside_peer(folder, name, step):
    speed, memory = f"at least {SPEED} x", f"at most {MEMORY} x"
    peers = peers_of(folder, name)
    if not peers:
        why = lacks_peer(folder, name)
        return [row_of(step, PEER_SPEED, speed, None, why, False),
                row_of(step, "memory of the peer", memory, None, why, False)]
    peer = min(peers, key=lambda told: told["ms_med"])
    faster = peer["ms_med"] / step["ms_med"]
    rows = [row_of(step, PEER_SPEED, speed, faster,
                   f"{faster:.2f} x: {step['ms_med']:.3g} ms, {peer['mode']} {peer['ms_med']:.3g} ms",
                   faster >= SPEED)]
    mib = step["measured"]["peak_bytes"] / 2**20
    part = mib / peer["used_mb"]
    return rows + [row_of(step, "memory of the peer", memory, part,
                          f"{part:.2f} x: {mib:.0f} MiB, {peer['mode']} {peer['used_mb']:.0f} MiB",
                          part <= MEMORY)]


def targets_of(folder, name, step):
    """The rows of one model, which has the files of this name."""
    rows = beside_peer(folder, name, step)
    for run, target in ((name, "wait for input"), (f"{name}_in_line", "wait for input, copies in line")):
        train = train_of(folder, f"train_{run}")
        wait = None if train is None else train["input_wait"]
        rows.append(row_of(step, target, f"below {100 * INPUT_WAIT:g} %", wait,
                           "not measured" if wait is None else f"{wait:.1%}", wait is not None and wait < INPUT_WAIT))
    first, most = step["first_step_s"], limit("FIRST_STEP_S", FIRST_STEP_S)
    return rows + [row_of(step, "first step, warm caches", f"below {most:g} s", first, f"{first:.2f} s",
                          first < most)]


def steps_of(folder):
    """What was timed of each model, by the name of its files."""
    files = sorted(glob.glob(os.path.join(folder, "step_*.json")))
    told = {re.fullmatch(r"step_(.*)\.json", os.path.basename(name))[1]: read(name) for name in files}
    return {name: step for name, step in told.items() if step is not None}


def flops_row(steps):
    """GPT-2's best batch is judged; the others are told."""
    wanted = f"at least {100 * MFU:g} %"
    told = [(step["flops_floor_s"] / (step["ms_med"] / 1e3), step)
            for name, step in steps.items() if name.startswith("gpt2_")]
    if not told:
        return row_of({"model": "gpt2", "batch": None}, MODEL_FLOPS, wanted, None, "not measured", False)
    told.sort(key=lambda pair: -pair[0])
    best, step = told[0]
    others = "".join(f"; batch {step['batch']}: {mfu:.1%}" for mfu, step in told[1:])
    return row_of(step, MODEL_FLOPS, wanted, best, f"{best:.1%}{others}", best >= MFU)


def all_targets(folder):
    steps = steps_of(folder)
    rows = [row for name, step in steps.items() for row in targets_of(folder, name, step)]
    rows.append(flops_row(steps))
    if "cuDNN" in not_run(folder):
        for row in rows:
            if row["target"] in (PEER_SPEED, MODEL_FLOPS) and row["measured"] is not None:
                row["verdict"] = "not judged: no cuDNN"
    return rows


def print_targets(rows):
    table = [("model", "target", "", "measured", "")]
    for row in rows:
        model = f"{row['model']} {row['batch'] or ''}".rstrip()
        table.append((model, row["target"], row["wanted"], row["text"], row["verdict"]))
    widths = [max(map(len, column)) for column in zip(*table)]
    for cells in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip())
    count = {word: sum(row["verdict"] == word for row in rows) for word in ("met", "missed")}
    print(f"{count['met']} targets met, {count['missed']} missed, "
          f"{len(rows) - count['met'] - count['missed']} not known")


def byte_table(step):
    told = step["device_bytes"]
    return [{"part": part, "planned": told["planned"][part], "measured": told["measured"][part]}
            for part in BYTES_OF]


def parts_of(folder):
    found = re.findall(r"^(\S+): exit (\d+), (\d+) s$", summary_of(folder), re.MULTILINE)
    return {part: {"exit": int(code), "seconds": int(seconds)} for part, code, seconds in found}


def profile_of(folder, name):
    """Without a row for each node: groups have their sums."""
    profile = read(os.path.join(folder, f"profile_{name}.json"))
    if profile is not None:
        profile.pop("nodes", None)
    return profile


def attributes_of(folder):
    """Of the first GPU, in the form of a file that describes one; None where nobody asked."""
    cuda = (read(os.path.join(folder, "doctor.json")) or {}).get("cuda") or {}
    devices = (cuda.get("answer") or {}).get("devices") or [{}]
    return devices[0].get("properties")


def print_attributes(told, folders=DEVICES):
    """A line for each that differs from the file of this GPU's name."""
    if told is None:
        print("attributes of the GPU: not measured")
        return
    name = told["deviceName"]
    for file in sorted(file for folder in folders for file in glob.glob(os.path.join(folder, "*.json"))):
        stated = read(file) or {}
        if stated.get("deviceName") == name:
            break
    else:
        print(f"attributes of the GPU: no file of devices/ describes {name}")
        return
    off = [key for key in stated if key not in OF_MACHINE and told.get(key) != stated[key]]
    for key in off:
        print(f"{key} of {name}: {told.get(key)}, {os.path.basename(file)} has {stated[key]}")
    print(f"attributes of {name}: {len(off)} of {len(stated) - len(OF_MACHINE)} differ from {os.path.basename(file)}")


def record_of(folder):
    steps = steps_of(folder)
    doctor = read(os.path.join(folder, "doctor.json")) or {}
    runs = [read(os.path.join(folder, f"train_{name}/summary.json")) for name in steps]
    run = next((run for run in runs if run), {})
    return {"what": "tools/gpu_check.sh", "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "machine": {name: doctor.get(name) for name in ("ridge", "system", "cpu", "cuda")},
            "libraries": run.get("libraries", []), "library_paths": run.get("library_paths", []),
            "device": read(os.path.join(folder, "bench_device.json")), "attributes": attributes_of(folder),
            "parts": parts_of(folder), "not_run": not_run(folder),
            "targets": all_targets(folder), "promises": [promise(step) for step in steps.values()],
            "steps": list(steps.values()),
            "bytes": {name: byte_table(step) for name, step in steps.items()},
            "peers": [peer for name in steps for peer in peers_of(folder, name)],
            "train": {run: train_of(folder, f"train_{run}") for name in steps for run in (name, f"{name}_in_line")},
            "profile": {name: profile_of(folder, name) for name in steps}}


def main(what, *words):
    if what == "promises":
        return judge_promises(words)
    if what == "targets":
        print_targets(all_targets(words[0]))
    if what == "attributes":
        print_attributes(attributes_of(words[0]))
    if what == "record":
        name = os.path.join(words[0], "record.json")
        with open(name, "w", encoding="utf-8") as file:
            json.dump(record_of(words[0]), file, indent=1)
            file.write("\n")
        print(f"{name}: results, bytes, targets, profile and device; copy it to bench/results")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
