"""Bad data files: exit 4, the file by name, what is and what should be; nothing is written."""
import gzip
import os
import unittest

from _ridge import RidgeTest, idx_bytes, write_idx_folder, write_npz


class BadIdx(RidgeTest):
    def setUp(self):
        super().setUp()
        write_idx_folder(self.path("data"))

    def refuse(self, part):
        done = self.fails(4, part, "train", "cnn", "--data", "idx:data", "--steps", "1", "--out",
                          "run", "-q")
        self.assertFalse(os.path.exists(self.path("run")), done.stderr)

    def images(self):
        return self.path("data/train-images-idx3-ubyte")

    def test_the_good_files_are_good(self):
        self.ok("train", "cnn", "--data", "idx:data", "--steps", "2", "--out", "run", "-q")

    def test_gzip_is_as_good(self):
        for name in os.listdir(self.path("data")):
            path = os.path.join(self.path("data"), name)
            with open(path, "rb") as file:
                content = file.read()
            with gzip.open(path + ".gz", "wb") as file:
                file.write(content)
            os.remove(path)
        self.ok("train", "cnn", "--data", "idx:data", "--steps", "2", "--out", "run", "-q")

    def test_a_truncated_file(self):
        with open(self.images(), "r+b") as file:
            file.truncate(1000)
        self.refuse("train-images-idx3-ubyte")

    def test_a_file_longer_than_its_header_says(self):
        with open(self.images(), "ab") as file:
            file.write(b"more")
        self.refuse("train-images-idx3-ubyte")

    def test_no_idx_file_at_all(self):
        self.write("data/train-images-idx3-ubyte", b"<html>not found</html>")
        self.refuse("train-images-idx3-ubyte")

    def test_labels_of_another_number(self):
        self.write("data/train-labels-idx1-ubyte", idx_bytes(8, [3], b"\0\1\2"))
        self.refuse("train-labels-idx1-ubyte")

    def test_sizes_that_overflow(self):
        self.write("data/train-images-idx3-ubyte",
                   idx_bytes(8, [0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF], b""))
        self.refuse("train-images-idx3-ubyte")

    def test_a_label_beyond_the_models_classes(self):
        labels = bytes([11] + [0] * 63)
        self.write("data/train-labels-idx1-ubyte", idx_bytes(8, [64], labels))
        self.refuse("11")

    def test_a_damaged_gzip_file(self):
        with open(self.images(), "rb") as file:
            packed = bytearray(gzip.compress(file.read()))
        os.remove(self.images())
        packed[len(packed) // 2] ^= 0xFF
        self.write("data/train-images-idx3-ubyte.gz", bytes(packed))
        self.refuse("train-images-idx3-ubyte.gz")


class OtherData(RidgeTest):
    def test_missing_files_are_named(self):
        for spec in ("idx:none", "npz:none.npz", "csv:none.csv"):
            self.fails(4, "none", "train", "cnn", "--data", spec, "-q")
        self.fails(2, "fashion-mnist", "train", "cnn", "--data", "fashion", "-q")

    def test_arrays_of_another_shape_are_shown_beside_the_inputs(self):
        write_npz(self.path("data.npz"), {"image": ([4, 3], [0.0] * 12), "label": ([4], [0.0] * 4)})
        self.fails(4, "f32[3]", "train", "cnn", "--data", "npz:data.npz", "--batch", "2", "-q")

    def test_a_graph_file_with_a_mistake_says_the_line(self):
        for text, part in [("graph g\n  x = input f32[2]\n  y = reluu(x)\n", "net.ridge:3"),
                           ("nonsense", "net.ridge:1")]:
            self.write("net.ridge", text)
            self.fails(5, part, "train", "net.ridge", "--data", "synthetic", "-q")
            self.fails(5, part, "opt", "net.ridge")


if __name__ == "__main__":
    unittest.main()
