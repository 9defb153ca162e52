#!/usr/bin/env python3
"""bench/results holds one file a machine and question, called MACHINE-QUESTION without a date, so that a new measurement takes the
place of the old one. Each is named by a page of documents, and no page names one that is not there."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAME = re.compile(r"bench/results/([\w.*-]+\w)")


def problems(files, pages):
    """What is wrong with the names FILES, given PAGES: name of a page to its text."""
    named = {}
    for page, text in pages.items():
        for name in NAME.findall(text):
            named.setdefault(name, page)
    for name in sorted(files):
        if name not in named:
            yield f"bench/results/{name}: no page names it: name it in docs/performance.md, or delete it"
        if re.search(r"\d{4}-\d{2}", name):
            yield f"bench/results/{name}: a name says machine and question; the date stands in the file"
    for name, page in sorted(named.items()):
        if name not in files:
            yield f"{page}: names bench/results/{name}, which is not there"


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
