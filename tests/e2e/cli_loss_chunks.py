"""--loss-chunks: logits of some rows at a time, on the CPU and on a driver that runs on the host."""
import json
import unittest

from _ridge import FAKE_GPU, RidgeTest

# Most bytes of a step are logits.
HEAD = "gpt:layers=1,hidden=32,heads=2,vocab=8192,context=32"
GPT = [HEAD, "--batch", "8", "--data", "synthetic", "--threads", "1"]
CASES = ([], ["--precision", "f16"], ["--accumulate", "2"], ["--slices", "2"],
         ["--slices", "2", "--sums", "tree"], ["--recompute", "full"], ["--clip-norm", "0.1"],
         ["--label-smoothing", "0.1"])


class LossChunks(RidgeTest):
    def train(self, out, *words, steps=4, model=GPT, **more):
        self.ok("train", *model, "--steps", str(steps), "-q", "--out", out, *words, **more)
        return self.read_json(f"{out}/summary.json")["parameters_sha256"]

    def losses(self, out):
        with open(self.path(f"{out}/metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line)["loss"] for line in file if '"loss"' in line]

    def plan(self, *words, **more):
        plan = json.loads(self.ok("plan", *GPT, "--json", *words, **more))
        return plan[0] if isinstance(plan, list) else plan

    def chosen(self, plan):
        return next(c for c in plan["candidates"] if c["chosen"])

    def test_chunks_learn_what_whole_logits_learn(self):
        for i, words in enumerate(CASES):
            self.train(f"whole{i}", "--loss-chunks", "1", *words)
            self.train(f"cut{i}", "--loss-chunks", "4", *words)
            whole, cut = self.losses(f"whole{i}"), self.losses(f"cut{i}")
            self.assertEqual(len(whole), len(cut), words)
            for have, want in zip(cut, whole):
                self.assertAlmostEqual(have, want, delta=1e-3 * abs(want), msg=str(words))

    # Of 8 MiB of logits and 8 of their gradient, a quarter of both is live.
    def test_a_cut_run_takes_the_bytes_of_a_chunk(self):
        words = ["--slices", "1", "--recompute", "off"]
        whole = self.plan("--loss-chunks", "1", *words)
        cut = self.plan("--loss-chunks", "4", *words)
        self.assertLess(cut["arena_bytes"], whole["arena_bytes"] - (5 << 20))
        self.ok("train", *GPT, "--steps", "4", "--loss-chunks", "4", *words, "-q", "--out", "cut")
        measured = self.read_json("cut/summary.json")["measured"]
        self.assertLessEqual(measured["arena_bytes"], cut["arena_bytes"])

    def test_a_resumed_run_has_the_bits_of_one_that_was_not(self):
        words = ["--loss-chunks", "2", "--checkpoint-every", "2"]
        want = self.train("whole", *words)
        self.train("half", *words, steps=2)
        self.ok("train", "--resume", self.path("half"), "--steps", "4", "-q")
        self.assertEqual(self.read_json("half/summary.json")["parameters_sha256"], want)
        self.fails(2, '--loss-chunks is "4"; the run was started with "2". hint: leave it out, or '
                   "start a new run with another --out", "train", "--resume", self.path("half"),
                   "--steps", "6", "--loss-chunks", "4")

    def test_any_number_of_devices_has_the_bits_of_one(self):
        words = ["--loss-chunks", "4"]  # two of each slice
        one = self.train("one", *words, "--sums", "tree", "--slices", "2")
        self.assertEqual(self.train("two", *words, "--devices", "2"), one)

    def test_logits_are_cut_where_they_do_not_fit(self):
        words = ["--slices", "1", "--recompute", "off"]
        whole = self.chosen(self.plan(*words))
        self.assertEqual(whole["loss_chunks"], 1)
        cut = self.plan(*words, "--fit", f"{(whole['bytes'] >> 20) - 4}MiB")
        self.assertGreater(self.chosen(cut)["loss_chunks"], 1)
        self.assertTrue(self.chosen(cut)["fits"])

    def test_what_cannot_be_cut_is_refused(self):
        for words, text in [
                (["--loss-chunks", "3"],
                 "--loss-chunks is 3; the 8 rows of logits cannot be cut so. hint: --loss-chunks 4"),
                (["--loss-chunks", "6", "--slices", "4"],
                 "--loss-chunks is 6; 4 slices of the batch have not equally many of them. hint: "
                 "--loss-chunks 8"),
                (["--loss-chunks", "off"],
                 "--loss-chunks is 'off'; it must be auto or a number from 1"),
                (["--loss-chunks", "2", "--mesh", "d=2", "--devices", "2"],
                 "--loss-chunks is '2'; there is one chunk of a plan on a mesh. hint: leave it "
                 "out")]:
            self.fails(2, text, "plan", *GPT, *words)

    def test_a_model_without_logits_of_rows_is_refused_in_slices_too(self):
        for words in [], ["--slices", "2"]:
            self.fails(2, "--loss-chunks is 2; no logits of a cross entropy come from a product and "
                       "are read row by row only. hint: leave it out", "plan", "unet",
                       "--batch", "2", "--loss-chunks", "2", *words)

    def test_slices_that_the_search_makes_have_equally_many_chunks(self):
        done = self.ridge("plan", "gpt:layers=4,hidden=32,heads=2,vocab=8192,context=128", "--batch", "12", "--data",
                          "synthetic", "--threads", "1", "--loss-chunks", "3", "--fit", "70MiB",
                          "--recompute", "off", "--json")
        made = [c["slices"] for c in json.loads(done.stdout)["candidates"]]
        self.assertGreater(len(made), 1)
        self.assertNotIn(2, made)

    # 67 samples have no divisor but 67; 32 tokens have.
    def test_tokens_are_cut_where_samples_give_too_many_chunks(self):
        words = ["--batch", "67", "--slices", "1", "--recompute", "off"]
        self.train("whole", *words, "--loss-chunks", "1")
        self.train("cut", *words, "--loss-chunks", "4")
        for have, want in zip(self.losses("cut"), self.losses("whole")):
            self.assertAlmostEqual(have, want, delta=1e-3 * abs(want))
        whole, cut = (self.plan(*words, "--loss-chunks", n)["arena_bytes"] for n in "14")
        self.assertLess(cut, whole / 2)
        self.fails(2, "--loss-chunks is 3; the 67 rows of logits cannot be cut so. hint: "
                   "--loss-chunks 4", "plan", *GPT, *words, "--loss-chunks", "3")

    def test_a_gpu_cuts_logits_of_every_batch(self):
        for batch in "22", "64", "67":
            plan, = json.loads(self.ok("plan", "gpt2", "--batch", batch, "--precision", "bf16",
                                       "--on", "h200-sxm", "--json"))
            self.assertLess(self.chosen(plan)["bytes"], 0.65 * plan["candidates"][0]["bytes"])
            numbers = [c["loss_chunks"] for c in plan["candidates"] if c["slices"] == 1]
            self.assertEqual(len(numbers), len(set(numbers)), batch)

    # There memory is the run's alone.
    def test_a_gpu_cuts_logits_on_its_own(self):
        plan, = json.loads(self.ok("plan", "gpt2", "--batch", "8", "--precision", "bf16", "--on",
                                   "h200-sxm", "--json"))
        whole, chosen = plan["candidates"][0], self.chosen(plan)
        self.assertEqual(whole["loss_chunks"], 1)
        self.assertGreater(chosen["loss_chunks"], 1)
        self.assertLess(chosen["bytes"], 0.9 * whole["bytes"])
        self.assertLess(chosen["s"], 1.02 * whole["s"])

    def test_cut_steps_on_a_gpu_have_the_bits_of_every_launch_and_proven_bytes(self):
        small = [HEAD.replace("8192", "1024"), *GPT[1:], "--device", "cuda", "--slices", "1",
                 "--recompute", "off"]
        hashes = set()
        for launch in "graph", "single":
            words = ["--loss-chunks", "4", "--kernel-launch", launch]
            hashes.add(self.train(launch, *words, steps=2, model=small, env=FAKE_GPU))
            bytes_of = self.read_json(f"{launch}/summary.json")["device_bytes"]
            self.assertEqual(bytes_of["verdict"], "proven", bytes_of)
        self.assertEqual(len(hashes), 1)
        self.train("whole", "--loss-chunks", "1", steps=2, model=small, env=FAKE_GPU)
        for have, want in zip(self.losses("graph"), self.losses("whole")):
            self.assertAlmostEqual(have, want, delta=1e-3 * abs(want))


if __name__ == "__main__":
    unittest.main()
