"""Runs tests/text/cli/**/*.test: commands of the program and what they print.

A file holds cases as the other text tests (tests/text/text_test.cc):

  # name: cli/opt.test
  # why: one sentence, the law that would be broken
  graph g                        optional: the file net.ridge; with { first probe.json, with [ or
                                 name = first scenario.toml
    x = input f32[2]
  $ ridge opt net.ridge -q       one or more commands, in one empty folder
  ----
  standard output and error as they come, then "exit N" unless it is 0

Before `ridge` may stand NAME=VALUE, behind the words `< FILE`, and `| json KEY KEY` prints single
values of a JSON output ("nodes.0.op").  In the expected text `...` stands for any text, and a line
of it for any lines.  RIDGE_UPDATE_TESTS=1 writes what came out over what was expected.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import unittest

from _ridge import RIDGE, SOURCE, RidgeTest, environment

FOLDER = os.path.join(SOURCE, "tests", "text")
UPDATING = "RIDGE_UPDATE_TESTS" in os.environ


class Case:
    def __init__(self, text):
        head, _, self.expected = text.partition("----\n")
        lines = head.splitlines(keepends=True)
        self.comments = "".join(line for line in lines if line.startswith("# "))
        self.commands = [line[2:].rstrip("\n") for line in lines if line.startswith("$ ")]
        self.graph = "".join(line for line in lines if line[:2] not in ("# ", "$ "))

    def header(self, key):
        found = re.search(rf"^# {key}: (.*)$", self.comments, re.MULTILINE)
        return found[1] if found else ""

    def text(self, expected):
        commands = "".join(f"$ {command}\n" for command in self.commands)
        return f"{self.comments}{self.graph}{commands}----\n{expected}"


def file_of(text):
    if text.startswith("{"):
        return "probe.json"
    return "scenario.toml" if text.startswith(("[", "name = ")) else "net.ridge"


def matches(actual, expected):
    parts = re.split(r"(^\.\.\.\n|\.\.\.)", expected, flags=re.MULTILINE)
    pattern = "".join(r"(?:.*\n)*" if part == "...\n" else ".*" if part == "..." else re.escape(part)
                      for part in parts)
    return re.fullmatch(pattern, actual) is not None


def picked(text, keys):
    """The values, then what was said behind the JSON; the text itself where it begins with no JSON."""
    if not text.startswith(("{", "[")):
        return text
    found, end = json.JSONDecoder().raw_decode(text)
    lines = []
    for key in keys:
        value = found
        for step in key.split("."):
            value = value[int(step)] if step.isdigit() else value[step]
        lines.append(f"{key}: {json.dumps(value)}\n")
    return "".join(lines) + text[end:].lstrip("\n")


class Transcripts(RidgeTest):
    def run_command(self, command):
        command, _, keys = command.partition(" | json ")
        words, settings, source = shlex.split(command), {}, None
        while "=" in words[0]:
            name, _, value = words.pop(0).partition("=")
            settings[name] = value
        self.assertEqual(words.pop(0), "ridge", command)
        if "<" in words:
            at = words.index("<")
            source = self.path(words[at + 1])
            del words[at:at + 2]
        with open(source or os.devnull, encoding="utf-8") as stdin:
            done = subprocess.run([RIDGE, *words], cwd=self.folder, env=environment(settings),
                                  stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=120, check=False)
        text = picked(done.stdout, keys.split()) if keys else done.stdout
        return text + (f"exit {done.returncode}\n" if done.returncode else "")

    def run_case(self, case):
        if case.graph:
            self.write(file_of(case.graph), case.graph)
        return "".join(self.run_command(command) for command in case.commands)


def check_file(path):
    def test(self):
        with open(path, encoding="utf-8") as file:
            cases = [Case(text) for text in file.read().split("====\n")]
        self.assertEqual(cases[0].header("name"), os.path.relpath(path, FOLDER))
        texts = []
        for case in cases:
            self.assertTrue(case.header("why") and case.commands, f"{path}:\n{case.text('')}")
            with self.subTest(case.header("why")):
                actual = self.run_case(case)
                same = matches(actual, case.expected)
                texts.append(case.text(case.expected if same else actual))
                if not UPDATING:
                    self.assertTrue(same, f"{case.commands}\n{actual}\nexpected:\n{case.expected}")
            for name in os.listdir(self.folder):
                os.remove(self.path(name))
        if UPDATING:
            with open(path, "w", encoding="utf-8") as file:
                file.write("====\n".join(texts))
    return test


FILES = sorted(glob.glob(os.path.join(FOLDER, "cli", "**", "*.test"), recursive=True))
for name in FILES:
    stem = re.sub(r"\W", "_", os.path.relpath(name, FOLDER))
    setattr(Transcripts, f"test_{stem}", check_file(name))


class Runner(unittest.TestCase):
    def test_there_are_transcripts(self):
        self.assertTrue(FILES)

    def test_dots_match_any_text_and_nothing_else(self):
        self.assertTrue(matches("a 12 b\n", "a ... b\n"))
        self.assertFalse(matches("a 12\nb\n", "a ...b\n"))
        self.assertTrue(matches("a\nb\nc\n", "a\n...\nc\n"))
        self.assertTrue(matches("a\nc\n", "a\n...\nc\n"))
        self.assertFalse(matches("a.c\n", "a\n...\nc\n"))
        self.assertFalse(matches("abc\n", "a.c\n"))


if __name__ == "__main__":
    unittest.main()
