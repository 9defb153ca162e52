#!/usr/bin/env python3
"""Draws docs/performance.svg: the time of the fastest peer over Tenon's, for every row of the raw files of steps and of networks.

    bench/chart.py             writes the chart
    bench/chart.py --check     fails if the chart disagrees with the raw files

A bar beyond the line at 1 means that Tenon is faster. The scale is logarithmic: 2 and 1/2 have the same distance from 1.
"""
import html
import math
import sys

from tables import PHASES, ROOT, ratio, read

OUT = ROOT / "docs" / "performance.svg"
# One panel per raw file, in the order of docs/performance.md.
PANELS = (("epyc-zen5-steps.json", "AMD EPYC (Zen 5), small networks"), ("xeon-avx512-steps.json", "Intel Xeon (AVX-512), small networks"),
          ("xeon-amx-steps.json", "Intel Xeon (AMX), small networks"), ("epyc-zen4-networks.json", "AMD EPYC (Zen 4), whole networks"),
          ("epyc-zen5-networks.json", "AMD EPYC (Zen 5), whole networks"), ("h200-steps.json", "NVIDIA H200, small networks"),
          ("h100-networks.json", "NVIDIA H100, whole networks"), ("h200-networks.json", "NVIDIA H200, whole networks"),
          ("h100-networks-tf32.json", "NVIDIA H100, whole networks in tf32 and fp32"))
WIDTH, LEFT, RIGHT, ROW, HEAD = 860, 250, 70, 16, 34
FASTER, SLOWER = "#2f6fb0", "#c7621c"
LEAST, MOST = 0.5, 8


def x_of(value):
    share = math.log(min(max(value, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def rows_of(name):
    rows = [row for row in read(name)["rows"] if ratio(row)]
    phases = {row["phase"] for row in rows}
    for phase in sorted(phases, reverse=True):  # training first
        for row in sorted((row for row in rows if row["phase"] == phase), key=lambda row: -ratio(row)):
            label = f"{row['workload']} {row['precision']}"
            yield label if len(phases) == 1 else f"{label}, {PHASES[phase]}", ratio(row)


def text(x, y, words, more=""):
    return f'<text x="{x:.1f}" y="{y}"{more}>{html.escape(words)}</text>'


def chart():
    body, y = [], 8
    for name, title in PANELS:
        rows = list(rows_of(name))
        top, y = y, y + HEAD
        body.append(text(8, top + 16, title, ' font-weight="bold"'))
        for tick in (0.5, 1, 2, 4, 8):
            x = x_of(tick)
            body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 6}" y2="{y + ROW * len(rows)}" stroke="{"#333" if tick == 1 else "#ccc"}"/>')
            body.append(text(x, y - 9, f"{tick:g}", ' text-anchor="middle" fill="#666"'))
        for label, value in rows:
            a, b = sorted((x_of(1), x_of(value)))
            body.append(text(LEFT - 8, y + 11, label, ' text-anchor="end"'))
            body.append(f'<rect x="{a:.1f}" y="{y + 2}" width="{max(b - a, 1):.1f}" height="{ROW - 5}" fill="{FASTER if value >= 1 else SLOWER}"/>')
            body.append(text(max(b, x_of(1)) + 5, y + 11, f"{value:.2f}"))
            y += ROW
        y += 14
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            'font-family="sans-serif" font-size="11" fill="#111" role="img">\n'
            "<title>Time of the fastest peer over Tenon's, a step</title>\n"
            f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>\n')
    return head + "\n".join(body) + "\n</svg>\n"


def main():
    drawn = chart()
    if sys.argv[1:] == ["--check"]:
        if not OUT.exists() or OUT.read_text(encoding="utf-8") != drawn:
            sys.exit("docs/performance.svg is not what bench/results says: run bench/chart.py")
        print("chart: agrees with the raw files")
        return
    OUT.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
