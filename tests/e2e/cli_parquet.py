"""parquet: by its plug-in, built here: tables, lists and pictures of pyarrow, and what is refused."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from _ridge import SOURCE, RidgeTest, build_failing_disk, environment

PYARROW = os.path.join(SOURCE, "build", "deps", "pyarrow")  # scripts/setup.sh --test-tools
sys.path.append(PYARROW)
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

PICTURES = os.path.join(SOURCE, "tests", "golden", "pictures")
WORDS = ["red", "green", "a, b"]


def setUpModule():
    """The tests of a program without plug-in name another place."""
    folder = tempfile.mkdtemp(prefix="ridge-parquet-")
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    plugin = os.path.join(folder, "libridge_parquet.so")
    subprocess.run([os.path.join(SOURCE, "scripts/build_parquet.sh"), sys.executable, plugin],
                   env=environment({"PYTHONPATH": PYARROW}), check=True, capture_output=True)
    Parquet.plugin = {"RIDGE_PARQUET": plugin}


def table(rows=60):
    return {
        "x": [i * i % 11 + 0.5 for i in range(rows)],
        "count": [None if i % 13 == 5 else i * 7 % 17 for i in range(rows)],
        "flag": [i % 4 == 1 for i in range(rows)],
        "word": [WORDS[i * i % 3] for i in range(rows)],
        "label": [["no", "yes"][i * i % 3 % 2] for i in range(rows)],
    }


def cell(value):
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f'"{value}"'


def csv(columns):
    rows = zip(*columns.values())
    return "".join(",".join(row) + "\n" for row in
                   [list(columns), *(map(cell, row) for row in rows)])


class Parquet(RidgeTest):
    plugin = None

    def weights(self, data, out, *words, model="mlp:hidden=8"):
        self.ok("train", model, "--data", data, "--batch", "10", "--threads", "1", "--out", out,
                "-q", *words, env=self.plugin)
        return self.read_json(f"{out}/summary.json")["parameters_sha256"]

    def put(self, name, columns, **options):
        pq.write_table(pa.table(columns), self.path(name), **options)

    def test_a_table_trains_as_the_same_csv(self):
        columns = table()
        self.write("t.csv", csv(columns))
        wanted = self.weights("csv:t.csv", "csv", "--validation", "0.2")
        self.put("t.parquet", columns, row_group_size=17)
        self.assertEqual(self.weights("parquet:t.parquet", "one", "--validation", "0.2"), wanted)
        for part in range(3):
            values = {name: column[20 * part:20 * part + 20] for name, column in columns.items()}
            self.put(f"part-{part}.parquet", values, compression="zstd")
        self.assertEqual(self.weights("part-*.parquet", "parts", "--validation", "0.2"), wanted)

    def test_a_resumed_run_ends_with_the_same_bits(self):
        self.put("t.parquet", table(), row_group_size=25)
        words = ["--validation", "0.2", "--checkpoint-every", "3"]
        whole = self.weights("parquet:t.parquet", "whole", *words, "--epochs", "4")
        self.weights("parquet:t.parquet", "cut", *words, "--epochs", "2")
        self.ok("train", "--resume", "cut", "--epochs", "4", "-q", env=self.plugin)
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"], whole)

    def test_pictures_in_a_column_train_as_a_folder_of_them(self):
        names = sorted(n for n in os.listdir(PICTURES) if n.endswith((".jpg", ".png")))[:12]
        files, labels = [], []
        for i, name in enumerate(names):
            os.makedirs(self.path(f"photos/{i * 2 // len(names)}"), exist_ok=True)
            shutil.copy(os.path.join(PICTURES, name), self.path(f"photos/{i * 2 // len(names)}/"))
            with open(os.path.join(PICTURES, name), "rb") as file:
                files.append(file.read())
            labels.append(i * 2 // len(names))
        wanted = self.weights("images:photos", "folder", "--batch", "4", model="cnn")
        self.put("bytes.parquet", {"image": files, "label": labels}, row_group_size=5)
        self.put("nested.parquet", {"image": [{"bytes": f, "path": "x"} for f in files],
                                    "label": labels})
        for name in ("bytes", "nested"):
            for workers in ("1", "3"):
                got = self.weights(f"parquet:{name}.parquet", f"{name}-{workers}", "--batch", "4",
                                   "--workers", workers, model="cnn")
                self.assertEqual(got, wanted, (name, workers))

    def test_lists_are_fields_of_their_names(self):
        rows = 40
        self.put("lists.parquet", {
            "tokens": pa.array([[i, i + 1, 3] for i in range(rows)], pa.list_(pa.int32())),
            "curve": pa.array([[i / 2, 1.5] for i in range(rows)], pa.list_(pa.float32(), 2)),
            "label": [i % 2 for i in range(rows)]})
        shown = self.ok("data", "parquet:lists.parquet", env=self.plugin)
        self.assertRegex(shown, r"tokens +i64\[3\]")
        self.assertRegex(shown, r"curve +f32\[2\]")

    def test_bad_files_are_named_with_the_row(self):
        def fails(part, name):
            self.fails(4, part, "data", f"parquet:{name}", env=self.plugin)
        self.put("lists.parquet", {"x": [[1.0, 2.0], [3.0]], "y": [0, 1]})
        fails("lists.parquet:2: the list 'x' has 1 elements; the first has 2", "lists.parquet")
        self.put("a.parquet", {"x": [1.0, 2.0], "y": [0, 1]})
        self.put("b.parquet", {"z": [1.0, 2.0], "y": [0, 1]})
        fails("b.parquet: has other columns than a.parquet", "{a,b}.parquet")
        with open(self.path("a.parquet"), "rb") as file:
            self.write("cut.parquet", file.read()[:-9])
        fails("cut.parquet: ", "cut.parquet")
        self.put("photos.parquet", {"image": [b"\xff\xd8\xff\xe0 no"], "label": [1]})
        self.fails(4, "photos.parquet:1: ", "data", "parquet:photos.parquet,image=image",
                   env=self.plugin)

    def test_a_failing_disk_is_named_with_file_and_byte(self):
        self.put("failing.parquet", table())
        size = os.path.getsize(self.path("failing.parquet"))
        disk = {"LD_PRELOAD": build_failing_disk(), **self.plugin}
        for at in 0, size - 8, size // 2:
            done = self.fails(4, "failing.parquet: ", "data", "parquet:failing.parquet",
                              env={"FAIL_AT": str(at), **disk})
            self.assertRegex(done.stderr, r"cannot be read at byte \d+.*Input/output error")

    def test_a_file_that_changes_while_a_run_goes_on_changes_no_bit(self):
        self.put("a.parquet", table())
        words = ["train", "mlp:hidden=8", "--data", "parquet:a.parquet", "--steps", "2000", "-q"]
        process = self.start(*words, "--out", "run", env=self.plugin)
        while process.poll() is None and not os.path.exists(self.path("run/plan.json")):
            time.sleep(0.01)
        os.rename(self.path("a.parquet"), self.path("kept.parquet"))
        self.write("a.parquet", "no")
        self.assertEqual(process.communicate(timeout=300)[1], "")
        os.replace(self.path("kept.parquet"), self.path("a.parquet"))
        self.ok(*words, "--out", "whole", env=self.plugin, timeout=300)
        self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])

    def test_damaged_structures_are_named_on_one_line(self):
        self.put("ok.parquet", {"word": [WORDS[i % 3] for i in range(400)],
                                "label": [i % 2 for i in range(400)]}, compression="none")
        with open(self.path("ok.parquet"), "rb") as file:
            content = file.read()
        column = pq.read_metadata(self.path("ok.parquet")).row_group(0).column(0)
        page, ends = column.dictionary_page_offset, column.data_page_offset
        ends += column.total_compressed_size - (ends - page)

        def fails(reason, at, damage):
            damaged = bytearray(content)
            damaged[at:at + len(damage)] = damage
            self.write("bad.parquet", bytes(damaged))
            done = self.fails(4, "bad.parquet: ", "data", "parquet:bad.parquet", env=self.plugin)
            self.assertRegex(done.stderr, f"^ridge: bad.parquet: .*{reason}.*\n$")
        fails("smaller than the size reported by footer", len(content) - 8,
              struct.pack("<I", 0x7FFFFFFF))
        fails("deserialize", len(content) - 8, struct.pack("<I", 0))
        fails("deserialize", page + 1, b"\xff\xff\xff\xff\x7f")
        fails("[Ii]ndex", ends - 12, b"\xff" * 12)

    def test_a_small_file_cannot_ask_for_much_memory(self):
        much = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()),
                                              pa.array(["x" * 1_000_000]))
        self.put("much.parquet", {"text": much, "y": [0] * 100_000}, store_schema=True)
        self.assertLess(os.path.getsize(self.path("much.parquet")), 1 << 20)
        self.fails(4, "much.parquet: row group 0", "data", "parquet:much.parquet", env=self.plugin)

    def test_without_the_plug_in_the_message_says_what_to_install(self):
        self.put("a.parquet", {"x": [1.0, 2.0], "y": [0, 1]})
        self.fails(5, "a.parquet: Parquet files are read by a plug-in, libridge_parquet.so, which is "
                   "not there. hint: pip install pyarrow, then scripts/build_parquet.sh", "data",
                   "parquet:a.parquet", env={"RIDGE_PARQUET": "/no/such.so"})
        self.write("other.so", "no library")
        self.fails(5, "is not there (", "data", "parquet:a.parquet",
                   env={"RIDGE_PARQUET": self.path("other.so")})


if __name__ == "__main__":
    unittest.main()
