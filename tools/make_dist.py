#!/usr/bin/env python3
"""Packs an installed ridge as a tarball and as a wheel, which `pip install FILE` puts on PATH.

usage: make_dist.py PREFIX VERSION OUT      PREFIX: what `cmake --install --strip` filled

The wheel holds the program in .data/scripts and its libraries and texts in .data/data, which pip
lays out as bin/, lib/ridge/ and share/; the program needs no Python.  Its tag names the oldest
glibc that has every symbol which the program and its libraries take from the system.
"""
import base64
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

# Bytes.  Fails above these: the download, the program with oneDNN's library, and the installed folder,
# which has plug-ins, completions and licenses, too.
MOST_COMPRESSED = 25_000_000
MOST_PROGRAM = 60_000_000
MOST_INSTALLED = 63_000_000

# What the program may expect of a system: manylinux's list, as far as it is used.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                    "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}

# What a plug-in may expect beside that: the library that it is a plug-in for.
PLUGIN_LIBRARIES = {"libridge_mpi_openmpi.so": {"libmpi.so.40"},
                    "libridge_mpi_mpich.so": {"libmpich.so.12"}}

# Plug-ins that the build leaves out where their headers are missing.  Without cuDNN's, convolutions and
# attention run on kernels without tensor cores.
MUST_HAVE = ("lib/ridge/libridge_cudnn.so",)

# 1980-01-01, the oldest date of a zip: equal content, equal bytes.
DATE = (1980, 1, 1, 0, 0, 0)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def is_program(path):
    return path.suffix == ".sh" or is_elf(path)


def objdump(flag, path):
    command = ["objdump", flag, path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_libraries(binaries):
    """Fails when a binary needs a library that is neither carried nor every system's; a plug-in may
    need its own."""
    carried = {path.name for path in binaries}
    for path in binaries:
        needed = set(re.findall(r"NEEDED\s+(\S+)", objdump("-p", path)))
        there = carried | SYSTEM_LIBRARIES | PLUGIN_LIBRARIES.get(path.name, set())
        if lacking := sorted(needed - there):
            sys.exit(f"make_dist: {path.name} needs {', '.join(lacking)}, which it does not carry")


def check_plugins(prefix):
    for name in MUST_HAVE:
        if not (prefix / name).is_file():
            sys.exit(f"make_dist: {prefix} has no {name}. hint: scripts/build_cudnn_plugin.sh --headers, "
                     "then make dist")


def oldest_glibc(binaries):
    versions = [(0, 0)]
    for path in binaries:
        for major, minor in re.findall(r"\(GLIBC_(\d+)\.(\d+)[.\d]*\)", objdump("-T", path)):
            versions.append((int(major), int(minor)))
    return max(versions)


def wheel_name(version, glibc):
    return f"ridge-{version}-py3-none-manylinux_{glibc[0]}_{glibc[1]}_x86_64"


def wheel_files(prefix, version, tag):
    """(name in the wheel, bytes, may be executed) of every file but RECORD."""
    data, info = f"ridge-{version}.data", f"ridge-{version}.dist-info"
    for path in sorted(p for p in prefix.rglob("*") if p.is_file()):
        name = path.relative_to(prefix).as_posix()
        where = f"{data}/scripts/{name[4:]}" if name.startswith("bin/") else f"{data}/data/{name}"
        yield where, path.read_bytes(), is_program(path)
    yield f"{info}/METADATA", (
        f"Metadata-Version: 2.1\nName: ridge\nVersion: {version}\n"
        "Summary: Plans and trains neural networks on CPUs; one native program\n"
        "License: Apache-2.0\n").encode(), False
    yield f"{info}/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: make_dist\nRoot-Is-Purelib: false\n"
        f"Tag: {tag}\n").encode(), False


def write_wheel(prefix, version, glibc, out):
    name = wheel_name(version, glibc)
    path, record = out / f"{name}.whl", []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(where, content, executable=False):
            info = zipfile.ZipInfo(where, DATE)
            info.external_attr = (0o100755 if executable else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
        for where, content, executable in wheel_files(prefix, version, name.split("-", 2)[2]):
            add(where, content, executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append(f"{where},sha256={digest.decode()},{len(content)}\n")
        where = f"ridge-{version}.dist-info/RECORD"
        add(where, "".join([*record, f"{where},,\n"]).encode())
    return path


def write_tarball(prefix, version, out):
    folder = f"ridge-{version}-linux-x86_64"
    path = out / f"{folder}.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=9) as archive:
        for file in sorted(p for p in prefix.rglob("*") if p.is_file()):
            content = file.read_bytes()
            info = tarfile.TarInfo(f"{folder}/{file.relative_to(prefix).as_posix()}")
            info.size, info.mode = len(content), 0o755 if is_program(file) else 0o644
            archive.addfile(info, io.BytesIO(content))
    return path


def check_size(what, size, most):
    print(f"{what}: {size / 1e6:.1f} MB of {most / 1e6:.0f} MB")
    if size > most:
        sys.exit(f"make_dist: {what} is too large")


def main(arguments):
    prefix, version, out = pathlib.Path(arguments[0]), arguments[1], pathlib.Path(arguments[2])
    binaries = [p for p in sorted(prefix.rglob("*")) if p.is_file() and is_elf(p)]
    check_libraries(binaries)
    check_plugins(prefix)
    glibc = oldest_glibc(binaries)
    print(f"oldest glibc: {glibc[0]}.{glibc[1]}")
    out.mkdir(parents=True, exist_ok=True)
    check_size("program and oneDNN", sum(p.stat().st_size for p in binaries
                                         if p.name == "ridge" or p.name.startswith("libdnnl.so")), MOST_PROGRAM)
    check_size("installed", sum(p.stat().st_size for p in prefix.rglob("*") if p.is_file()),
               MOST_INSTALLED)
    for path in (write_tarball(prefix, version, out), write_wheel(prefix, version, glibc, out)):
        check_size(str(path), path.stat().st_size, MOST_COMPRESSED)


if __name__ == "__main__":
    main(sys.argv[1:])
