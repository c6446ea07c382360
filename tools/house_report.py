#!/usr/bin/env python3
"""Counts what makes a house hard to change, in this tree or in another commit's.

usage: house_report.py [--rev COMMIT] [--list] [--json]

  tables by operator     rows that begin with an operator's name, four or more close together, outside
                         the operators' own records
  leaf copiers           files that copy inputs, constants and variables of a graph into another
  alias walks            loops along PlannedValue::shares_with; the analysis has one
  use-def tables         lists that hold readers or writers by value, by node or of something else; not sets of flags,
                         nor lists of the analyses (StepUses)
  producer look-ups      places that find the node of a value by ValueInfo::producer, outside Graph::producer()
  run openers            files that read a run's options from its folder, beside options/ itself
  option places          files that name one option of `ridge train` (clip_norm, clip-norm)
  upward includes        what tools/check_layers.py reports

and files and lines by folder.  A line is one of a C++ file without tests.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r'[{(]\s*"([a-z][a-z0-9_]*)"|^\s*"([a-z][a-z0-9_]*)",|\b[A-Z][A-Za-z]*\("?([a-z][a-z0-9_]*)"?,')
MOST_APART = 3
FEWEST_ROWS = 4


def sources(root):
    """C++ files without tests, by path below ridge/."""
    for path in sorted((root / "ridge").rglob("*")):
        if path.suffix in (".h", ".cc", ".def") and not re.search(r"_(test|bench)\.cc$", path.name):
            yield path.relative_to(root / "ridge"), path.read_text(encoding="utf-8")


def operators(root):
    text = (root / "ridge/graph/ops/ops.def").read_text(encoding="utf-8")
    names = set(re.findall(r"RIDGE_OP\((\w+),", text))
    for _, source in sources(root):
        names.update(re.findall(r'\.name = "(\w+)"', source))
    return names


def tables(root):
    """(file, first line, rows) of each table whose rows begin with operators' names."""
    names = operators(root)
    found = []
    for path, text in sources(root):
        if path.parts[:2] == ("graph", "ops") and "shared" not in path.parts:
            continue
        group = []
        for number, line in enumerate(text.splitlines() + [""] * (MOST_APART + 1), 1):
            row = [name for match in ROW.finditer(line) for name in match.groups() if name in names]
            if group and number - group[-1][0] > MOST_APART:
                if len({name for _, name in group}) >= FEWEST_ROWS:
                    found.append((str(path), group[0][0], len(group)))
                group = []
            group += [(number, name) for name in row]
    return found


def files_with(root, *patterns, skip=()):
    return [str(path) for path, text in sources(root)
            if str(path) not in skip and all(re.search(pattern, text) for pattern in patterns)]


def lines_with(root, pattern, folder=""):
    return [f"{path}:{number}" for path, text in sources(root) if str(path).startswith(folder)
            for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]


def upward_includes(root):
    done = subprocess.run([sys.executable, root / "tools/check_layers.py", root / "ridge"], capture_output=True, text=True, check=False)
    return [line for line in (done.stdout + done.stderr).splitlines() if "only lower" in line]


def counts(root):
    return {
        "tables by operator": [f"{path}:{line} ({rows} rows)" for path, line, rows in tables(root)],
        "leaf copiers": files_with(root, r"\bAddInput\(", r"\bAddConstant\(", r"\bAddVariable\(",
                                   skip=("graph/graph.h", "graph/graph.cc", "graph/builder.cc", "graph/builder.h",
                                         "graph/text_parse.cc")),
        "alias walks": lines_with(root, r"\b(while|for)\b.*shares_with|= .*shares_with\)?;", "plan"),
        "use-def tables": lines_with(root, r"std::vector<(?!bool>|std::vector<bool>|\w+Uses>).*>\s+"
                                     r"(readers|writers?|producers?|uses|reads|last_use|consumers)_?\w*[;{(]"),
        "producer look-ups": lines_with(root, r"\bnode\([^;]*\bproducer\)"),
        "run openers": files_with(root, r"OptionsFromJson\(|ReadRunOptions\(|\bRead\w*\([^;{]*options\.json",
                                  skip=("train/options/options.h", "train/options/options_json.cc")),
        "option places": files_with(root, r"clip[_-]norm"),
        "upward includes": upward_includes(root),
    }


def folders(root):
    """folder -> (files, lines), for each folder that holds files."""
    sizes = collections.defaultdict(lambda: [0, 0])
    for path, text in sources(root):
        size = sizes[str(path.parent)]
        size[0] += 1
        size[1] += len(text.splitlines())
    return dict(sizes)


def report(root):
    return {"counts": counts(root), "folders": folders(root)}


def at_commit(rev):
    with tempfile.TemporaryDirectory(prefix="ridge-house-") as folder:
        archive = subprocess.run(["git", "archive", rev, "ridge", "tools"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        return report(pathlib.Path(folder))


def show(result, with_list):
    for name, found in result["counts"].items():
        print(f"{name:22}{len(found):5}")
        if with_list:
            print("".join(f"    {one}\n" for one in found), end="")
    sizes = result["folders"]
    print(f"\n{'folder':34}{'files':>6}{'lines':>8}")
    for folder in sorted(sizes):
        print(f"{folder:34}{sizes[folder][0]:6}{sizes[folder][1]:8}")
    print(f"{'together':34}{sum(s[0] for s in sizes.values()):6}{sum(s[1] for s in sizes.values()):8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rev", help="a commit instead of this tree")
    parser.add_argument("--list", action="store_true", help="name each find")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = at_commit(args.rev) if args.rev else report(ROOT)
    print(json.dumps(result, indent=1)) if args.json else show(result, args.list)


if __name__ == "__main__":
    main()
