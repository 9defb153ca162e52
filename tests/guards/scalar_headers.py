#!/usr/bin/env python3
"""Checks that every header of src/scalar compiles alone, because NVRTC compiles them without any other header."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="c++")
    options = parser.parse_args()

    def compile_alone(path):
        done = subprocess.run([options.compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow",
                               "-Werror", "-I", ROOT / "src", "-I", ROOT / "include", "-x", "c++", "-"],
                              input=f'#include "scalar/{path.name}"\n', text=True, capture_output=True)
        return None if done.returncode == 0 else f"scalar_headers: {path.name} does not compile alone:\n{done.stderr}"

    headers = sorted((ROOT / "src" / "scalar").glob("*.h"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [problem for problem in pool.map(compile_alone, headers) if problem]
    if problems:
        sys.exit("\n".join(problems))
    print(f"scalar_headers: {len(headers)} compile alone")


if __name__ == "__main__":
    main()
