#!/usr/bin/env python3
"""Writes ridge/data/text/unicode_tables.inc: the Unicode of the public tokenizers.

usage: make_unicode_tables.py > ridge/data/text/unicode_tables.inc

Needs the package `tokenizers` (0.23.3) and asks it about each code point, since its parts follow
different versions of Unicode: its regular expressions a newer one than its normalizer of BERT.
Canonical decompositions, of characters that the package decomposes, and combining classes are those
of Python's unicodedata, compatibility decompositions those of the package.
"""
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf "
              "Co").split()
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def matching(pattern):
    """The code points that a regular expression of one character takes."""
    remove = normalizers.Replace(Regex(pattern), "")
    found = set()
    for begin in range(0, len(CODES), 4096):
        block = CODES[begin:begin + 4096]
        kept = set(remove.normalize_str("".join(map(chr, block))))
        found |= {code for code in block if chr(code) not in kept}
    return found


def removed_by(normalizer):
    return {code for code in CODES if normalizer.normalize_str("a" + chr(code)) == "a"}


def bert(**parts):
    names = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
    return normalizers.BertNormalizer(**{name: parts.get(name, False) for name in names})


def bert_punctuation():
    split = pre_tokenizers.BertPreTokenizer()
    return {code for code in CODES
            if [piece for piece, _ in split.pre_tokenize_str("a" + chr(code) + "b")]
            == ["a", chr(code), "b"]}


def print_words(name, comment, words, per_line=9):
    print(f"\n// {comment}\nconstexpr uint32_t {name}[] = {{")
    for begin in range(0, len(words), per_line):
        print("    " + " ".join(f"0x{word:08X}," for word in words[begin:begin + per_line]))
    print("};")


def properties():
    category = {}
    for number, name in enumerate(CATEGORIES):
        if number > 0:
            category |= dict.fromkeys(matching(rf"\p{{{name}}}"), number)
    clean = {code for code in CODES
             if bert(clean_text=True).normalize_str("a" + chr(code) + "b") == "ab"}
    flags = [clean, bert_punctuation(), removed_by(bert(strip_accents=True)),
             removed_by(normalizers.StripAccents()), matching(r"\w")]
    words, last = [], None
    for code in range(0x110000):
        value = category.get(code, 0) << 6
        for bit, members in enumerate(flags):
            value |= (code in members) << bit
        if value != last:
            words.append(code << 11 | value)
        last = value
    return words


def lower_runs():
    """[first, last << 1 | every other one, delta] of code points with one lower-case letter."""
    lower = normalizers.Lowercase()
    pairs = [(code, ord(small)) for code in CODES
             if len(small := lower.normalize_str(chr(code))) == 1 and small != chr(code)]
    runs = []
    for code, small in pairs:
        delta = (small - code) & 0xFFFFFFFF
        if runs and runs[-1][3] == delta and code - runs[-1][1] in (1, 2):
            step = code - runs[-1][1]
            if runs[-1][2] in (0, step):
                runs[-1][1:3] = code, step
                continue
        runs.append([code, code, 0, delta])
    return [word for first, last, step, delta in runs
            for word in (first, last << 1 | (step == 2), delta)]


def decompositions():
    """[code point, first, second | may be composed << 31]"""
    words, nfd = [], normalizers.NFD()
    for code in CODES:
        form = unicodedata.decomposition(chr(code))
        known = nfd.normalize_str(chr(code)) != chr(code)
        if not form or form[0] == "<" or not known:
            continue
        parts = [int(part, 16) for part in form.split()] + [0]
        composed = unicodedata.normalize("NFC", chr(code)) == chr(code)
        words += [code, parts[0], parts[1] | composed << 31]
    return words


def compatible():
    """[code point, begin << 8 | length] and the code points of all decompositions."""
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    rows, codes = [], []
    for code in CODES:
        full = nfkd.normalize_str(chr(code))
        if full != nfd.normalize_str(chr(code)):
            rows += [code, len(codes) << 8 | len(full)]
            codes += map(ord, full)
    return rows, codes


def combining_runs():
    """First code point << 8 | canonical combining class."""
    words, last = [], 0
    for code in range(0x110000):
        value = unicodedata.combining(chr(code))
        if value != last:
            words.append(code << 8 | value)
        last = value
    return words


def main():
    print(f"// Written by tools/make_unicode_tables.py from tokenizers {tokenizers.__version__} and "
          f"Unicode {unicodedata.unidata_version}.")
    print_words("kProperties", "First code point << 11 | category << 6 | flags, for each run.",
                properties())
    print_words("kLowerRuns", "First, last << 1 | every other one, what is added.", lower_runs())
    print_words("kDecompositions", "Code point, first, second | may be composed << 31.",
                decompositions())
    rows, codes = compatible()
    print_words("kCompatible", "Code point, begin << 8 | length.", rows)
    print_words("kCompatibleCodes", "Compatibility decompositions, in full.", codes)
    print_words("kCombiningRuns", "First code point << 8 | canonical combining class.",
                combining_runs())


if __name__ == "__main__":
    main()
