"""Pages of plans and choices in a browser: their numbers, keys, colours and what they load."""
import io
import json
import re
import unittest

import PIL.Image

from _browser import Browser
from _ridge import RidgeTest

DARK = [("prefers-color-scheme", "dark")]
PLANS = ["plan", "mlp:hidden=32", "--on", "h100-sxm,t4"]
HERE = ["plan", "cnn", "--batch", "128", "--threads", "1"]
CHOICE = ["choose", "mlp", "--data-size", "1000000000", "--epochs", "90", "--among", "h100-sxm,t4",
          "--deadline", "2000h", "--power", "1000W"]

UNITS = {"": 1, "%": 0.01, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
         "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400, "M": 1e6,
         "G": 1e9, "T": 1e12, "P": 1e15, "USD": 1, "kWh": 1, "W": 1}

TABLES = """Object.fromEntries([...document.querySelectorAll('table')].map(table =>
  [table.caption.innerText, [...table.rows].map(row => [...row.cells].map(cell =>
    [cell.innerText.replace(/[\\u2191-\\u25bc]/g, '').trim(), cell.dataset.v ?? null]))]))"""


def number_of(text):
    """"11.0 GiB", "1 h 07 min", "89.1 %", "1,281": the number that a reader takes from it."""
    parts = re.findall(r"([\d.,]+(?:e[+-]?\d+)?) ?([A-Za-z%]*)", text)
    return sum(float(digits.replace(",", "")) * UNITS[unit] for digits, unit in parts)


class PagesInABrowser(RidgeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.made = {}  # pages with their JSON: each is planned once

    def page(self, *words, **form):
        """The loaded page, and the JSON that was printed with it."""
        if words not in self.made:
            printed = self.ok(*words, "--json", "--html", "page.html")
            with open(self.path("page.html"), encoding="utf-8") as file:
                self.made[words] = file.read(), json.loads(printed)
        text, printed = self.made[words]
        self.write("page.html", text)
        tab = self.browser.open(self.path("page.html"), **form)
        self.addCleanup(self.check_quiet, tab)
        return tab, printed

    def check_quiet(self, tab):
        """Whatever a test did with it: no message, no error, nothing loaded."""
        for event in "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded":
            self.assertEqual(tab.events(event), [])
        self.assertEqual([e["request"]["url"] for e in tab.events("Network.requestWillBeSent")],
                         [tab.url])

    def rows(self, tab, caption):
        """A dictionary a row: what is shown by column, with the number behind it."""
        titles, *rows = tab.run(TABLES)[caption]
        return [dict(zip([title for title, _ in titles], row)) for row in rows]

    def check_column(self, rows, column, numbers):
        """Exact numbers in the page, and the same with three digits before the reader's eyes."""
        self.assertEqual(len(rows), len(numbers))
        for row, number in zip(rows, numbers):
            shown, exact = row[column]
            if number is None:
                self.assertEqual((shown, exact), ("?", None))
                continue
            self.assertEqual(float(exact), number)
            digit = 0.0005 if shown.endswith("%") else 0
            self.assertAlmostEqual(number_of(shown), number, delta=max(0.006 * number, digit),
                                   msg=shown)

    def pixels(self, tab):
        return PIL.Image.open(io.BytesIO(tab.screenshot())).convert("RGB")

    def test_a_plan_shows_the_numbers_of_its_json(self):
        tab, plan = self.page(*HERE)
        self.check_column(self.rows(tab, "Memory by purpose, at the peak")[-1:], "bytes",
                          [plan["peak_bytes"]])
        self.check_column(self.rows(tab, "The most that is live, by phase"), "live",
                          [phase["bytes"] for phase in plan["phases"]])
        candidates = self.rows(tab, "By the nominal device, without data")
        self.assertGreater(len(candidates), 1)
        self.check_column(candidates, "memory", [c["bytes"] for c in plan["candidates"]])
        self.check_column(candidates, "step", [c["s"] for c in plan["candidates"]])
        for element, end, key in ((".verdict", " of ", "peak_bytes"),
                                  (".verdict + p", " a step", "step_s")):
            shown = tab.run(f"document.querySelector('{element}').innerText").split(end)[0]
            self.assertAlmostEqual(number_of(shown), plan[key], delta=0.006 * plan[key])

    def test_each_device_has_a_row_and_a_part(self):
        tab, plans = self.page(*PLANS)
        rows = self.rows(tab, "Devices")
        self.check_column(rows, "step", [plan["step_s"] for plan in plans])
        self.check_column(rows, "at least", [plan["peak_low_bytes"] for plan in plans])
        self.check_column(rows, "memory", [plan["peak_high_bytes"] for plan in plans])
        self.check_column(rows, "of", [plan["limit_bytes"] for plan in plans])
        self.assertEqual(tab.run("[...document.querySelectorAll('nav a')].map("
                                 "a => document.querySelector(a.hash + ' h2').innerText)"),
                         tab.run("[...document.querySelectorAll('nav a')].map(a => a.innerText)"))

    def test_offers_are_those_of_the_json(self):
        tab, choice = self.page(*CHOICE)
        rows = self.rows(tab, "Offers, best first; refused ones last")
        for column, key in (("time", "time_s"), ("from", "time_low_s"), ("to", "time_high_s"),
                            ("samples/s", "samples_s"), ("of linear", "linear_share"),
                            ("cost", "usd"), ("energy", "energy_kwh"), ("supply", "supply_w"),
                            ("memory a device", "peak_bytes")):
            with self.subTest(column):
                self.check_column(rows, column, [offer[key] for offer in choice["offers"]])

    def test_scaling_curves_have_the_rates_of_the_offers(self):
        tab, choice = self.page(*CHOICE)
        stops = [stop["text"] for stop in tab.run(
            "[...document.querySelectorAll('.charts figure > script')].flatMap("
            "s => JSON.parse(s.textContent))")]
        self.assertEqual(len(stops), len(choice["offers"]))
        for offer in choice["offers"]:
            name = f"{offer['count']} x {offer['device']}: "
            told, = [stop for stop in stops if stop.startswith(name)]
            shown = told[len(name):].split(" samples/s")[0]
            self.assertAlmostEqual(number_of(shown), offer["samples_s"],
                                   delta=0.006 * offer["samples_s"])

    def test_a_key_sorts_a_table_and_says_so(self):
        tab, choice = self.page(*CHOICE)
        caption = "Offers, best first; refused ones last"
        tab.run("[...document.querySelectorAll('th button')].find(b => b.innerText === 'time')"
                ".focus()")
        for order, sign in ("ascending", 1), ("descending", -1):
            tab.press("Enter", text="\r")
            self.check_column(self.rows(tab, caption), "time",
                              sorted((o["time_s"] for o in choice["offers"]),
                                     key=lambda s: sign * s))
            self.assertEqual(tab.run("document.querySelector('[role=status]').innerText"),
                             f"{caption}: sorted by time, {order}")
            sorted_by = "[...document.querySelectorAll('[aria-sort]')].map("\
                "t => [t.firstChild.innerText, t.ariaSort])"
            self.assertEqual(tab.run(sorted_by), [["time", order]])

    def test_keys_walk_a_chart_and_a_screen_reader_hears_its_nodes(self):
        tab, plan = self.page(*HERE)
        nodes = [node["name"] for node in plan["nodes"]]
        for _ in range(100):  # forward with Tab, as a reader without a mouse
            tab.press("Tab", windowsVirtualKeyCode=9)
            if tab.run("document.activeElement.getAttribute('role')") == "slider":
                break
        tab.press("ArrowRight")
        tab.press("ArrowRight")
        told = tab.run("document.activeElement.closest('figure').querySelector('.told').innerText")
        self.assertTrue(told.startswith(nodes[1] + " ("), told)
        self.assertEqual(tab.run("document.activeElement.ariaValueText"), told)
        heard = [(node["name"]["value"], node["value"]["value"])
                 for node in tab.call("Accessibility.getFullAXTree")["nodes"]
                 if node.get("role", {}).get("value") == "slider"]
        self.assertEqual(heard[0], ("Memory at each node of train", 2))
        self.assertEqual(len(heard), len(plan["steps"]) + 1)  # the roofline
        tab.press("End")
        self.assertEqual(tab.run("document.activeElement.ariaValueNow"), str(len(nodes)))

    def test_the_mouse_tells_the_node_below_it(self):
        tab, plan = self.page(*HERE)
        x, y = tab.run("{const svg = document.querySelector('.walk svg'); svg.scrollIntoView();"
                       "const box = svg.getBoundingClientRect();"
                       "[box.right - 20, box.top + box.height / 2]}")
        tab.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        told = tab.run("document.querySelector('.told').innerText")
        self.assertTrue(told.startswith(plan["nodes"][-1]["name"] + " ("), told)

    def test_light_dark_and_paper(self):
        dark, _ = self.page(*HERE, media=DARK)
        light = self.browser.open(self.path("page.html"))
        paper = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual(light.run(paper), "rgb(255, 255, 255)")
        self.assertNotEqual(dark.run(paper), light.run(paper))
        pictures = [self.pixels(tab) for tab in (light, dark)]
        for picture in pictures:  # not blank: a page has edges of letters in many shades
            self.assertGreater(len(picture.getcolors(1 << 24)), 50)
        self.assertGreater(sum(pictures[0].resize((1, 1)).getpixel((0, 0))),
                           2 * sum(pictures[1].resize((1, 1)).getpixel((0, 0))))
        dark.call("Emulation.setEmulatedMedia", media="print",
                  features=[{"name": name, "value": value} for name, value in DARK])
        self.assertEqual(dark.run(paper), light.run(paper))
        self.assertTrue(dark.pdf().startswith(b"%PDF-"))

    def test_a_narrow_screen_scrolls_no_more_than_its_tables_and_charts(self):
        for words in HERE, CHOICE:
            tab, _ = self.page(*words, width=360)
            self.assertLessEqual(tab.run("document.documentElement.scrollWidth"), 360)


if __name__ == "__main__":
    unittest.main()
