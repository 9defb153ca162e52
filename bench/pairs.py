#!/usr/bin/env python3
"""Times two builds of Tenon in turn on this machine's CPU, and compares speed, size and time to the first step.

    bench/pairs.py --older OTHER/bin/tenon --newer build/bin/tenon [--only lenet5_b64,keras_cnn_b128,fcn_r,fcn_s] [--phase train,infer]
                   [--precision fp32,bf16] [--threads N] [--rounds 7] [--budget 0.5] [--realtime] [--out FILE]

Rows: a step of each network; the first steps (a command that times nothing else); the host's time per step (60 tiny layers at batch
size 1, on one thread); planned bytes; size of the command, which contains the library. Each round runs the older and the newer build
once; the order changes every round. A figure is the median over the rounds, its spread is (maximum - minimum) / median. The ratio is
older over newer: above 1 the newer build is faster or smaller. The ratio of the minimum times is in brackets, because other load
changes minima least. --realtime gives both builds real-time priority. The exit code is 1 if the newer build takes more than 1.05 times
the older build's minimum in some row.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HOST_NETWORK = "mlp:" + "-".join(["8"] * 61) + "_b1"
WORST = 1.05


prefix = []  # of every command that is timed


def bench(command, workload, phase, precision, threads, budget):
    """The row that `tenon bench` writes, and the command's time in seconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        start = time.perf_counter()
        words = ["bench", "--only", workload, "--phase", phase, "--precision", precision, "--threads", str(threads),
                 "--budget", str(budget), "--json", file.name]
        done = subprocess.run([*prefix, command, *words], capture_output=True, text=True)
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            sys.exit(f"pairs.py: {command} bench --only {workload} failed with code {done.returncode}: {done.stderr.strip()}")
        return json.loads(file.read().decode().splitlines()[-1]), seconds


class Row:
    """One quantity of both builds over the rounds: `measure(command)` gives its value and its minimum."""

    def __init__(self, name, measure):
        self.name, self.measure = name, measure
        self.values, self.least = ([], []), [float("inf"), float("inf")]

    def round(self, commands, number):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            value, least = self.measure(commands[side])
            self.values[side].append(value)
            self.least[side] = min(self.least[side], least)

    def ratio_of_least(self):
        return self.least[0] / self.least[1] if self.least[1] else 1.0

    def cells(self):
        medians = [statistics.median(values) for values in self.values]
        spreads = [(max(v) - min(v)) / m if m else 0 for v, m in zip(self.values, medians)]
        ratio = medians[0] / medians[1] if medians[1] else 1.0
        return [self.name, *(f"{m:.4g} ({100 * s:.0f} %)" for m, s in zip(medians, spreads)), f"{ratio:.2f} ({self.ratio_of_least():.2f})"]


def step_row(workload, phase, precision, threads, budget, name=None):
    def measure(command):
        row, _ = bench(command, workload, phase, precision, threads, budget)
        return row["ms"], row["ms_min"]
    return Row(name or f"{workload} {phase} {precision}, ms", measure)


def ready_row(workload, threads):
    def measure(command):
        _, seconds = bench(command, workload, "train", "fp32", threads, 0.001)
        return seconds, seconds
    return Row(f"{workload}: first steps, s from the command", measure)


def planned_row(workload, phase, threads):
    def measure(command):
        row, _ = bench(command, workload, phase, "fp32", threads, 0.001)
        return row["planned_mb"], row["planned_mb"]
    return Row(f"{workload} {phase}: planned, MB", measure)


def size_row():
    return Row("size of the command, MB", lambda command: (os.path.getsize(command) / 1e6,) * 2)


def run(rows, commands, rounds):
    for row, repeats in rows:
        for number in range(rounds if repeats else 1):
            row.round(commands, number)
        print("| " + " | ".join(row.cells()) + " |", flush=True)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--older", required=True, metavar="COMMAND")
    parser.add_argument("--newer", required=True, metavar="COMMAND")
    parser.add_argument("--only", default="lenet5_b64,keras_cnn_b128,fcn_r,fcn_s")
    parser.add_argument("--phase", default="train,infer")
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds timed per row and round (default: %(default)s)")
    parser.add_argument("--realtime", action="store_true", help="run both builds with real-time priority (needs root)")
    parser.add_argument("--out", help="append the figures to this file as JSON lines")
    options = parser.parse_args()
    commands = options.older, options.newer
    if options.realtime:
        prefix.extend(["chrt", "--rr", "1"])
    names, phases = options.only.split(","), options.phase.split(",")
    rows = [(step_row(name, phase, precision, options.threads, options.budget), True)
            for name in names for phase in phases for precision in options.precision.split(",")]
    rows.append((step_row(HOST_NETWORK, "train", "fp32", 1, options.budget, "host: 60 tiny layers, train, ms"), True))
    rows += [(ready_row(names[0], options.threads), True)]
    rows += [(planned_row(name, phase, options.threads), False) for name in names for phase in phases]
    rows.append((size_row(), False))

    versions = [subprocess.run([c, "--version"], capture_output=True, text=True).stdout.strip() for c in commands]
    print(f"{processor()}, {options.threads} threads, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}; "
          f"older: {versions[0]}, newer: {versions[1]}")
    print("| | older (spread) | newer (spread) | older / newer (of the minima) |\n| --- | --- | --- | --- |")
    run(rows, commands, options.rounds)
    if options.out:
        with open(options.out, "a", encoding="utf-8") as file:
            for row, _ in rows:
                print(json.dumps({"row": row.name, "older": row.values[0], "newer": row.values[1], "least": row.least}), file=file)
    slower = [row.name for row, _ in rows if row.ratio_of_least() < 1 / WORST]
    if slower:
        sys.exit("slower or larger: " + "; ".join(slower))


if __name__ == "__main__":
    main()
