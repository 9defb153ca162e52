#!/usr/bin/env python3
"""Checks that bench/results holds one file per machine and question. The name is MACHINE-QUESTION without a date, so that a new
measurement replaces the old one. A page names each file, and no page names a missing file."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r"bench/results/([\w.*-]+\w)")


def problems(files, pages):
    """The problems of the names FILES. PAGES maps the name of a page to its text."""
    named = {}
    for page, text in pages.items():
        for name in NAME.findall(text):
            named.setdefault(name, page)
    for name in sorted(files):
        if name not in named:
            yield f"bench/results/{name}: no page names it: name it in docs/performance.md, or delete it"
        if re.search(r"\d{4}-\d{2}", name):
            yield f"bench/results/{name}: the name must be MACHINE-QUESTION without a date; put the date into the file"
    for name, page in sorted(named.items()):
        if name not in files:
            yield f"{page}: names bench/results/{name}, which does not exist"


def main():
    assert len(list(problems({"a-steps.json", "2026-11-22-b.json"}, {"p.md": "`bench/results/c.txt`. `bench/results/2026-11-22-b.json`"}))) == 3
    pages = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
             for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("lab/**/*.md")]}
    found = list(problems({path.name for path in (ROOT / "bench" / "results").iterdir()}, pages))
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        sys.exit(f"results: {len(found)} problem(s)")
    print("results: each is named")


if __name__ == "__main__":
    main()
