"""Receipts: what runs took is kept on this machine, and scales what the next plan expects."""
import json
import os
import unittest

from _ridge import SMALL, RidgeTest


class Receipts(RidgeTest):
    def setUp(self):
        super().setUp()
        self.env = {"RIDGE_RECEIPTS": "on", "XDG_STATE_HOME": self.path("state")}

    def train(self, name, *words, env=None):
        return self.ok("train", *SMALL, "--steps", "40", "--out", self.path(name), *words,
                       env=env or self.env)

    def history(self):
        return json.loads(self.ok("plan", "--history", "--json", env=self.env))

    def plan(self, *words, env=None):
        return json.loads(self.ok("plan", *SMALL, "--json", *words, env=env or self.env))

    def test_a_run_leaves_the_figures_of_its_summary(self):
        self.train("a")
        with open(self.path("a/summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        history = self.history()
        self.assertEqual(history["file"], self.path("state/ridge/receipts.jsonl"))
        self.assertEqual(len(history["receipts"]), 1)
        receipt = history["receipts"][0]
        for side in ("planned", "measured"):
            for key in ("peak_bytes", "arena_bytes", "step_s"):
                self.assertEqual(receipt[side][key], summary[side][key], (side, key))
        self.assertEqual((receipt["model"], receipt["precision"], receipt["threads"],
                          receipt["batch"]), ("mlp:hidden=32", "f32", 1, 32))
        self.assertEqual(history["scales"], [])

    def test_three_runs_scale_what_is_expected_and_nothing_else(self):
        before = self.plan()
        self.assertNotIn("expected", before)
        for name in "abc":
            self.train(name)
        history = self.history()
        scale = history["scales"][0]
        ratios = sorted(r["measured"]["step_s"] / r["planned"]["step_s"]
                        for r in history["receipts"])
        self.assertAlmostEqual(scale["scale"], ratios[1])
        self.assertEqual((scale["runs"], scale["model"]), (3, "mlp:hidden=32"))
        after = self.plan()
        self.assertAlmostEqual(after["expected"]["step_s"], after["step_s"] * scale["scale"])
        for key in ("arena_bytes", "candidates", "phases"):
            self.assertEqual(after[key], before[key], key)
        kernels = lambda plan: [(n["name"], n["kernel"]) for n in plan["nodes"]]
        self.assertEqual(kernels(after), kernels(before))
        text = self.ok("plan", *SMALL, env=self.env)
        self.assertRegex(text, r"\n  expected .* a step, .* an epoch by 3 earlier runs of "
                               r"mlp:hidden=32 here \(planned x \d+\.\d\d; ")
        self.assertNotIn("expected", self.ok("plan", *SMALL, "--receipts", "off", env=self.env))
        # a run's own files do not depend on the history
        self.train("d")
        with open(self.path("d/plan.txt"), encoding="utf-8") as file:
            self.assertNotIn("earlier runs", file.read())

    def test_off_keeps_nothing(self):
        self.train("a", "--receipts", "off")
        self.train("b", env={"RIDGE_RECEIPTS": "off", "XDG_STATE_HOME": self.path("state")})
        self.assertFalse(os.path.exists(self.path("state")))

    def test_a_folder_that_cannot_be_written_is_no_error(self):
        self.write("state", "a file\n")
        self.train("a")
        self.assertIn("No run has left a receipt in ", self.ok("plan", "--history", env=self.env))

    def test_the_table_has_a_row_a_run(self):
        self.train("a")
        lines = self.ok("plan", "--history", env=self.env).splitlines()
        self.assertRegex(lines[0], r"^when +model +batch +precision +threads +peak planned +"
                                   r"measured +error +step planned +measured +error$")
        self.assertRegex(lines[1], r"^\d{4}-\d\d-\d\dT\d\d:\d\d +mlp:hidden=32 +32 +f32 +1 ")
        self.assertEqual(lines[-1], "The next plan takes no scale: 2 runs of a kind are too few.")


if __name__ == "__main__":
    unittest.main()
