#!/usr/bin/env python3
"""Writes docs/options.md from ridge/train/options/options.def.

usage: options_table.py [--check]     --check fails when the page is not what it would write
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEF = ROOT / "ridge/train/options/options.def"
PAGE = ROOT / "docs/options.md"
ROW = re.compile(r'RIDGE_OPTION\("([^"]+)", ([\w.]+), (\w+)\((.*?)\), (k\w+), (k\w+), (?:nullptr|"[^"]*"),\s*"((?:[^"\\]|\\.)*)"\)',
                 re.S)
GROUPS = {"kModel": "Model", "kData": "Data", "kTraining": "Training", "kMachine": "Machine",
          "kCpu": "CPU", "kGpu": "GPU of this machine", "kDevices": "Devices", "kRunFolder": "Run folder"}
ON_RESUME = {"kSame": "as it was", "kSameOrAuto": "as it was", "kTaken": "may change",
             "kTotal": "may change, but not below what is done",
             "kIgnored": "names the run"}
HEAD = """# Options of a training

Each is a flag of `ridge train` and, but for *Devices*, of `ridge plan` (`--batch 64`), an environment variable (`RIDGE_BATCH=64`), a key of
`--config FILE` (`batch = 64`, TOML; `--save-config FILE` writes one) and of a run's `options.json`. The command line wins over the
environment, and that over the file. *On `--resume`*: whether a run that goes on may have another value.
"""


def rows():
    text = DEF.read_text(encoding="utf-8")
    found = ROW.findall(text)
    assert len(found) == len(re.findall(r"^RIDGE_OPTION", text, re.M)), "a row is not understood"
    return found


def value_name(kind, arguments):
    names = re.findall(r'"([^"]*)"', arguments)
    if names:
        return names[-1]
    return {"Switch": "", "Size": "SIZE", "Between": "N", "StepsOrTime": "STEPS"}.get(kind, "X")


def page():
    parts = [HEAD]
    for group, title in GROUPS.items():
        parts.append(f"\n## {title}\n\n| option | what it is (default) | on `--resume` |\n|---|---|---|\n")
        for key, _, kind, arguments, of, resume, doc in rows():
            if of != group:
                continue
            flag = f"--{key} {value_name(kind, arguments)}".strip().replace("|", "\\|")
            parts.append(f"| `{flag}` | {doc} | {ON_RESUME[resume]} |\n")
    return "".join(parts)


def main(arguments):
    if arguments == ["--check"]:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
        print("options: docs/options.md is up to date" if same
              else "docs/options.md is not what options.def says; run tools/options_table.py")
        return 0 if same else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
