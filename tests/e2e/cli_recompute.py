"""Activations that are computed again within a budget: the same bits from fewer bytes."""
import json
import unittest

from _ridge import RidgeTest

GPT = ["gpt:layers=10,hidden=64,heads=4,context=128,vocab=100", "--batch", "16", "--threads", "2"]
TRAIN = ["train", *GPT, "--data", "synthetic", "--steps", "3", "--checkpoint-every", "1", "-q",
         "--slices", "1"]


class Recompute(RidgeTest):
    def scratch(self, recompute):
        plan = json.loads(self.ok("plan", *GPT, "--slices", "1", "--recompute", recompute, "--json"))
        return next(s["scratch_bytes"] for s in plan["steps"] if s["name"] == "train")

    def test_every_budget_is_kept_and_gives_the_same_bits(self):
        kept = self.scratch("off")
        self.ok(*TRAIN, "--recompute", "off", "--out", "off")
        for percent in (100, 90, 80, 70, 60, 50, 40, 30, 20):
            budget = f"{percent}%"
            self.assertLessEqual(self.scratch(budget), kept * percent / 100)
            self.ok(*TRAIN, "--recompute", budget, "--out", budget)
            self.assertRegex(self.ok("compare", "off", budget), "^equal: ", budget)

    def test_a_size_is_a_budget_too(self):
        half = self.scratch("off") // 2
        self.assertLessEqual(self.scratch(f"{half}B"), half)
        self.assertEqual(self.scratch("full"), min(self.scratch("full"), self.scratch("all")))

    def test_a_run_within_a_budget_goes_on_after_a_kill(self):
        for out in ("whole", "cut"):
            self.ok(*TRAIN, "--recompute", "40%", "--out", out)
        self.assertEqual(self.read_json("cut/options.json")["recompute"], "40%")
        self.cut("cut", 1)
        self.ok("train", "--resume", "cut", "-q")
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")

    def test_a_run_that_fits_only_with_products_again_goes_on_with_more_memory(self):
        def peak(recompute):
            return json.loads(self.ok("plan", *GPT, "--recompute", recompute, "--slices", "1",
                                      "--json", "--fit", "4GiB"))["peak_bytes"]
        cheap, full = peak("all"), peak("full")
        tight = str((cheap + full) // 2)
        for out in ("whole", "cut"):
            self.ok(*TRAIN, "--out", out, "--fit", tight)
        self.assertRegex(self.read_json("whole/options.json")["recompute"], "^full")
        self.cut("cut", 1)
        self.ok("train", "--resume", "cut", "--fit", "4GiB", "-q")
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")

    def test_what_cannot_be_is_refused(self):
        message = self.fails(2, "the budget", *TRAIN, "--recompute", "2%", "--out", "run").stderr
        self.assertRegex(message, r"^ridge: --recompute: activations and workspaces take [\d.]+ MiB "
                         r"with all values recomputed, [\d.]+ % of [\d.]+ MiB without; the budget "
                         r"is [\d.]+ MiB\. hint: --slices, or a smaller --batch\n$")
        for text in ("0%", "101%", "some", "full:x", "0"):
            self.refused(2, f"--recompute is '{text}'; it must be auto, off, all, full, full:SIZE, a "
                         "number from 1, a share such as 40% or a size such as 2GiB", "plan", "mlp",
                         "--recompute", text)


if __name__ == "__main__":
    unittest.main()
