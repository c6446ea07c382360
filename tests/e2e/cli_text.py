"""doctor, models, completion; opt is in tests/text/cli/."""
import json
import os
import subprocess
import unittest

from _ridge import RidgeTest


class Doctor(RidgeTest):
    def test_json_says_what_was_found(self):
        found = json.loads(self.ok("doctor", "--json"))
        self.assertLessEqual({"ridge", "cpu", "threads", "memory", "onednn", "cuda", "profiles",
                              "cache_folder", "fashion_mnist", "terminal"}, set(found))
        self.assertEqual(found["threads"]["affinity"], len(os.sched_getaffinity(0)))
        self.assertLessEqual(found["threads"]["used"], found["threads"]["affinity"])
        self.assertLessEqual(found["memory"]["usable_bytes"], found["memory"]["total_bytes"])
        self.assertTrue(found["profiles"])

    def test_omp_num_threads_is_the_reason_when_it_is(self):
        found = json.loads(self.ok("doctor", "--json", env={"OMP_NUM_THREADS": "1"}))
        self.assertEqual(found["threads"]["used"], 1)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertEqual(found["threads"]["because"], "OMP_NUM_THREADS")

    def test_omp_thread_limit_is_the_reason_when_it_is(self):
        found = json.loads(self.ok("doctor", "--json", env={"OMP_THREAD_LIMIT": "1"}))
        self.assertEqual((found["threads"]["used"], found["threads"]["omp_thread_limit"]), (1, 1))
        if len(os.sched_getaffinity(0)) > 1:
            self.assertEqual(found["threads"]["because"], "OMP_THREAD_LIMIT")

    def test_the_affinity_mask_is_respected(self):
        one = {min(os.sched_getaffinity(0))}
        found = json.loads(self.ok("doctor", "--json",
                                   preexec_fn=lambda: os.sched_setaffinity(0, one)))
        self.assertEqual(found["threads"]["used"], 1)

    def test_a_recorded_probe_is_judged_as_this_machine(self):
        recorded = self.ok("doctor", "--json")
        self.write("machine.json", recorded)
        again = json.loads(self.ok("doctor", "--probe", self.path("machine.json"), "--json"))
        found = json.loads(recorded)
        for key in ("ridge", "system", "cpu", "threads", "memory", "cuda", "rocm", "python",
                    "problems"):
            self.assertEqual(again[key], found[key], key)
        self.assertNotIn("terminal", again)

    def test_a_dockerfile_of_the_packages_that_are_there(self):
        packages = self.path("venv/lib/python3.11/site-packages/onnxruntime-1.20.0.dist-info")
        os.makedirs(packages)
        target = self.path("Dockerfile")
        text = self.ok("doctor", "--dockerfile", target, env={"VIRTUAL_ENV": self.path("venv")})
        self.assertIn("onnxruntime 1.20.0", text)
        with open(target, encoding="utf-8") as file:
            self.assertIn("RUN pip install onnxruntime==1.20.0\n", file.read())

    def test_text_has_a_row_for_each_finding(self):
        text = self.ok("doctor")
        for row in ("CPU", "threads", "memory", "oneDNN", "CUDA", "device profile",
                    "fashion-mnist"):
            self.assertIn("\n" + row, "\n" + text)

    def test_models_as_json(self):
        models = {m["model"]: m for m in json.loads(self.ok("models", "--json"))}
        mlp = models["mlp"]
        self.assertEqual(mlp["parameters"], 669706)
        products = 2 * (784 * 512 + 512 * 512 + 512 * 10)
        self.assertGreaterEqual(mlp["flops"], products)
        self.assertLess(mlp["flops"], 1.01 * products)
        self.assertEqual(mlp["inputs"][0], {"name": "image", "dtype": "f32", "shape": [784]})
        self.assertIn("hidden", [a["name"] for a in mlp["arguments"]])
        # torchvision's page of ResNet-50 says 4.09 GFLOPS; it counts a multiply-add as one, and
        # taps that fall into the padding.
        self.assertAlmostEqual(models["resnet50"]["flops"] / 8.18e9, 1, delta=0.04)

class Completion(RidgeTest):
    def complete(self, *words, cwd=None):
        """What bash offers for the last word; words are split as bash does it."""
        script = self.ok("completion", "bash")
        quoted = " ".join("'" + word + "'" for word in words)
        line = (f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _ridge; "
                "printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "-c", script + line], capture_output=True, text=True,
                              check=True, cwd=cwd or self.folder)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_verbs(self):
        self.assertEqual(self.complete("ridge", "pl"), ["plan"])
        self.assertLessEqual({"train", "plan", "eval", "run", "bench", "opt", "compare", "doctor",
                              "completion", "models"}, set(self.complete("ridge", "")))
        self.assertEqual(self.complete("ridge", "bench", ""), ["step", "run", "suite", "device", "memory", "collective"])
        self.assertEqual(self.complete("ridge", "completion", "z"), ["zsh"])

    def test_sizes_of_a_model_stand_behind_its_colon(self):
        self.assertEqual(self.complete("ridge", "plan", "gpt", ":", "17"), ["175b"])
        self.assertIn("gpt:13b", self.complete("ridge", "plan", "gpt"))

    def test_options_belong_to_their_verb(self):
        self.assertEqual(self.complete("ridge", "train", "cnn", "--opt"),
                         ["--optimizer", "--optimizer-state"])
        self.assertEqual(self.complete("ridge", "eval", "--opt"), [])
        self.assertEqual(self.complete("ridge", "bench", "device", "--qui"), ["--quick"])

    def test_values(self):
        self.assertEqual(self.complete("ridge", "train", "--optimizer", ""),
                         ["sgd", "adam", "adamw"])
        self.assertEqual(self.complete("ridge", "train", "--optimizer", "=", "adamw"), ["adamw"])
        self.assertEqual(self.complete("ridge", "train", "--optimizer", "="),
                         ["sgd", "adam", "adamw"])
        self.assertEqual(self.complete("ridge", "train", "cn"), ["cnn"])
        self.assertEqual(self.complete("ridge", "train", "cnn", "--data", "fash"),
                         ["fashion-mnist"])
        self.assertEqual(self.complete("ridge", "train", "cnn", "--batch", ""), [])

    def test_files(self):
        self.write("net.ridge", "graph net\n")
        os.mkdir(self.path("my data"))
        self.assertEqual(self.complete("ridge", "train", "ne"), ["net.ridge"])
        self.assertEqual(self.complete("ridge", "train", "cnn", "--data", "idx", ":", "my"),
                         ["my", "data"])
        self.assertEqual(self.complete("ridge", "run", "cnn", "--inputs", "net"), ["net.ridge"])

    def test_the_other_shells_take_their_scripts(self):
        for shell in ("zsh", "fish"):
            script = self.ok("completion", shell)
            for part in ("train", "optimizer", "fashion-mnist"):
                self.assertIn(part, script)
            if subprocess.run(["which", shell], capture_output=True, check=False).returncode == 0:
                self.write("script", script)
                subprocess.run([shell, "--no-execute", self.path("script")], check=True)

    def test_bash_finds_nothing_wrong_with_its_script(self):
        subprocess.run(["bash", "-n"], input=self.ok("completion", "bash"), text=True, check=True)


if __name__ == "__main__":
    unittest.main()
