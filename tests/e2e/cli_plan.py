"""`ridge plan`: the JSON that scripts rely on, and what is said of a run that does not fit."""
import json
import os
import unittest

from _ridge import SOURCE, RidgeTest

KEYS = {"device", "peak_bytes", "arena_bytes", "bound_bytes", "breakdown", "step_s", "epoch_s",
        "fits", "limit_bytes", "nodes"}
PURPOSES = ["parameters", "gradients", "optimizer", "activations", "workspace", "inputs",
            "communication", "runtime"]
NODE_KEYS = {"name", "op", "flops", "bytes_read", "bytes_written", "s", "bound"}


def placed(plan):
    """A plan without what is measured anew each time: times, and what the process holds already."""
    nodes = [{k: v for k, v in node.items() if k not in ("s", "modelled_s", "bound", "measured",
                                                         "measured_s")}
             for node in plan["nodes"]]
    breakdown = {k: v for k, v in plan["breakdown"].items() if k != "runtime"}
    return (nodes, breakdown, plan["arena_bytes"], plan["bound_bytes"], plan["device"])


class Plan(RidgeTest):
    def plan(self, *words):
        return json.loads(self.ok("plan", *words, "--json"))

    def check(self, plan):
        self.assertLessEqual(KEYS, set(plan))
        self.assertEqual(list(plan["breakdown"]), PURPOSES)
        self.assertEqual(sum(plan["breakdown"].values()), plan["peak_bytes"])
        self.assertGreaterEqual(plan["arena_bytes"], plan["bound_bytes"])
        self.assertGreater(plan["peak_bytes"], plan["arena_bytes"])
        self.assertTrue(plan["fits"])
        self.assertTrue(plan["nodes"])
        for node in plan["nodes"]:
            self.assertLessEqual(NODE_KEYS, set(node))
            self.assertIn(node["bound"], ("compute", "memory", "latency"))
        total = sum(node["s"] * node["runs"] for node in plan["nodes"])
        self.assertAlmostEqual(total, plan["step_s"], delta=1e-9 + 1e-6 * total)

    def test_the_breakdown_adds_up_and_so_do_the_nodes(self):
        for words in (["mlp"], ["cnn", "--batch", "128"], ["cnn", "--accumulate", "4"],
                      ["mlp", "--optimizer", "sgd", "--clip-norm", "1"],
                      ["cnn", "--backend", "reference"], ["mlp", "--passes=none"]):
            self.check(self.plan(*words))

    def test_an_epoch_needs_data(self):
        self.assertIsNone(self.plan("mlp")["epoch_s"])
        plan = self.plan("mlp", "--data", "synthetic", "--batch", "64")
        self.check(plan)
        self.assertGreaterEqual(plan["epoch_s"], 64 * plan["step_s"])

    def test_on_several_devices_gives_an_array(self):
        plans = self.plan("mlp", "--on", "cpu,cpu")
        self.assertEqual(len(plans), 2)
        self.assertEqual(*[placed(plan) for plan in plans])

    def test_equal_input_gives_equal_nodes_kernels_and_places(self):
        words = ["cnn", "--fit", "4GiB"]
        self.assertEqual(placed(self.plan(*words)), placed(self.plan(*words)))

    def test_what_does_not_fit_is_refused_with_numbers_and_a_way_out(self):
        done = self.ridge("plan", "cnn", "--batch", "512", "--slices", "1", "--fit", "45MiB",
                          "--json")
        self.assertEqual(done.returncode, 3)
        plan = json.loads(done.stdout)
        self.assertFalse(plan["fits"])
        self.assertEqual(plan["limit_bytes"], 45 << 20)
        self.assertRegex(done.stderr, r"^ridge: plan: the run needs [0-9.]+ MiB on .*, --fit "
                                      r"allows 45.0 MiB\. \[R0101\]\n  peak at .*\n"
                                      r"  largest values there: .*\n  hint: --batch \d+ "
                                      r"--accumulate \d+ needs [0-9.]+ MiB")

    def test_the_way_out_fits(self):
        done = self.ridge("plan", "cnn", "--batch", "512", "--slices", "1", "--fit", "45MiB")
        hint = done.stderr.split("hint: ")[1].split(" needs")[0].split()
        self.ok("plan", "cnn", *hint, "--fit", "45MiB")

    def test_training_is_refused_before_anything_is_written(self):
        done = self.fails(3, "[R0101]", "train", "cnn", "--data", "synthetic", "--batch", "512",
                          "--slices", "1", "--fit", "45MiB", "--out", "run")
        self.assertIn("hint: --batch", done.stderr)
        self.assertFalse(os.path.exists(self.path("run")))

    def test_sizes_have_units(self):
        self.assertEqual(self.plan("mlp", "--fit", "24GB")["limit_bytes"], 24 * 10**9)
        self.assertEqual(self.plan("mlp", "--fit", "1.5GiB")["limit_bytes"], 3 << 29)
        self.assertEqual(self.plan("mlp", "--fit", "999999999")["limit_bytes"], 999999999)


class Report(RidgeTest):
    def test_people_see_memory_and_time_with_units(self):
        text = self.ok("plan", "cnn", "--batch", "128", "--data", "synthetic")
        self.assertTrue(text.startswith("Plan  cnn, batch 128, adam, f32, on cpu ("), text)
        for part in ("Memory  ", "activations", "peak at train node '", "lower bound", "fits: ",
                     "Time  ", " a step, ", " samples/s, ", " an epoch", "bound", "others"):
            self.assertIn(part, text)
        self.assertNotIn("\x1b", text)

    def test_colour_is_for_terminals_or_on_request(self):
        self.assertIn("\x1b[", self.ok("plan", "mlp", "--color", "always"))
        self.assertNotIn("\x1b[", self.ok("plan", "mlp"))
        self.assertIn("\x1b[", self.ok("plan", "mlp", env={"FORCE_COLOR": "1"}))
        self.assertNotIn("\x1b[", self.ok("plan", "mlp", "--color", "never",
                                          env={"FORCE_COLOR": "1"}))

    def test_a_recorded_machine_is_planned_for_by_its_rates(self):
        record = json.loads(self.ok("bench", "device", "--quick", "--dry-run", "--json"))
        self.write("quick.json", json.dumps(record))
        self.refused(4, "quick.json: has no rates of kernels. hint: ridge bench device --record "
                     "FILE", "plan", "mlp", "--on", "quick.json")
        kernels = {node["kernel"] for node in json.loads(self.ok("plan", "mlp", "--json"))["nodes"]}
        seconds = []
        for rate in 1e9, 1e10:
            points = [{"work": 1 << 40, "per_s": rate}]
            record["kernel_rates"] = {k + by: points for k in kernels for by in ("", " by bytes")}
            record["memory"][-1]["capacity_bytes"] = 100 << 20
            self.write("other.json", json.dumps(record))
            plan = json.loads(self.ok("plan", "mlp", "--on", "other.json", "--json"))[0]
            self.assertEqual(plan["limit_bytes"], 100 << 20)
            self.assertEqual(plan["step_s"], plan["modelled_step_s"])
            seconds.append(plan["step_s"])
        self.assertAlmostEqual(seconds[0] / seconds[1], 10, places=6)
        self.assertIn(f"modelled from its record of {record['made_at']}",
                      self.ok("plan", "mlp", "--on", "other.json"))

    def test_a_recorded_machine_offers_the_kernels_of_its_instructions(self):
        record = f"{SOURCE}/bench/machines/zen5-two-threads.json"
        cell = "plan", "resnet18:image=64", "--batch", "2", "--on", record, "--json"
        wide = json.loads(self.ok(*cell))[0]
        self.assertTrue(any(node["kernel"].endswith(":avx512_core") for node in wide["nodes"]))
        self.assertGreater(wide["rates"]["recorded"], 100)
        self.assertLess(wide["rates"]["missing_share"], 0.05)
        with open(record, encoding="utf-8") as file:
            narrow = json.load(file) | {"instructions": "sse41"}
        self.write("narrow.json", json.dumps(narrow))
        self.assertIn("by this CPU's kernels", self.ok("plan", "cnn", "--on", "narrow.json"))

    def asked(self, script, *words, cache="cache"):
        """A plan of a convolution that the table lacks, with a helper that is this script."""
        os.makedirs(self.path("cudnn/devices"), exist_ok=True)
        self.write("cudnn/devices/h200-sxm.json", "{}")
        self.write("cudnn/cudnn_ask", "#!/bin/sh\n" + script)
        os.chmod(self.path("cudnn/cudnn_ask"), 0o755)
        env = {"RIDGE_CUDNN": self.path("cudnn"), "XDG_CACHE_HOME": self.path(cache)}
        done = self.ridge("plan", "cnn", "--batch", "7", "--precision", "bf16", "--on", "h200-sxm",
                          *words, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_cudnn_is_asked_what_the_table_lacks(self):
        helper = "echo 92001\nwhile read q; do echo 5000 7000 0 engine; done\n"
        done = self.asked(helper)
        self.assertIn("workspaces: cuDNN 9.20.1 (asked)", done.stdout)
        self.assertIn("are not cuDNN's first choice", done.stdout)
        self.assertIn("asking cuDNN 9.20.1 about convolutions on h200-sxm", done.stderr)
        again = self.asked("echo 92001\nread q\nexit 2\n", "--json")  # kept: nothing is asked
        sources = json.loads(again.stdout)[0]["workspaces"]
        self.assertEqual(again.stderr, "")
        self.assertGreater(sources["asked"], 0)
        self.assertEqual(sources["answers_of"], ["cuDNN 9.20.1 (asked)"])
        self.assertEqual((sources["largest_bytes"], sources["largest_first_bytes"]), (7000, 5000))
        self.assertIn("whose engines are known", self.asked(helper, "--why", "determinism").stdout)

    def test_a_helper_that_fails_leaves_the_bounds(self):
        usual = json.loads(self.ok("plan", "cnn", "--batch", "7", "--precision", "bf16", "--on",
                                   "h200-sxm", "--json"))
        done = self.asked("echo 92001\nread q\necho no symbol >&2\nexit 2\n", "--json")
        self.assertEqual(json.loads(done.stdout), usual)
        folder = self.path("cudnn")
        self.assertRegex(done.stderr.splitlines()[-1],
                         f"RIDGE_CUDNN: {folder}/cudnn_ask ended: no symbol to 'conv.*'; "
                         "workspaces on h200-sxm that are not known stay upper bounds. hint: "
                         f"scripts/build_cudnn_ask.sh {folder}$")

    def test_a_cpu_of_the_catalog_is_planned_for_without_its_memory(self):
        plan = json.loads(self.ok("plan", "mlp", "--on", "xeon-8280", "--json"))[0]
        self.assertIsNone(plan["fits"])
        self.assertIsNone(plan["limit_bytes"])
        self.assertIn("how much memory xeon-8280 has is not known. hint: --fit BYTES",
                      self.ok("plan", "mlp", "--on", "xeon-8280"))
        given = json.loads(self.ok("plan", "mlp", "--on", "xeon-8280", "--fit", "1GiB",
                                   "--json"))[0]
        self.assertTrue(given["fits"])
        self.assertEqual(given["limit_bytes"], 1 << 30)

    def test_an_epoch_waits_for_the_link_of_offloaded_variables_as_its_steps_do(self):
        words = ["plan", "mlp", "--data", "synthetic", "--on", "a100-sxm4-40g", "--json"]
        here = json.loads(self.ok(*words))[0]
        there = json.loads(self.ok(*words, "--offload", "all"))[0]
        self.assertGreater(there["step_s"], 2 * here["step_s"])
        self.assertAlmostEqual(there["epoch_s"] / here["epoch_s"], there["step_s"] / here["step_s"],
                               delta=0.1)

    def test_the_upper_end_of_what_is_estimated_must_fit(self):
        words = ["plan", "resnet18", "--batch", "64", "--on", "a100-sxm4-40g", "--json"]
        plan = json.loads(self.ok(*words))[0]
        low, high = plan["peak_low_bytes"], plan["peak_high_bytes"]
        self.assertLess(low, high)
        self.assertEqual(high, plan["peak_bytes"])
        self.assertTrue(json.loads(self.ok(*words, "--fit", str(high)))[0]["fits"])
        between = self.ridge(*words, "--fit", str((low + high) // 2), "--slices", "1",
                             "--recompute", "off")
        self.assertEqual(between.returncode, 3)
        self.assertFalse(json.loads(between.stdout)[0]["fits"])
        self.assertNotIn("peak_low_bytes", json.loads(self.ok("plan", "mlp", "--json")))

    def test_why_names_the_kernel_of_each_node_of_an_operator(self):
        text = self.ok("plan", "mlp", "--why", "matmul")
        self.assertRegex(text, r"(?m)^train '.+' \(matmul\): \S+$")
        self.assertRegex(text, r"(?m)^eval '.+' \(matmul\): \S+$")
        self.refused(2, "--why is 'conv3d'; the plan has no such operator or node. hint: -v lists "
                     "them", "plan", "mlp", "--why", "conv3d")

    def test_why_slices_lists_the_plans_that_were_compared(self):
        words = ["plan", "cnn", "--batch", "128", "--slices", "auto", "--recompute", "auto"]
        plan = json.loads(self.ok(*words, "--json"))
        chosen = [c for c in plan["candidates"] if c["chosen"]]
        self.assertEqual([c["slices"] for c in chosen], [plan["slices"]])
        text = self.ok(*words, "--why", "slices")
        self.assertEqual(text.count("\n"), 2 + len(plan["candidates"]), text)
        self.assertRegex(text, r"(?m) chosen$")

    def test_numbers_that_the_library_lacks_keep_no_layout_of_its(self):
        """The gradient of max_pool_grad reads its index as i64; the pool's own is blocked."""
        path = self.write("net.ridge", "graph n\n"
                          "  x = input f32[batch=1,1]\n"
                          "  w = parameter f32[2,1,1,1] init=uniform(0.7)\n"
                          "  image = reshape(x, dims=[1,1,1,1])\n"
                          "  conv = conv(image, w, stride=[2,1])\n"
                          "  pooled, index = max_pool(conv, kernel=[1,1], stride=[2,2])\n"
                          "  spread = max_pool_grad(index, pooled, kernel=[1,1], stride=[2,2], "
                          "input_dims=[1,2,1,1])\n"
                          "  loss = reduce_sum(spread)\n"
                          "  output loss\n")
        self.ok("plan", path, "--batch", "1")

    def test_verbose_shows_the_schedule(self):
        text = self.ok("plan", "mlp", "-v")
        self.assertRegex(text, r"train: \d+ nodes, scratch \d+ bytes, lower bound \d+ bytes")
        self.assertRegex(text, r"eval: \d+ nodes")


if __name__ == "__main__":
    unittest.main()
