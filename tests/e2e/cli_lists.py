"""ridge runs, ridge watch, curves, early stopping: what stands in run folders, seen from outside."""
import json
import os
import shutil
import subprocess
import time
import unittest

from _ridge import RIDGE, SMALL, RidgeTest, environment

RUN_KEYS = {"run", "state", "reason", "process", "model", "data", "epoch", "epochs", "step", "steps",
            "loss", "accuracy", "evaluated_on", "stopped_early", "step_s", "started_at"}


def table(samples, kinds=3):
    return "".join(f"{i % 7},{i % 5},{i * i % 11},{i % kinds}\n" for i in range(1, samples + 1))


class Runs(RidgeTest):
    def runs(self, *words):
        return json.loads(self.ok("runs", *words, "--json"))

    def age(self, run, seconds):
        at = time.time() - seconds
        os.utime(self.path(f"{run}/options.json"), (at, at))

    def test_runs_are_listed_newest_first_with_what_they_reached(self):
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        self.train(out="runs/mlp-1")
        self.ok("train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--validation",
                "csv:v.csv", "--batch", "16", "--epochs", "2", "--threads", "1", "--out", "runs/table",
                "-q")
        self.age("runs/mlp-1", 7200)
        os.makedirs(self.path("runs/notes"))
        self.write("runs/notes/a.txt", "")
        found = self.runs()
        self.assertEqual([run["run"] for run in found], ["runs/table", "runs/mlp-1"])
        summary = self.read_json("runs/table/summary.json")
        for run in found:
            self.assertEqual(set(run), RUN_KEYS)
        newest = found[0]
        self.assertEqual((newest["state"], newest["epoch"], newest["epochs"], newest["step"],
                          newest["steps"], newest["evaluated_on"]),
                         ("finished", 2, 2, 6, None, "validation"))
        self.assertEqual((newest["loss"], newest["accuracy"], newest["step_s"]),
                         (summary["loss"], summary["validation_accuracy"],
                          summary["measured"]["step_s"]))
        self.assertEqual((found[1]["step"], found[1]["steps"], found[1]["epochs"]), (20, 20, None))
        text = self.ok("runs").splitlines()
        self.assertEqual(text[0].split(), ["run", "model", "data", "epoch", "step", "state", "loss",
                                           "accuracy", "step", "time", "started"])
        self.assertRegex(text[1], r"^runs/table +mlp:hidden=8,inputs=3,classes=3 +csv:t\.csv +2/2 +6 "
                         r"+finished +\d\.\d{4} +\d+\.\d % +\S+ [mu]s +\d+ s ago$")
        self.assertRegex(text[2], r"^runs/mlp-1 +mlp:hidden=32 +synthetic .* 20/20 +finished .* 2 h ago$")

    def test_filters_and_single_runs(self):
        self.train(out="runs/a")
        shutil.copytree(self.path("runs/a"), self.path("mine/b"))
        self.assertEqual(len(self.runs("--filter", "mlp")), 1)
        self.assertEqual(len(self.runs("--filter", "synth")), 1)
        self.assertEqual(self.runs("--filter", "cnn"), [])
        self.assertEqual([r["run"] for r in self.runs("mine")], ["mine/b"])
        self.assertEqual([r["run"] for r in self.runs("mine/b")], ["mine/b"])
        self.refused(4, "nowhere: cannot be read as a folder: No such file or directory", "runs",
                     "nowhere")
        self.refused(0, "no such runs in runs. hint: ridge train makes them under runs/", "runs",
                     "--filter", "cnn")

    def test_without_runs_there_is_an_empty_list(self):
        self.assertEqual(self.runs(), [])
        self.refused(0, "no runs in runs. hint: ridge train makes them under runs/", "runs")

    def test_broken_folders_are_listed_with_the_reason(self):
        for name in ("good", "no-options", "no-json", "no-summary", "hostile"):
            self.train(out=f"runs/{name}")
        os.remove(self.path("runs/no-options/options.json"))
        self.write("runs/no-json/options.json", "{")
        self.write("runs/no-summary/summary.json", "[]")
        self.write("runs/hostile/options.json", b"\x1b[2J\xff" + b"[" * 100000)
        self.write("runs/good/metrics.jsonl", b"\x00\xff\n{}\n[1\n{\"step\":1e99}\n")
        found = {run["run"][5:]: run for run in self.runs()}
        self.assertEqual({name: run["state"] for name, run in found.items()},
                         {"good": "finished", "no-options": "broken", "no-json": "broken",
                          "no-summary": "broken", "hostile": "broken"})
        self.assertEqual(found["no-options"]["reason"], "has no options.json")
        self.assertIn("options.json: not the options of a run: ", found["no-json"]["reason"])
        self.assertIn("summary.json: not the summary of a run: ", found["no-summary"]["reason"])
        text = self.ok("runs", "--plot")
        self.assertIn("\nruns/no-options: has no options.json\n", text)
        self.assertNotIn("\x1b", text)

    def test_states_follow_the_process(self):
        process = self.start("train", *SMALL, "--epochs", "100000", "--progress", "plain", "--out",
                             "runs/a", "--checkpoint-every", "20")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertTrue(any("loss" in line for line in process.stderr))
        found = self.runs()[0]
        self.assertEqual((found["state"], found["process"]), ("running", process.pid))
        process.kill()
        process.wait()
        self.assertEqual(self.runs()[0]["state"], "interrupted")

    def test_curves_are_drawn_in_plain_marks_and_in_coloured_dots(self):
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        self.ok("train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--validation",
                "csv:v.csv", "--batch", "16", "--epochs", "9", "--threads", "1", "--out", "runs/a", "-q")
        text = self.ok("runs", "--plot")
        for part in ("\n  loss\n", "\n  accuracy, %\n", ". training  o validation\n", "step 3 "):
            self.assertIn(part, text)
        self.assertNotIn("\x1b", text)
        coloured = self.ok("runs", "runs/a", "--plot", "--color", "always")
        self.assertIn("\x1b[36m", coloured)
        self.assertTrue(any("\u2800" <= c <= "\u28ff" for c in coloured))
        self.fails(2, "--plot and --json can't be given together", "runs", "--plot", "--json")


class Compare(RidgeTest):
    def test_curves_of_both_come_behind_the_difference(self):
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        for out, seed in (("a", "1"), ("b", "2")):
            self.ok("train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv",
                    "--validation", "csv:v.csv", "--batch", "16", "--epochs", "4", "--seed", seed,
                    "--threads", "1", "--out", out, "-q")
        plain = self.ridge("compare", "a", "b")
        drawn = self.ridge("compare", "a", "b", "--plot")
        self.assertEqual((plain.returncode, drawn.returncode), (1, 1))
        self.assertTrue(drawn.stdout.startswith(plain.stdout + "\n  validation loss\n"))
        self.assertIn("\n  validation accuracy, %\n", drawn.stdout)
        self.assertIn("\n  . a  o b\n", drawn.stdout)
        self.assertIn("training loss", self.plot_without_evaluations())

    def plot_without_evaluations(self):
        self.train(out="c")
        shutil.copytree(self.path("c"), self.path("d"))
        return self.ok("compare", "c", "d", "--plot")


class Watch(RidgeTest):
    def test_a_run_is_followed_until_it_ends(self):
        train = self.start("train", *SMALL, "--steps", "2000", "--eval-every", "500", "--out", "run")
        self.addCleanup(lambda: (train.kill(), train.communicate()))
        deadline = time.monotonic() + 60
        while not os.path.exists(self.path("run/options.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        watch = self.ridge("watch", "run")
        self.assertEqual((watch.returncode, watch.stderr), (0, ""))
        lines = watch.stdout.splitlines()
        self.assertRegex(lines[-2], r"^epoch \d+  step 2000/2000  loss \d\.\d{4}  accuracy ")
        self.assertRegex(lines[-1], r"^loss \S+ after 2000 steps in ")
        self.assertTrue(os.path.exists(self.path("run/summary.json")))

    def test_json_passes_the_lines_through(self):
        self.train(steps=100)
        with open(self.path("run/metrics.jsonl"), encoding="utf-8") as file:
            self.assertEqual(self.ok("watch", "run", "--json"), file.read())

    def test_of_a_finished_run_the_end_is_shown(self):
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        self.ok("train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--validation",
                "csv:v.csv", "--batch", "16", "--epochs", "9", "--threads", "1", "--out", "runs/a", "-q")
        lines = self.ok("watch").splitlines()
        self.assertEqual(len(lines), 11)
        self.assertRegex(lines[-3], r"^epoch 9/9  step 27/27  loss ")
        self.assertRegex(lines[-2], r"^epoch 9, step 27: validation accuracy \S+ %, loss \d\.\d{4}$")
        self.assertRegex(lines[-1], r"^validation accuracy \S+ %, loss \S+ after 27 steps in ")

    def test_one_that_stopped_says_how_to_go_on(self):
        self.train("--checkpoint-every", "5")
        os.remove(self.path("run/summary.json"))
        done = self.ridge("watch", "run")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "ridge: run: stopped after step 20; no process trains here. hint: ridge "
                          "train --resume run\n"))
        self.refused(4, "nowhere: holds no run: there is no options.json", "watch", "nowhere")
        self.refused(4, "no run under runs/. hint: name the run's folder", "watch")

    def test_a_reader_that_has_enough_ends_it(self):
        process = self.start("train", *SMALL, "--epochs", "100000", "--progress", "plain", "--out",
                             "run")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertTrue(any("loss" in line for line in process.stderr))
        with subprocess.Popen([RIDGE, "watch", "run", "--json"], cwd=self.folder, text=True,
                              env=environment(), stdout=subprocess.PIPE) as watch:
            self.assertIn('"step":', watch.stdout.readline())
            watch.stdout.close()
            self.assertNotEqual(watch.wait(timeout=60), 0)


class EarlyStop(RidgeTest):
    def test_it_is_told_and_kept(self):
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        words = ["train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--batch", "16",
                 "--threads", "1", "--patience", "2"]
        self.refused(2, "--patience needs validation data. hint: --validation 0.1", *words)
        done = self.ridge(*words, "--validation", "csv:v.csv", "--lr", "1e-30", "--optimizer", "sgd",
                          "--epochs", "50", "--out", "runs/a")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nstopped early: validation accuracy was best at step 3, \S+ %; "
                         r"no better one in 2 evaluations\nrun folder runs/a\n$")
        self.assertEqual(self.read_json("runs/a/summary.json")["stopped_early"]["evaluations"], 2)
        self.assertTrue(json.loads(self.ok("runs", "--json"))[0]["stopped_early"])
        self.assertIn("\nstopped early: ", self.ok("watch"))


class CheckpointTime(RidgeTest):
    def test_a_time_is_taken_and_stored(self):
        self.train("--checkpoint-every", "10min")
        self.assertEqual(self.read_json("run/options.json")["checkpoint-every"], "600s")
        self.assertEqual(sorted(os.listdir(self.path("run/checkpoints"))), ["best", "step-20"])
        self.refused(2, "--checkpoint-every is '10m'; it must be a number of steps from 1, or a time: "
                     "30s, 10min, 2h. hint: ridge train --help", "train", *SMALL,
                     "--checkpoint-every", "10m")
        self.ok("train", *SMALL, "--checkpoint-every", "10min", "--save-config", "run.toml")
        with open(self.path("run.toml"), encoding="utf-8") as file:
            self.assertIn('\ncheckpoint-every = "600s"\n', file.read())
        self.ok("train", "--config", "run.toml", "--steps", "5", "--out", "other", "-q")
        self.assertEqual(self.read_json("other/options.json")["checkpoint-every"], "600s")


class Sweep(RidgeTest):
    def test_a_run_for_each_combination_and_a_table(self):
        self.write("t.csv", table(48))
        self.write("v.csv", table(16))
        words = ["train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--validation",
                 "csv:v.csv", "--threads", "1", "--epochs", "2", "--batch", "8"]
        done = self.ridge(*words, "--sweep", "lr=1e-3,3e-4", "--sweep", "batch=8,16", "-q",
                          env={"RIDGE_SEED": "5"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()[1:]
        self.assertEqual(lines[0].split(), ["lr", "batch", "loss", "accuracy", "step", "time",
                                            "state", "run"])
        names = ["lr=1e-3,batch=8", "lr=1e-3,batch=16", "lr=3e-4,batch=8", "lr=3e-4,batch=16"]
        self.assertEqual([line.split()[-1] for line in lines[1:]],
                         [f"runs/mlp-sweep-1/{name}" for name in names])
        options = self.read_json("runs/mlp-sweep-1/lr=3e-4,batch=16/options.json")
        self.assertEqual((options["lr"], options["batch"], options["epochs"], options["seed"]),
                         (3e-4, 16, 2, 5))
        self.ok(*words, "--lr", "3e-4", "--out", "alone", "--seed", "5", "-q")
        self.assertEqual(self.read_json("alone/summary.json")["parameters_sha256"],
                         self.read_json("runs/mlp-sweep-1/lr=3e-4,batch=8/summary.json")
                         ["parameters_sha256"])
        self.assertEqual(len(json.loads(self.ok("runs", "runs/mlp-sweep-1", "--json"))), 4)

    def test_one_that_fails_is_told_and_the_others_run(self):
        self.write("t.csv", table(64))
        words = ["train", "mlp:hidden=8,inputs=3,classes=3", "--data", "csv:t.csv", "--threads", "1",
                 "--optimizer", "sgd", "--out", "s", "-q", "--sweep"]
        done = self.ridge(*words, "lr=1e38,1e-3")
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[2], r"^1e38 .* failed +s/lr=1e38$")
        self.assertRegex(lines[3], r"^1e-3 .* finished +s/lr=1e-3$")
        done = self.ridge(*words, "batch=10000,8", "--out", "t")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--batch is 10000;", done.stderr)
        self.assertFalse(os.path.exists(self.path("t/batch=8")))

    def test_a_stop_ends_it(self):
        process = self.start("train", *SMALL, "--steps", "10000000", "--checkpoint-every", "100",
                             "--progress", "plain", "--out", "s", "--sweep", "lr=1e-3,3e-4")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertTrue(any("loss" in line for line in process.stderr))
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75)
        self.assertEqual(os.listdir(self.path("s")), ["lr=1e-3"])

    def test_wrong_words_are_refused_before_the_first_run(self):
        words = ["train", *SMALL, "--sweep"]
        self.refused(2, "--sweep is 'lr'; it must be OPTION=VALUE,VALUE: lr=1e-3,3e-4", *words, "lr")
        self.refused(2, "--sweep names 'lrr'; that is no option of model, data or training; did you "
                     "mean 'lr'?", *words, "lrr=1")
        self.refused(2, "--lr is 'x'; it must be a number above 0 (in --sweep)", *words, "lr=1,x")
        self.refused(2, "--sweep gives lr the value 1 twice", *words, "lr=1,1")
        self.fails(2, "can't be given together", *words, "lr=1", "--resume")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
