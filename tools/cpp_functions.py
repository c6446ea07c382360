"""Finds the functions of a C++ file: `functions(text)` gives (name, first line, body lines).

No compiler: comments, literals, preprocessor lines and #else branches are blanked out, then
braces are matched, and the text before a brace tells what it opens.  A lambda or a local class
belongs to the function around it.  A lambda that initializes a variable outside of any function
counts as a function.
"""
import re
from typing import NamedTuple


class Function(NamedTuple):
    name: str
    line: int  # of the opening brace, from 1
    length: int  # lines between the braces; 1 for a function on one line


TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/'  # comments
    r'|R"(?P<tag>[^(\s\\]*)\(.*?\)(?P=tag)"'  # raw strings
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",  # characters, but no digit separators
    re.DOTALL)


def _blank(match):
    """Spaces in place of a literal or a comment; its line breaks stay."""
    text = match[0]
    inner = re.sub(r"[^\n]", " ", text)
    if text[0] in "\"R" and len(text) > 1:
        return '"' + inner[1:-1] + '"'
    return inner


def _without_preprocessor(text):
    """Blanks directives, and the branches after #else and #elif, whose braces would count twice."""
    result, skip, continued = [], [], False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line)
        if directive and not continued:
            word = directive[1]
            if word in ("if", "ifdef", "ifndef"):
                skip.append(False)
            elif word in ("else", "elif") and skip:
                skip[-1] = True
            elif word == "endif" and skip:
                skip.pop()
        hidden = bool(directive) or continued or any(skip)
        continued = (bool(directive) or continued) and line.endswith("\\")
        result.append("" if hidden else line)
    return "\n".join(result)


def _matching(text, start):
    """The index of the bracket that closes the one at `start`."""
    pairs = {"{": "}", "(": ")", "[": "]"}
    opening, closing, depth = text[start], pairs[text[start]], 0
    for index in range(start, len(text)):
        if text[index] == opening:
            depth += 1
        elif text[index] == closing:
            depth -= 1
            if depth == 0:
                return index
    return len(text) - 1


def _without_template(header):
    """Drops `template <...>` (with a depth count) and attributes from the front."""
    header = re.sub(r"\[\[[^\]]*\]\]", " ", header).strip()
    while header.startswith("template"):
        depth, index = 0, header.find("<")
        if index < 0:
            break
        for index in range(index, len(header)):
            depth += {"<": 1, ">": -1}.get(header[index], 0)
            if depth == 0:
                break
        header = header[index + 1:].strip()
    return header


def _top_level(header):
    """The header without what stands in round brackets; `()` marks where they were."""
    result, depth = [], 0
    for char in header:
        if char == "(":
            depth += 1
            if depth == 1:
                result.append("(")
        elif char == ")":
            depth -= 1
            if depth == 0:
                result.append(")")
        elif depth == 0:
            result.append(char)
    return "".join(result)


def _kind(header):
    """What a brace after this text opens: scope, function, member (of a constructor) or value."""
    header = re.sub(r"^(\s*(public|private|protected)\s*:(?!:))+", "", header)
    header = _without_template(header)
    if re.match(r"(inline\s+)?namespace\b", header) or re.match(r'extern\s+"\s*"$', header):
        return "scope", ""
    if re.match(r"(typedef\s+)?(class|struct|union|enum)\b", header):
        return "scope", ""
    flat = re.sub(r"\boperator\s*(\(\)|[^\w\s(]+|\w+)", "operator", _top_level(header))
    lambda_variable = re.search(r"(\w+)\s*=\s*\[[^\]]*\]\s*(\(\))?[^=;]*$", flat)
    if lambda_variable:
        return "function", lambda_variable[1]
    name = re.search(r"([~\w]+(?:<[^()]*>)?)\s*\(\)", flat)
    if "=" in flat or not name:
        return "value", ""
    initializers = re.search(r"\(\)[^:]*(?<!:):(?!:)", flat)
    if initializers and flat.rstrip()[-1:] not in (")", "}"):
        return "member", ""
    return "function", name[1]


def functions(text):
    """All functions in the text of one file, in order."""
    code = _without_preprocessor(TOKEN.sub(_blank, text))
    found, start, index = [], 0, 0  # start: where the text before the next brace begins
    while index < len(code):
        char = code[index]
        if char == "(":
            index = _matching(code, index)
        elif char in ";}":
            start = index + 1
        elif char == "{":
            kind, name = _kind(code[start:index])
            if kind == "scope":
                start = index + 1
            else:
                end = _matching(code, index)
                if kind == "function":
                    line = code.count("\n", 0, index) + 1
                    length = max(1, code.count("\n", index, end) - 1)
                    found.append(Function(name, line, length))
                    start = end + 1
                elif kind == "member":  # `: b_{1} {`, as if it were `: b_(1) {`
                    inner = re.sub(r"[^\n]", " ", code[index + 1:end])
                    code = code[:index] + "(" + inner + ")" + code[end + 1:]
                index = end
        index += 1
    return found
