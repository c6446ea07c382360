#!/usr/bin/env python3
"""Reads Parquet files of pyarrow with the plug-in, and checks what comes out.

usage: compare_parquet.py [--ridge PROGRAM] [--mutations N]

Runs with a Python that has pyarrow and numpy; builds the plug-in against that pyarrow first.  A
training on a file ends with the bytes of the same training on the same table as CSV, or on the same
pictures in folders: each value of each row is the same then, in the same order.
"""
import argparse
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 20_000


def run(ridge, *arguments, folder=None, code=0):
    done = subprocess.run([ridge, *map(str, arguments)], cwd=folder, text=True, capture_output=True,
                          errors="replace", check=False)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def weights(ridge, model, data, folder, name):
    """The bytes of a run's last weights."""
    run(ridge, "train", model, "--data", data, "--epochs", 1, "--batch", 50, "--threads", 1, "--out",
        name, folder=folder)
    files = sorted((folder / name / "checkpoints").rglob("*.safetensors"))
    assert files, "no checkpoint"
    return files[-1].read_bytes()


def table():
    r = np.random.default_rng(7)
    words = np.array(["red", "green", "blue", "a, b", "Zürich"])
    holes = r.random(ROWS) < 0.1
    columns = {
        "f64": pa.array(r.normal(size=ROWS)),
        "f32": pa.array(r.normal(size=ROWS).astype("float32")),
        "i8": pa.array(r.integers(-100, 100, ROWS).astype("int8")),
        "u16": pa.array(r.integers(0, 60_000, ROWS).astype("uint16")),
        "i64": pa.array(r.integers(-2**40, 2**40, ROWS)),
        "flag": pa.array(r.random(ROWS) < 0.5),
        "holes": pa.array(r.normal(size=ROWS), mask=holes),
        "word": pa.array(words[r.integers(0, 5, ROWS)]).dictionary_encode(),
        "text": pa.array(words[r.integers(0, 3, ROWS)], mask=r.random(ROWS) < 0.05),
        "label": pa.array(np.array(["no", "yes", "maybe"])[r.integers(0, 3, ROWS)]),
    }
    return pa.table(columns)


def write_csv(data, path):
    def cell(value):
        if value is None:
            return ""
        if isinstance(value, bool):
            return str(value).lower()
        text = repr(value) if isinstance(value, float) else str(value)
        return f'"{text}"' if "," in text else text

    lines = [",".join(data.column_names)]
    lines += [",".join(map(cell, row.values())) for row in data.to_pylist()]
    path.write_text("\n".join(lines) + "\n")


def check_tables(ridge, folder):
    data = table()
    write_csv(data, folder / "t.csv")
    wanted = weights(ridge, "mlp", "csv:t.csv", folder, "csv")
    for codec in ("none", "snappy", "zstd", "gzip"):
        pq.write_table(data, folder / f"{codec}.parquet", compression=codec, row_group_size=3_000,
                       use_dictionary=codec != "gzip", data_page_version="2.0" if codec == "zstd"
                       else "1.0")
        got = weights(ridge, "mlp", f"parquet:{codec}.parquet", folder, codec)
        assert got == wanted, codec
    for part in range(4):
        pq.write_table(data.slice(part * 5_000, 5_000), folder / f"part-{part}.parquet")
    assert weights(ridge, "mlp", "parquet:part-*.parquet", folder, "parts") == wanted
    print(f"parquet: {ROWS} rows of {data.num_columns} columns as CSV has them, 4 codecs, 7 row "
          "groups, 4 files")


def png(pixels):
    """A PNG of u8[H,W,3]."""
    def chunk(kind, content):
        return (struct.pack(">I", len(content)) + kind + content +
                struct.pack(">I", zlib.crc32(kind + content)))
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + row.tobytes() for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def check_pictures(ridge, folder):
    r = np.random.default_rng(3)
    files, labels = [], []
    for label in range(3):
        (folder / "photos" / str(label)).mkdir(parents=True)
        for i in range(50):
            files.append(png(r.integers(0, 256, (20 + i % 7, 24, 3)).astype("uint8")))
            labels.append(label)
            (folder / "photos" / str(label) / f"{i:03}.png").write_bytes(files[-1])
    wanted = weights(ridge, "cnn", "images:photos", folder, "photos-run")
    plain = pa.table({"image": pa.array(files), "label": pa.array(labels)})
    pq.write_table(plain, folder / "bytes.parquet", row_group_size=40)
    nested = pa.table({"image": pa.array([{"bytes": file, "path": f"{i}.png"}
                                          for i, file in enumerate(files)]),
                       "label": pa.array(labels)})
    pq.write_table(nested, folder / "nested.parquet")
    for name in ("bytes", "nested"):
        assert weights(ridge, "cnn", f"parquet:{name}.parquet", folder, f"p-{name}") == wanted, name
    print(f"parquet: {len(files)} pictures as folders have them, as bytes and in a struct")


def check_errors(ridge, folder):
    data = pa.table({"x": pa.array([1.0, 2.0]), "y": pa.array([0, 1])})
    pq.write_table(data, folder / "a.parquet")
    pq.write_table(data.rename_columns(["z", "y"]), folder / "b.parquet")
    error = run(ridge, "data", "parquet:[ab].parquet", folder=folder, code=4)
    error = run(ridge, "data", "parquet:{a,b}.parquet", folder=folder, code=4).stderr
    assert "b.parquet: has other columns than a.parquet" in error, error
    lists = pa.table({"x": pa.array([[1.0, 2.0], [3.0]]), "y": pa.array([0, 1])})
    pq.write_table(lists, folder / "lists.parquet")
    error = run(ridge, "data", "parquet:lists.parquet", folder=folder, code=4).stderr
    assert "lists.parquet:2: the list 'x' has 1 elements; the first has 2" in error, error
    (folder / "no.parquet").write_bytes(b"PAR1 no")
    error = run(ridge, "data", "parquet:no.parquet", folder=folder, code=4).stderr
    assert error.startswith("ridge: no.parquet: "), error
    os.environ["RIDGE_PARQUET"], plugin = "/no/such.so", os.environ["RIDGE_PARQUET"]
    error = run(ridge, "data", "parquet:a.parquet", folder=folder, code=5).stderr
    os.environ["RIDGE_PARQUET"] = plugin
    assert "which is not there" in error and "pip install pyarrow" in error, error
    print("parquet: errors name file, row and what to install")


def check_mutations(ridge, folder, count):
    """No damage crashes the program: it reads the file, or says what is wrong."""
    r = random.Random(1)
    pq.write_table(table().slice(0, 300), folder / "whole.parquet", row_group_size=100)
    whole = (folder / "whole.parquet").read_bytes()
    codes = {}
    for _ in range(count):
        bytes_ = bytearray(whole)
        for _ in range(r.randint(1, 8)):
            at = r.randrange(len(bytes_)) if r.random() < 0.5 else -r.randrange(1, 3000)
            bytes_[at] = r.randrange(256)
        if r.random() < 0.2:
            del bytes_[r.randrange(len(bytes_)):]
        (folder / "m.parquet").write_bytes(bytes_)
        done = subprocess.run([ridge, "data", "parquet:m.parquet"], cwd=folder, capture_output=True,
                              check=False, timeout=60)
        codes[done.returncode] = codes.get(done.returncode, 0) + 1
        assert done.returncode in (0, 3, 4), (done.returncode, done.stderr)
        assert done.returncode == 0 or b"m.parquet" in done.stderr, done.stderr
    print(f"parquet: {count} damaged files, exit codes {dict(sorted(codes.items()))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ridge", default=os.environ.get("RIDGE", ROOT / "build/release/bin/ridge"))
    parser.add_argument("--mutations", type=int, default=300)
    arguments = parser.parse_args()
    ridge = pathlib.Path(arguments.ridge).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plugin = folder / "libridge_parquet.so"
        subprocess.run([ROOT / "scripts/build_parquet.sh", sys.executable, plugin], check=True)
        os.environ["RIDGE_PARQUET"] = str(plugin)
        check_tables(ridge, folder)
        check_pictures(ridge, folder)
        check_errors(ridge, folder)
        check_mutations(ridge, folder, arguments.mutations)


if __name__ == "__main__":
    main()
