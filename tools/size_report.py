#!/usr/bin/env python3
"""Prints how long files and functions are, and fails when they grow past what we want to read.

usage: size_report.py [--skip-tests] [FOLDER]     FOLDER is ridge/ (the default)

Limits: 90 % of functions have at most 30 lines in the body, 90 % of headers at most 220 lines; a
file above 800 lines says why in its first line, with the word `long`.
"""
import argparse
import math
import pathlib
import sys

from cpp_functions import functions

FUNCTION_P90 = 30
HEADER_P90 = 220
FILE_MAX = 800
LONG_FUNCTION = 80  # listed, not refused: kernels may be longer
SUFFIXES = {".h", ".cc", ".cu", ".cuh"}


def percentile(values, percent):
    """The smallest value that `percent` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else 0


def is_test(path):
    return path.stem.endswith(("_test", "_bench"))


def read_sources(root, skip_tests):
    paths = sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES)
    return {path: path.read_text() for path in paths if not (skip_tests and is_test(path))}


def row(name, values, limit=""):
    return (f"{name:<10} {len(values):>6} {percentile(values, 50):>7} {percentile(values, 90):>5} "
            f"{max(values, default=0):>5}  {limit}".rstrip())


def report(root, skip_tests):
    """Prints the table; returns the list of complaints."""
    sources = read_sources(root, skip_tests)
    lines = {path: len(text.splitlines()) for path, text in sources.items()}
    headers = [count for path, count in lines.items() if path.suffix in (".h", ".cuh")]
    found = [(function, path) for path, text in sources.items() for function in functions(text)]
    lengths = [function.length for function, _ in found]

    print(f"{'lines of':<10} {'count':>6} {'median':>7} {'p90':>5} {'max':>5}")
    print(row("files", list(lines.values()), f"max {FILE_MAX}, or a reason in line 1"))
    print(row("headers", headers, f"p90 at most {HEADER_P90}"))
    print(row("functions", lengths, f"p90 at most {FUNCTION_P90}"))
    for function, path in sorted(found, key=lambda item: -item[0].length)[:5]:
        mark = "  above 80: for kernels only" if function.length > LONG_FUNCTION else ""
        print(f"  {function.length:>4}  {function.name}  {path}:{function.line}{mark}")

    complaints = []
    if percentile(lengths, 90) > FUNCTION_P90:
        complaints.append(f"functions: p90 is {percentile(lengths, 90)} lines, at most "
                          f"{FUNCTION_P90} wanted; split the longest ones above")
    if percentile(headers, 90) > HEADER_P90:
        complaints.append(f"headers: p90 is {percentile(headers, 90)} lines, at most {HEADER_P90} "
                          "wanted")
    for path, count in lines.items():
        first = sources[path].split("\n", 1)[0].lower()
        if count > FILE_MAX and not (first.startswith("//") and "long" in first):
            complaints.append(f"{path}: {count} lines, at most {FILE_MAX} wanted; split it, or "
                              "open it with `// Long because ...`")
    return complaints


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--skip-tests", action="store_true", help="leave out *_test and *_bench")
    parser.add_argument("folder", nargs="?", default="ridge", type=pathlib.Path)
    options = parser.parse_args(arguments)
    complaints = report(options.folder, options.skip_tests)
    for complaint in complaints:
        print("error: " + complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
