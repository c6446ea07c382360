"""What a user types wrongly: the exact message, once, on stderr, and the documented exit code."""
import json
import subprocess
import unittest

from _ridge import RIDGE, RidgeTest, SMALL

HINT = "hint: ridge train --help"


class Usage(RidgeTest):
    def test_wrong_values_say_what_would_be_right(self):
        for words, message in [
            (["--batch", "0"], "--batch is 0; it must be a whole number of at least 1."),
            (["--batch", "-3"], "--batch is -3; it must be a whole number of at least 1."),
            (["--batch", "many"], "--batch is 'many'; it must be a whole number of at least 1."),
            (["--batch", "99999999999999999999"],
             "--batch is '99999999999999999999'; it must be a whole number of at least 1."),
            (["--threads", "0"], "--threads is 0; it must be a whole number from 1 to 1024."),
            (["--intra-op", "0"], "--intra-op is 0; it must be a whole number from 1 to 1024."),
            (["--lr", "-1"], "--lr is -1; it must be a number above 0."),
            (["--lr", "nan"], "--lr is 'nan'; it must be a number above 0."),
            (["--lr"], "--lr needs a value."),
            (["--momentum", "-0.5"], "--momentum is -0.5; it must be a number of at least 0."),
            (["--optimizer", "adm"],
             "--optimizer is 'adm'; it must be one of sgd, adam, adamw; did you mean 'adam'?"),
            (["--precision", "f33"],
             "--precision is 'f33'; it must be one of f32, bf16, f16, auto; did you mean 'f32'?"),
            (["--epochs", "2", "--steps", "3"], "--epochs and --steps can't be given together."),
            (["--bach", "4"], "no option '--bach'; did you mean '--batch'?"),
            (["--bach=4"], "no option '--bach'; did you mean '--batch'?"),
            (["more"], "'more' is one argument too many."),
            (["-q", "-v"], "--quiet and --verbose can't be given together."),
        ]:
            self.refused(2, f"{message} {HINT}", "train", *SMALL, *words)

    def test_threads_of_nodes_and_nodes_side_by_side_fit_the_team(self):
        for words, message in [
            (["--inter-op", "0"], "--inter-op is '0'; it must be auto or a number from 1"),
            (["--inter-op", "two"], "--inter-op is 'two'; it must be auto or a number from 1"),
            (["--intra-op", "2"], "--intra-op is 2; it must be at most --threads, 1"),
            (["--inter-op", "3"], "--inter-op is 3; it must be at most --threads, 1"),
            (["--threads", "8", "--intra-op", "2", "--inter-op", "4"],
             "--inter-op is 4; it must be at most --intra-op, 2, or that must be 1: the same "
             "threads do both"),
        ]:
            self.refused(2, message, "plan", "mlp", "--threads", "1", *words)

    def test_the_team_is_never_smaller_than_the_threads_that_kernels_are_made_for(self):
        limit = {"OMP_THREAD_LIMIT": "1"}
        message = ("--threads is 2; OMP_THREAD_LIMIT allows 1. hint: a larger OMP_THREAD_LIMIT")
        self.refused(2, message, "plan", "mlp", "--threads", "2", env=limit)
        self.refused(2, message[2:], "bench", "device", "--threads", "2", env=limit)
        step = ["bench", "step", "resnet18:image=32", "--batch", "2", "--steps", "2", "--conv",
                "direct", "--json"]
        said = {}
        for threads in (1, 2):
            self.ridge("plan", "mlp", "--threads", str(threads))  # the profile
            done = json.loads(self.ok(*step, "--threads", str(threads)))
            said[threads] = (done["threads"], done["loss"])
        for threads, env in [
            (None, limit),
            (2, {"OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "2"}),
            (2, {"OMP_MAX_ACTIVE_LEVELS": "0"}),
            (2, {"OMP_MAX_ACTIVE_LEVELS": "4", "OMP_NUM_THREADS": "3,3,3"}),
            (2, {"OMP_PROC_BIND": "spread"}),
            (2, {"OMP_NUM_THREADS": "1"}),
        ]:
            words = [] if threads is None else ["--threads", str(threads)]
            done = json.loads(self.ok(*step, *words, env=env))
            self.assertEqual((done["threads"], done["loss"]), said[threads or 1], env)

    def test_what_is_missing_is_named(self):
        self.refused(2, "train: MODEL is missing. hint: `ridge models` lists the built-in ones",
                     "train")
        self.refused(2, "train: --data is missing. hint: --data fashion-mnist", "train", "cnn")
        self.refused(2, "run: --outputs is missing. hint: --outputs out.npz", "run", "cnn",
                     "--inputs", "in.npz")

    def test_unknown_verbs_are_guessed(self):
        self.refused(2, "no command 'trian'; did you mean 'train'? hint: ridge --help", "trian")
        self.refused(2, "no command 'stp'; did you mean 'step'? hint: ridge bench --help", "bench",
                     "stp")

    def test_models_devices_and_precisions_that_are_not_there(self):
        self.refused(5, "no model 'cmn'; did you mean 'cnn'? (built in: mlp, cnn, resnet18, resnet50, unet, "
                     "gpt, bert, vit_ti, efficientnet_v2_s, mobilenet_v3_small, lstm). hint: "
                     "a graph in text form ends in .ridge", "train", "cmn", "--data", "synthetic")
        self.refused(6, "--device is 'cuda:1': this version of ridge runs on the CPU only. hint: "
                     "--device cpu", "train", *SMALL, "--device", "cuda:1")
        self.refused(2, "--device is 'tpu'; it must be cpu or cuda[:N]", "plan", "cnn", "--device",
                     "tpu")
        self.refused(5, "--precision f16: the CPU trains in f32 or bf16. hint: --precision auto",
                     "train", *SMALL, "--precision", "f16")
        self.refused(2, "--on names 'a100'; known devices: cpu (this machine)", "plan", "cnn",
                     "--on", "cpu,a100")
        self.fails(5, "net.onnx", "train", "net.onnx", "--data", "synthetic")

    def test_a_batch_larger_than_the_data_is_refused(self):
        self.refused(2, "--batch is 5000; synthetic has 4096 samples to train on. hint: "
                     "--batch 4096", "train", *SMALL, "--batch", "5000")

    def test_flags_win_over_the_environment(self):
        bad = {"RIDGE_BATCH": "0"}
        self.refused(2, "--batch is 0; it must be a whole number of at least 1 (from the "
                     "environment variable RIDGE_BATCH). hint: ridge plan --help", "plan", "mlp",
                     env=bad)
        self.ok("plan", "mlp", "--batch", "2", env=bad)
        self.assertIn("batch 7,", self.ok("plan", "mlp", env={"RIDGE_BATCH": "7"}))
        self.assertIn("batch 32,", self.ok("plan", "mlp", env={"RIDGE_BATCH": ""}))
        # The flag switches off what it excludes.
        self.ok("plan", "mlp", "--epochs", "2", env={"RIDGE_STEPS": "5"})

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([RIDGE, "models"], stdout=full, stderr=subprocess.PIPE,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: No space left on device", done.stderr)


class Help(RidgeTest):
    def test_every_verb_has_help_with_an_example_within_80_columns(self):
        for verb in ("", "train", "plan", "eval", "run", "opt", "compare", "bench", "bench step",
                     "bench run", "bench device", "models", "doctor", "completion"):
            text = self.ok(*verb.split(), "--help")
            self.assertIn(f"Usage: ridge {verb}".rstrip(), text)
            self.assertIn("\nExamples:\n  ", text)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 86, verb)

    def test_help_is_also_a_word_before_or_behind_a_verb(self):
        for verb in ("train", "plan", "bench", "bench step"):
            text = self.ok(*verb.split(), "--help")
            self.assertEqual(self.ok(*verb.split(), "help"), text)
            self.assertEqual(self.ok("help", *verb.split()), text)
        self.assertEqual(self.ok("help"), self.ok("--help"))

    def test_a_word_before_a_verb_is_not_taken_for_one_behind_it(self):
        self.refused(2, "no command 'quickly'. hint: ridge train --help", "quickly", "train")

    def test_ridge_alone_prints_help_and_version_is_one_line(self):
        self.assertEqual(self.ok(), self.ok("--help"))
        self.assertRegex(self.ok("--version"), r"^ridge \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
