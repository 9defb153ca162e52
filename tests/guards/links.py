#!/usr/bin/env python3
"""Checks that readers can find every page and every public header.

* A link in a page leads to a file of the project and, if it names a heading, to that heading.
* README.md, the index, links every page of docs/.
* docs/api/main.md, the first page of the API reference, lists every header of include/tenon in a table.
* The API reference (docs/api/Doxyfile) copies exactly the pages that docs/api/main.md links to.

`--self-test` plants one fault of each kind in a small tree and fails if a fault is not reported.
"""
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
API = "docs/api/main.md"


def links(page):
    """The links of a page to files of the project, not those to the web."""
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")) if not re.match(r"\w+:", link)]


def headings(page):
    """The names by which links reach the headings of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return {re.sub(r"[^\w\- ]", "", line.lstrip("# ").strip().lower()).replace(" ", "-") for line in lines if line.startswith("#")}


def broken_links(root):
    pages = {page.resolve(): headings(page) for page in (*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("lab/**/*.md"))}
    for page in pages:
        for link in links(page):
            path, _, heading = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (heading and heading not in pages.get(target, ())):
                yield f"{page.relative_to(root)}: the link {link} leads nowhere"


def missing_pages(root):
    linked = {(root / link.partition("#")[0]).resolve() for link in links(root / "README.md")}
    for page in sorted(root.glob("docs/**/*.md")):
        if page.resolve() not in linked:
            yield f"{page.relative_to(root)}: README.md has no link to this page"


def missing_headers(root):
    """Headers without a row in a table of the API page, and rows without a header."""
    rows = re.findall(r"^\| (`[^|]*) \|", (root / API).read_text(encoding="utf-8"), re.M)
    listed = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    present = {path.name for path in root.glob("include/tenon/*.h")}
    for name in sorted(present - listed):
        yield f"include/tenon/{name}: {API} has no row for this header"
    for name in sorted(listed - present):
        yield f"{API}: there is no header {name}"


def uncopied_pages(root):
    linked = {(root / API).parent.joinpath(link.partition("#")[0]).resolve() for link in links(root / API) if not link.startswith("#")}
    found = re.search(r"^HTML_EXTRA_FILES\s*=(.*)$", (root / API).with_name("Doxyfile").read_text(encoding="utf-8"), re.M)
    copied = {(root / name).resolve() for name in (found.group(1).split() if found else ())}
    for page in sorted(linked - copied):
        yield f"docs/api/Doxyfile: HTML_EXTRA_FILES lacks {page.relative_to(root)}, which {API} links to"
    for page in sorted(copied - linked):
        yield f"docs/api/Doxyfile: HTML_EXTRA_FILES has {page.relative_to(root)}, which {API} does not link to"


def problems(root):
    return [*broken_links(root), *missing_pages(root), *missing_headers(root), *uncopied_pages(root)]


GOOD = {
    "README.md": "[a](docs/a.md) [api](docs/api/main.md)\n", "docs/a.md": "# A\n\n## One heading\n[self](#one-heading)\n",
    API: "| `x.h`, `y.h` | two |\n\n[a](../a.md#one-heading)\n", "docs/api/Doxyfile": "HTML_EXTRA_FILES = docs/a.md\n",
    "include/tenon/x.h": "", "include/tenon/y.h": "",
}
# A fault: a file, its text, and the problem that must be reported, alone.
FAULTS = (
    ("docs/a.md", "# A\n\n## One heading\n[gone](b.md)\n", "docs/a.md: the link b.md leads nowhere"),
    ("docs/a.md", "# A\n\n## One heading\n[gone](#two)\n", "docs/a.md: the link #two leads nowhere"),
    ("docs/b.md", "# B\n", "docs/b.md: README.md has no link to this page"),
    ("docs/internals/b.md", "# B\n", "docs/internals/b.md: README.md has no link to this page"),
    ("include/tenon/z.h", "", f"include/tenon/z.h: {API} has no row for this header"),
    (API, "| `x.h`, `y.h`, `w.h` | three |\n\n[a](../a.md)\n", f"{API}: there is no header w.h"),
    ("docs/api/Doxyfile", "HTML_EXTRA_FILES =\n", f"docs/api/Doxyfile: HTML_EXTRA_FILES lacks docs/a.md, which {API} links to"),
    (API, "| `x.h`, `y.h` | two |\n", f"docs/api/Doxyfile: HTML_EXTRA_FILES has docs/a.md, which {API} does not link to"),
)


def planted(files):
    """The problems of a tree of these files."""
    with tempfile.TemporaryDirectory(prefix="tenon-links-") as folder:
        root = pathlib.Path(folder).resolve()
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return problems(root)


def self_test():
    for files, expected in [(GOOD, [])] + [({**GOOD, name: text}, [problem]) for name, text, problem in FAULTS]:
        if planted(files) != expected:
            sys.exit(f"links: expected {expected}, found {planted(files)}")
    print(f"links: {len(FAULTS)} planted faults are reported")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if found := problems(ROOT):
        sys.exit("\n".join(found))
    print("links: every page and every public header can be found")
    return None


if __name__ == "__main__":
    main()
