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
import tomllib
import types

HERE = os.path.dirname(os.path.abspath(__file__))
CASES = os.path.join(HERE, "..", "tests", "cases", "*.toml")
PAGE = os.path.join(HERE, "..", "docs", "planner.md")
BEGIN, END = "<!-- stated cases -->\n", "<!-- end of stated cases -->"


def run(ridge, command):
    done = subprocess.run([ridge, *command.split()], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"ridge {command}: {done.stderr}")
    value = json.loads(done.stdout, object_hook=lambda o: types.SimpleNamespace(**o))
    return value[0] if isinstance(value, list) else value


def rows_of(ridge, case):
    names = {r["id"]: run(ridge, r["command"]) for r in case["run"]}
    for value in case["value"]:
        computed = eval(value["expression"], {"__builtins__": {"min": min, "max": max}, **names})
        agrees = abs(computed / value["stated"] - 1) <= value["within"]
        why = "agrees" if agrees else "no: " + case["why"]
        yield [case["name"], value["name"], f"{value['stated']:g} {value['unit']}",
               f"{computed:.3g} {value['unit']}" if computed < 1000
               else f"{computed:,.0f} {value['unit']}", why]


def table(ridge):
    lines = ["| case | of | stated | computed | |", "|---|---|---:|---:|---|"]
    for path in sorted(glob.glob(CASES)):
        with open(path, "rb") as file:
            case = tomllib.load(file)
        lines += ["| " + " | ".join(row) + " |" for row in rows_of(ridge, case)]
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
