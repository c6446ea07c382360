"""Runs that are killed, stopped, or cannot write: nothing is lost, and the exit code says so."""
import os
import re
import resource
import shutil
import signal
import stat
import time
import unittest

from _ridge import NOT_HERE, RidgeTest, SMALL, write_idx_folder

STEPS = ["--steps", "1200", "--checkpoint-every", "25", "-q"]


class StopTest(RidgeTest):
    def resumed_at(self, folder, **options):
        """The step at which a resumed run goes on; it is killed as soon as it said so."""
        process = self.start("train", "--resume", folder, "--progress", "plain", **options)
        told = ""
        for line in process.stderr:
            told += line
            if found := re.search(f"{folder}: resuming at step (\\d+) of ", line):
                process.kill()
                process.communicate()
                return int(found[1])
        process.communicate()
        self.fail(told)


class Killed(StopTest):
    def test_a_run_killed_at_random_points_ends_with_the_same_bits(self):
        self.ok("train", *SMALL, *STEPS, "--out", "whole")
        whole = self.read_json("whole/summary.json")
        kills, seed = self.train_killed(*SMALL, *STEPS, kills=8, seconds=(0.05, 0.5))
        cut = self.read_json("cut/summary.json")
        self.assertEqual(cut["parameters_sha256"], whole["parameters_sha256"],
                         f"{kills} kills, seed {seed}")
        self.assertEqual(cut["steps"], whole["steps"])
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")


class Stopped(StopTest):
    def running(self, *words, **options):
        process = self.start("train", *SMALL, "--epochs", "100000", "--progress", "plain", "--out",
                             "run", *words, **options)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        for line in process.stderr:  # the first steps are done
            if "step" in line and "loss" in line:
                return process
        self.fail("the run did not start")

    def test_every_signal_that_asks_writes_a_checkpoint_and_leaves_with_75(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1,
                       signal.SIGUSR2, signal.SIGXCPU):
            process = self.running()
            process.send_signal(number)
            _, err = process.communicate(timeout=20)
            self.assertEqual(process.returncode, 75, err)
            self.assertRegex(err, r"ridge: stopped after step \d+; go on with --resume run")
            step = int(re.search(r"after step (\d+)", err)[1])
            self.assertIn(f"step-{step}", os.listdir(self.path("run/checkpoints")))
            self.assertFalse(os.path.exists(self.path("run/summary.json")))
            self.assertEqual(self.resumed_at("run"), step)
            shutil.rmtree(self.path("run"))

    def test_a_signal_that_was_ignored_stays_ignored(self):
        """As nohup does it."""
        process = self.running(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertTrue(any("loss" in line for line in process.stderr))  # it goes on
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 75)

    def test_an_evaluation_is_stopped_and_made_by_the_resumed_run(self):
        """The test set is ten thousand times the training set: its evaluation is what is going on
        when the checkpoint before it is told."""
        write_idx_folder(self.path("images"), samples=32, test_samples=200_000, side=4)
        words = ["train", "mlp:hidden=8,inputs=16,classes=4", "--data", "idx:images", "--batch",
                 "8", "--epochs", "2", "--threads", "1", "-v", "--progress", "plain"]
        process = self.start(*words, "--out", "run")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertTrue(any("checkpoint run/checkpoints/step-4" in line for line in process.stderr))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, err)
        self.assertIn("stopped after step 4; go on with --resume run", err)
        self.assertNotIn("test accuracy", err)
        done = self.ridge("train", "--resume", "run", "--progress", "plain")
        self.assertRegex(done.stderr, "epoch 1, step 4: test accuracy (.|\n)*epoch 2, step 8: test ")
        self.ok(*words, "--out", "whole")
        self.assertRegex(self.ok("compare", "whole", "run"), "^equal: ")

    def test_an_accumulated_update_is_given_up(self):
        """One update of this run takes minutes; nothing but the optimizer changes what is saved."""
        process = self.start("train", "gpt:layers=2,hidden=128,heads=4,context=128,vocab=256",
                             "--data", "synthetic", "--batch", "1", "--accumulate", "4096",
                             "--threads", "1", "--progress", "plain", "--out", "run")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertTrue(any("1 steps, 1 an epoch" in line for line in process.stderr))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 75, err)
        self.assertIn("stopped after step 0; go on with --resume run", err)
        self.assertEqual(self.resumed_at("run"), 0)

    def test_while_data_load_it_stops_at_once(self):
        self.write("t.csv", "1,2,0\n" * 4_000_000)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
            process = self.start("train", "mlp:inputs=2,classes=1", "--data", "csv:t.csv",
                                 "--threads", "1", "--out", "run")
            self.addCleanup(lambda p=process: (p.kill(), p.communicate()))
            until = time.monotonic() + 60
            while not self.reads(process, "t.csv") and time.monotonic() < until:
                time.sleep(0.001)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err),
                             (code, "ridge: stopped before the first step\n"))
            self.assertFalse(os.path.exists(self.path("run")))

    def reads(self, process, name):
        folder = f"/proc/{process.pid}/fd"
        try:
            return any(os.readlink(f"{folder}/{fd}") == self.path(name)
                       for fd in os.listdir(folder))
        except FileNotFoundError:  # a file that was closed meanwhile
            return False

    def test_a_second_sigint_stops_at_once_with_130(self):
        """A step of this model takes longer than the two signals."""
        process = self.start("train", "resnet18:image=160", "--batch", "16", "--data", "synthetic",
                             "--threads", "1", "--progress", "plain", "--out", "run")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertTrue(any("loss" in line for line in process.stderr))
        process.send_signal(signal.SIGINT)
        while self.pending(process, signal.SIGINT):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(os.path.exists(self.path("run/checkpoints/best")))

    def pending(self, process, number):
        """Whether the signal was sent and is not delivered: a second one would be lost."""
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            masks = re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)$", file.read(), re.MULTILINE)
        return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)

    def test_a_conflicting_option_is_refused_and_the_environment_is_not_asked(self):
        process = self.running()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 75)
        self.refused(2, "--batch is 7; the run was started with 32. hint: leave it out, or start a "
                     "new run with another --out", "train", "--resume", "run", "--batch", "7")
        self.assertGreater(self.resumed_at("run", env={"RIDGE_BATCH": "7"}), 0)

    def test_resuming_what_is_no_run(self):
        self.fails(4, "none", "train", "--resume", "none")
        self.fails(4, "runs", "train", "--resume")


class Disk(StopTest):
    def test_a_full_disk_warns_each_time_and_fails_at_the_end(self):
        """A file size limit below a checkpoint's size stands for the full disk."""
        limit = 40_000
        done = self.ridge("train", *SMALL, "--steps", "40", "--checkpoint-every", "10", "--out",
                          "run", preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertGreaterEqual(done.stderr.count("ridge: warning: "), 3, done.stderr)
        self.assertIn("the last checkpoint could not be written", done.stderr)
        self.assertEqual(os.listdir(self.path("run/checkpoints")), [])
        self.assertFalse(os.path.exists(self.path("run/summary.json")))

    def test_the_older_checkpoint_survives_a_full_disk(self):
        process = self.start("train", *SMALL, "--steps", "100000", "--checkpoint-every", "20",
                             "--out", "run", "-q")
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        until = time.monotonic() + 30
        while not self.checkpoints() and time.monotonic() < until:
            time.sleep(0.01)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (40_000, 40_000))
        self.assertIn("no checkpoint: ", process.stderr.readline())  # from here on none is kept
        kept = self.checkpoints()
        self.assertTrue(kept)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1, err)
        self.assertEqual(self.checkpoints(), kept)
        last = max(int(name.split("-")[1]) for name in kept)
        self.assertEqual(self.resumed_at("run"), last)

    def checkpoints(self):
        try:
            names = os.listdir(self.path("run/checkpoints"))
        except FileNotFoundError:
            return []
        return sorted(n for n in names if re.fullmatch(r"step-\d+", n))

    def test_a_folder_that_cannot_be_made_is_an_error_before_the_first_step(self):
        self.write("file", "in the way")
        self.fails(1, "file/run", "train", *SMALL, "--steps", "5", "--out", "file/run", "-q")

    @unittest.skipIf(os.geteuid() == 0, NOT_HERE + "root may write everywhere")
    def test_a_read_only_folder(self):
        os.mkdir(self.path("locked"))
        os.chmod(self.path("locked"), stat.S_IRUSR | stat.S_IXUSR)
        self.fails(1, "locked/run", "train", *SMALL, "--steps", "5", "--out", "locked/run", "-q")

    def test_damaged_checkpoints_fall_back_to_the_last_good_one(self):
        self.train("--checkpoint-every", "10", "--keep", "3", steps=30)
        os.remove(self.path("run/summary.json"))
        newest = self.path("run/checkpoints/step-30/parameters.safetensors")
        with open(newest, "r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.write(b"\xff\xff\xff")
        done = self.ridge("train", "--resume", "run", "--progress", "plain")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: ", done.stderr)
        self.assertIn("step-30", done.stderr)
        self.assertIn("resuming at step 20 of 30", done.stderr)
        for step in (10, 20, 30):
            path = self.path(f"run/checkpoints/step-{step}/state.json")
            if os.path.exists(path):
                with open(path, "w") as file:
                    file.write("{}")
        os.remove(self.path("run/summary.json"))
        self.fails(4, "state.json", "train", "--resume", "run", "-q")


class NotFinite(RidgeTest):
    def test_a_nan_loss_stops_at_the_step_and_names_a_node(self):
        done = self.ridge("train", *SMALL, "--steps", "50", "--lr", "1e30", "--optimizer", "sgd",
                          "--out", "run", "-q")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^ridge: step \d+: loss is -?(nan|inf); first non-finite "
                                      r"value: .*'.+'")
        self.assertFalse(os.path.exists(self.path("run/summary.json")))


if __name__ == "__main__":
    unittest.main()
