"""TFRecords of TensorFlow and archives of webdataset: training, resuming, sets, bad files."""
import json
import os
import shutil
import unittest

from _ridge import SOURCE, RidgeTest

GOLDEN = os.path.join(SOURCE, "tests", "golden", "containers")


class Containers(RidgeTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(GOLDEN, self.path("data"))

    def train(self, data, out, *words):
        self.ok("train", *words, "--data", data, "--out", out, "--batch", "2", "-q")
        with open(self.path(f"{out}/summary.json")) as file:
            return json.load(file)

    def test_gzip_records_and_arrays_train_to_the_same_bits(self):
        records = self.train("tfrecord:data/all.tfrecord.gz", "a", "mlp:hidden=8")
        arrays = self.train("tar:data/arrays.tar.gz", "b", "mlp:hidden=8")
        self.assertEqual(records["parameters_sha256"], arrays["parameters_sha256"])

    def test_files_named_train_and_test_are_sets(self):
        summary = self.train("tfrecord:data/t*.tfrecord", "run", "mlp:hidden=8")
        self.assertEqual(summary["evaluated_on"], "test")

    def test_records_and_archives_of_pictures(self):
        self.train("tfrecord:data/pictures.tfrecord", "records", "cnn")
        self.train("tar:data/photos-{000..001}.tar,json=kind", "named", "cnn")
        with open(self.path("named/preprocessing.json")) as file:
            self.assertEqual(json.load(file)["classes"], ["cat", "dog", "emu"])
        self.ok("eval", "named", "--data", "tar:data/photos-000.tar,json=kind")

    def test_a_resumed_run_keeps_what_it_held_out(self):
        words = ["mlp:hidden=8", "--validation", "0.3", "--checkpoint-every", "2"]
        data = "tfrecord:data/all.tfrecord.gz"
        whole = self.train(data, "whole", *words, "--epochs", "4")
        self.train(data, "cut", *words, "--epochs", "2")
        self.ok("train", "--resume", "cut", "--epochs", "4", "-q")
        with open(self.path("cut/summary.json")) as file:
            self.assertEqual(json.load(file)["parameters_sha256"], whole["parameters_sha256"])

    def test_a_damaged_file_is_named(self):
        with open(self.path("data/pictures.tfrecord"), "rb") as file:
            self.write("bad.tfrecord", file.read()[:-3])
        self.fails(4, "bad.tfrecord: record 11 at byte", "train", "cnn", "--data",
                   "tfrecord:bad.tfrecord", "--batch", "2", "-q")


if __name__ == "__main__":
    unittest.main()
