"""Runs that go on or begin with another's weights: with what they were started with, alone in their
folder, and by the checkpoint that is asked for."""
import json
import os
import shutil
import unittest

from _ridge import RidgeTest, SMALL, read_npz, write_idx_folder, write_npz

GPT = ["gpt:layers=2,hidden=64,heads=4,context=128,vocab=100", "--batch", "48", "--threads", "1"]
BITS = "the result would not be bit-identical. hint: --allow-different\n"


def table(samples, kinds=3):
    return "".join(f"{i % 7},{i % 5},{i * i % 11},{i % kinds}\n" for i in range(1, samples + 1))


class Resume(RidgeTest):
    def peak(self, recompute):
        return json.loads(self.ok("plan", *GPT, "--recompute", recompute, "--slices", "1", "--json",
                                  "--fit", "4GiB"))["peak_bytes"]

    def test_a_run_that_had_to_recompute_goes_on_with_more_memory(self):
        kept, again = self.peak("off"), self.peak("all")
        self.assertLess(again, kept - (10 << 20))  # far more than the program itself may differ by
        words = ["train", *GPT, "--data", "synthetic", "--steps", "4", "--checkpoint-every", "2",
                 "-q", "--slices", "1"]
        tight = (kept + again) // 2
        for out in ("whole", "cut"):
            self.ok(*words, "--out", out, "--fit", str(tight))
        chosen = self.read_json("whole/options.json")["recompute"]
        self.assertNotIn(chosen, ("auto", "off"))
        self.cut("cut", 2)
        self.ok("train", "--resume", "cut", "--fit", "4GiB", "-q")
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")

    def test_what_was_asked_for_stays_as_it_was_asked(self):
        for words in (["--recompute", "off"], ["--recompute", "all"], ["--slices", "2"]):
            shutil.rmtree(self.path("run"), ignore_errors=True)
            self.train("--checkpoint-every", "10", *words)
            self.assertEqual(self.read_json("run/options.json")[words[0][2:]], words[1])
            self.cut("run", 10)
            self.ok("train", "--resume", "run", "-q", *words)
        self.refused(2, '--slices is "4"; the run was started with "2". hint: leave it out, or '
                     "start a new run with another --out", "train", "--resume", "run", "--slices",
                     "4")

    def test_other_data_are_noticed(self):
        self.write("t.csv", table(64))
        words = ["mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--batch", "16",
                 "--threads", "1", "-q"]
        self.ok("train", *words, "--epochs", "4", "--checkpoint-every", "2", "--out", "run")
        self.cut("run", 6)
        self.write("t.csv", table(128))
        self.refused(2, "run: resuming with csv:t.csv, which has 128 training samples; the run has "
                     "used 64: " + BITS.rstrip(), "train", "--resume", "run")
        self.write("t.csv", table(64).replace("1,1,1,1\n", "1,1,2,1\n", 1))
        self.refused(2, "run: resuming with csv:t.csv, whose training samples are others than the "
                     "run has used: " + BITS.rstrip(), "train", "--resume", "run")
        self.ok("train", "--resume", "run", "--allow-different", "-q")
        self.assertEqual(self.read_json("run/summary.json")["steps"], 16)

    def test_other_threads_are_refused_unless_allowed(self):
        self.train("--checkpoint-every", "10")
        self.cut("run", 10)
        self.refused(2, "run: resuming with 2 threads; the run has used 1: " + BITS.rstrip(),
                     "train", "--resume", "run", "--threads", "2")
        self.ok("train", "--resume", "run", "--threads", "2", "--allow-different", "-q")
        self.assertEqual(self.read_json("run/summary.json")["steps"], 20)

    def test_a_run_as_the_model_gives_its_weights_and_that_is_told(self):
        write_idx_folder(self.path("images"))
        words = ["--data", "idx:images", "--threads", "1", "--lr"]
        self.ok("train", "mlp:hidden=32", *words, "0.01", "--epochs", "30", "--out", "run", "-q")
        first = self.read_json("run/summary.json")
        done = self.ridge("train", "run", *words, "1e-9", "--steps", "2", "--out", "more")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("starts with the weights of run/checkpoints/step-60; optimizer and steps "
                      "begin anew\n", done.stderr)
        more = self.read_json("more/summary.json")
        self.assertEqual((more["model"], more["steps"]), (first["model"], 2))
        self.assertAlmostEqual(more["loss"], first["loss"], places=4)
        self.assertLess(more["loss"], 1.2)  # 2.3 from scratch
        self.refused(2, "train: run is a run, which has trained weights; --weights is for other "
                     "models. hint: leave it out", "train", "run", "--data", "synthetic",
                     "--weights", "w.safetensors")

    def test_one_command_serves_every_restart_of_a_run_that_begins_with_another(self):
        self.train("--checkpoint-every", "10")
        words = ["train", "run", "--checkpoint", "10", "--data", "synthetic", "--threads", "1",
                 "--steps", "6", "--checkpoint-every", "2", "--out", "more", "--resume", "-q"]
        self.ok(*words)
        whole = self.read_json("more/summary.json")["parameters_sha256"]
        self.assertEqual(self.read_json("more/options.json")["start"], "run/checkpoints/step-10")
        self.cut("more", 4)
        self.ok(*words)
        self.assertEqual(self.read_json("more/summary.json")["parameters_sha256"], whole)
        self.refused(2, "--checkpoint says what a new run starts from; --resume goes on from the "
                     "newest. hint: ridge train RUN --checkpoint N", "train", "--resume", "more",
                     "--checkpoint", "2")

    def test_a_run_of_an_onnx_file_gives_its_weights_and_its_loss(self):
        self.ok("export", "mlp:hidden=8", "--to", "onnx", "--out", "net.onnx", "--threads", "1")
        words = ["--data", "synthetic", "--threads", "1", "--steps", "5", "--checkpoint-every", "2",
                 "-q"]
        self.ok("train", "net.onnx", "--loss", "cross_entropy:logits", "--freeze", "0.*", *words,
                "--out", "first")
        os.remove(self.path("net.onnx"))
        self.ok("train", "first", *words, "--out", "second")
        options = self.read_json("second/options.json")
        self.assertEqual((options["loss"], options["freeze"]), ("cross_entropy:logits", ["0.*"]))
        shutil.rmtree(self.path("first"))
        hashed = self.read_json("second/summary.json")["parameters_sha256"]
        self.cut("second", 4)
        self.ok("train", "--resume", "second", "-q")
        self.assertEqual(self.read_json("second/summary.json")["parameters_sha256"], hashed)


class Further(RidgeTest):
    """--resume with another number of epochs or steps."""

    def setUp(self):
        super().setUp()
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        self.words = ["train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv",
                      "--validation", "csv:v.csv", "--batch", "16", "--threads", "1"]

    def sha(self, out):
        return self.read_json(f"{out}/summary.json")["parameters_sha256"]

    def test_a_finished_run_goes_on_with_the_bits_of_a_longer_one(self):
        self.ok(*self.words, "--epochs", "10", "--out", "whole", "-q")
        self.ok(*self.words, "--epochs", "5", "--out", "run", "-q")
        self.assertNotEqual(self.sha("run"), self.sha("whole"))
        done = self.ridge("train", "--resume", "run", "--epochs", "10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("run: resuming at step 15 of 30\n"
                      "the run was planned for 15 steps; it goes on to 30\n", done.stderr)
        self.assertNotIn("schedule", done.stderr)
        self.assertEqual(self.sha("run"), self.sha("whole"))
        self.assertRegex(self.ok("compare", "whole", "run"), "^equal: ")

    def test_a_schedule_is_that_of_the_new_end_and_says_so(self):
        self.ok(*self.words, "--schedule", "cosine", "--steps", "10", "--out", "run", "-q")
        done = self.ridge("train", "--resume", "run", "--steps", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the schedule is that of 20 steps now: the learning rate goes on at 0.0005 "
                      "(it was 0 here)\n", done.stderr)

    def test_a_finished_run_is_told_so_and_stays(self):
        self.ok(*self.words, "--epochs", "2", "--out", "run", "-q")
        before = os.stat(self.path("run/summary.json")).st_mtime_ns
        for words in ([], ["--epochs", "2"]):
            done = self.ridge("train", "--resume", "run", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (
                0, "", "ridge: run is finished: 2 epochs, 6 steps. hint: --resume run --epochs N "
                "goes on to N\n"))
        self.assertEqual(self.ridge("train", "--resume", "run", "-q").stderr, "")
        self.assertEqual(os.stat(self.path("run/summary.json")).st_mtime_ns, before)

    def test_fewer_than_are_done_are_a_usage_error(self):
        self.ok(*self.words, "--epochs", "3", "--out", "run", "-q")
        self.refused(2, "--epochs is 2; run has come to epoch 3. hint: a larger number goes on",
                     "train", "--resume", "run", "--epochs", "2")
        self.refused(2, "--steps is 8; run has done 9. hint: a larger number goes on", "train",
                     "--resume", "run", "--steps", "8")


class Alone(RidgeTest):
    def running(self, *words):
        process = self.start("train", *SMALL, "--epochs", "100000", "--progress", "plain", "--out",
                             "run", *words)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        for line in process.stderr:
            if "step" in line and "loss" in line:
                return process
        self.fail("the run did not start")

    def files(self):
        """Without those that a running process still makes."""
        own = ("status.json", "layers.jsonl", "metrics.jsonl")
        return sorted(name for name in os.listdir(self.path("run")) if not name.startswith(own))

    def test_a_second_process_is_refused_by_the_number_of_the_first(self):
        process = self.running("--checkpoint-every", "50")
        before = self.files()
        self.refused(1, f"run: process {process.pid} is training in this folder. hint: wait until "
                     "it has ended, or stop it: its checkpoint is kept", "train", "--resume", "run")
        self.assertIsNone(process.poll())
        self.assertEqual(self.files(), before)
        process.kill()
        process.wait()
        resumed = self.start("train", "--resume", "run", "--progress", "plain")
        self.addCleanup(lambda: (resumed.kill(), resumed.communicate()))
        self.assertTrue(any("resuming at step" in line or "no checkpoint yet" in line
                            for line in resumed.stderr))

    def test_of_two_that_start_together_one_trains(self):
        words = ["train", *SMALL, "--steps", "30", "-q", "--out", "both"]
        processes = [self.start(*words) for _ in range(4)]
        codes = sorted(p.wait(timeout=120) for p in processes)
        errors = [p.communicate()[1] for p in processes]
        self.assertEqual(codes[0], 0, errors)
        self.assertTrue(all(code in (1, 2) for code in codes[1:]), errors)
        for process, error in zip(processes, errors):
            if process.returncode != 0:
                self.assertRegex(error, "^ridge: both: (process \\d+ is training|another process is"
                                 " training|holds a run already)")
        with open(self.path("both/metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual([json.loads(line)["step"] for line in file], [30])


class Which(RidgeTest):
    """--checkpoint last|best|N|DIR."""

    def setUp(self):
        super().setUp()
        write_idx_folder(self.path("images"), samples=64)
        self.data = ["--data", "idx:images"]
        self.ok("train", "mlp:hidden=8", *self.data, "--validation", "0.25", "--epochs", "4",
                "--batch", "16", "--keep", "9", "--threads", "1", "--out", "run", "-q")

    def test_every_verb_reads_the_checkpoint_that_is_asked_for(self):
        best = int(os.readlink(self.path("run/checkpoints/best"))[5:])
        steps = {}
        folder = "run/checkpoints/step-9"
        for which in ("last", "newest", "best", "6", folder):
            result = json.loads(self.ok("eval", "run", *self.data, "--checkpoint", which, "--json"))
            steps[which] = result["step"]
        self.assertEqual(steps, {"last": 12, "newest": 12, "best": best, "6": 6, folder: 9})
        write_npz(self.path("in.npz"), {"image": ([1, 784], [i / 784 for i in range(784)])})
        logits = {}
        for which in ("newest", "6"):
            self.ok("run", "run", "--inputs", "in.npz", "--outputs", "out.npz", "--checkpoint",
                    which)
            logits[which] = read_npz(self.path("out.npz"))["logits"]
            self.ok("export", "run", "--to", "safetensors", "--out", which, "--checkpoint", which)
            with open(self.path(which), "rb") as file:
                logits[which + " file"] = file.read()
        self.assertNotEqual(logits["newest"], logits["6"])
        self.assertNotEqual(logits["newest file"], logits["6 file"])
        done = self.ridge("train", "run", *self.data, "--steps", "1", "--out", "more", "--threads",
                          "1", "--checkpoint", "3")
        self.assertIn("starts with the weights of run/checkpoints/step-3;", done.stderr)

    def test_one_that_is_not_there_is_named_with_those_that_are(self):
        best = os.readlink(self.path("run/checkpoints/best"))[5:]
        there = ", ".join(n + " (best)" * (n == best) for n in ("3", "6", "9", "12"))
        for words in (["eval", "run", *self.data], ["export", "run", "--to", "onnx", "--out", "x"]):
            self.refused(4, "run/checkpoints: no checkpoint '7'; there are " + there, *words,
                         "--checkpoint", "7")
            self.refused(2, "--checkpoint is 'first'; it must be last, best, the number of a step, or "
                         "a checkpoint's folder; run has " + there, *words, "--checkpoint",
                         "first")
        self.refused(2, "--checkpoint is for a run; mlp is none. hint: leave it out", "eval", "mlp",
                     *self.data, "--checkpoint", "best")
        os.remove(self.path("run/checkpoints/best"))
        self.refused(4, "run/checkpoints: no checkpoint 'best'; there are 3, 6, 9, 12", "eval",
                     "run", *self.data, "--checkpoint", "best")

    def test_a_damaged_one_is_not_replaced_by_another(self):
        with open(self.path("run/checkpoints/step-6/state.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        self.fails(4, "step-6/state.json", "eval", "run", *self.data, "--checkpoint", "6")

    def test_what_is_of_the_validation_set_is_called_so(self):
        summary = self.read_json("run/summary.json")
        self.assertEqual(summary["evaluated_on"], "test")
        self.assertIsNotNone(summary["test_accuracy"])
        self.assertIsNotNone(summary["validation_accuracy"])
        self.write("t.csv", table(64))
        done = self.ridge("train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv",
                          "--validation", "0.25", "--threads", "1", "--out", "table")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nvalidation accuracy [0-9.]+ %, loss ")
        self.assertNotIn("test accuracy", done.stdout + done.stderr)
        summary = self.read_json("table/summary.json")
        self.assertEqual((summary["evaluated_on"], summary["test_accuracy"]), ("validation", None))


class Csv(RidgeTest):
    def test_a_header_of_numbers_is_told_even_to_the_quiet(self):
        self.write("t.csv", ",0,1,2,3\n" + "".join(
            f"{i},{line}\n" for i, line in enumerate(table(32).split())))
        words = ["mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--threads", "1"]
        told = ("ridge: warning: csv:t.csv: column 1 has no name: it is taken for row labels and "
                "left out. hint: give it a name if it is data\n")
        for verb in (["train", *words, "--out", "run", "-q"], ["eval", "run", *words[1:3]],
                     ["plan", *words]):
            done = self.ridge(*verb)
            self.assertEqual((done.returncode, done.stderr.count(told)), (0, 1), done.stderr)
        self.write("t.csv", "0,1,2,3\n" + table(32))
        done = self.ridge("train", *words, "--out", "other", "-q")
        self.assertEqual(done.stderr, "ridge: warning: csv:t.csv: the first line, 0,1,2,3, numbers "
                         "the columns: it is read as their names, not as a sample. hint: if it is "
                         "one, add ,header=no\n"
                         "ridge: warning: csv:t.csv: the label is the last column, '3'. hint: "
                         "csv:t.csv,label=NAME names another\n")


if __name__ == "__main__":
    unittest.main()
