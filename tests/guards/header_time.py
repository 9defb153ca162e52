#!/usr/bin/env python3
"""Checks that <tenon/tenon.h> parses within the limit, and that every public header compiles alone.

The guard measures processor time, not wall-clock time, and uses the best of several rounds. A busy machine still slows compilers
down. So each round also parses <string> and <vector>, and the limit grows in proportion to their time on the
reference machine (two cores, idle). The limit never shrinks.
"""
import argparse
import concurrent.futures
import os
import pathlib
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


# <string> and <vector> on the reference machine, where <tenon/tenon.h> takes 0.34 s. A busy machine stretches both, to a ratio
# between 1.6 and 1.9; the guard fails above 2.
REFERENCE_SECONDS = 0.2
ROUNDS = 7
ATTEMPTS = 4


WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]


def parse(compiler, text, options=()):
    """Processor time of parsing, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *options, "-I", ROOT / "include", "-x", "c++", "-"],
                          input=text, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"header_time: {text.strip()} does not compile alone:\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("--limit", type=float, default=0.7, help="seconds on the reference machine")
    options = parser.parse_args()
    headers = sorted((ROOT / "include" / "tenon").glob("*.h"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda path: parse(options.compiler, f"#include <tenon/{path.name}>\n", WARNINGS), headers))

    for attempt in range(ATTEMPTS):  # other load may spoil all rounds of one attempt
        time.sleep(5 * attempt)
        rounds = [(parse(options.compiler, "#include <string>\n#include <vector>\n"),
                   parse(options.compiler, "#include <tenon/tenon.h>\n")) for _ in range(ROUNDS)]
        reference, seconds = (min(column) for column in zip(*rounds))
        limit = options.limit * max(1.0, reference / REFERENCE_SECONDS)
        if seconds <= limit:
            break
    if seconds > limit:
        sys.exit(f"header_time: <tenon/tenon.h> takes {seconds:.2f} s to parse, more than {limit:.2f} s: look for a standard"
                 " header that only a .cpp file needs (<regex>, <iostream>, <filesystem>)")
    print(f"header_time: <tenon/tenon.h> parses in {seconds:.2f} s (limit {limit:.2f} s), {len(headers)} headers compile alone")


if __name__ == "__main__":
    main()
