#!/usr/bin/env python3
"""Fails when two files define a type of one name in one namespace.

usage: check_types.py [FOLDER...]     FOLDERS are ridge/ and tests/ (the default)

Such types have the same symbols: the linker takes one of two std::vector<T>::push_back(), and it
writes elements of the other's size.  No compiler and no linker says so.  Types of an unnamed
namespace are a file's own.
"""
import pathlib
import re
import sys

SUFFIXES = {".h", ".cc"}
OPENS = re.compile(r"(?:inline )?namespace(?: ([\w:]+))? \{$")
CLOSES = re.compile(r"\}  // namespace")
# At the begin of a line, as the format puts what a namespace holds; no declaration, no member.
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|union|enum(?: class| struct)?) "
                  r"(?:alignas\([^)]*\) |\[\[\w+\]\] )*(\w+)(?: final)?(?: : [^;{]*)?\s*(?:\{.*)?$")


def types_in(text):
    """(line, qualified name) of each type that other files' types can collide with."""
    spaces = []
    for number, line in enumerate(text.splitlines(), 1):
        opened = OPENS.match(line)
        if opened:
            spaces.append(opened[1])
        elif CLOSES.match(line):
            if spaces:
                spaces.pop()
        elif None not in spaces:
            found = TYPE.match(line)
            if found:
                yield number, "::".join([*spaces, found[1]])


def twice_defined(folders):
    first = {}
    for folder in folders:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in SUFFIXES:
                continue
            for number, name in types_in(path.read_text()):
                where = f"{path}:{number}"
                if name not in first:
                    first[name] = path, where
                elif first[name][0] != path:
                    yield f"{where}: {name} is also defined in {first[name][1]}; rename one of them"


def main(arguments):
    folders = arguments or ["ridge", "tests"]
    found = list(twice_defined(folders))
    print("\n".join(found) if found else f"types: each name in {', '.join(folders)} is defined once")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
