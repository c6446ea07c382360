"""Verbs and flags that README.md and docs/ name exist."""
import functools
import glob
import os
import re
import subprocess
import unittest

from _ridge import RIDGE, SOURCE, environment

# Pages about earlier states of the program.
HISTORY = ("docs/STATUS.md", "docs/design/")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@functools.lru_cache(maxsize=None)
def help_of(verb):
    """The help of a verb such as "bench step"; None when there is no such verb."""
    done = subprocess.run([RIDGE, "help", *verb.split(), "all"], env=environment(), capture_output=True,
                          text=True, check=False)
    return done.stdout if done.returncode == 0 else None


@functools.lru_cache(maxsize=None)
def verbs():
    """All verbs, those of `bench` with it."""
    def below(verb):
        listed = re.search(r"\nCommands:\n((?: .*\n)+)", help_of(verb))
        names = re.findall(r"^  (\w+)  ", listed[1], re.MULTILINE) if listed else []
        for name in names:
            yield f"{verb} {name}".strip()
            yield from below(f"{verb} {name}".strip())
    return list(below(""))


def pages():
    found = ["README.md", *glob.glob("docs/**/*.md", root_dir=SOURCE, recursive=True)]
    return [page for page in sorted(found) if not page.startswith(HISTORY)]


def commands(text):
    """What stands behind `ridge` in code: in spans, and in lines of blocks."""
    for span in re.findall(r"`([^`\n]+)`", text):
        if span.startswith("ridge "):
            yield span[len("ridge "):]
    for line in text.splitlines():
        found = re.match(r"(?:    |\$ )\s*(?:\w+=\S+ )*(?:build/release/bin/)?ridge ([^#]*)", line)
        if found:
            yield found[1]


def verb_of(command):
    """The verb that a command begins with; "" for options of `ridge` alone, None for unknown."""
    words = [word for word in command.split() if re.fullmatch(r"[a-z|]+", word)]
    if command.startswith("-"):
        return ""
    for length in (2, 1):
        verb = " ".join(words[:length])
        if verb in verbs():
            return verb
    return None


class Docs(unittest.TestCase):
    def test_the_verbs_are_found(self):
        self.assertLessEqual({"train", "plan", "bench step", "opt"}, set(verbs()))

    def test_every_command_has_a_verb_with_its_flags(self):
        count = 0
        for page in pages():
            with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
                text = file.read()
            # Behind "--" stands a command of its own: `ridge launch --submit -- train ...`.
            for command in [part for whole in commands(text) for part in whole.split(" -- ")]:
                for name in command.split()[0].split("|"):  # "eval|run|grad RUN"
                    one = name + command[len(command.split()[0]):]
                    verb = verb_of(one)
                    self.assertIsNotNone(verb, f"{page}: ridge {command}")
                    known = set(FLAG.findall(help_of(verb)))
                    self.assertLessEqual(set(FLAG.findall(one)), known, f"{page}: ridge {command}")
                    count += 1
        self.assertGreater(count, 50)

    def test_every_flag_alone_in_a_span_is_one_of_a_verb(self):
        """Flags of other programs stand in commands of theirs."""
        known = set(FLAG.findall("".join(help_of(verb) for verb in ["", *verbs()])))
        for page in pages():
            with open(os.path.join(SOURCE, page), encoding="utf-8") as file:
                text = file.read()
            for span in re.findall(r"`(--[^`\n]+)`", text):
                self.assertLessEqual(set(FLAG.findall(span)), known, f"{page}: {span}")


if __name__ == "__main__":
    unittest.main()
