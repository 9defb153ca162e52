#!/usr/bin/env python3
"""Draws docs/performance.svg: the time of the best peer over Tenon's, for every row of bench/results/*-steps.json and of the first
table of *-networks.txt.

    bench/picture.py             writes it
    bench/picture.py --check     fails when it is not what the results say

A bar beyond the line at 1 is in Tenon's favour. The scale is logarithmic: 2 and 1/2 are as far from 1.
"""
import html
import json
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "docs" / "performance.svg"
# A panel a file; the order of docs/performance.md.
PANELS = (("epyc-zen5-steps.json", "2 cores of AMD EPYC (Zen 5), training"), ("xeon-avx512-steps.json", "2 CPUs of Intel Xeon (AVX-512), training"),
          ("xeon-amx-steps.json", "2 CPUs of Intel Xeon (AMX), training"), ("epyc-zen4-networks.txt", "2 cores of AMD EPYC (Zen 4), networks"),
          ("h200-steps.json", "NVIDIA H200"), ("h200-networks.txt", "NVIDIA H200, networks, training"))
WIDTH, LEFT, RIGHT, ROW, HEAD = 860, 250, 70, 16, 34
FASTER, SLOWER = "#2f6fb0", "#c7621c"
LEAST, MOST = 0.5, 8


def x_of(ratio):
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def flat(record):
    """Rows of a file of bench/compare.py, of several such, or of bench/gpu.py."""
    if "runs" in record:
        return [row for run in record["runs"] for row in run["results"]]
    return record.get("results") or record["rows"]


def first_table(text):
    """Rows of the first table: the ratio stands below its name; where no phase and no precision are named, all train in bf16."""
    lines = text.splitlines()
    begin = next(k for k, line in enumerate(lines) if line.startswith("workload"))
    head = re.search("ratio", lines[begin])
    for line in lines[begin + 1:]:
        if not line.strip():
            return
        words = list(re.finditer(r"\S+", line))
        ratio = next((word[0] for word in words if word.start() < head.end() and word.end() > head.start()), "-")
        phase, precision = (words[1][0], words[2][0]) if "phase" in lines[begin] else ("train", "bf16")
        if re.fullmatch(r"\d*\.\d+", ratio):
            yield {"workload": words[0][0], "phase": phase, "precision": precision, "ratio": float(ratio)}


def rows_of(name):
    content = (ROOT / "bench" / "results" / name).read_text(encoding="utf-8")
    found = first_table(content) if name.endswith(".txt") else flat(json.loads(content))
    rows = [(row["phase"], f"{row['workload']} {row['precision']}", row["ratio"]) for row in found if row.get("ratio")]
    phases = {phase for phase, _, _ in rows}
    for phase in sorted(phases, reverse=True):  # training first
        for _, label, ratio in sorted((row for row in rows if row[0] == phase), key=lambda row: -row[2]):
            yield (label if len(phases) == 1 else f"{label}, {'inference' if phase == 'infer' else 'training'}"), ratio


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y}"{more}>{html.escape(words)}</text>'


def picture():
    body, y = [], 8
    for name, title in PANELS:
        rows = list(rows_of(name))
        top, y = y, y + HEAD
        body.append(text(8, top + 16, title, ' font-weight="bold"'))
        for tick in (0.5, 1, 2, 4, 8):
            x = x_of(tick)
            body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 6}" y2="{y + ROW * len(rows)}" stroke="{"#333" if tick == 1 else "#ccc"}"/>')
            body.append(text(x, y - 9, f"{tick:g}", ' text-anchor="middle" fill="#666"'))
        for label, ratio in rows:
            a, b = sorted((x_of(1), x_of(ratio)))
            body.append(text(LEFT - 8, y + 11, label, ' text-anchor="end"'))
            body.append(f'<rect x="{a:.1f}" y="{y + 2}" width="{max(b - a, 1):.1f}" height="{ROW - 5}" fill="{FASTER if ratio >= 1 else SLOWER}"/>')
            body.append(text(max(b, x_of(1)) + 5, y + 11, f"{ratio:.2f}"))
            y += ROW
        y += 14
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            'font-family="sans-serif" font-size="11" fill="#111" role="img">\n'
            "<title>Time of the best peer over Tenon's, a step</title>\n"
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>\n')
    return head + "\n".join(body) + "\n</svg>\n"


def main():
    drawn = picture()
    if sys.argv[1:] == ["--check"]:
        if not OUT.exists() or OUT.read_text(encoding="utf-8") != drawn:
            sys.exit("docs/performance.svg is not what bench/results says: run bench/picture.py")
        print("picture: as the results are")
        return
    OUT.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
