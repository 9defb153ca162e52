#!/usr/bin/env python3
"""Prints differences.json as the list in docs/numerics.md. With --check, checks that the page contains the list."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "numerics.md"
BEGIN, END = "<!-- differences.json begins -->\n", "<!-- differences.json ends -->\n"


def line(entry):
    ops = ", ".join(f"`{op}`" for op in entry.get("ops", []))
    dtypes = ", ".join(entry.get("dtypes", []))
    where = " of ".join(part for part in [ops, dtypes] if part)
    return f"* {where + ': ' if where else ''}{entry['reason']}\n"


def main():
    entries = json.loads((HERE / "differences.json").read_text())
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    lines = dict.fromkeys(line(entry) for entry in entries)
    wanted = before + BEGIN + "".join(lines) + END + after
    if "--check" in sys.argv[1:]:
        sys.exit(None if wanted == text else "docs/numerics.md is not what differences.json says: run tests/conformance/document.py")
    PAGE.write_text(wanted)


if __name__ == "__main__":
    main()
