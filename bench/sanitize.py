#!/usr/bin/env python3
"""Runs the device tests under NVIDIA's compute-sanitizer on this machine's card, and ends in a table.

    ./dev gpu --sanitize [OPTIONS]     builds, and runs this
    bench/sanitize.py --tests build/bin/tenon_tests [--tools memcheck,racecheck,initcheck] [--groups cases,map,…] [--all]
                      [--jobs N] [--seconds 600] [--out FOLDER]

Groups run in parallel, each a process on the card. Kernels are compiled before, into a cache of the folder's own, and the
library keeps no memory (TENON_CUDA_POOL=off), so that every tensor is an allocation whose end the tool sees. racecheck and
initcheck take the tests that launch every family of kernels; --all gives them everything, which takes an hour. What was found
is in FOLDER/TOOL-GROUP.log; exit code 1 when anything was. A group that the time limit ends is not a clean one.
"""
import argparse
import concurrent.futures
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Group: patterns of doctest cases for every tool, and a shorter list for the slow tools where the whole would be too long.
GROUPS = {
    "cases32": (["cuda: cases against the CPU's reference*float32"], None),
    "cases64": (["cuda: cases against the CPU's reference*float64"], []),
    "casesbf16": (["cuda: cases against the CPU's reference*bfloat16"], []),
    "cases16": (["cuda: cases against the CPU's reference* float16"], []),
    "map": (["cuda map: *", "card joining: *"],
            ["cuda map: in-place*", "cuda map: softmax*", "cuda map: row reductions*", "cuda map: NaN wins*", "card joining: *",
             "cuda map: random numbers*", "cuda map: a value used before*", "cuda map: several*"]),
    "reductions": (["cuda map: reductions*", "cuda map: one-axis*"], ["cuda map: reductions over any axes"]),
    "opaque": (["cuda opaque: *"], None),
    "contraction": (["native contraction: *"], ["native contraction: every tile*", "native contraction: mixed*",
                                                "native contraction: an update*", "native contraction: 16-bit*"]),
    "convolution": (["native contraction: convolutions and their gradients", "patch convolution: *"],
                    ["native contraction: convolutions and their gradients", "patch convolution: forward*"]),
    "wgmma": (["wgmma gives*"], None),
    "training": (["card training: *", "card launches: *", "cuda rounded: *"],
                 ["card training: the course*", "card launches: the bits*", "cuda rounded: an update*"]),
    "vendor": (["vendor: cuBLASLt against*", "vendor: cuBLASLt's batches and*", "vendor: cuDNN against*",
                "vendor: operands*", "vendor: an epilogue*"], ["vendor: operands*", "vendor: an epilogue*"]),
    "memory": (["card memory: copies*", "card memory: a copy beside*", "a block reduces*", "tensor-core products*",
                "a captured graph*"], ["a block reduces*", "tensor-core products*"]),
}
SLOW_FIRST = ("racecheck", "initcheck", "memcheck")
OPTIONS = {"memcheck": ["--report-api-errors", "no"], "racecheck": [], "initcheck": [], "synccheck": []}


def find_sanitizer():
    places = [shutil.which("compute-sanitizer"), *sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer"), reverse=True)]
    if home := os.environ.get("CUDA_HOME"):
        places.append(f"{home}/bin/compute-sanitizer")
    for place in places:
        if place and os.access(place, os.X_OK):
            return place
    return sys.exit("sanitize.py: compute-sanitizer is in no CUDA toolkit here (PATH, CUDA_HOME, /usr/local/cuda*)")


def patterns_of(group, tool, everything):
    whole, short = GROUPS[group]
    return whole if everything or tool == "memcheck" or short is None else short


class Runner:
    def __init__(self, options, sanitizer):
        self.options, self.sanitizer = options, sanitizer
        self.deadline = time.monotonic() + options.seconds
        self.environment = {**os.environ, "TENON_CACHE": str(options.out / "cache"), "TENON_CUDA_POOL": "off"}

    def run(self, command, log):
        left = self.deadline - time.monotonic()
        start = time.monotonic()
        if left < 1:
            return None, "", 0.0
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=self.environment, cwd=ROOT)
            try:
                code = process.wait(timeout=left)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = None
        return code, log.read_text(encoding="utf-8", errors="replace"), time.monotonic() - start

    def tests(self, patterns):
        return [str(pathlib.Path(self.options.tests).resolve()), "--no-intro", f"--test-case={','.join(patterns)}"]

    def compile_kernels(self, group):
        return group, self.run(self.tests(GROUPS[group][0]), self.options.out / f"plain-{group}.log")

    def check(self, tool, group):
        patterns = patterns_of(group, tool, self.options.all)
        command = [self.sanitizer, "--tool", tool, "--error-exitcode", "9", "--print-limit", "30", *OPTIONS[tool],
                   *self.tests(patterns)]
        code, text, seconds = self.run(command, self.options.out / f"{tool}-{group}.log")
        found = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
        ran = re.search(r"\[doctest\] test cases: *(\d+) *\| *(\d+) passed *\| *(\d+) failed", text)
        return {"tool": tool, "group": group, "code": code, "seconds": seconds, "found": int(found[1]) if found else None,
                "cases": ran.groups() if ran else None}


def verdict(row):
    if row["code"] is None:
        return "not finished"
    if row["found"]:
        return f"{row['found']} findings"
    if row["code"] != 0 or row["found"] is None or row["cases"] is None:
        return f"failed (exit code {row['code']})"
    return "clean"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--tools", default="memcheck,racecheck,initcheck")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/sanitize"))
    options = parser.parse_args()
    tools, groups = options.tools.split(","), options.groups.split(",")
    for known, names in ((OPTIONS, tools), (GROUPS, groups)):
        if unknown := set(names) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    runner = Runner(options, find_sanitizer())
    broken = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for group, (code, text, seconds) in pool.map(runner.compile_kernels, groups):
            print(f"plain      {group:<12}{seconds:>7.1f} s  {'passes' if code == 0 else 'FAILS'}", flush=True)
            if code != 0:
                broken += 1
                print("\n".join(text.splitlines()[-30:]))
            elif "skipped: no card" in text:
                sys.exit("sanitize.py: there is no card here")
        order = [(tool, group) for tool in sorted(tools, key=lambda t: SLOW_FIRST.index(t) if t in SLOW_FIRST else 9)
                 for group in groups if patterns_of(group, tool, options.all)]
        for row in pool.map(lambda job: runner.check(*job), order):
            text = verdict(row)
            broken += text != "clean"
            cases = f"{row['cases'][0]} tests" if row["cases"] else ""
            print(f"{row['tool']:<11}{row['group']:<12}{row['seconds']:>7.1f} s  {text:<24}{cases}", flush=True)
    print(f"logs are in {options.out}; " + (f"{broken} groups are not clean" if broken else "everything is clean"))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
