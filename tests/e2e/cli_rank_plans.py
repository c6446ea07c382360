"""Plans of several ranks: what their sums take, what each rank planned and took, and whether more devices would help."""
import glob
import json
import os
import shutil
import unittest

from _ridge import RIDGE, SMALL, RidgeTest, environment

TRAIN = ["train", *SMALL, "--devices", "2", "--out", "run"]


class RankPlans(RidgeTest):
    def own_cache(self):
        """A cache with the machine's profiles alone."""
        profiles = self.path("cache/ridge/profiles")
        os.makedirs(profiles)
        for path in glob.glob(os.path.join(environment()["XDG_CACHE_HOME"], "ridge", "profiles", "*.json")):
            if os.path.basename(path).count(".") == 1:
                shutil.copy(path, profiles)
        return {"XDG_CACHE_HOME": self.path("cache")}

    def test_sums_are_measured_once_and_kept_beside_the_profile(self):
        env = self.own_cache()
        first = self.ridge(*TRAIN, "--steps", "2", env=env)
        self.assertRegex(first.stderr, r"(?m)^ridge: no times of sums over 2 ranks by Open MPI [\d.]+ yet: measuring them$")
        (path,) = glob.glob(self.path("cache/ridge/profiles/*.openmpi-2-1.json"))
        times = self.read_json(path)
        self.assertEqual((times["ranks"], times["machines"]), (2, 1))
        self.assertGreater(times["join_bytes"], 0)
        self.assertEqual([sum_of["bytes"] for sum_of in times["sums"]], [4096 * 4**i for i in range(7)])
        self.write(path, json.dumps({**times, "made_at": "2026-01-02T03:04:05Z"}))
        shutil.rmtree(self.path("run"))
        second = self.ridge(*TRAIN, "--steps", "2", env=env)
        self.assertNotIn("measuring", second.stderr)
        plan = self.read_json("run/plan.json")
        self.assertEqual(plan["communication"]["source"], f"{times['mpi']}, measured 2026-01-02")

    def test_a_bench_of_ranks_has_their_plan_and_virtual_compute_says_that_it_is(self):
        words = ["bench", "step", "mlp", "--batch", "8", "--devices", "2", "--threads", "1", "--steps", "3", "--overlap", "on"]
        real = json.loads(self.ok(*words, "--json", "-q"))
        self.assertEqual((real["ranks"], real["virtual_compute"]), (2, False))
        self.assertAlmostEqual(real["planned"]["compute_s"] + real["planned"]["communication_s"], real["planned"]["step_s"])
        said = self.ok(*words, "-q", env={"RIDGE_TEST_COMPUTE": "virtual"})
        self.assertIn("virtual compute: kernels slept as long as they are planned, and computed nothing", said)
        self.assertNotIn("loss", said)

    def test_a_damaged_table_is_measured_again(self):
        env = self.own_cache()
        self.ok(*TRAIN, "--steps", "2", "-q", env=env)
        (path,) = glob.glob(self.path("cache/ridge/profiles/*.openmpi-2-1.json"))
        self.write(path, "{}")
        shutil.rmtree(self.path("run"))
        self.assertIn("measuring them", self.ridge(*TRAIN, "--steps", "2", env=env).stderr)
        self.assertEqual(len(self.read_json(path)["sums"]), 7)

    def test_the_plan_counts_the_sums_and_the_run_measures_them(self):
        out = self.ok(*TRAIN, "--steps", "60", "--progress", "plain")
        plan, summary = self.read_json("run/plan.json"), self.read_json("run/summary.json")
        sums = plan["communication"]
        self.assertEqual(sums["busy_s"], sums["exposed_s"])
        self.assertAlmostEqual(sums["exposed_share"], sums["exposed_s"] / plan["step_s"])
        node = next(of for of in plan["nodes"] if of["op"] == "all_reduce" and of["step"] == "train")
        self.assertAlmostEqual(node["s"], sums["exposed_s"])
        self.assertRegex(out, r"\n  communication: [\d.]+ [mu]s a step, [\d.]+ % of it \(Open MPI [\d.]+, measured [\d-]+\)\n")
        wires = {of["wire"]: of for of in sums["wires"]}
        self.assertEqual(list(wires), ["f32", "bf16"])
        self.assertAlmostEqual(wires["f32"]["busy_s"], sums["exposed_s"])
        self.assertLess(wires["bf16"]["sent_bytes"], 0.51 * wires["f32"]["sent_bytes"])
        self.assertRegex(out, r"\n  sums alone: --wire f32 [\d.]+ [mu]s, [\d.]+ [KM]iB sent; --wire bf16 [\d.]+ [mu]s, [\d.]+ [KM]iB sent\n")
        self.assertEqual(summary["planned"]["communication_s"], sums["exposed_s"])
        measured = summary["measured"]
        self.assertTrue(0 < measured["communication_s"] < measured["step_s"])
        self.assertRegex(out, r"\n  communication +[\d.]+ [mu]s +[\d.]+ [mu]s ")

    def test_each_rank_reports_what_it_planned_and_took(self):
        done = self.ridge("train", "mlp:hidden=256", "--data", "synthetic", "--threads", "1", "--devices", "2", "--out", "run",
                          "--slices", "3", "--batch", "1536", "--steps", "30", "--progress", "plain")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"communication [\d.]+ % \(slowest: rank [01]\)")
        ranks = self.read_json("run/summary.json")["ranks"]
        self.assertEqual(len(ranks), 2)
        for rank in ranks:
            planned, measured = rank["planned"], rank["measured"]
            self.assertTrue(measured["peak_bytes"] <= planned["peak_bytes"] <= 1.05 * measured["peak_bytes"], rank)
            self.assertEqual(planned["arena_bytes"], measured["arena_bytes"])
            self.assertTrue(0 < measured["collective_s"] < measured["step_s"])
            self.assertTrue(0 <= rank["wait_share"] < 1)
        # One of three slices waits for two.
        self.assertGreater(ranks[0]["wait_share"], ranks[1]["wait_share"])
        self.assertRegex(done.stdout, r"\n  rank  peak planned  measured +error  step planned  measured +error +waits\n"
                         r"     0 .* %\n     1 .* %\n")

    def test_progress_for_machines_has_the_share_and_the_slowest(self):
        done = self.ridge(*TRAIN, "--steps", "60", "--progress", "json")
        lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        last = [line for line in lines if line["event"] == "progress"][-1]
        self.assertTrue(0 < last["communication"] < 1)
        self.assertIn(last["slowest_rank"], (0, 1))

    def test_receipts_of_ranks_calibrate_plans_of_as_many_only(self):
        env = {"RIDGE_RECEIPTS": "on", "XDG_STATE_HOME": self.path("state")}
        for _ in range(3):
            self.ok(*TRAIN, "--steps", "30", "-q", env=env)
            shutil.rmtree(self.path("run"))
        history = json.loads(self.ok("plan", "--history", "--json", env=env))
        self.assertEqual([of["ranks"] for of in history["receipts"]], [2, 2, 2])
        self.assertEqual([of["ranks"] for of in history["scales"]], [2])
        one = json.loads(self.ok("plan", *SMALL, "--json", env=env))
        two = json.loads(self.ok("plan", *SMALL, "--devices", "2", "--json", env=env))
        self.assertNotIn("expected", one)
        self.assertEqual(two["expected"]["runs"], 3)

    def test_a_plan_of_ranks_is_that_of_the_training(self):
        self.ok(*TRAIN, "--steps", "2", "-q")
        trained, planned = self.read_json("run/plan.json"), json.loads(self.ok("plan", *SMALL, "--devices", "2", "--json"))
        for key in ("batch", "slices", "share", "arena_bytes", "bound_bytes"):
            self.assertEqual(planned[key], trained[key], key)
        self.assertEqual(planned["communication"], {**trained["communication"], "exposed_share": planned["communication"]["exposed_share"]})
        self.assertEqual(planned["collectives"], trained["collectives"])
        peak = self.read_json("run/summary.json")["measured"]["peak_bytes"]
        self.assertTrue(peak <= planned["peak_bytes"] <= 1.10 * peak, (planned["peak_bytes"], peak))

    def test_the_text_of_a_plan_does_not_grow_with_the_square_of_its_sums(self):
        text = self.ok("plan", "gpt", "--batch", "2", "--sums", "tree", "--slices", "2", "-v")
        self.assertIn(" others ", text)
        self.assertLess(max(len(line) for line in text.splitlines()), 1500)

    def test_without_an_mpi_a_plan_says_what_it_does_not_know(self):
        done = self.ridge("plan", *SMALL, "--devices", "2", env={**self.own_cache(), "PATH": "/nowhere"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ridge: warning: the sums over the devices were not measured: ", done.stderr)
        self.assertIn("% of it (by the memory's rate: nobody has measured it)\n", done.stdout)

    def test_ranks_on_devices_that_are_not_here(self):
        command = ["plan", "gpt", "--batch", "64", "--on", "h100-sxm", "--json", "--devices"]
        one, eight = (json.loads(self.ok(*command, count))[0] for count in ("1", "8"))
        self.assertNotIn("communication", one)
        self.assertEqual(eight["share"], {"slices": 8, "rank": 0, "ranks": 8})
        sums = eight["communication"]
        self.assertTrue(0 < sums["exposed_s"] <= sums["busy_s"])
        self.assertTrue(sums["source"].startswith("measured: "), sums["source"])
        (train,) = [of for of in eight["collectives"] if of["step"] == "train"]
        self.assertEqual(train["sent_bytes"], 2 * (train["bytes"] - train["bytes"] // 8))
        self.assertLess(eight["step_s"], one["step_s"])

    def test_a_batch_may_be_said_for_each_device(self):
        each = ["train", *SMALL, "--steps", "4", "-q", "--out", "run", "--batch-per-device", "16"]
        self.ok(*each, "--devices", "2")
        self.assertEqual(self.read_json("run/plan.json")["batch"], 32)
        of_each = self.read_json("run/summary.json")["parameters_sha256"]
        shutil.rmtree(self.path("run"))
        self.ok("train", *SMALL, "--steps", "4", "-q", "--out", "run", "--batch", "32", "--devices", "2")
        self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"], of_each)
        shutil.rmtree(self.path("run"))
        self.ok(*each)
        self.assertEqual(self.read_json("run/plan.json")["batch"], 16)
        plan = json.loads(self.ok("plan", *SMALL, "--batch-per-device", "16", "--devices", "2", "--json"))
        self.assertEqual(plan["batch"], 32)
        self.fails(2, "--batch-per-device", *each, "--batch", "32")

    def test_more_devices_are_compared_term_by_term(self):
        table = json.loads(self.ok("plan", "gpt", "--batch", "16", "--on", "rtx4090", "--why", "devices", "--devices", "4", "--json"))
        self.assertEqual([(of["devices"], of["batch"]) for of in table["strong"]], [(1, 16), (2, 16), (4, 16)])
        self.assertEqual([(of["devices"], of["batch"]) for of in table["weak"]], [(1, 16), (2, 32), (4, 64)])
        for of in table["strong"] + table["weak"]:
            terms = ("compute", "recompute", "stragglers", "tensor", "stages", "communication", "input")
            self.assertAlmostEqual(of["step_s"], sum(of[term + "_s"] for term in terms))
            self.assertTrue(of["step_low_s"] <= of["step_s"] <= of["step_high_s"])
        self.assertEqual(table["strong"][0]["communication_s"], 0)
        self.assertEqual(table["strong"][0]["linear_share"], 1)
        text = self.ok("plan", *SMALL, "--devices", "2", "--why", "devices")
        self.assertRegex(text, r"\Amlp:hidden=32 on cpu\n\nStrong: 32 samples an update, on more devices\n2 devices ")
        self.assertRegex(text, r"\n2 devices [a-z ]+: [\d.]+ times the samples a second of one \([\d.]+ to [\d.]+\)\.\n")
        self.assertIn("\nWeak: 32 samples an update for each device\n", text)

    def test_counts_and_kind_of_scaling_can_be_named(self):
        table = json.loads(self.ok("plan", "gpt", "--batch", "16", "--on", "rtx4090", "--why", "devices", "--devices", "2,6", "--scaling", "weak", "--json"))
        self.assertEqual(table["strong"], [])
        self.assertEqual([(of["devices"], of["batch"]) for of in table["weak"]], [(2, 32), (6, 96)])
        self.fails(2, "--devices is '2,2'; the numbers that --why compares ascend from 1 or more. hint: --devices 1,2,4,8", "plan", "gpt", "--why", "devices", "--devices", "2,2")
        self.fails(2, "--scaling is of --why devices. hint: --why devices", "plan", "gpt", "--scaling", "weak")

    def test_a_cluster_takes_the_best_layout_of_each_number(self):
        words = ("--batch", "16", "--precision", "bf16")
        tables = json.loads(self.ok("plan", "gpt", *words, "--on", "dgx-a100-80g,a100-pcie-80g", "--why", "devices", "--devices", "4,8", "--json"))
        self.assertEqual(len(tables), 2)
        best = json.loads(self.ok("plan", "gpt", *words, "--on", "dgx-a100-80g", "--mesh", "auto", "--devices", "8", "--json"))[0]
        self.assertEqual(tables[0]["strong"][1]["mesh"], best["mesh"])
        self.assertAlmostEqual(tables[0]["strong"][1]["step_s"], best["step_s"], delta=0.02 * best["step_s"])
        modules, cards = (t["strong"][1]["speed_up"] for t in tables)
        self.assertLessEqual(modules["low"], modules["times"])
        self.assertGreater(modules["times"], cards["times"])

    def test_a_servers_port_carries_what_all_send(self):
        tables = json.loads(self.ok("plan", "gpt", "--batch", "2", "--on", "a100-sxm4-40g,rtx4090", "--why", "sums", "--devices", "8", "--json"))
        for table in tables:
            self.assertEqual([of["devices"] for of in table["ways"]], [1, 2, 4, 8])
            for of in table["ways"][1:]:
                self.assertEqual(of["server"]["port_bytes"], 2 * of["devices"] * table["gradient_bytes"])
                self.assertGreater(of["server"]["s"], of["all_reduce"]["s"])
        self.assertEqual(tables[0]["gradient_bytes"], 4 * 14585856)
        self.fails(2, "--why sums: nothing is known of the links of 'cpu'. hint: --on dgx-a100-80g", "plan", "cnn", "--why", "sums")

    def test_unequal_cards_take_unequal_parts(self):
        words = ("plan", "gpt", "--batch", "64", "--precision", "f16", "--on", "a100-sxm4-40g:1,t4:1")
        plan = json.loads(self.ok(*words, "--json"))
        fast, slow = plan["devices"]
        self.assertEqual(fast["slices"] + slow["slices"], plan["slices"])
        self.assertEqual(plan["slices"] * plan["slice_samples"], 64)
        self.assertGreater(fast["slices"], slow["slices"])
        self.assertGreater(plan["times_equal"], 1.5)
        self.assertAlmostEqual(plan["step_s"], max(of["kernel_s"] + of["sum_s"] + of["straggler_s"] for of in plan["devices"]))
        self.assertIn(f" --shares {fast['slices']},{slow['slices']} ", plan["command"])
        text = self.ok(*words)
        self.assertRegex(text, r"\n[\d.]+ times the samples a second of equal shares, [\d.]+ times those of a100-sxm4-40g alone[.,]")
        self.fails(2, "--devices is not for --on a100-sxm4-40g:1,t4:1, whose devices share a batch. hint: leave --devices out", *words, "--devices", "2")

    def test_what_does_not_fit_says_so(self):
        table = json.loads(self.ok("plan", "gpt", "--batch", "16", "--on", "rtx4090", "--why", "devices", "--devices", "2", "--fit", "800MiB", "--scaling", "strong", "--json"))
        self.assertFalse(table["strong"][0]["fits"])
        self.assertGreater(table["strong"][0]["peak_bytes"], table["strong"][0]["limit_bytes"])
        self.assertNotIn("step_s", table["strong"][0])


if __name__ == "__main__":
    unittest.main()
