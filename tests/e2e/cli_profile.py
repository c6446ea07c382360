"""`ridge profile` and `ridge bench suite`."""
import html.parser
import json
import re
import unittest

from _ridge import RidgeTest

WORDS = ["mlp:hidden=32", "--threads", "1", "--steps", "3"]


class Profile(RidgeTest):
    def profile(self, *words):
        return json.loads(self.ok("profile", *WORDS, *words, "--json"))

    def test_rows_add_up_to_the_step_and_groups_to_the_nodes(self):
        profile = self.profile()
        self.assertAlmostEqual(sum(row["s"] for row in profile["rows"]), profile["step_s"],
                               delta=1e-9)
        nodes = sum(node["s"] for node in profile["nodes"])
        self.assertAlmostEqual(sum(group["s"] for group in profile["groups"]), nodes, delta=1e-9)
        self.assertEqual(sorted(n for group in profile["groups"] for n in group["nodes"]),
                         list(range(len(profile["nodes"]))))
        self.assertEqual(profile["input_wait_s"], 0)
        self.assertLessEqual(len(profile["advice"]), 3)

    def test_data_come_through_the_pipeline(self):
        text = self.ok("profile", *WORDS, "--data", "synthetic", "--batch", "16")
        self.assertIn("batch 16", text)
        self.assertNotIn("no --data", text)
        self.assertIn("(no --data)", self.ok("profile", *WORDS))

    def test_a_run_has_its_own_options(self):
        self.train("--batch", "8", "--optimizer", "sgd", "--lr", "0.1")
        profile = json.loads(self.ok("profile", "run", "--steps", "3", "--json"))
        self.assertEqual((profile["batch"], profile["opt"]), (8, "sgd"))
        other = json.loads(self.ok("profile", "run", "--steps", "3", "--batch", "4", "--json"))
        self.assertEqual(other["batch"], 4)

    def test_trace_and_page(self):
        done = self.ridge("profile", *WORDS, "--trace", "t.json", "--html", "p.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("t.json", done.stderr)
        events = self.read_json("t.json")["traceEvents"]
        self.assertEqual({e["ph"] for e in events}, {"M", "X", "C"})
        with open(self.path("p.html")) as file:
            page = file.read()
        self.assertNotRegex(page, r"(src|href)=")
        open_tags = []

        class Check(html.parser.HTMLParser):
            def handle_starttag(self, tag, attrs):
                if tag not in ("meta", "polygon"):
                    open_tags.append(tag)

            def handle_endtag(self, tag):
                if tag != "polygon":
                    assert open_tags.pop() == tag, tag

        Check().feed(page.replace("<!doctype html>", ""))
        self.assertEqual(open_tags, [])

    def test_reference_kernels_are_named_as_the_cause(self):
        profile = json.loads(self.ok("profile", "cnn", "--batch", "4", "--steps", "1", "--backend",
                                     "reference", "--json"))
        self.assertIn("reference kernel", {group["cause"] for group in profile["groups"]})

    def test_usage(self):
        self.fails(2, "MODEL is missing", "profile")
        self.fails(5, "no model", "profile", "cn")


class Suite(RidgeTest):
    def test_a_record_and_what_is_compared_with_it(self):
        words = ["bench", "suite", "--only", "mlp:128", "--rounds", "1", "--threads", "1"]
        done = self.ridge(*words, "--out", "suite.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("round 1/1, 1/1: mlp:128", done.stderr)
        self.assertRegex(done.stdout, r"mlp:128 +[0-9.]+ ms")
        record = self.read_json("suite.json")
        run = record["workloads"]["mlp:128"]
        self.assertLessEqual({"ms_min", "ms_med", "first_step_s", "peak_mb", "flops_floor_share",
                              "peak_flops_per_s", "bytes_per_s"}, set(run))
        self.assertEqual(record["machine"]["threads"], 1)
        for factor, code in ((100, 0), (0.01, 7)):
            changed = json.loads(json.dumps(record))
            changed["workloads"]["mlp:128"]["ms_min"] *= factor
            self.write("before.json", json.dumps(changed))
            done = self.ridge(*words, "-q", "--against", "before.json", "--json")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIsNotNone(json.loads(done.stdout)["workloads"]["mlp:128"]["growth"])
        self.assertTrue(re.search("mlp:128 has become slower", done.stderr))

    def test_usage(self):
        self.fails(2, "--only names 'mpl'; known workloads: mlp:128", "bench", "suite", "--only",
                   "mpl")
        self.write("no.json", "{}")
        self.fails(4, "no.json: is no record", "bench", "suite", "--against", "no.json")


if __name__ == "__main__":
    unittest.main()
