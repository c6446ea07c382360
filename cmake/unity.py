#!/usr/bin/env python3
"""Writes one translation unit that includes several source files.

usage: unity.py OUT FILE...     FILEs as `#include` finds them, from the current folder

Compiling twelve small files at once takes a fifth of the time of each alone: headers are read and
their templates instantiated once.  What a file declares in an unnamed namespace stays its own: a
name of it that another file of the unit mentions gets the file's name behind it, by a macro that
ends with the file.  All headers come first, so that no macro reaches one.
"""
import pathlib
import re
import sys

TOKEN = re.compile(r"""(?P<skip>//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"
                       |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')|(?P<line>^[ \t]*\#(?:\\\n|[^\n])*)
                       |(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.']*)|(?P<sign>::|->|\S)""",
                   re.S | re.M | re.X)
INCLUDE = re.compile(r'^#include\s+(<[^>]+>|"[^"]+\.h")', re.M)
DEFINE = re.compile(r"^#define\s+(\w+)", re.M)
TYPES = {"struct", "class", "enum", "union"}
MACRO = re.compile(r"[A-Z][A-Z0-9_]+$")  # TEST(...) { declares nothing of that name
IN_MACROS = {"Message", "AssertionResult", "Test", "TestInfo"}  # of GoogleTest's macros


def tokens_of(text):
    """Names and signs, without comments, literals and lines of the preprocessor."""
    return [m[0] for m in TOKEN.finditer(text) if m.lastgroup in ("name", "sign")]


def end_of_block(tokens, at):
    """The index behind the bracket that closes the one at `at`."""
    pairs = {"{": "}", "(": ")", "[": "]"}
    depth, opening = 0, tokens[at]
    for i in range(at, len(tokens)):
        if tokens[i] == opening:
            depth += 1
        elif tokens[i] == pairs[opening]:
            depth -= 1
            if depth == 0:
                return i + 1
    return len(tokens)


def end_of_angles(tokens, at):
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"<": 1, ">": -1}.get(tokens[i], 0)
        if depth == 0:
            return i + 1
    return len(tokens)


def declared_name(head):
    """The name that a declaration gives, from its tokens before its first `{(=[;`."""
    if head and head[0] == "using":
        return head[1] if len(head) == 2 else None
    names = [t for t in head if re.match(r"\w", t)]
    if not names or names[-1] in TYPES or {"operator", "catch", "static_assert"} & set(names):
        return None
    if head[0] in TYPES:
        own = head[1:] if head[1:2] != ["class"] else head[2:]
        return own[0] if own else None
    return names[-1] if head[-1] == names[-1] and head[-2:-1] != ["::"] else None


def skip_template(tokens, at):
    while at < len(tokens) and tokens[at] == "template":
        at = end_of_angles(tokens, at + 1)
    return at


def declaration(tokens, at):
    """Reads one declaration; returns the names that it gives, and the index behind it."""
    at = skip_template(tokens, at)
    start, i = at, at
    while i < len(tokens) and tokens[i] not in "{(=[;":
        if tokens[i] == "alignas" and tokens[i + 1:i + 2] == ["("]:
            start = i = end_of_block(tokens, i + 1)
            continue
        i = end_of_angles(tokens, i) if tokens[i] == "<" else i + 1
    names, function = {declared_name(tokens[start:i])} - {None}, tokens[i:i + 1] == ["("]
    while i < len(tokens) and tokens[i] != ";":
        body = function and tokens[i] == "{"
        if tokens[i] == "," and tokens[i + 2:i + 3] in (["="], ["["], [";"]):  # int a = 1, b = 2;
            names |= {tokens[i + 1]} if tokens[i + 1].isidentifier() else set()
        i = end_of_block(tokens, i) if tokens[i] in "{([" else i + 1
        if body:
            return names, i
    return names, i + 1


def unnamed_names(tokens):
    """What the unnamed namespaces of a file declare."""
    names, at = set(), 0
    while at < len(tokens) - 1:
        if tokens[at] != "namespace" or tokens[at + 1] != "{":
            at += 1
            continue
        end = end_of_block(tokens, at + 1) - 1
        at += 2
        while at < end:
            declared, at = declaration(tokens[:end], at)
            names |= declared
    return {name for name in names if not MACRO.match(name)}


class Source:
    def __init__(self, path):
        text = pathlib.Path(path).read_text()
        tokens = tokens_of(text)
        self.path = path
        self.includes = INCLUDE.findall(text)
        self.defines = DEFINE.findall(text)
        self.own = unnamed_names(tokens)
        # A header's type that is defined here, perhaps of types of an unnamed namespace; g++ takes
        # an included file for a header and warns.
        self.completes = re.search(r"^(struct|class) \w+::\w+", text, re.M) is not None
        self.mentions = set(tokens)
        self.members = {b for a, b in zip(tokens, tokens[1:]) if a in (".", "->", "::")}

    def renamed(self, others):
        """Own names that another file mentions, but for those that members have here: a macro would
        rename them too, and it is enough that the other file's gets another name.  Nor those that
        macros of other headers mention."""
        seen = set().union(*(other.mentions for other in others))
        return sorted(n for n in (self.own & seen) - self.members - IN_MACROS)


def unit(sources):
    lines = ["// Made by cmake/unity.py.", "// NOLINTBEGIN"]
    if any(source.completes for source in sources):
        lines += ['#pragma GCC diagnostic ignored "-Wsubobject-linkage"']
    includes = dict.fromkeys(i for source in sources for i in source.includes)
    lines += [f"#include {i}" for i in includes]
    for source in sources:
        renamed = source.renamed([s for s in sources if s is not source])
        suffix = re.sub(r"\W", "_", pathlib.Path(source.path).stem)
        lines += ["", *(f"#define {name} {name}_{suffix}" for name in renamed)]
        lines += [f'#include "{source.path}"']
        lines += [f"#undef {name}" for name in [*renamed, *source.defines]]
    return "\n".join(lines) + "\n"


def main(arguments):
    out = pathlib.Path(arguments[0])
    text = unit([Source(path) for path in arguments[1:]])
    out.parent.mkdir(parents=True, exist_ok=True)
    if not out.exists() or out.read_text() != text:  # a newer file would be compiled again
        out.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
