"""`--mesh`: what a rank of many devices keeps and sends, and what is refused."""
import json
import pathlib
import unittest

from _ridge import RidgeTest

GPT = "gpt:layers=2,hidden=64,heads=4,context=32,vocab=128"
STATE = ["parameters_bytes", "gradients_bytes", "optimizer_bytes", "other_bytes"]


class Mesh(RidgeTest):
    def plan(self, mesh, *words, model=GPT):
        return json.loads(self.ok("plan", model, "--batch", "8", "--mesh", mesh, *words, "--json"))

    def count(self, plan, op, axis):
        return sum(c["count"] for c in plan["collectives"] if (c["op"], c["axis"]) == (op, axis))

    def test_says_what_a_rank_keeps_and_sends(self):
        plan = self.plan("d=2,t=2", "--shard", "zero3,sequence")
        self.assertEqual(plan["mesh"], {"d": 2, "t": 2})
        self.assertEqual((plan["devices"], plan["shard"]), (4, "zero3,sequence"))
        self.assertEqual(plan["tensor_pairs"], 4)
        for key in STATE:
            self.assertLessEqual(plan["rank"][key], plan["one_device"][key])
        self.assertLess(plan["rank"]["arena_bytes"], plan["rank"]["peak_bytes"])
        for collective in plan["collectives"]:
            self.assertEqual(set(collective),
                             {"step", "op", "axis", "ranks", "count", "bytes", "sent_bytes", "s"})
            self.assertIsNone(collective["s"])  # nothing is known of this machine's links
            times = 2 if collective["op"] == "all_reduce" else 1
            self.assertEqual(collective["sent_bytes"], times * collective["bytes"] // 2)

    def test_stages_of_zero_keep_their_parts(self):
        whole = self.plan("d=4")
        one = whole["one_device"]
        for stage, cut in ((0, []), (1, ["gradients", "optimizer"]),
                           (3, ["parameters", "gradients", "optimizer"])):
            plan = self.plan("d=4", *(["--shard", f"zero{stage}"] if stage else []))
            for what in ("parameters", "gradients", "optimizer"):
                key = f"{what}_bytes"
                self.assertEqual(plan["rank"][key], one[key] // (4 if what in cut else 1), what)

    def test_a_training_keeps_what_the_formula_of_zero_says(self):
        for stage in ("none", "zero1", "zero2", "zero3"):
            with self.subTest(stage=stage):
                words = ["--mesh", "d=2", "--shard", stage]
                planned = json.loads(self.ok("plan", GPT, "--batch", "8", *words, "--json"))["rank"]
                self.ok("train", GPT, "--data", "synthetic", "--batch", "8", "--steps", "2", "--threads", "1", "-q", *words,
                        "--out", stage)
                kept = self.read_json(f"{stage}/plan.json")["breakdown"]
                self.assertEqual(kept["optimizer"], planned["optimizer_bytes"])
                constants = kept["parameters"] - planned["parameters_bytes"]  # numbers of 64 bytes each
                self.assertTrue(0 <= constants <= 512, constants)
                for rank in self.read_json(f"{stage}/summary.json")["ranks"]:
                    self.assertEqual(rank["measured"]["arena_bytes"], rank["planned"]["arena_bytes"])
                    self.assertLessEqual(rank["measured"]["peak_bytes"], rank["planned"]["peak_bytes"])

    def test_checkpoints_of_several_writers_are_those_of_one(self):
        words = [GPT, "--data", "synthetic", "--batch", "8", "--steps", "2", "--threads", "1", "-q"]
        parts = ["--mesh", "d=2", "--shard", "zero3"]
        for writers in ("1", "2"):
            self.ok("train", *words, *parts, "--checkpoint-writers", writers, "--out", f"by-{writers}")
        for name in ("parameters", "state"):
            one, two = (pathlib.Path(self.path(f"by-{w}/checkpoints/step-2/{name}.safetensors")).read_bytes() for w in "12")
            self.assertEqual(one, two, name)
        self.ok("train", *words[:-3], "--threads", "1", "-q", "--out", "by-2", "--resume", "--allow-different", "--steps", "4")
        self.fails(2, "--checkpoint-writers 3: 2 devices train. hint: --checkpoint-writers 2", "train", *words, *parts,
                   "--checkpoint-writers", "3", "--out", "by-3")

    def test_a_rank_needs_less_memory_the_more_is_cut(self):
        peaks = [self.plan(*words)["rank"]["arena_bytes"]
                 for words in (["d=1"], ["d=2"], ["d=2", "--shard", "zero3"], ["d=4,t=2"])]
        self.assertEqual(peaks, sorted(peaks, reverse=True))

    def test_accumulated_gradients_leave_once_an_update(self):
        plan = self.plan("d=2", "--accumulate", "4")
        steps = {c["step"]: c["count"] for c in plan["collectives"] if c["op"] == "all_reduce"}
        self.assertEqual(steps["update"], 29)  # the parameters
        self.assertLess(steps["micro"], 5)  # numbers

    def test_the_text_has_the_numbers_of_the_json(self):
        text = self.ok("plan", GPT, "--batch", "8", "--mesh", "d=2,t=2")
        plan = self.plan("d=2,t=2")
        self.assertTrue(text.startswith(f"{GPT}, batch 8, 4 devices: mesh d=2,t=2, shard none\n"))
        for collective in plan["collectives"]:
            self.assertRegex(text, rf"{collective['op']} +{collective['axis']} +2 +"
                                   rf"{collective['count']} ")

    def test_plans_for_a_device_that_is_not_here(self):
        plan = self.plan("d=8", "--on", "h100-sxm", "--shard", "zero1")
        self.assertEqual(plan["devices"], 8)

    def test_what_rests_on_the_host_leaves_the_device(self):
        words = ["d=8", "--on", "h100-sxm", "--shard", "zero2"]
        whole = self.plan(*words)
        state = whole["rank"]["optimizer_bytes"]
        for offload, rests in (("optimizer", state), ("all", state + whole["rank"]["parameters_bytes"])):
            plan = self.plan(*words, "--offload", offload)
            there = plan["offload"]
            self.assertAlmostEqual(there["host_bytes"], rests, delta=0.01 * rests + (2 << 20))
            expected = whole["rank"]["peak_bytes"] - there["host_bytes"] + there["window_bytes"]
            self.assertLessEqual(abs(plan["rank"]["peak_bytes"] - expected), 2 << 20)  # a page
            self.assertGreaterEqual(plan["step_s"], max(whole["step_s"], there["transfer_s"]))
        text = self.ok("plan", GPT, "--batch", "8", "--mesh", *words, "--offload", "optimizer")
        self.assertRegex(text, r"\n  offload: [\d.]+ [KM]iB of a rank rest in the host's memory, [\d.]+ [KM]iB for its devices\n")
        self.assertRegex(text, r"\n  transfers of --offload +host's link +[\d.]+ [mu]s")
        self.refuses("--offload optimizer: of a mesh the axes d and t are planned with it, one layout at a time. hint: --mesh d=8 --shard zero2",
                     "--mesh", "auto", "--devices", "8", "--on", "dgx-h100", "--offload", "optimizer")
        self.refuses("--offload is 'optimizer'; ", "--mesh", "d=2", "--offload", "optimizer")

    def pipeline(self, schedule, *words):
        return self.plan("p=2", "--accumulate", "4", "--pipeline", schedule, *words)

    def test_stages_of_a_pipeline_share_the_model(self):
        one = self.plan("d=1", "--accumulate", "4")["one_device"]
        for schedule in ("gpipe", "1f1b", "interleaved:2", "zero-bubble"):
            plan = self.pipeline(schedule)
            self.assertEqual((plan["mesh"], plan["pipeline"]), ({"p": 2}, schedule))
            self.assertEqual(len(plan["stages"]), 4 if schedule == "interleaved:2" else 2)
            for what, like in (("parameters", "parameters"), ("gradients", "parameters"),
                               ("optimizer", "optimizer")):
                total = sum(stage[f"{what}_bytes"] for stage in plan["stages"])
                self.assertEqual(total, one[f"{like}_bytes"], (schedule, what))
            first, last = plan["stages"][0], plan["stages"][-1]
            self.assertEqual((last["sent_forward_bytes"], first["sent_backward_bytes"]), (0, 0))
            self.assertGreater(first["sent_forward_bytes"], 0)
            self.assertEqual(first["weights_s"] > 0, schedule == "zero-bubble")
            self.assertGreaterEqual(plan["step_s"], plan["makespan_s"])
            self.assertLess(plan["bubble"], 1)

    def test_a_tied_weight_is_in_two_stages(self):
        plan, tied = (self.plan("p=2", "--accumulate", "4", model=GPT + more)
                      for more in ("", ",tied=1"))
        table = 128 * 64 * 4
        self.assertEqual([stage["exchange_bytes"] for stage in plan["stages"]], [0, 0])
        self.assertEqual([stage["exchange_bytes"] for stage in tied["stages"]],
                         [0, 2 * table])  # its sum of gradients; and the weight back

    def test_1f1b_keeps_fewer_micro_batches_than_gpipe(self):
        kept = {s: [rank["kept_micro_batches"] for rank in self.pipeline(s)["ranks"]]
                for s in ("gpipe", "1f1b", "zero-bubble")}
        self.assertEqual(kept, {"gpipe": [4, 4], "1f1b": [2, 1], "zero-bubble": [2, 2]})

    def test_the_text_of_a_pipeline_draws_its_schedule(self):
        text = self.ok("plan", GPT, "--batch", "8", "--mesh", "p=2", "--accumulate", "4")
        self.assertTrue(text.startswith(
            f"{GPT}, 4 micro batches of 8, 2 devices: mesh p=2, pipeline 1f1b\n"), text)
        self.assertRegex(text, r"\n +0 \|0+1*\.*a+.*d+\|\n +1 \|\.+0+a+.*d+\.*\|\n")
        self.assertIn("bubble", text)

    def test_a_plan_for_this_machine_refuses_what_a_training_refuses(self):
        for words, text in (
                (["--mesh", "d=2", "--precision", "f16"],
                 "--precision f16: all gradients together decide on the loss scale, and a --mesh has parts of them. hint: "
                 "--precision bf16"),
                (["--mesh", "p=2"],
                 "--accumulate is 1; a pipeline needs 2 micro batches or more. hint: --accumulate 4")):
            for verb in (["plan"], ["train", "--data", "synthetic", "--out", "refused"]):
                done = self.ridge(*verb, GPT, "--batch", "8", *words)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr, f"ridge: {text}\n", verb)

    def test_refuses_pipelines_that_cannot_be(self):
        self.refuses("--accumulate is 1; a pipeline needs 2 micro batches or more. hint: "
                     "--accumulate 4", "--mesh", "p=2")
        self.refuses("--mesh auto, stages beside other axes and recomputing on a mesh are planned for devices "
                     "whose links are known. hint: --on dgx-h100", "--mesh", "p=2,d=2", "--accumulate", "4")
        self.refuses("--pipeline needs the axis p of --mesh. hint: --mesh p=4",
                     "--pipeline", "gpipe")
        self.refuses("--pipeline orders the stages of --mesh p=N; the mesh is d=2. hint: leave --pipeline out",
                     "--mesh", "d=2", "--pipeline", "gpipe")
        self.refuses("--pipeline is '2f2b'; it must be gpipe, 1f1b, interleaved:CHUNKS (2 to 64 a "
                     "device) or zero-bubble. hint: --pipeline 1f1b",
                     "--mesh", "p=2", "--accumulate", "4", "--pipeline", "2f2b")
        self.refuses("schedule interleaved:2: 3 micro batches on 2 devices; they must be a "
                     "multiple. hint: --accumulate 4",
                     "--mesh", "p=2", "--accumulate", "3", "--pipeline", "interleaved:2")
        self.refuses("--shard is of the axes d and t. hint: leave it out beside --mesh p=N",
                     "--mesh", "p=2", "--accumulate", "4", "--shard", "zero1")
        self.refuses("pipeline: the largest of 2 stages needs at least", "--mesh", "p=2",
                     "--accumulate", "4", "--fit", "100KiB", code=3)

    def test_a_cluster_has_seconds_by_axis(self):
        plan = self.plan("d=4,t=2", "--on", "dgx-h100", "--optimizer", "sgd")
        axes = {axis["axis"]: axis for axis in plan["axes"]}
        self.assertEqual([(axes[a]["per_node"], axes[a]["nodes"]) for a in "dt"], [(4, 1), (2, 1)])
        self.assertEqual(axes["t"]["busy_s"], axes["t"]["exposed_s"])  # in line
        terms = plan["rank"]["kernel_s"] + sum(axis["exposed_s"] for axis in axes.values())
        self.assertAlmostEqual(plan["step_s"], terms, delta=1e-9)
        self.assertAlmostEqual(sum(c["s"] for c in plan["collectives"]),
                               sum(axis["busy_s"] for axis in axes.values()))
        self.assertAlmostEqual(plan["samples_s"], 8 / plan["step_s"])

    def test_the_last_axis_is_innermost(self):
        def across(mesh):
            axes = self.plan(mesh, "--on", "dgx-h100", model=GPT.replace("heads=4", "heads=8"))["axes"]
            return {a["axis"]: (a["per_node"], a["nodes"]) for a in axes}
        self.assertEqual(across("d=2,t=8"), {"d": (1, 2), "t": (8, 1)})
        self.assertEqual(across("t=8,d=2"), {"d": (2, 1), "t": (4, 2)})

    def refuses(self, text, *words, code=2):
        self.fails(code, text, "plan", GPT, "--batch", "8", *words)

    def test_refuses_what_does_not_fit_together(self):
        self.refuses("--shard needs the axes of --mesh. hint: --mesh d=2,t=2", "--shard", "zero1")
        self.refuses("mesh d=3: d=3 does not divide the batch of 8 (input 'tokens' is i64[8,32]). "
                     "hint: --batch 9", "--mesh", "d=3")
        self.refuses("mesh \"d\": \"d\" is no axis; it must be NAME=SIZE", "--mesh", "d")
        self.refuses("mesh t=2 has no axis d, along which zero1 stores parts. hint: add d=2",
                     "--mesh", "t=2", "--shard", "zero1")
        self.refuses("--slices is '4'; there is one slice of a plan on a mesh. hint: leave it out",
                     "--mesh", "d=2", "--slices", "4")
        self.refuses("plan: a rank needs", "--mesh", "d=2", "--fit", "1MiB", code=3)
        self.refuses("--on is 'cpu,cpu'; a mesh is of one kind of device. hint: name one",
                     "--mesh", "d=2", "--on", "cpu,cpu")
        self.refuses("12 devices are no whole nodes of dgx-h100, which have 8. hint: 16 devices",
                     "--mesh", "t=12", "--on", "dgx-h100")
        self.refuses("--on h100-sxm is one machine; it has 16 devices at most, the mesh has 32. "
                     "hint: one of `ridge devices clusters`", "--mesh", "d=32", "--on", "h100-sxm")


if __name__ == "__main__":
    unittest.main()
