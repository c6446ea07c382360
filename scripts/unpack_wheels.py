#!/usr/bin/env python3
"""Unpacks the data part of wheels into one prefix: unpack_wheels.py WHEEL_FOLDER PREFIX.

A wheel stores `NAME.data/data/lib/libx.so`; this writes `PREFIX/lib/libx.so`.  A wheel cannot
store links, so it carries a library once per name; equal files libx.so, libx.so.3 and libx.so.3.2
become links to the longest name.
"""
import pathlib
import shutil
import sys
import zipfile


def unpack(wheel, prefix):
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            parts = pathlib.PurePosixPath(entry.filename).parts
            if entry.is_dir() or len(parts) < 3 or parts[1] != "data" or ".." in parts:
                continue
            target = prefix.joinpath(*parts[2:])
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)


def link_equal_libraries(folder):
    for library in sorted(folder.glob("*.so.*"), key=lambda path: -len(path.name)):
        for shorter in folder.glob("*.so*"):
            same = library.name.startswith(shorter.name) and library != shorter
            if same and not shorter.is_symlink() and not library.is_symlink():
                if shorter.read_bytes() == library.read_bytes():
                    shorter.unlink()
                    shorter.symlink_to(library.name)


def main():
    wheels, prefix = map(pathlib.Path, sys.argv[1:3])
    for wheel in sorted(wheels.glob("*.whl")):
        unpack(wheel, prefix)
    link_equal_libraries(prefix / "lib")


if __name__ == "__main__":
    main()
