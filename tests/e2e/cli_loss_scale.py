"""--precision f16: gradients that overflow skip their updates; a resumed run has the same bits."""
import unittest

from _overflows import SAMPLES, WithOverflows
from _ridge import FAKE_GPU, RidgeTest, write_npz


class LossScale(WithOverflows):
    def test_overflows_halve_the_scale_and_skip_their_updates(self):
        summary, done = self.run_net("run")
        skipped = summary["skipped_steps"]
        self.assertGreater(skipped, 3)
        self.assertLess(skipped, 40)
        self.assertEqual(summary["loss_scale"], 32768 / 2**skipped)
        self.assertIn(f"{skipped} of 40 updates skipped, whose gradients overflowed f16; the loss "
                      f"scale is {summary['loss_scale']:g}\n", done.stdout)
        last = self.metrics("run")[-1]
        self.assertEqual((last["loss_scale"], last["skipped_steps"]),
                         (summary["loss_scale"], skipped))

    def test_a_resumed_run_has_the_bits_of_one_that_went_through(self):
        whole, _ = self.run_net("whole", "--checkpoint-every", "10")
        self.run_net("cut", "--checkpoint-every", "10")
        self.cut("cut", 20)
        self.ok("train", "--resume", "cut", "-q")
        resumed = self.read_json("cut/summary.json")
        for key in ("parameters_sha256", "loss_scale", "skipped_steps", "steps"):
            self.assertEqual(resumed[key], whole[key], key)

    def test_a_constant_scale_stays_and_skips_too(self):
        summary, done = self.run_net("run", "--loss-scale", "4096")
        self.assertEqual(summary["loss_scale"], 4096)
        self.assertGreater(summary["skipped_steps"], 0)
        self.assertNotIn("warning", done.stderr)
        _, done = self.run_net("low", "--loss-scale", "64")
        self.assertIn("ridge: warning: a loss scale of 64 is below 128: gradients below 9.3e-10 "
                      "become 0 in f16. hint: --loss-scale dynamic\n", done.stderr)
        summary, done = self.run_net("high", "--loss-scale", "131072")
        self.assertIn("ridge: warning: a loss scale of 131072 is above 65536: gradients above "
                      "5.0e-01 are infinite in f16, whose largest number is 65504, and their "
                      "updates do not happen. hint: --loss-scale dynamic\n", done.stderr)

    def test_a_plan_doubts_a_constant_scale_as_the_training_does(self):
        words = ["plan", "mlp:hidden=8", "--precision", "f16", "--loss-scale", "64"]
        warning = ("ridge: warning: a loss scale of 64 is below 128: gradients below 9.3e-10 become 0 in f16. hint: "
                   "--loss-scale dynamic\n")
        for output in [], ["--json"], ["-q"], ["--on", "h100-sxm"]:
            done = self.ridge(*words, *output)
            self.assertEqual((done.returncode, done.stderr), (0, warning), output)
        self.assertEqual(self.ridge(*words[:-1], "4096").stderr, "")

    # Unfused: a relu that a library joins to its product makes 0 of NaN on some CPUs.
    def test_numbers_beyond_f16_end_the_run_and_name_the_way_out(self):
        x = [70000.0 if i == 64 else 0.5 for i in range(SAMPLES * 64)]
        write_npz(self.path("data.npz"),
                  {"x": ((SAMPLES, 64), x), "t": ((SAMPLES,), [0.0] * SAMPLES)})
        done = self.ridge("train", "net.ridge", "--data", "npz:data.npz", "--batch", "64", "-q",
                          "--precision", "f16", "--threads", "1", "--slices", "1", "--passes=-fuse",
                          "--out", "run")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("; first non-finite value: input 'x' in f16. hint:", done.stderr)
        self.assertIn(". hint: --precision bf16, which has larger numbers than 65504, a smaller "
                      "--lr, --clip-norm 1, or look for NaN in the data\n", done.stderr)

    def test_f32_has_no_scale(self):
        summary, done = self.run_net("run", precision="f32")
        self.assertNotIn("loss_scale", summary)
        self.assertNotIn("loss_scale", self.metrics("run")[-1])
        self.assertNotIn("skipped", done.stdout)

    # Slices of 64 samples, so that their products are worth casts: all ranks decide alike.
    def test_two_devices_have_the_bits_of_one(self):
        words = ["train", "net.ridge", "--data", "npz:data.npz", "--batch", "128", "--steps", "20",
                 "--lr", "0.0001", "--precision", "f16", "--slices", "2", "--threads", "1", "-q"]
        self.ok(*words, "--sums", "tree", "--out", "one")
        self.ok(*words, "--devices", "2", "--out", "two")
        one, two = (self.read_json(f"{out}/summary.json") for out in ("one", "two"))
        self.assertGreater(one["skipped_steps"], 0)
        for key in ("parameters_sha256", "loss_scale", "skipped_steps"):
            self.assertEqual(two[key], one[key], key)

    def test_a_gpu_skips_what_the_cpu_skips(self):
        cpu, _ = self.run_net("cpu")
        gpu, _ = self.run_net("gpu", "--device", "cuda", env=FAKE_GPU)
        for key in ("loss_scale", "skipped_steps"):
            self.assertEqual(gpu[key], cpu[key], key)
        self.assertLess(abs(gpu["loss"] / cpu["loss"] - 1), 1e-3)

    def test_a_scale_that_is_none_is_refused(self):
        train = ["train", "mlp", "--data", "synthetic", "--out", "run"]
        for words, message in [
                (["--precision", "f16", "--loss-scale", "0"],
                 "--loss-scale is '0'; it must be dynamic, or a number from 1 to 16777216"),
                (["--precision", "f16", "--loss-scale", "abc"],
                 "--loss-scale is 'abc'; it must be dynamic, or a number from 1 to 16777216"),
                (["--loss-scale", "1024"],
                 "--loss-scale is '1024'; it is of --precision f16, and --precision is f32. hint: "
                 "leave it out"),
                (["--precision", "bf16", "--loss-scale", "dynamic"],
                 "--loss-scale is 'dynamic'; it is of --precision f16, and --precision is bf16. "
                 "hint: leave it out")]:
            self.refused(2, message, *train, *words)


class Networks(RidgeTest):
    # `cnn` has no product that is worth its casts.
    def test_networks_learn_as_in_f32(self):
        for model, batch, steps, tolerance in [
            ("mlp", 64, 30, 1e-3),
            ("resnet18:image=32,classes=10", 8, 2, 3e-2),
            ("gpt:layers=2,hidden=128,heads=4,context=64,vocab=256", 8, 6, 1e-3),
        ]:
            loss = {}
            for precision in ("f32", "f16"):
                out = model.split(":")[0] + "_" + precision
                self.ok("train", model, "--data", "synthetic", "--steps", str(steps), "--batch",
                        str(batch), "--threads", "1", "-q", "--precision", precision, "--out", out)
                loss[precision] = self.read_json(out + "/summary.json")["loss"]
            self.assertNotEqual(loss["f16"], loss["f32"], model)
            self.assertLess(abs(loss["f16"] / loss["f32"] - 1), tolerance, model)


if __name__ == "__main__":
    unittest.main()
