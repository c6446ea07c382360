"""Pictures in folders: training, resuming, the names of the classes, and what is wrong with files."""
import json
import os
import random
import shutil
import struct
import unittest
import zipfile

from _ridge import SOURCE, RidgeTest

GOLDEN = os.path.join(SOURCE, "tests", "golden", "pictures")
CLASSES = {"cat": ["420.jpg", "cmyk.jpg", "grey.jpg", "progressive.jpg"],
           "dog": ["2-8.png", "3-4-trns.png", "0-16.png", "6-8-interlaced.png"],
           "emu": ["lossy.webp", "lossless.webp", "alpha.webp", "exact.webp"]}


class Images(RidgeTest):
    def setUp(self):
        super().setUp()
        self.put("photos")

    def put(self, folder, classes=CLASSES):
        for name, files in classes.items():
            os.makedirs(self.path(f"{folder}/{name}"))
            for file in files:
                shutil.copy(os.path.join(GOLDEN, file), self.path(f"{folder}/{name}/{file}"))

    def train(self, *words, out="run"):
        self.ok("train", *words, "--out", out, "--batch", "4", "-q")
        with open(self.path(f"{out}/summary.json")) as file:
            return json.load(file)

    def test_the_data_give_the_classes(self):
        self.train("cnn", "--data", "images:photos")
        with open(self.path("run/preprocessing.json")) as file:
            self.assertEqual(json.load(file)["classes"], ["cat", "dog", "emu"])
        with open(self.path("run/options.json")) as file:
            self.assertEqual(json.load(file)["data-dim"], ["classes=3"])
        self.assertIn("f32[2,3]", self.ok("export", "run", "--to", "onnx", "--out", "net.onnx"))
        self.assertIn("12 samples", self.ok("eval", "run", "--data", "images:photos"))

    def test_the_users_classes_win(self):
        self.train("cnn:classes=5", "--data", "images:photos")
        self.assertIn("f32[2,5]", self.ok("export", "run", "--to", "onnx", "--out", "net.onnx"))
        self.refused(4, "images:photos: field 'label' has label 2; the model has 2 classes, 0 to 1",
                     "train", "cnn:classes=2", "--data", "images:photos", "--batch", "4", "-q")

    def test_a_run_keeps_its_classes(self):
        self.train("cnn", "--data", "images:photos")
        self.put("two", {name: CLASSES[name] for name in ("cat", "dog")})
        self.ok("eval", "run", "--data", "images:two")
        self.train("run", "--data", "images:two", out="next")
        self.assertIn("f32[2,3]", self.ok("export", "next", "--to", "onnx", "--out", "net.onnx"))

    def test_color_models_get_color(self):
        self.train("resnet18:image=32", "--data", "images:photos", "--steps", "1")
        self.train("mlp", "--data", "images:photos,size=28,fit=stretch,resize=nearest", out="grey")

    def test_a_resumed_run_has_the_same_bits_with_any_number_of_workers(self):
        words = ["cnn", "--data", "images:photos", "--epochs", "4", "--checkpoint-every", "2"]
        whole = self.train(*words, out="whole")
        self.train(*words, "--workers", "3", out="cut")
        self.cut("cut", 4)
        self.ok("train", "--resume", "cut", "-q")
        with open(self.path("cut/summary.json")) as file:
            self.assertEqual(json.load(file)["parameters_sha256"], whole["parameters_sha256"])

    def test_augmented_runs_resume_with_the_same_bits_with_any_number_of_workers(self):
        words = ["resnet18:image=32", "--data", "images:photos,normalize=imagenet", "--epochs", "2",
                 "--checkpoint-every", "2", "--seed", "5",
                 "--augment", "rrc,flip,jitter:0.4:0.4:0.4:0.1,randaugment,erase"]
        whole = self.train(*words, out="whole")
        self.train(*words, "--workers", "3", out="cut")
        self.cut("cut", 2)
        self.ok("train", "--resume", "cut", "-q")
        with open(self.path("cut/summary.json")) as file:
            self.assertEqual(json.load(file)["parameters_sha256"], whole["parameters_sha256"])
        plain = self.train(*words[:-2], out="plain")
        self.assertNotEqual(plain["parameters_sha256"], whole["parameters_sha256"])

    def test_mixed_runs_resume_with_the_same_bits_with_any_number_of_workers(self):
        words = ["cnn", "--data", "images:photos", "--epochs", "4", "--checkpoint-every", "2",
                 "--augment", "flip,mixup:0.4,cutmix:1"]
        whole = self.train(*words, out="whole")
        self.train(*words, "--workers", "3", out="cut")
        self.cut("cut", 4)
        self.ok("train", "--resume", "cut", "-q")
        with open(self.path("cut/summary.json")) as file:
            self.assertEqual(json.load(file)["parameters_sha256"], whole["parameters_sha256"])
        plain = self.train(*words[:-1], "flip", out="plain")
        self.assertNotEqual(plain["parameters_sha256"], whole["parameters_sha256"])
        self.assertIn("12 samples", self.ok("eval", "whole", "--data", "images:photos"))

    def test_an_evaluation_does_what_the_run_did_to_pictures_and_does_not_augment(self):
        self.train("cnn", "--data", "images:photos,normalize=0.5,fit=stretch", "--augment",
                   "flip:1,crop:8")
        self.put("other")
        losses = [json.loads(self.ok("eval", "run", "--data", spec, "--json"))["loss"] for spec in
                  ("images:other", "images:other,normalize=0.5,fit=stretch",
                   "images:other,normalize=none,fit=stretch")]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])

    def spoil(self):
        """Pictures that fail when the folder is opened, and when they are read."""
        self.write("photos/cat/empty.jpg", b"")
        with open(os.path.join(GOLDEN, "444.jpg"), "rb") as file:
            self.write("photos/dog/cut.jpg", file.read()[:-400])

    def bad_records(self, run):
        with open(self.path(f"{run}/bad_records.jsonl")) as file:
            return [(line["file"], line["reason"]) for line in map(json.loads, file)]

    def test_bad_records_are_skipped_and_listed(self):
        self.spoil()
        words = ["cnn", "--data", "images:photos", "--epochs", "2", "--bad-records"]
        self.fails(4, "photos/cat/empty.jpg: is empty", "train", *words, "fail", "-q")
        whole = self.train(*words, "skip:2")
        self.assertEqual(self.bad_records("run"), [
            ("photos/cat/empty.jpg", "is empty"),
            ("photos/dog/cut.jpg", "its JPEG data is damaged: Premature end of JPEG file")])
        other = self.train(*words, "skip:20%", "--workers", "3", out="other")
        self.assertEqual(other["parameters_sha256"], whole["parameters_sha256"])
        self.ok("train", "--resume", "run", "--epochs", "3", "-q")
        self.assertEqual(len(self.bad_records("run")), 2)
        self.assertIn("photos/dog/cut.jpg: skipped: ",
                      self.ridge("eval", "run", "--data", "images:photos").stderr)

    def test_more_bad_records_than_allowed_end_the_run_with_their_list(self):
        self.spoil()
        done = self.fails(4, "2 records cannot be read, --bad-records allows 1:\n"
                          "  photos/cat/empty.jpg: is empty\n  photos/dog/cut.jpg: its JPEG",
                          "train", "cnn", "--data", "images:photos", "--batch", "4", "--out", "run",
                          "--bad-records", "skip:1", "-q")
        self.assertNotIn("and 1 more", done.stderr)
        self.refused(2, "--bad-records is 'skip'; it must be fail, skip:N with a whole number, or "
                     "skip:P% with a number from 0 to 100", "train", "cnn", "--data",
                     "images:photos", "--bad-records", "skip")

    def test_arrays_with_their_channels_first_are_augmented(self):
        """As those with their channels last, in their own order: runs of the same bits."""
        draw, count, side, planes = random.Random(1), 40, 8, 3
        labels = [draw.randrange(2) for _ in range(count)]
        last = bytes(min(255, draw.randrange(128) + 100 * labels[i // (side * side * planes)])
                     for i in range(count * side * side * planes))
        first = b"".join(last[i * side * side * planes + c:(i + 1) * side * side * planes:planes]
                         for i in range(count) for c in range(planes))
        for name, dims, pixels in (("last", (count, side, side, planes), last),
                                   ("first", (count, planes, side, side), first)):
            with zipfile.ZipFile(self.path(f"{name}.npz"), "w") as archive:
                for array, shape, data in (("images", dims, pixels), ("labels", (count,), bytes(labels))):
                    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
                    header += " " * (-(len(header) + 11) % 64) + "\n"
                    archive.writestr(f"{array}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
                                     header.encode() + data)
        words = ["cnn:image=8,channels=3,classes=2", "--epochs", "3", "--seed", "5",
                 "--augment", "rrc,flip,jitter:0.4:0.4:0.4:0.1,mixup:0.2"]
        kept = [self.train(*words, "--data", f"npz:{name}.npz", "--workers", workers, out=name + workers)
                ["parameters_sha256"] for name, workers in (("last", "1"), ("first", "1"), ("first", "3"))]
        self.assertEqual(len(set(kept)), 1)
        plain = self.train(*words[:-2], "--data", "npz:first.npz", out="plain")["parameters_sha256"]
        self.assertNotEqual(plain, kept[0])

    def test_augment_is_checked(self):
        self.fails(2, "--augment is 'flop': 'flop' is none of rrc[:LEAST[:MOST]], crop:PIXELS, ",
                   "train", "cnn", "--data",
                     "images:photos", "--augment", "flop")
        self.refused(2, "--augment is 'flip,rrc': rrc must come first", "train", "cnn", "--data",
                     "images:photos", "--augment", "flip,rrc")

    def test_a_changed_picture_is_noticed_on_resuming(self):
        self.train("cnn", "--data", "images:photos", "--epochs", "2")
        shutil.copy(os.path.join(GOLDEN, "444.jpg"), self.path("photos/cat/grey.jpg"))
        self.fails(2, "whose training samples are others than the run has used", "train",
                   "--resume", "run", "--epochs", "3", "-q")

    def test_val_is_validation_and_test_is_test(self):
        for part in ("train", "val", "test"):
            self.put(f"sets/{part}")
        summary = self.train("cnn", "--data", "images:sets")
        self.assertEqual(summary["evaluated_on"], "test")
        self.assertIsNotNone(summary["validation_accuracy"])
        self.assertIsNotNone(summary["test_accuracy"])

    def test_a_folder_alone_is_enough(self):
        done = self.ridge("train", "cnn", "--data", "photos", "--batch", "4", "--out", "run", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("data 'photos': is read as images:photos", done.stderr)

    def test_bad_pictures_are_named(self):
        self.write("photos/cat/bad.jpg", b"")
        self.refused(4, "photos/cat/bad.jpg: is empty", "train", "cnn", "--data", "images:photos",
                     "--out", "run", "-q")
        self.assertFalse(os.path.exists(self.path("run")))
        with open(os.path.join(GOLDEN, "420.jpg"), "rb") as file:
            self.write("photos/cat/bad.jpg", file.read()[:1000])
        self.fails(4, "photos/cat/bad.jpg: its JPEG data is damaged: Premature end of JPEG file",
                   "train", "cnn", "--data", "images:photos", "--batch", "4", "-q")

    def test_names_need_not_be_utf8(self):
        folder = os.path.join(os.fsencode(self.path("photos")), b"\xff\xfe")
        os.makedirs(folder)
        shutil.copy(os.path.join(GOLDEN, "444.jpg"), os.path.join(folder, b"\x80.jpg"))
        self.train("cnn", "--data", "images:photos")
        with open(self.path("run/preprocessing.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["classes"], ["cat", "dog", "emu", "\u00ff\u00fe"])
        self.assertIn("13 samples", self.ok("eval", "run", "--data", "images:photos"))

    def test_an_evaluation_has_the_classes_of_the_run(self):
        self.train("cnn", "--data", "images:photos")
        self.put("other", {"dog": CLASSES["dog"]})
        self.assertIn(f"{len(CLASSES['dog'])} samples",
                      self.ok("eval", "run", "--data", "images:other"))
        self.put("foreign", {"fox": CLASSES["dog"]})
        self.refused(4, "images:foreign: foreign/fox is none of the run's classes: cat, dog, emu",
                     "eval", "run", "--data", "images:foreign")


class DataVerb(RidgeTest):
    """`ridge data`: what is there, before a training."""

    def test_pictures_are_counted_and_bad_ones_named(self):
        for kind, names in {"cat": ["420.jpg", "444.jpg"], "dog": ["grey.jpg"]}.items():
            os.makedirs(self.path(f"photos/{kind}"))
            for name in names:
                shutil.copy(os.path.join(GOLDEN, name), self.path(f"photos/{kind}/{name}"))
        shutil.copy(os.path.join(GOLDEN, "420.jpg"), self.path("photos/dog/again.jpg"))
        with open(os.path.join(GOLDEN, "444.jpg"), "rb") as file:
            self.write("photos/dog/cut.jpg", file.read()[:-400])
        found = json.loads(self.ok("data", "images:photos", "--json"))
        training = found["sets"][0]
        self.assertEqual(training["samples"], 5)
        self.assertEqual([(c["name"], c["samples"]) for c in training["classes"]],
                         [("cat", 2), ("dog", 3)])
        self.assertEqual(training["pictures"]["formats"], {"JPEG": 5})
        self.assertEqual([bad["sample"] for bad in training["bad"]], ["photos/dog/cut.jpg"])
        self.assertEqual(found["duplicates"][0]["first"],
                         [["photos/dog/again.jpg", "photos/cat/420.jpg"]])
        text = self.ok("data", "images:photos")
        self.assertIn("1 sample of the training set equals an earlier one, 1 with another label:\n"
                      "  photos/dog/again.jpg = photos/cat/420.jpg\n", text)
        self.assertIn("Cannot be read\n  photos/dog/cut.jpg: its JPEG data is damaged", text)

    def put(self):
        for kind, names in {"cat": ["420.jpg", "444.jpg"], "dog": ["grey.jpg"]}.items():
            os.makedirs(self.path(f"photos/{kind}"))
            for name in names:
                shutil.copy(os.path.join(GOLDEN, name), self.path(f"photos/{kind}/{name}"))

    def test_a_contact_sheet_is_a_file_of_its_own(self):
        self.put()
        self.ok("data", "images:photos", "--contact-sheet", "sheet.png")
        with open(self.path("sheet.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        words = ["data", "images:photos", "--augment", "rrc,flip", "--contact-sheet", "sheet.html"]
        self.ok(*words)
        with open(self.path("sheet.html")) as file:
            page = file.read()
        self.assertEqual(page.count("<img "), 3)
        self.assertNotIn("http", page)
        self.ok(*words, "--seed", "1")
        with open(self.path("sheet.html")) as file:
            self.assertNotEqual(file.read(), page)
        self.refused(2, "data: --contact-sheet 'x.jpg' must end in .png or .html", "data",
                     "images:photos", "--contact-sheet", "x.jpg")
        self.refused(2, "data: --augment is for --contact-sheet and --bench", "data",
                     "images:photos", "--augment", "flip")
        self.fails(2, "--augment is 'flop': ", "data", "images:photos", "--augment", "flop",
                   "--bench")

    def test_reading_is_timed_by_stage(self):
        self.put()
        bench = json.loads(self.ok("data", "images:photos", "--bench", "--workers", "2", "--json"))
        self.assertEqual([stage["stage"] for stage in bench["stages"]],
                         ["read", "decode", "resize", "augment", "normalize", "collate"])
        self.assertEqual((bench["samples"], bench["workers"]), (3, 2))
        self.assertGreater(bench["one_core_samples_s"], 0)
        text = self.ok("data", "images:photos", "--bench", "--workers", "2")
        self.assertRegex(text, "decode +[0-9.]+ .s +[0-9.]+ %")
        self.assertRegex(text, "2 workers +[0-9.]+ .s")

    def test_progress_tells_the_stages_of_reading(self):
        self.put()
        done = self.ridge("train", "cnn", "--data", "images:photos", "--epochs", "2", "--batch", "2",
                          "--progress", "plain", "--out", "run")
        self.assertRegex(done.stderr, r"input wait [0-9.]+ % \((decode|read) [0-9]+ %")
        with open(self.path("run/metrics.jsonl")) as file:
            stages = json.loads(file.readline())["input_stages"]
        self.assertAlmostEqual(sum(stages.values()), 1, delta=0.01)
        self.assertRegex(self.ok("watch", "run"), r"input wait [0-9.]+ % \(")


if __name__ == "__main__":
    unittest.main()
