#!/usr/bin/env python3
"""Fails when the program needs a library of NVIDIA's, or when its CUDA backend is too large.

  tools/binary_check.py build/release/bin/ridge            by the program's symbols and the kernels' texts
  tools/binary_check.py build/release/bin/ridge --objects build/release
                                                           by the backend's object files: all sections that
                                                           are loaded, also what the linker drops

A symbol is the backend's when its demangled name has ridge::cuda, templates of others included.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_BYTES = 3_000_000
NVIDIA = re.compile(r"^lib(cuda|cudart|cublas|cublasLt|cudnn|nccl|nvrtc|nvidia-ml|nvJitLink|cupti)\b")
LOADED = re.compile(r"^\.(text|rodata|data|bss|eh_frame|gcc_except_table|init_array|data\.rel\.ro)\b")
OF_BACKEND = re.compile(r"ridge_backend\.dir/.*backend[/_]cuda[/_]")
TEXT = re.compile(r'R"cuda\((.*?)\)cuda"', re.DOTALL)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(program):
    """The libraries without which the loader does not start it."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", program))


def nvidia(libraries):
    return [name for name in libraries if NVIDIA.match(name)]


def symbol_bytes(listing):
    """Of `nm --print-size --demangle`: the bytes of the backend's symbols, and their number."""
    sizes = {}
    for line in listing.splitlines():
        found = re.match(r"([0-9a-f]+) ([0-9a-f]+) \w (.*)", line)
        if found and "ridge::cuda" in found[3]:
            sizes[found[1]] = int(found[2], 16)  # several names of one address are one
    return sum(sizes.values()), len(sizes)


def text_bytes(folder):
    """The kernels' texts that the sources hold."""
    return sum(len(text.encode()) for path in sorted(folder.rglob("*.cc")) + sorted(folder.rglob("*.h"))
               for text in TEXT.findall(path.read_text()))


def object_bytes(folder):
    """Loaded sections of the backend's object files, and the number of the files."""
    files = [path for path in sorted(folder.rglob("*.o")) if OF_BACKEND.search(str(path))]
    total = 0
    for path in files:
        for line in output("size", "--format=sysv", str(path)).splitlines():
            words = line.split()
            if len(words) == 3 and LOADED.match(words[0]):
                total += int(words[1])
    return total, len(files)


def backend_bytes(program, objects):
    """The bytes that the backend adds, and how they were found; 0: it was not found."""
    if objects:
        total, files = object_bytes(pathlib.Path(objects))
        return total, f"{files} object files"
    total, symbols = symbol_bytes(output("nm", "--print-size", "--demangle", program))
    texts = text_bytes(ROOT / "ridge" / "backend" / "cuda") if symbols else 0
    return total + texts, f"{symbols} symbols, and {texts / 1e6:.2f} MB of kernels' texts"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--objects", metavar="FOLDER", help="a build's folder")
    options = parser.parse_args()
    foreign = nvidia(needed(options.program))
    total, how = backend_bytes(options.program, options.objects)
    failures = [f"it needs {name}" for name in foreign]
    if total > MOST_BYTES:
        failures.append(f"its CUDA backend is larger than {MOST_BYTES / 1e6:.0f} MB")
    if total == 0:
        failures.append("no CUDA backend is found in it; a stripped program needs --objects")
    print(f"CUDA backend: {total / 1e6:.2f} MB ({how}); libraries of NVIDIA's needed: {len(foreign)}")
    for failure in failures:
        print(f"{options.program}: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
