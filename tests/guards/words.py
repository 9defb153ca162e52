#!/usr/bin/env python3
"""Fails if a file uses a private word for a thing that has a common name (docs/glossary.md): in pages, help, messages, headers or
sources. A word counts alone and as part of a name: `card_count`, `CardInfo`.

    tests/guards/words.py [FILE...]     checks the tree, or only these files
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Private word: the word to write instead.
WORDS = {
    r"cards?": "GPU", r"pictures?": "image", r"sweep(s|ing)?": "kernel, loop nest, pass or reduction", r"swept": "iterated over",
    r"turned": "transposed, permuted, rotated",
}
# Words that are private only in the rooms below, where they meant precision. Elsewhere they may describe a width.
PRECISION = {
    r"narrow(s|ed|er|est|ing)?": "16-bit, of lower precision, rounded", r"widen(s|ed|ing|er)?": "cast to float32, converted, padded",
}
PRECISION_ROOMS = ("include/", "src/plan/", "src/ops/", "src/graph/", "src/grad/", "src/cpu/", "src/cuda/", "src/run/", "docs/internals/", "docs/numerics.md")
PHRASES = {
    r"(make|makes|made|making) again": "recompute", r"at memory's rate": "memory-bound", r"what comes of": "the result of",
    r"who changes the weights": "optimizer", r"channels (lie|lies|lying) (last|first)": "NHWC, NCHW (channels-last, channels-first)",
}
SKIP = ("bench/results/", "tests/fuzz/corpus/", "tests/e2e/fixtures/", "tests/conformance/data/", "tests/guards/words.py",
        "docs/glossary.md")
# Exceptions: (file, text that contains the word), each with its reason.
RIGHT = (
    ("*", r"\bnarrow\("),                              # Tensor::narrow, PyTorch's name of the operation
    ("*", r"::narrow\b|`narrow`|\"narrow\"|'narrow'"),  # the same
    ("bench/tables.py", r'"cards"'),                   # a field of raw files that earlier versions wrote
    ("src/data/tables/table_header.cpp", r'"picture"'),  # a column's name in tables of users
    ("src/train/settings/settings_toml.cpp", r'"(picture|card)"'),  # names in files of earlier builds
    ("src/train/runs/model_file.cpp", r'"picture"'),        # the same
    ("src/plan/program/tune.cpp", r'"picture"'),               # an engine's name in tune files of earlier builds
    ("tests/null/test_tune_table.cpp", r'picture'),    # the same
    ("tests/train/test_settings.cpp", r'\bpicture = |"(picture|card)\\?"'),  # the same
    ("src/data/tokens/unicode*", r"."),                        # names of characters
)
CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
SUFFIXES = {".cpp", ".h", ".cuh", ".cu", ".inc", ".py", ".md", ".cmake", ".in", ".txt", ""}


def problems(name, text):
    known = {**WORDS, **PRECISION} if name.startswith(PRECISION_ROOMS) else WORDS
    words = re.compile("|".join(f"(?:{word})" for word in known))
    # Most files and lines contain none of the words in any place; they are not taken apart.
    suspect = re.compile("|".join(f"(?:{word})" for word in (*known, *PHRASES)))
    if not suspect.search(text.lower()):
        return
    allowed = [right for pattern, right in RIGHT if pathlib.PurePath(name).match(pattern)]
    for number, line in enumerate(text.splitlines(), 1):
        if not suspect.search(line.lower()):
            continue
        plain = line
        for right in allowed:
            plain = re.sub(right, " ", plain)
        for phrase, instead in PHRASES.items():
            if re.search(rf"\b{phrase}\b", plain, re.I):
                yield f"{name}:{number}: '{phrase}': write {instead}"
        for token in re.findall(r"[A-Za-z_]\w*", plain):
            for part in CAMEL.findall(token):
                if words.fullmatch(part.lower()):
                    instead = next(v for k, v in known.items() if re.fullmatch(k, part.lower()))
                    yield f"{name}:{number}: '{token}': write {instead}"


def main():
    assert list(problems("a.cpp", "CardInfo card_count; // two pictures, made again")) and not list(problems("a.cpp", "x.narrow(0, 1, 2); // discard"))
    names = sys.argv[1:] or subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    found = []
    for name in names:
        path = ROOT / name
        if not name or name.startswith(SKIP) or path.suffix not in SUFFIXES or not path.is_file():
            continue
        try:
            found += [f"{name}: the file's name: {p.split(': ', 1)[1]}" for p in problems(name, name)]
            found += problems(name, path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue
    for problem in found[:200]:
        print(problem, file=sys.stderr)
    if found:
        sys.exit(f"words: {len(found)} problem(s); docs/glossary.md says which words are used")
    print("words: no private words")


if __name__ == "__main__":
    main()
