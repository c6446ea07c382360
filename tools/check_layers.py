#!/usr/bin/env python3
"""Fails when a file includes a header of a higher layer, of another layer of its own rank, or of a
higher room of its own layer.  A leaf room includes nothing of its layer but itself.

usage: check_layers.py [FOLDER]     FOLDER is ridge/ (the default)

A layer may include itself and layers of a lower rank.  Two layers of one rank do not know each
other.  The ranks here and in CMakeLists.txt are the same numbers; tools/tools_test.py compares
them.  A layer with rooms names its subfolders from the lowest to the highest.
"""
import pathlib
import re
import sys

RANK = {
    "core": 0,
    "graph": 1, "data": 1,
    "onnx": 2, "models": 2, "lower": 2, "partition": 2, "pipeline": 2,
    "plan": 3, "backend": 3, "learn": 3, "dist": 3, "observe": 3,
    "runtime": 4, "report": 4,
    "train": 5, "deploy": 5, "doctor": 5,
    "measure": 6, "use": 6, "serve": 6,
    "cli": 7, "python": 7,
}
ROOMS = {"train": ["options", "store", "load", "job", "loop"]}
LEAVES = {"data": {"image", "text"}}
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".def"}
INCLUDE = re.compile(r'\s*#\s*include\s*"ridge/(\w+)/([^"]+)"')


def room_violation(layer, room, other):
    """What is wrong with a file of ROOM that includes one of OTHER; None when nothing is."""
    rooms = ROOMS.get(layer, [])
    if other != room and room in LEAVES.get(layer, ()):
        return f"{layer}/{room} includes {layer}/{other}; it is a leaf and includes only itself"
    if other == room or not rooms:
        return None
    for name in (room, other):
        if name not in rooms:
            return f"room {layer}/{name} is not in tools/check_layers.py"
    if rooms.index(other) > rooms.index(room):
        return f"{layer}/{room} includes {layer}/{other}; only lower rooms may be included"
    return None


def violations_in(path, layer, room):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if match[1] == layer:
            wrong = room_violation(layer, room, match[2].split("/")[0])
            if wrong:
                yield f"{path}:{number}: {wrong}"
            continue
        if match[1] not in RANK:
            yield f"{path}:{number}: folder {match[1]} has no rank in tools/check_layers.py"
        elif RANK[match[1]] >= RANK[layer]:
            yield (f"{path}:{number}: {layer} (rank {RANK[layer]}) includes {match[1]} "
                   f"(rank {RANK[match[1]]}); only lower ranks may be included")


def violations(root):
    for path in sorted(root.rglob("*")):
        if path.suffix not in SUFFIXES or path.parent == root:
            continue  # public headers such as ridge/ridge.h may include all
        layer, room = path.relative_to(root).parts[:2]
        if layer in RANK:
            yield from violations_in(path, layer, room)
        else:
            yield f"{path}: folder {layer} has no rank in tools/check_layers.py"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else "ridge")
    found = list(violations(root))
    print("\n".join(found) if found else f"layers: every include in {root} points down")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
