#!/usr/bin/env python3
"""Runs lab_conv and cudnn.py alternately and prints a table for each precision.

    lab/conv/compare.py [--program build/bin/lab_conv] [--device cuda] [--precision fp32,tf32,bf16] [--batch 128] [--rounds 3]
                        [--budget 300] [--out FILE]

lab_conv runs without vendor libraries (ours). A figure is the median over the rounds; FILE gets every row as soon as it is measured.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PASSES = ("forward", "by input", "by filters")


def rows_of(command, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        print(f"compare.py: {command[0]} ended with {done.returncode}: {done.stderr.strip()[-500:]}", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def table(rows, precision):
    def figure(system, layer, name, key):
        found = [row[key] for row in rows if (row["system"], row["layer"], row["pass"], row["precision"]) == (system, layer, name, precision)]
        return statistics.median(found) if found else float("nan")

    lines = [f"| {precision} | pass | ours ms | TFLOP/s | beyond operands and result, MB | cuDNN ms | TFLOP/s | MB | cuDNN / ours |",
             "| --- " * 9 + "|"]
    for layer in sorted({row["layer"] for row in rows}):
        for name in PASSES:
            ours, other = ([figure(system, layer, name, key) for key in ("ms", "tflops", "extra_mb")] for system in ("tenon", "cudnn"))
            lines.append(f"| {layer} | {name} | {ours[0]:.3g} | {ours[1]:.3g} | {ours[2]:.3g} | {other[0]:.3g} | {other[1]:.3g} | {other[2]:.3g} "
                         f"| {other[0] / ours[0]:.2f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("program", "build/bin/lab_conv"), ("device", "cuda"), ("precision", "fp32,tf32,bf16"), ("batch", "128"),
                          ("rounds", "3"), ("budget", "300"), ("layer", ""), ("out", "")):
        parser.add_argument("--" + name, default=default)
    options = parser.parse_args()
    rows = []
    if options.out:
        pathlib.Path(options.out).write_text("")
    for turn in range(int(options.rounds)):
        for precision in options.precision.split(","):
            words = [options.device, precision, options.batch, options.budget, *([options.layer] if options.layer else [])]
            for command, environment in (([options.program, *words], {"TENON_CUDNN": "off", "TENON_CUBLASLT": "off"}),
                                         ([sys.executable, HERE / "cudnn.py", *words], {})):
                found = [{"round": turn} | row for row in rows_of(command, **environment)]
                rows += found
                if options.out:
                    with open(options.out, "a") as out:
                        out.writelines(json.dumps(row) + "\n" for row in found)
    for precision in options.precision.split(","):
        print(table(rows, precision), end="\n\n")


if __name__ == "__main__":
    main()
