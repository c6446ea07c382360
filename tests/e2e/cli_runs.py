"""eval, run, compare, bench step on what train made."""
import json
import os
import re
import shutil
import unittest

from _ridge import RidgeTest, SMALL, read_npz, write_npz

BENCH_KEYS = {"fw", "ver", "model", "batch", "opt", "prec", "threads", "params", "ms_min", "ms_med",
              "ms_mean", "samples_s", "first_step_s", "peak_mb", "loss0", "loss", "planned", "measured",
              "peak_flops_per_s", "bytes_per_s", "model_flops", "flops_floor_s", "roofline_step_s"}
SUMMARY_KEYS = {"model", "seed", "steps", "epochs", "test_accuracy", "loss", "wall_s", "planned",
                "measured", "skipped_samples", "parameters_sha256", "ridge_version", "device",
                "threads"}

NET = """graph net
  image = input f32[batch,4]
  label = input i64[batch]
  w = parameter f32[3,4] init=uniform(0.5)
  logits = matmul(image, w, transpose_b=1)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output logits
  output loss
"""


class Runs(RidgeTest):
    def test_an_evaluation_in_slices_counts_the_same_classes(self):
        records = []
        for slices in ("1", "2", "8"):
            self.ok("train", "mlp:hidden=16", "--data", "synthetic", "--validation", "0.2", "--batch",
                    "16", "--steps", "1", "--lr", "1e-9", "--threads", "1", "--slices", slices,
                    "--out", f"slices{slices}", "-q")
            with open(self.path(f"slices{slices}/evaluation.json")) as file:
                records.append(json.load(file))
        for other in records[1:]:
            for key in ("accuracy", "metrics", "classes", "confusion"):
                self.assertEqual(other[key], records[0][key], key)
            self.assertEqual(sum(map(sum, other["confusion"])), other["samples"])

    def test_a_run_folder_holds_what_is_promised(self):
        summary = self.train("--trace")
        self.assertLessEqual(SUMMARY_KEYS, set(summary))
        files = os.listdir(self.path("run"))
        for name in ("summary.json", "plan.txt", "plan.json", "options.json", "metrics.jsonl",
                     "checkpoints", "trace.json"):
            self.assertIn(name, files)
        self.assertTrue(any(name.startswith("events.out.tfevents.") for name in files))
        with open(self.path("run/plan.txt")) as file:
            text = file.read()
        self.assertIn("train: ", text)
        self.assertNotIn("\x1b", text)
        self.assertEqual(self.read_json("run/plan.json")["arena_bytes"],
                         summary["planned"]["arena_bytes"])
        self.assertTrue(self.read_json("run/trace.json")["traceEvents"])

    def test_a_folder_with_a_run_is_not_overwritten(self):
        self.train()
        self.fails(2, "run", "train", *SMALL, "--steps", "5", "--out", "run")

    def test_the_talk_is_on_stderr_and_the_result_on_stdout(self):
        done = self.ridge("train", *SMALL, "--steps", "20")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("Plan  mlp:hidden=32, batch 32", "planned against measured", "peak memory",
                     "step time", "run folder runs/mlp-1"):
            self.assertIn(part, done.stdout)
        self.assertIn("step 20/20", done.stderr)
        quiet = self.ridge("train", *SMALL, "--steps", "20", "-q")
        self.assertEqual((quiet.stdout, quiet.stderr), ("", ""))
        self.assertTrue(os.path.isdir(self.path("runs/mlp-2")))

    def test_progress_in_json_is_lines_of_json(self):
        done = self.ridge("train", *SMALL, "--steps", "20", "--progress", "json")
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        self.assertEqual([line["step"] for line in lines if line["event"] == "progress"][-1], 20)

    def test_eval_counts_every_sample_once(self):
        self.train()
        result = json.loads(self.ok("eval", "run", "--data", "synthetic", "--json"))
        self.assertLessEqual({"samples", "loss", "accuracy"}, set(result))
        self.assertGreater(result["samples"], 0)
        self.assertIn("accuracy", self.ok("eval", "run", "--data", "synthetic"))
        self.fails(4, "none", "eval", "none", "--data", "synthetic")

    def test_both_backends_agree_on_loss_and_accuracy(self):
        summary = self.train(steps=60)
        cpu, reference = (json.loads(self.ok("eval", "run", "--data", "synthetic", "--json",
                                             "--backend", backend))
                          for backend in ("cpu", "reference"))
        self.assertAlmostEqual(cpu["loss"], reference["loss"], delta=1e-5)
        self.assertEqual(cpu["accuracy"], reference["accuracy"])
        self.assertNotAlmostEqual(cpu["accuracy"], cpu["loss"])
        self.assertEqual(summary["steps"], 60)

    def test_a_graph_in_text_form_is_trained_and_kept_with_its_run(self):
        self.write("net.ridge", NET)
        self.ok("train", "net.ridge", "--data", "synthetic", "--steps", "3", "--out", "run", "-q")
        os.remove(self.path("net.ridge"))
        self.ok("eval", "run", "--data", "synthetic")

    def test_run_gives_logits_for_a_run_a_graph_and_a_model(self):
        self.train()
        write_npz(self.path("in.npz"), {"image": ([3, 784], [i / 2352 for i in range(2352)])})
        for model in ("run", "mlp:hidden=32"):
            self.ok("run", model, "--inputs", "in.npz", "--outputs", "out.npz")
            dims, values = read_npz(self.path("out.npz"))["logits"]
            self.assertEqual(tuple(dims), (3, 10))
            self.assertTrue(any(values))
        self.write("net.ridge", "graph net\n  x = input f32[batch,2]\n  y = relu(x)\n  output y\n")
        write_npz(self.path("in.npz"), {"x": ([2, 2], [-1.0, 2.0, 3.0, -4.0])})
        self.ok("run", "net.ridge", "--inputs", "in.npz", "--outputs", "out.npz")
        self.assertEqual(read_npz(self.path("out.npz"))["y"], ((2, 2), (0.0, 2.0, 3.0, 0.0)))
        self.fails(2, "image", "run", "run", "--inputs", "in.npz", "--outputs", "out.npz")

    def test_run_and_grad_draw_the_same_numbers(self):
        self.write("draws.ridge", "graph draws\n  x = input f32[batch=2,4]\n"
                   "  rng = input i64[3]\n  u = random_uniform(rng, dims=[2,4])\n"
                   "  y = mul(x, u)\n  output y\n")
        write_npz(self.path("in.npz"), {"x": ([2, 4], [1.0] * 8)})
        drawn = {}
        for seed in ("0", "7"):
            for verb in ("run", "grad"):
                self.ok(verb, "draws.ridge", "--inputs", "in.npz", "--outputs", "out.npz",
                        "--seed", seed)
                drawn[verb, seed] = read_npz(self.path("out.npz"))["y"]
            self.assertEqual(drawn["run", seed], drawn["grad", seed])
        self.assertNotEqual(drawn["run", "0"], drawn["run", "7"])

    def test_bench_step_has_the_promised_keys(self):
        result = json.loads(self.ok("bench", "step", "mlp:hidden=32", "--batch", "16", "--steps",
                                    "12", "--threads", "1", "--json"))
        self.assertLessEqual(BENCH_KEYS, set(result))
        self.assertEqual((result["fw"], result["batch"], result["threads"]), ("ridge", 16, 1))
        self.assertGreater(result["peak_flops_per_s"], 0)

    def test_bench_run_times_the_outputs_alone(self):
        self.write("net.ridge", "graph net\n  x = input f32[batch,2]\n  y = relu(x)\n  output y\n")
        for model, nodes in (("net.ridge", 1), ("mlp:hidden=32", 3)):
            result = json.loads(self.ok("bench", "run", model, "--batch", "4", "--runs", "5",
                                        "--threads", "1", "--json"))
            self.assertEqual((result["batch"], result["threads"], result["nodes"]), (4, 1, nodes))
            self.assertGreaterEqual(result["ms_med"], result["ms_min"])


class Pages(RidgeTest):
    """`ridge runs --html`: one file, of runs in every state."""

    NAME = "a<script>b"

    def page(self, run):
        self.ok("runs", run, "--html", "page.html")
        with open(self.path("page.html"), encoding="utf-8") as file:
            return file.read()

    def trained(self):
        self.ok("train", "mlp:hidden=16", "--data", "synthetic", "--validation", "0.25", "--epochs",
                "2", "--seed", "3", "--out", self.NAME, "-q")

    def test_its_numbers_are_those_of_the_run(self):
        self.trained()
        page = self.page(self.NAME)
        with open(self.path(f"{self.NAME}/summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertIn(f"<b>{summary['validation_accuracy'] * 100:.1f} %</b>"
                      "<span>validation accuracy", page)
        self.assertIn(f"<b>{summary['validation_loss']:.4f}</b><span>validation loss", page)
        self.assertIn(summary["parameters_sha256"], page)
        for heading in ("Curves", "Planned against measured", "Where the time of a step goes",
                        "Memory at the peak", "Evaluation", "Wrong, most confident first"):
            self.assertIn(f"<h2>{heading}</h2>", page)
        self.assertEqual(page.count("<figure>"), 5)

    def test_it_loads_nothing_and_runs_nothing(self):
        self.trained()
        page = self.page(self.NAME)
        for part in ("<script", "http:", "https:", "<link", "@import", "url("):
            self.assertNotIn(part, page)
        self.assertEqual(page.count("src="), page.count('src="data:image/png;base64,'))

    def test_a_run_that_did_not_end_has_a_page(self):
        self.trained()
        os.remove(self.path(f"{self.NAME}/summary.json"))
        self.assertIn("interrupted", self.page(self.NAME))
        for name in ("plan.json", "metrics.jsonl", "evaluation.json"):
            with open(self.path(f"{self.NAME}/{name}"), "w", encoding="utf-8") as file:
                file.write("{")
        self.assertIn("interrupted", self.page(self.NAME))

    def test_layers_whose_gradients_vanish_are_named(self):
        lines, above = ["graph deep", "  x = input f32[batch,16]", "  label = input i64[batch]"], "x"
        for i in range(1, 31):
            lines += [f"  w{i} = parameter f32[16,16] init=normal(0.3)",
                      f"  z{i} = matmul({above}, w{i})", f"  h{i} = sigmoid(z{i})"]
            above = f"h{i}"
        lines += ["  head = parameter f32[16,4] init=normal(0.3)", f"  logits = matmul({above}, head)",
                  "  losses = softmax_cross_entropy(logits, label)", "  loss = reduce_mean(losses)",
                  "  output logits", "  output loss"]
        self.write("deep.ridge", "\n".join(lines) + "\n")
        self.ok("train", "deep.ridge", "--batch", "32", "--data", "synthetic", "--steps", "30",
                "--out", "deep", "-q")
        with open(self.path("deep/layers.jsonl")) as file:
            layers = json.loads(file.readlines()[-1])["layers"]
        self.assertEqual(len(layers), 31)
        self.ok("runs", "deep", "--html", "deep.html")
        with open(self.path("deep.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(page, r"Gradients vanish: those of &#39;w1&#39; and of \d+ more "
                               r"\(of 31 layers\) are below a millionth of those of &#39;head&#39;")

    def test_no_run_is_an_error(self):
        self.refused(4, "no runs in runs. hint: ridge train makes them under runs/", "runs",
                     "--html", "page.html")


class Compare(RidgeTest):
    def test_equal_options_give_equal_runs(self):
        self.train(out="a")
        self.train(out="b")
        self.assertRegex(self.ok("compare", "a", "b"), r"^equal: \d+ reports?, \d+ checkpoints?\n$")

    def test_another_seed_gives_the_first_step_and_tensor_that_differ(self):
        self.train(out="a")
        self.train("--seed", "1", out="b")
        done = self.ridge("compare", "a", "b")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^option --seed: 0 against 1\nfirst step that differs: 20: "
                                      r"loss [0-9.]+ against [0-9.]+\nfirst tensor that differs, "
                                      r"at step 20: '0.bias': 32 of 32 elements, by ")

    def test_a_page_has_the_differences_and_a_line_for_each_run(self):
        self.train(out="a")
        self.train("--seed", "1", out="b")
        done = self.ridge("compare", "a", "b", "--html", "both.html")
        self.assertEqual(done.returncode, 1)
        self.assertIn("option --seed: 0 against 1\n", done.stdout)
        with open(self.path("both.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("<li>option --seed: 0 against 1</li>", page)
        self.assertIn("first tensor that differs, at step 20: &#39;0.bias&#39;", page)
        charts = re.findall(r"<svg.*?</svg>", page, re.S)
        titles = [title for title in ("training loss", "training accuracy, %") if title in page]
        self.assertEqual(titles, ["training loss", "training accuracy, %"])
        self.assertGreaterEqual(len(charts), 2)
        for chart in charts:
            self.assertEqual(chart.count('<path d="'), 2, chart)

    def test_a_page_on_standard_output_stands_alone(self):
        self.train(out="a")
        self.train(out="b")
        page = self.ok("compare", "a", "b", "--html", "-")
        self.assertTrue(page.lstrip().startswith("<!doctype html>"), page[:80])
        self.assertIn("<li>equal: ", page)

    def test_a_comparison_is_a_page_or_a_drawing(self):
        self.refused(2, "--plot and --html can't be given together. hint: ridge compare --help",
                     "compare", "a", "b", "--html", "x.html", "--plot")

    def test_one_changed_bit_is_found(self):
        self.train(out="a")
        shutil.copytree(self.path("a"), self.path("b"))
        path = self.path("b/checkpoints/step-20/parameters.safetensors")
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)[0]
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last ^ 1]))
        done = self.ridge("compare", "a", "b")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 of ", done.stdout)

    def test_no_run_is_an_error(self):
        self.train(out="a")
        self.fails(4, "b: is no run folder", "compare", "a", "b")
        self.fails(2, "the second RUN is missing", "compare", "a")


if __name__ == "__main__":
    unittest.main()
