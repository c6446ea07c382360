"""`ridge plan --mesh auto`, and meshes with pipeline stages or recomputing: composed layouts."""
import json
import unittest

from _ridge import RidgeTest

GPT = "gpt:layers=8,hidden=512,heads=8,context=256,vocab=1024"


class Layouts(RidgeTest):
    def plan(self, mesh, *words, model=GPT, batch="16", on="dgx-h100"):
        return json.loads(self.ok("plan", model, "--batch", batch, "--mesh", mesh, "--on", on,
                                  *words, "--json"))

    def test_a_search_ranks_what_fits(self):
        found = self.plan("auto", "--devices", "16")
        self.assertGreater(len(found), 3)
        self.assertEqual([f["step_s"] for f in found], sorted(f["step_s"] for f in found))
        for layout in found:
            self.assertEqual((layout["devices"], layout["batch"] * layout["accumulate"]), (16, 16))
            self.assertLessEqual(layout["peak_bytes"], layout["limit_bytes"])
            self.assertAlmostEqual(sum(layout["seconds"].values()), layout["step_s"])
            self.assertEqual(sum(layout["bytes"].values()), layout["peak_bytes"])
        self.assertEqual(len({f["mesh"] for f in found}), len(found))

    def test_a_row_of_the_search_is_what_its_command_plans(self):
        best = self.plan("auto", "--devices", "16")[0]
        words = ["--recompute", "full"] if best["recompute"] else []
        if best["shard"] != "none":
            words += ["--shard", best["shard"]]
        again = self.plan(best["mesh"], "--accumulate", str(best["accumulate"]), *words,
                          batch=str(best["batch"]))
        self.assertEqual(again, best)

    def test_memory_decides(self):
        roomy = self.plan("auto", "--devices", "8")[0]
        tight = self.plan("auto", "--devices", "8", "--fit", "1GiB")
        self.assertLessEqual(max(f["peak_bytes"] for f in tight), 2**30)
        self.assertGreaterEqual(tight[0]["step_s"], roomy["step_s"])
        self.fails(3, "plan: the smallest layout,", "plan", GPT, "--batch", "16", "--mesh", "auto",
                   "--devices", "2", "--on", "dgx-h100", "--fit", "830MiB")

    def test_composed_and_partitioned_layouts_agree(self):
        for mesh, composed in (("d=4", "p=1,d=4,t=1"), ("t=4", "p=1,d=1,t=4")):
            graph = self.plan(mesh, "--slices", "1")
            formula = self.plan(composed)
            terms = formula["seconds"]
            kernels = terms["kernels"] + terms["update"]
            self.assertAlmostEqual(kernels / graph["rank"]["kernel_s"], 1, delta=0.02, msg=mesh)
            state = sum(formula["bytes"][k] for k in ("parameters", "gradients", "optimizer"))
            rank = sum(graph["rank"][k + "_bytes"] for k in ("parameters", "gradients", "optimizer"))
            self.assertAlmostEqual(state / rank, 1, delta=0.01, msg=mesh)
        line = next(a["exposed_s"] for a in graph["axes"] if a["axis"] == "t")
        self.assertAlmostEqual(terms["tensor"] / line, 1, delta=0.01)

    def test_choose_offers_the_layout_where_one_device_has_too_little_memory(self):
        words = ("choose", GPT, "--batch", "16", "--data-size", "100", "--among", "h100-sxm", "--precision", "bf16", "--fit", "800MiB")
        offers = {o["count"]: o for o in json.loads(self.ok(*words, "--json"))["offers"]}
        plain = {o["count"]: o for o in json.loads(self.ridge(*words, "--layouts", "data", "--json").stdout)["offers"]}
        self.assertIn("memory", offers[1]["refusals"])
        self.assertIn("memory", plain[8]["refusals"])
        self.assertEqual(offers[8]["refusals"], [])
        self.assertLessEqual(offers[8]["peak_bytes"], offers[8]["limit_bytes"])
        layout = offers[8]["layout"]
        again = self.plan(layout["mesh"], "--accumulate", str(layout["accumulate"]), "--shard", layout["shard"], "--precision", "bf16",
                          *(["--recompute", "full"] if layout["recompute"] else []), batch=str(layout["batch"]))
        self.assertAlmostEqual(again["step_s"] / offers[8]["step_s"], 1, delta=0.02)
        self.assertIn("  layout  ", self.ok(*words))
        best = {o["count"]: o for o in json.loads(self.ok(*words, "--layouts", "best", "--json"))["offers"]}
        self.assertLessEqual(best[8]["time_s"], offers[8]["time_s"])

    def test_the_text_says_what_was_left_out(self):
        text = self.ok("plan", GPT, "--batch", "16", "--mesh", "auto", "--devices", "16", "--on",
                       "dgx-h100")
        self.assertRegex(text, r"layouts fit; of \d+ the variables alone are too large")
        self.assertRegex(text, r"\n  ridge plan gpt:\S+ --on dgx-h100 --precision f32 --mesh p=")
        convolutions = self.ok("plan", "resnet18", "--batch", "16", "--mesh", "auto", "--devices",
                               "4", "--on", "dgx-h100")
        self.assertIn("t=2 finds no two products of 'resnet18'", convolutions)

    def refuses(self, text, *words, code=2):
        self.fails(code, text, "plan", GPT, "--batch", "16", *words)

    def test_refuses_what_has_no_layout(self):
        self.refuses("--mesh auto, stages beside other axes and recomputing on a mesh are planned for devices whose "
                     "links are known. hint: --on dgx-h100", "--mesh", "auto", "--devices", "4")
        self.refuses("mesh t=2,p=2: with stages the axes are p, d and t in this order. hint: --mesh "
                     "p=2,d=2,t=2", "--mesh", "t=2,p=2", "--on", "dgx-h100")
        self.refuses("blocks between which a pipeline can be cut. hint: p=", "--mesh", "p=64",
                     "--on", "dgx-h100")
        self.refuses("mesh p=2,d=3: d=3 does not divide the batch of 16. hint: --batch 18",
                     "--mesh", "p=2,d=3", "--on", "dgx-h100")


if __name__ == "__main__":
    unittest.main()
