"""--precision-for: products that mixed precision leaves in f32, logits of 16 bits, refusals."""
import json
import re
import unittest

from _ridge import FAKE_GPU, RidgeTest

TRAIN = ["train", "mlp:hidden=128", "--data", "synthetic", "--steps", "6", "--batch", "64",
         "--threads", "1", "--slices", "1", "-q"]
LINE = "\n  kept in f32 by --precision-for: {} of a step\n"
NARROW_LINE = "\n  results in {} by --precision-for: {} of a step\n"


class PrecisionFor(RidgeTest):
    def train(self, out, *options, **more):
        self.ok(*TRAIN, "--out", out, *options, **more)
        return self.read_json(out + "/summary.json")["parameters_sha256"]

    def plan(self, *options, model="mlp", **more):
        return self.ok("plan", model, "--batch", "64", "--threads", "1", *options, **more)

    # The layer of ten classes is not worth casts on a CPU.
    def test_layers_are_kept_on_the_cpu(self):
        f32 = self.train("f32")
        f16 = self.train("f16", "--precision", "f16")
        kept = self.train("kept", "--precision", "f16", "--precision-for", "2.*=f32")
        self.assertEqual(len({f32, f16, kept}), 3)
        with open(self.path("kept/plan.txt"), encoding="utf-8") as file:
            self.assertIn(LINE.format("3 products"), file.read())

    # A loss scale is a power of two, so gradients of f32 have the same bits with it.
    def test_with_all_layers_kept_a_run_has_the_bits_of_f32(self):
        gpt = ["gpt:layers=1,hidden=64,heads=2,context=32,vocab=256", "--batch", "8"]
        for model, narrow, env in [
                ([*gpt, "--threads", "1"], "f16", None),
                (["mlp:hidden=128", "--batch", "64", "--threads", "1"], "f16", None),
                (["resnet18:image=32,classes=10", "--batch", "8", "--threads", "1"], "f16", None),
                ([*gpt, "--device", "cuda"], "bf16", FAKE_GPU)]:
            hashes = []
            for options in (["--precision", "f32"], ["--precision", narrow],
                            ["--precision", narrow, "--precision-for", "*=f32"]):
                out = f"run{len(hashes)}{model[0][:3]}{narrow}"
                self.ok("train", *model, "--data", "synthetic", "--steps", "3", "-q", *options,
                        "--out", out, env=env)
                hashes.append(self.read_json(out + "/summary.json")["parameters_sha256"])
            self.assertEqual(hashes[2], hashes[0], model)
            self.assertNotEqual(hashes[1], hashes[0], model)

    def test_plans_say_how_many_products_and_casts_are_gone(self):
        for place, env in (["--precision", "f16"], None), (
                ["--precision", "bf16", "--on", "h100-sxm"], None), (
                ["--precision", "bf16", "--device", "cuda"], FAKE_GPU):
            # The first layer has no gradient of its input.
            for pattern, count in ("2.*=f32", 3), ("0.*=f32", 2), ("0.*=f32,2.*=f32", 5):
                text = self.plan(*place, "--precision-for", pattern, env=env)
                self.assertIn(LINE.format(f"{count} products"), text)
            self.assertNotIn("--precision-for", self.plan(*place, env=env))

    def test_the_plan_has_the_kept_layer_and_its_gradients_in_f32(self):
        plan = ["plan", "mlp", "--batch", "64", "--precision", "bf16", "--on", "h100-sxm", "-v"]
        rows = {}
        for name, words in ("mixed", []), ("kept", ["--precision-for", "2.*=f32"]):
            train = self.ok(*plan, *words).split("\ntrain: ")[1].split("\neval: ")[0]
            # What reads the weight, or writes its gradient.
            rows[name] = [line for line in train.splitlines()
                          if " matmul " in line and "2.weight" in line]
            self.assertEqual(len(rows[name]), 3, train)
        self.assertTrue(all("bf16" in row for row in rows["mixed"]), rows)
        self.assertFalse(any("bf16" in row for row in rows["kept"]), rows)

    def test_patterns_may_be_given_one_by_one(self):
        both = self.plan("--precision", "f16", "--precision-for", "0.*=f32,2.*=f32")
        one_by_one = self.plan("--precision", "f16", "--precision-for", "0.*=f32",
                               "--precision-for", "2.*=f32")
        line = LINE.format("5 products")
        self.assertIn(line, both)
        self.assertIn(line, one_by_one)

    def test_the_first_pattern_decides(self):
        text = self.plan("--precision", "f16", "--precision-for", "2.*=f16,*=f32")
        self.assertNotIn(LINE.format("3 products"), text)
        self.assertIn("kept in f32 by --precision-for: ", text)

    # A head that is the table, and one of its own: logits and their gradient are 16 bits each, and
    # share their bytes.
    def test_logits_have_16_bits_where_a_pattern_of_the_own_type_names_their_product(self):
        arena = re.compile(r"\n  arena ([0-9.]+) GiB")
        options = ["--precision", "bf16", "--on", "h200-sxm", "--loss-chunks", "1"]
        for model, pattern in ("gpt2", "tok.weight=bf16"), ("gpt2:tied=0", "head.*=bf16"):
            wide = self.ok("plan", model, "--batch", "8", *options)
            text = self.ok("plan", model, "--batch", "8", *options, "--precision-for", pattern)
            self.assertIn(NARROW_LINE.format("bf16", "1 product"), text)
            self.assertNotIn("kept in f32", text)
            saved = float(arena.search(wide)[1]) - float(arena.search(text)[1])
            self.assertGreater(saved, 1.3, text)

    def test_a_run_with_logits_of_16_bits_is_evaluated(self):
        self.ok("train", "mlp:hidden=128,classes=512", "--data", "synthetic", "--steps", "2",
                "--batch", "64", "--slices", "1", "-q", "--device", "cuda", "--precision", "bf16",
                "--precision-for", "4.*=bf16", "--out", "run", env=FAKE_GPU)
        with open(self.path("run/plan.txt"), encoding="utf-8") as file:
            self.assertIn(NARROW_LINE.format("bf16", "1 product"), file.read())
        done = json.loads(self.ok("eval", "run", "--data", "synthetic", "--json", env=FAKE_GPU))
        self.assertGreater(done["samples"], 0)

    def test_bench_step_takes_it(self):
        done = json.loads(self.ok("bench", "step", "mlp", "--batch", "32", "--steps", "3",
                                  "--precision", "f16", "--precision-for", "2.*=f32", "--json"))
        self.assertEqual(done["prec"], "f16")

    def test_a_run_is_resumed_with_its_own_patterns(self):
        options = ["--precision", "f16", "--precision-for", "2.*=f32"]
        whole = self.train("whole", *options, "--checkpoint-every", "3")
        self.train("cut", *options, "--checkpoint-every", "3")
        self.cut("cut", 3)
        self.refused(2, '--precision-for is ["0.*=f32"]; the run was started with ["2.*=f32"]. '
                        "hint: leave it out, or start a new run with another --out",
                     "train", "--resume", "cut", "--precision-for", "0.*=f32", "-q")
        self.ok("train", "--resume", "cut", "--precision-for", "2.*=f32", "-q")
        self.assertEqual(self.read_json("cut/summary.json")["parameters_sha256"], whole)

    def test_a_run_is_evaluated_as_it_was_trained(self):
        self.train("run", "--precision", "f16", "--precision-for", "2.*=f32")
        done = json.loads(self.ok("eval", "run", "--data", "synthetic", "--json"))
        self.assertGreater(done["samples"], 0)

    # No product of `cnn` is worth bf16's casts.
    def test_auto_keeps_the_patterns_where_it_takes_bf16_alone(self):
        self.ok("train", "cnn", "--data", "synthetic", "--steps", "2", "--batch", "64", "-q",
                "--precision", "auto", "--precision-for", "4.*=f32", "--out", "run")
        options = self.read_json("run/options.json")
        self.assertEqual((options["precision"], options["precision-for"]), ("f32", []))
        text = self.ok("plan", "gpt2", "--batch", "8", "--precision", "auto", "--on", "h100-sxm",
                       "--precision-for", "tok.*=f32")
        self.assertIn(", bf16, on h100-sxm", text)
        self.assertIn("kept in f32 by --precision-for: ", text)

    def test_what_it_cannot_do_is_refused(self):
        plan = ["plan", "mlp", "--on", "h100-sxm"]
        bf16 = [*plan, "--precision", "bf16", "--precision-for"]
        hint = "hint: --precision-for 'head.*=f32'"
        for words, message in [
                ([*bf16, "3.*=f32"],
                 "mlp: --precision-for '3.*' matches no parameter; the nearest are 0.weight, "
                 "0.bias, 2.weight. hint: --precision-for '0.*=f32'"),
                ([*bf16, "2.*"], f"--precision-for is '2.*': '2.*' is not PATTERN=f32. {hint}"),
                ([*bf16, "2.*=f64"],
                 "--precision-for is '2.*=f64': '2.*=f64' is of type 'f64'; it must be f32, or "
                 f"bf16 as --precision has it. {hint}"),
                ([*plan, "--precision-for", "2.*=f32"],
                 "--precision-for is '2.*=f32'; it is of --precision bf16 and f16, and "
                 "--precision is f32. hint: leave it out"),
                ([*plan, "--precision", "tf32", "--precision-for", "2.*=f32,0.*=f32"],
                 "--precision-for is '2.*=f32,0.*=f32'; it is of --precision bf16 and f16, and "
                 "--precision is tf32. hint: leave it out"),
                (["plan", "gpt2", "--on", "h100-sxm", "--precision", "bf16", "--precision-for",
                  "*.ln1.*=f32"], "")]:
            if message:
                self.refused(2, message, *words)
            else:
                self.fails(2, "of which no product of f32 reads any. hint: leave the pattern out",
                           *words)


if __name__ == "__main__":
    unittest.main()
