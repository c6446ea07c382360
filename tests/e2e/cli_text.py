"""opt, doctor, models, completion: the verbs that neither train nor plan."""
import json
import os
import subprocess
import unittest

from _ridge import RidgeTest

GRAPH = """graph net
  x = input f32[batch=8,4]
  w = parameter f32[3,4] init=uniform(0.5)
  one = constant f32[] 1.0
  same = mul(x, one)
  a = matmul(same, w, transpose_b=1)
  b = matmul(x, w, transpose_b=1)
  y = relu(a)
  z = relu(b)
  unused = exp(b)
  sum = add(y, z)
  output sum
"""


class Opt(RidgeTest):
    def test_no_pass_gives_the_graph_back(self):
        self.write("net.ridge", GRAPH)
        printed = self.ok("opt", "net.ridge", "--pass", "dce")
        self.assertNotIn("unused", printed)
        self.write("again.ridge", printed)
        self.assertEqual(self.ok("opt", "again.ridge", "--pass", "dce"), printed)

    def test_all_passes_reach_a_fixed_point_and_standard_input_works(self):
        once = self.ok("opt", "-", stdin=GRAPH)
        self.assertEqual(self.ok("opt", "-", stdin=once), once)
        self.assertLess(once.count("="), GRAPH.count("="))

    def test_savings_go_to_stderr_unless_quiet(self):
        done = self.ridge("opt", "-", stdin=GRAPH)
        for word in ("nodes", "results", "FLOPs", "predicted", "fold", "algebra", "cse", "dce", "fuse",
                     "together"):
            self.assertIn(word, done.stderr)
        self.assertEqual(self.ridge("opt", "-", "-q", stdin=GRAPH).stderr, "")

    def test_wrong_passes_and_files(self):
        self.refused(2, "unknown pass 'fuze'; did you mean 'fuse'?; known: fold, push_slices, patterns, "
                     "attention, attention_layout, algebra, cse, dce, fuse, inplace, layout. hint: -NAME leaves one out, only:NAME,NAME runs "
                     "just these, none runs none", "opt", "-", "--pass", "fuze", stdin=GRAPH)
        self.fails(2, "is a step of the planner", "opt", "-", "--pass", "layout", stdin=GRAPH)
        self.fails(5, "none.ridge", "opt", "none.ridge")
        self.fails(5, "standard input:3: unknown operator 'sofmax'; did you mean 'softmax'?",
                   "opt", "-", stdin="graph g\n  x = input f32[2]\n  y = sofmax(x)\n")

    def test_a_graph_that_computes_nothing_is_refused(self):
        empty = "the graph is empty. hint: define values and end with a line 'output NAME'"
        unread = ("the graph has no output and no update, so there is nothing to compute. hint: end "
                  "with a line 'output NAME'")
        for text, message in (("graph", empty), ("graph\n", empty), ("# note\ngraph g\n\n", empty),
                              ("graph g\n  x = input f32[2]\n  y = relu(x)\n", unread),
                              ("graph g\n  w = parameter f32[2]\n", unread)):
            self.refused(5, "standard input: " + message, "opt", "-", stdin=text)
            self.write("net.ridge", text)
            self.refused(5, "net.ridge: " + message, "plan", "net.ridge")
            self.refused(5, "net.ridge: " + message, "train", "net.ridge", "--data", "synthetic")


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

    def test_text_has_a_row_for_each_finding(self):
        text = self.ok("doctor")
        for row in ("CPU", "threads", "memory", "oneDNN", "CUDA", "device profile",
                    "fashion-mnist"):
            self.assertIn("\n" + row, "\n" + text)

    def test_models_lists_parameters_flops_and_inputs(self):
        text = self.ok("models")
        table = {line.split()[0]: line.split() for line in text.split("\n\n")[0].splitlines()[1:]}
        self.assertEqual(table["mlp"], ["mlp", "669,706", "1.34", "MFLOP", "image", "f32[784],",
                                        "label", "i64[]"])
        self.assertEqual(table["resnet50"][1], "25,557,032")

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

    def test_models_of_a_spec(self):
        (one,) = json.loads(self.ok("models", "mlp:hidden=32", "--json"))
        self.assertEqual(one["model"], "mlp:hidden=32")
        self.assertEqual(one["parameters"], 26506)
        self.fails(5, "no parameter 'hiden'", "models", "mlp:hiden=32")


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
        self.assertEqual(self.complete("ridge", "bench", ""), ["step", "run", "suite", "device"])
        self.assertEqual(self.complete("ridge", "completion", "z"), ["zsh"])

    def test_options_belong_to_their_verb(self):
        self.assertEqual(self.complete("ridge", "train", "cnn", "--opt"), ["--optimizer"])
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
        self.write("net.ridge", GRAPH)
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
        self.refused(2, "SHELL is 'tcsh'; it must be one of bash, zsh, fish. hint: ridge "
                     "completion --help", "completion", "tcsh")

    def test_bash_finds_nothing_wrong_with_its_script(self):
        subprocess.run(["bash", "-n"], input=self.ok("completion", "bash"), text=True, check=True)


if __name__ == "__main__":
    unittest.main()
