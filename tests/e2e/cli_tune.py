"""`ridge bench device --tune`, and what `--kernels tuned` makes of it, on the CPU and on a GPU."""
import glob
import json
import os
import shutil
import unittest

from _ridge import FAKE_GPU, NOT_HERE, RidgeTest, SMALL, environment


class Tune(RidgeTest):
    def setUp(self):
        """A cache of its own, with the machine's profiles."""
        super().setUp()
        self.env = {"XDG_CACHE_HOME": self.path("cache")}
        shutil.copytree(os.path.join(environment()["XDG_CACHE_HOME"], "ridge"),
                        self.path("cache/ridge"), ignore=shutil.ignore_patterns("*.kernels.json"))

    def kept(self):
        files = glob.glob(self.path("cache/ridge/profiles/*.kernels.json"))
        self.assertEqual(len(files), 1)
        return files[0]

    def tune(self, *words):
        return json.loads(self.ok("bench", "device", "--tune", *words, "--threads", "1", "--json",
                                  env=self.env))

    def write_kept(self, **changes):
        """Times of kernels that no model has."""
        self.tune("mlp:hidden=32", "--batch", "8")
        with open(self.kept()) as file:
            times = json.load(file)
        times.update({"kernel_s": {"no kernel": 0.5}}, **changes)
        with open(self.kept(), "w") as file:
            json.dump(times, file)

    def kernels(self, model, choice, op=None):
        """Node -> kernel of the step that `ridge plan` shows."""
        plan = json.loads(self.ok("plan", model, "--batch", "8", "--threads", "1", "--kernels",
                                  choice, "--json", env=self.env))
        return {node["name"]: node["kernel"] for node in plan["nodes"]
                if node["step"] == "train" and op in (None, node["op"])}

    def test_the_plan_takes_what_was_kept_and_nothing_else(self):
        """What a kept model's report calls the tuned kernel is what the plan has; a model that got
        no faster is planned as ever."""
        for model in self.tune("mlp:hidden=64", "cnn:filters=4", "--batch", "8")["models"]:
            expected = self.kernels(model["model"], "default")
            if model["kept"]:
                expected.update((change["name"], change["tuned"].split()[0])
                                for change in model["changed"])
            tuned = self.kernels(model["model"], "tuned")
            # Reorders come and go with the layouts.
            self.assertEqual({name: tuned.get(name) for name in expected if "reorder" not in name},
                             {name: kernel for name, kernel in expected.items()
                              if "reorder" not in name})

    def test_a_kernel_that_was_timed_as_slow_is_not_taken(self):
        self.tune("mlp:hidden=64", "--batch", "8")
        with open(self.kept()) as file:
            times = json.load(file)
        before = list(self.kernels("mlp:hidden=64", "tuned", "matmul").values())
        timed = [kernel for kernel in before
                 if any(key.startswith(kernel + " matmul ") for key in times["kernel_s"])]
        if not timed:
            self.skipTest(NOT_HERE + "no kernel of this machine is faster than those that are taken")
        for key in times["kernel_s"]:
            if key.startswith(timed[0] + " matmul "):
                times["kernel_s"][key] = 1000.0
        with open(self.kept(), "w") as file:
            json.dump(times, file)
        after = list(self.kernels("mlp:hidden=64", "tuned", "matmul").values())
        self.assertLess(after.count(timed[0]), before.count(timed[0]))

    def test_kernels_are_timed_and_told(self):
        tuned = self.tune("mlp:hidden=64", "cnn:filters=4", "--batch", "8")
        self.assertEqual([model["model"] for model in tuned["models"]],
                         ["mlp:hidden=64", "cnn:filters=4"])
        for model in tuned["models"]:
            self.assertGreaterEqual(model["kernels"], model["calls"])
        with open(self.kept()) as file:
            times = json.load(file)
        self.assertEqual(times["library"], tuned["library"])
        self.assertEqual(bool(times["kernel_s"]), any(m["kept"] for m in tuned["models"]))
        text = self.ok("bench", "device", "--tune", "mlp:hidden=64", "--batch", "8", "--threads",
                       "1", env=self.env)
        self.assertIn("mlp:hidden=64, batch 8: step ", text)
        self.assertEqual(f"kept in {self.kept()}; --kernels tuned uses it" in text,
                         "; not faster, not used" not in text)

    def test_a_run_goes_on_with_the_times_that_it_began_with(self):
        self.write_kept()
        words = [*SMALL, "--steps", "12", "--checkpoint-every", "5", "--kernels", "tuned", "-q"]
        self.ok("train", *words, "--out", "whole", env=self.env)
        self.ok("train", *words, "--out", "cut", env=self.env)
        self.assertEqual(self.read_json("cut/kernels.json")["kernel_s"], {"no kernel": 0.5})
        os.remove(self.kept())
        shutil.rmtree(self.path("cut/checkpoints/step-12"))
        os.remove(self.path("cut/summary.json"))
        self.ok("train", "--resume", "cut", "-q", env=self.env)
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")
        self.write("cut/kernels.json", "{}")
        os.remove(self.path("cut/summary.json"))
        self.fails(4, "cut/kernels.json: holds no times of kernels", "train", "--resume", "cut",
                   env=self.env)

    def test_what_was_never_timed_or_is_stale_is_refused(self):
        words = ["plan", "mlp", "--threads", "1", "--kernels", "tuned"]
        self.fails(4, "no kernels were timed on this machine yet. hint: ridge bench device --tune "
                   "MODEL", *words, env=self.env)
        self.write_kept(library="oneDNN 0.0.1")
        self.fails(4, "was timed with oneDNN 0.0.1; this is oneDNN", *words, env=self.env)
        done = self.ridge("bench", "device", "--tune", "mlp:hidden=32", "--batch", "8", "--threads", "1",
                          env=self.env)
        self.assertIn(f"{self.kept()}: times of oneDNN 0.0.1 are replaced\n", done.stderr)
        self.ok(*words, env=self.env)

    def test_wrong_words(self):
        self.fails(2, "bench device: 'cnn' is one argument too many. hint: --tune cnn", "bench",
                   "device", "cnn")
        self.fails(5, "no model 'cmn'", "bench", "device", "--tune", "cmn")
        self.fails(2, "--kernels is 'best'; it must be one of default, tuned", "plan", "mlp",
                   "--kernels", "best")


class TuneGpu(RidgeTest):
    """Of a GPU all algorithms of cuBLASLt and engines of cuDNN are timed, that give equal bits."""
    MODEL = ["mlp:hidden=64", "--batch", "8", "--device", "cuda"]
    SLOW = "cublaslt.matmul/algo1_tile18"
    FAST = "cublaslt.matmul/algo2_tile20_splits3_reduction2_cluster5"

    def setUp(self):
        super().setUp()
        self.env = {**FAKE_GPU, "RIDGE_FAKE_CUBLASLT_SLOW_US": "2000",
                    "XDG_CACHE_HOME": self.path("cache")}

    def products(self, *words):
        plan = json.loads(self.ok("plan", *self.MODEL, *words, "--json", env=self.env))
        return {node["kernel"] for node in plan["nodes"]
                if node["step"] == "train" and node["op"] == "matmul"}

    def cut(self, run):
        """Leaves the run's first checkpoint, of step 3."""
        shutil.rmtree(self.path(run + "/checkpoints/step-6"))
        os.remove(self.path(run + "/summary.json"))

    def test_the_fastest_algorithm_that_was_timed_is_taken_and_kept_by_a_run(self):
        self.fails(4, "no kernels were timed on this machine yet. hint: ridge bench device --tune "
                   "MODEL, with this --device", "plan", *self.MODEL, "--kernels", "tuned", env=self.env)
        text = self.ok("bench", "device", "--tune", *self.MODEL, env=self.env)
        self.assertRegex(text, rf" {self.SLOW} .* {self.FAST}\n")
        self.assertEqual(self.products(), {self.SLOW})
        self.assertEqual(self.products("--kernels", "tuned"), {self.FAST})
        words = [*self.MODEL, "--data", "synthetic", "--steps", "6", "--checkpoint-every", "3",
                 "--kernels", "tuned", "-q"]
        self.ok("train", *words, "--out", "whole", env=self.env)
        self.assertTrue(self.read_json("whole/kernels.json")["kernel_s"])
        self.ok("train", *words, "--out", "cut", env=self.env)
        self.cut("cut")
        shutil.rmtree(self.path("cache/ridge/profiles"))
        self.ok("train", "--resume", "cut", "-q", env=self.env)
        self.assertRegex(self.ok("compare", "whole", "cut"), "^equal: ")

    def test_times_of_other_libraries_are_refused(self):
        self.ok("bench", "device", "--tune", *self.MODEL, env=self.env)
        self.fails(4, "was timed with driver of CUDA 13.0, NVRTC 13.0, cuBLASLt 13.1.0, cuDNN 9.19.0; this "
                   "is driver of CUDA 13.0, NVRTC 13.0, cuBLASLt 13.1.0, cuDNN 9.20.0", "plan", *self.MODEL,
                   "--kernels", "tuned", env={**self.env, "RIDGE_FAKE_CUDNN_VERSION": "92000"})

    def test_a_run_does_not_go_on_with_another_algorithm(self):
        self.ok("train", *self.MODEL, "--data", "synthetic", "--steps", "6", "--checkpoint-every",
                "3", "--out", "run", "-q", env=self.env)
        self.cut("run")
        refused = self.fails(2, "other kernels than the run", "train", "--resume", "run", "-q",
                             env={**self.env, "RIDGE_FAKE_CUBLASLT_BEST": "2"})
        self.assertRegex(refused.stderr, r"now\), node '[^']+' of step 'train' on cublaslt\.matmul/algo\S+, on "
                                  r"cublaslt\.matmul/algo\S+ then: the result")
        self.ok("train", "--resume", "run", "-q", env=self.env)


if __name__ == "__main__":
    unittest.main()
