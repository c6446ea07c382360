"""The pages of plans and choices: their numbers are those of the JSON; Markdown has the same tables."""
import html.parser
import json
import unittest

from _ridge import SMALL, RidgeTest


class Page(html.parser.HTMLParser):
    """Tables by caption: a list of rows, each a list of (text, data-v); scripts with data."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.data, self.elements = {}, [], []
        self.caption = self.row = self.cell = self.script = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.elements.append((tag, given))
        if tag == "caption":
            self.caption = ""
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th"):
            self.cell = ["", given.get("data-v")]
        elif tag == "script" and given.get("type") == "application/json":
            self.script = ""

    def handle_endtag(self, tag):
        if tag == "caption":
            self.rows = self.tables.setdefault(self.caption, [])
            self.caption = None
        elif tag == "tr":
            self.rows.append(self.row)
        elif tag in ("td", "th"):
            self.row.append(tuple(self.cell))
            self.cell = None
        elif tag == "script" and self.script is not None:
            self.data.append(json.loads(self.script))
            self.script = None

    def handle_data(self, data):
        if self.script is not None:
            self.script += data
        elif self.caption is not None:
            self.caption += data
        elif self.cell is not None:
            self.cell[0] += data

    def values(self, caption, column):
        at = [text for text, _ in self.tables[caption][0]].index(column)
        return [float(row[at][1]) for row in self.tables[caption][1:] if row[at][1] is not None]


class Pages(RidgeTest):
    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def page(self, *words):
        """The page, and the JSON that was printed with it."""
        printed = json.loads(self.ok(*words, "--json", "--html", "page.html"))
        return Page(self.read("page.html")), printed

    def check_form(self, page):
        """Loads nothing, and can be used with a keyboard and a screen reader."""
        for tag, given in page.elements:
            self.assertNotIn(tag, ("link", "img", "iframe"))
            self.assertNotIn("src", given)
            self.assertTrue(given.get("href", "#").startswith("#"), given)
            if tag == "svg":
                self.assertTrue(given["aria-label"])
            if tag == "th":
                self.assertEqual(given["scope"], "col")
        tags = [tag for tag, _ in page.elements]
        self.assertEqual(tags.count("th"), tags.count("button"))
        self.assertEqual(dict(page.elements)["html"], {"lang": "en"})

    def check_plan(self, page, plan):
        breakdown = [bytes_ for bytes_ in plan["breakdown"].values() if bytes_]
        self.assertEqual(page.values("Memory by purpose, at the peak", "bytes"),
                         [*breakdown, plan["peak_bytes"]])
        self.assertEqual(page.values("The most that is live, by phase", "live"),
                         [phase["bytes"] for phase in plan["phases"]])
        nodes = [node["s"] * node["runs"] for node in plan["nodes"]]
        for shown, planned in zip(page.values("Nodes of a step, in order", "time"), nodes):
            self.assertAlmostEqual(shown, planned, delta=1e-9 * planned + 1e-18)
        classes = page.values("Time of a step by class of operators", "time")
        self.assertAlmostEqual(sum(classes), sum(nodes), delta=1e-9 * sum(nodes))
        self.assertEqual(sum(page.values("Time of a step by class of operators", "nodes")),
                         len(nodes))
        self.assertEqual(page.values("By the nominal device, without data", "memory"),
                         [c["bytes"] for c in plan["candidates"]])

    def test_numbers_are_those_of_the_json(self):
        page, plan = self.page("plan", "cnn", "--threads", "1", "--data", "fashion-mnist")
        self.assertEqual(page.data[-1], [plan])
        self.check_plan(page, plan)
        self.check_form(page)

    def test_the_charts_peak_is_that_of_the_phases(self):
        page, plan = self.page("plan", *SMALL)
        charts = [given["data-step"] for _, given in page.elements if "data-step" in given]
        self.assertEqual(charts, [step["name"] for step in plan["steps"]])
        for name, nodes in zip(charts, page.data):
            self.assertEqual(max(node["bytes"] for node in nodes),
                             max(p["bytes"] for p in plan["phases"] if p["step"] == name))
            ends = [node["end"] for node in nodes]
            self.assertEqual(ends, sorted(ends))
            self.assertAlmostEqual(ends[-1], 948, delta=0.1)

    def test_a_row_a_device(self):
        page, plans = self.page("plan", "mlp", "--on", "h100-sxm,t4")
        self.assertEqual(page.data[-1], plans)
        self.assertEqual([row[0][0] for row in page.tables["Devices"][1:]], ["h100-sxm", "t4"])
        self.assertEqual(page.values("Devices", "step"), [plan["step_s"] for plan in plans])
        self.check_form(page)

    def test_offers(self):
        page, choice = self.page("choose", "mlp", "--data-size", "1000", "--among", "h100-sxm,t4",
                                 "--deadline", "1000h", "--power", "1000W")
        self.assertEqual(page.data[-1], choice)
        caption = "Offers, best first; refused ones last"
        for column, key in (("time", "time_s"), ("from", "time_low_s"),
                            ("memory a device", "peak_bytes")):
            self.assertEqual(page.values(caption, column), [o[key] for o in choice["offers"]])
        self.assertTrue(any(o["refusals"] for o in choice["offers"]))
        self.check_form(page)

    def test_names_are_text(self):
        name = "x<i>'&.ridge"
        self.write(name, "graph g\n  x = input f32[batch=8,4]\n"
                         "  w = parameter f32[3,4] init=uniform(0.5)\n"
                         "  y = matmul(x, w, transpose_b=1)\n  loss = reduce_mean(y)\n"
                         "  output loss\n")
        self.ok("plan", name, "--html", "page.html")
        text = self.read("page.html")
        self.assertIn("<h1>x&lt;i&gt;&#39;&amp;.ridge, batch 32, ", text)
        self.assertNotIn("<i>'", text)

    def test_standard_output(self):
        text = self.ok("plan", *SMALL, "--html", "-")
        self.assertTrue(text.startswith("<!doctype html>\n"))
        self.assertTrue(text.endswith("</html>\n"))
        self.refused(2, "--json and --html both write to standard output. hint: --html with a "
                        "file's name", "plan", *SMALL, "--json", "--html", "-")
        self.fails(2, "--markdown", "plan", *SMALL, "--json", "--markdown")

    def test_markdown_has_the_tables(self):
        text = self.ok("plan", "mlp", "--threads", "1", "--markdown")
        self.assertRegex(text, r"^## mlp, batch 32, adam, f32, on cpu \(1 thread\)\n\nfits: ")
        self.assertIn("\n| purpose | bytes | share |\n|---|---:|---:|\n| parameters | ", text)
        self.assertIn("### Time of a step by class of operators", text)
        for line in text.splitlines():
            if line.startswith("|"):
                self.assertTrue(line.endswith("|"), line)
        text = self.ok("choose", "mlp", "--data-size", "1000", "--among", "t4", "--markdown")
        self.assertIn("\n| 1 x t4 | f16 | ", text)


if __name__ == "__main__":
    unittest.main()
