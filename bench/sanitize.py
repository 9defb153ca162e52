#!/usr/bin/env python3
"""Runs the device tests under NVIDIA's compute-sanitizer on this machine's GPU, and prints a table.

    ./dev gpu --sanitize [OPTIONS]     builds, then runs this script
    bench/sanitize.py --tests build/bin/tenon_tests [--tools memcheck,racecheck,initcheck] [--groups cases,map,…] [--all]
                      [--jobs N] [--seconds 600] [--out FOLDER]

Groups are split into parts. Each part is a process on the GPU, and N run at a time. Kernels are compiled first ("plain") into a
cache in FOLDER. The memory pool is off (TENON_CUDA_POOL=off), so every tensor is an allocation whose end the
tool sees. racecheck and initcheck run tests that launch every family of kernels; --all runs all tests. The
findings are in FOLDER/TOOL-GROUP-PART.log; the exit code is 1 if there are any. A part that reaches the time limit is not clean.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

SHARES = 12
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Group: patterns of doctest cases for every tool; a shorter list for the slow tools, if the whole list takes too long; the number
# of processes that share the case table, or None for one process per pattern. Long groups come first.
GROUPS = {
    "wgmma": (["wgmma gives*"], None, None),
    "simt": (["simt gives*", "simt updates*"], None, None),
    "prologue": (["prologues: matrices*", "prologues: convolutions*", "prologues: batches*,prologues: dropout*"],
                 ["prologues: batches*,prologues: dropout*"], None),
    "convolution": (["patch convolution: every tile", "patch convolution: forward*",
                     "native contraction: convolutions and their gradients", "native contraction: a convolution*"],
                    ["native contraction: convolutions and their gradients", "patch convolution: forward*"], None),
    "opaque": (["cuda opaque: co*,cuda opaque: pad*", "cuda opaque: g*,cuda opaque: rows*,cuda opaque: an*",
                "cuda opaque: pool*", "cuda opaque: a max*,cuda opaque: s*"], None, None),
    "training": (["GPU training: the course*", "GPU training: begun*", "GPU training: a loss*,GPU training: an overflow*",
                  "GPU launches: the bits*", "GPU launches: float16*,GPU launches: nothing*", "GPU launches: a run*",
                  "cuda rounded: *"],
                 ["GPU training: the course*", "GPU launches: the bits*", "cuda rounded: an update*"], None),
    "contraction": (["native contraction: matrices*", "native contraction: every tile*", "native contraction: mixed*",
                     "native contraction: 16-bit*,native contraction: batches*", "native contraction: an update*"],
                    ["native contraction: every tile*", "native contraction: mixed*", "native contraction: an update*",
                     "native contraction: 16-bit*"], None),
    "cases32": (["cuda: cases against the CPU's reference*float32"], None, SHARES),
    "cases64": (["cuda: cases against the CPU's reference*float64"], [], SHARES),
    "casesbf16": (["cuda: cases against the CPU's reference*bfloat16"], [], SHARES),
    "cases16": (["cuda: cases against the CPU's reference* float16"], [], SHARES),
    "map": (["cuda map: e*", "cuda map: scalar*,cuda map: broadcasts*", "cuda map: strided*", "cuda map: in-place*",
             "cuda map: softmax*", "cuda map: row reductions*", "cuda map: NaN wins*", "cuda map: random numbers*",
             "cuda map: random programs*", "cuda map: a value used before*", "cuda map: several*,cuda map: sums*",
             "cuda map: many regions*", "GPU joining: *"],
            ["cuda map: in-place*", "cuda map: softmax*", "cuda map: row reductions*", "cuda map: NaN wins*", "GPU joining: *",
             "cuda map: random numbers*", "cuda map: a value used before*", "cuda map: several*", "cuda map: sums*"], None),
    "reduced": (["cuda reduced results: matrix*", "cuda reduced results: every*", "cuda reduced results: the defining*,"
                 "cuda reduced results: gradients*", "cuda reduced results: float32*", "cuda reduced results: pro*"],
                ["cuda reduced results: gradients*", "cuda reduced results: float32*", "cuda reduced results: pro*"], None),
    "reductions": (["cuda map: reductions*", "cuda map: one-axis*"], ["cuda map: reductions over any axes"], None),
    "fill": (["cuda fill: *"], None, None),
    "phases": (["cuda phases: a norm*", "cuda phases: a row*,cuda phases: all*",
                "cuda phases: the last*,cuda phases: without*,cuda phases: blocks*", "GPU phases: a clipped training is*",
                "GPU phases: a clipped training takes*"], None, None),
    "vendor": (["vendor: cuBLASLt against*", "vendor: cuBLASLt's batches and*", "vendor: cuDNN against*",
                "vendor: operands*,vendor: an epilogue*"], ["vendor: operands*,vendor: an epilogue*"], None),
    "memory": (["GPU memory: copies*,GPU memory: a copy beside*", "a block reduces*", "tensor-core products*",
                "a captured graph*"], ["a block reduces*", "tensor-core products*"], None),
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
    return sys.exit("sanitize.py: found no compute-sanitizer in PATH, CUDA_HOME or /usr/local/cuda*: install a CUDA toolkit")


def patterns_of(group, tool, everything):
    whole, short, _ = GROUPS[group]
    return whole if everything or tool in ("plain", "memcheck") or short is None else short


def parts_of(group, tool, everything):
    """The processes of a group, as (patterns, share)."""
    patterns, shares = patterns_of(group, tool, everything), GROUPS[group][2]
    if shares is None:
        return [(each, None) for each in patterns]
    return [(",".join(patterns), f"{k}/{shares}") for k in range(shares) if patterns]


class Runner:
    def __init__(self, options, sanitizer):
        self.options, self.sanitizer = options, sanitizer
        self.deadline = time.monotonic() + options.seconds
        self.environment = {**os.environ, "TENON_CACHE": str(options.out / "cache"), "TENON_CUDA_POOL": "off"}

    def environment_of(self, share, folder):
        """A TMPDIR of its own: tests write files with fixed names there."""
        folder.mkdir(exist_ok=True)
        own = {"TMPDIR": str(folder)}
        if share:
            own["TENON_TEST_SHARE"] = share
        return {**self.environment, **own}

    def run(self, command, log, environment):
        left = self.deadline - time.monotonic()
        start = time.monotonic()
        if left < 1:
            return None, "", 0.0
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment, cwd=ROOT,
                                       start_new_session=True)
            try:
                code = process.wait(timeout=left)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
        return code, log.read_text(encoding="utf-8", errors="replace"), time.monotonic() - start

    def check(self, tool, group, number, part):
        patterns, share = part
        tests = [str(pathlib.Path(self.options.tests).resolve()), "--no-intro", f"--test-case={patterns}"]
        around = [] if tool == "plain" else [self.sanitizer, "--tool", tool, "--error-exitcode", "9", "--print-limit", "30",
                                             *OPTIONS[tool]]
        name = self.options.out / f"{tool}-{group}-{number}"
        code, text, seconds = self.run([*around, *tests], name.with_suffix(".log"),
                                       self.environment_of(share, name))
        found = re.search(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)", text)
        ran = re.search(r"\[doctest\] test cases: *(\d+) *\| *(\d+) passed *\| *(\d+) failed", text)
        if tool == "plain" and "skipped: no GPU" in text:
            sys.exit("sanitize.py: there is no GPU here")
        return {"tool": tool, "group": group, "part": number, "code": code, "seconds": seconds,
                "found": int(found[1]) if found else 0 if tool == "plain" else None, "tests": int(ran[1]) if ran else None}


def verdict(row):
    if row["code"] is None:
        return "not finished"
    if row["found"]:
        return f"{row['found']} findings"
    if row["code"] != 0 or row["found"] is None or row["tests"] is None:
        return f"failed (exit code {row['code']})"
    return "clean"


def report(rows):
    """Prints one line for the parts of a group under a tool. Returns whether all are clean."""
    verdicts = [verdict(row) for row in rows]
    bad = [f"part {row['part']}: {text}" for row, text in zip(rows, verdicts) if text != "clean"]
    tests = max((row["tests"] or 0 for row in rows), default=0) if GROUPS[rows[0]["group"]][2] else \
        sum(row["tests"] or 0 for row in rows)
    text = "clean" if not bad else "; ".join(bad)
    print(f"{rows[0]['tool']:<11}{rows[0]['group']:<12}{sum(row['seconds'] for row in rows):>7.1f} s  "
          f"{len(rows) - len(bad):>2} of {len(rows):>2} parts, {tests:>2} tests  {text}", flush=True)
    return not bad


def run_all(runner, pool, jobs):
    """Runs jobs in order and reports each group when its last part has ended."""
    left, rows, clean = collections.Counter(job[:2] for job in jobs), collections.defaultdict(list), True
    for done in concurrent.futures.as_completed([pool.submit(runner.check, *job) for job in jobs]):
        row = done.result()
        key = row["tool"], row["group"]
        rows[key].append(row)
        left[key] -= 1
        if left[key] == 0:
            clean = report(sorted(rows[key], key=lambda r: r["part"])) and clean
    return clean


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--tools", default="memcheck,racecheck,initcheck")
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
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

    def jobs(tool):
        return [(tool, group, number, part) for group in groups
                for number, part in enumerate(parts_of(group, tool, options.all))]

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        clean = run_all(runner, pool, jobs("plain"))
        by_pace = sorted(tools, key=lambda t: SLOW_FIRST.index(t) if t in SLOW_FIRST else 9)
        clean = run_all(runner, pool, [job for tool in by_pace for job in jobs(tool)]) and clean
    print(f"logs are in {options.out}; " + ("everything is clean" if clean else "not everything is clean"))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
