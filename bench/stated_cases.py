"""Figures that people state about hardware, beside what `ridge` computes (tests/cases/).

    python3 bench/stated_cases.py            # the table
    python3 bench/stated_cases.py --write    # and docs/planner.md
    python3 bench/stated_cases.py --check    # fails where the page has another table
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import time
import tomllib
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
CASES = os.path.join(ROOT, "tests", "cases", "*.toml")
PAGE = os.path.join(ROOT, "docs", "planner.md")
BEGIN, END = "<!-- stated cases -->\n", "<!-- end of stated cases -->"


def run(ridge, command):
    done = subprocess.run([ridge, *command.split()], capture_output=True, text=True, cwd=ROOT)
    if not done.stdout:
        sys.exit(f"ridge {command}: {done.stderr}")
    value = json.loads(done.stdout, object_hook=lambda o: types.SimpleNamespace(**o))
    return value[0] if isinstance(value, list) else value


def shown(number):
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"


def stated_text(value):
    text = " to ".join(f"{bound:g}" for bound in bounds(value))
    return f"over {text}" if value.get("least") else text


def bounds(value):
    stated = value["stated"]
    return stated if isinstance(stated, list) else [stated]


def agrees(computed, value):
    low, high = bounds(value)[0], bounds(value)[-1]
    if value.get("least"):
        return computed >= low
    return (computed - low >= -value["within"] * abs(low)
            and computed - high <= value["within"] * abs(high))


def row_of(case, value, names):
    row = [case["name"], value["name"], f"{stated_text(value)} {value['unit']}"]
    why = value.get("why", case["why"])
    if "expression" not in value:
        return [*row, "not computed", why]
    computed = eval(value["expression"], {"__builtins__": {"min": min, "max": max, "sum": sum, "len": len}, **names})
    verdict = "agrees" if agrees(computed, value) else "no: " + why
    return [*row, f"{shown(computed)} {value['unit']}", verdict]


def rows_of(ridge, case):
    names = {r["id"]: run(ridge, r["command"]) for r in case["run"]}
    return [row_of(case, value, names) for value in case["value"]]


def table(ridge):
    lines = ["| case | of | stated | computed | |", "|---|---|---:|---:|---|"]
    for path in sorted(glob.glob(CASES)):
        with open(path, "rb") as file:
            case = tomllib.load(file)
        began = time.monotonic()
        lines += ["| " + " | ".join(row) + " |" for row in rows_of(ridge, case)]
        print(f"{time.monotonic() - began:6.1f} s  {os.path.basename(path)}", file=sys.stderr)
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ridge", default=os.path.join(HERE, "../build/release/bin/ridge"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = table(options.ridge)
    print(text, end="")
    with open(PAGE) as file:
        page = file.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    if options.check and page[begin:end] != text:
        sys.exit("docs/planner.md has another table. hint: python3 bench/stated_cases.py --write")
    if options.write:
        with open(PAGE, "w") as file:
            file.write(page[:begin] + text + page[end:])


if __name__ == "__main__":
    main()
