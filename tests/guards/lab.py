#!/usr/bin/env python3
"""Checks that lab/matmul compiles. It includes kernels of the library, and no other build compiles it.

Checks the syntax only, with nvcc's front end. Without nvcc of CUDA 12.5 or newer the guard is skipped.
"""
import concurrent.futures
import glob
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def find_nvcc():
    places = [f"{os.environ['CUDA_HOME']}/bin/nvcc"] if "CUDA_HOME" in os.environ else []
    places += [shutil.which("nvcc"), *sorted(glob.glob("/usr/local/cuda*/bin/nvcc"), reverse=True)]
    for place in places:
        if place and os.access(place, os.X_OK):
            text = subprocess.run([place, "--help"], capture_output=True, text=True).stdout
            if "--fdevice-syntax-only" in text:
                return place
    return None


def main():
    nvcc = find_nvcc()
    if nvcc is None:
        print("skipped: no nvcc with --fdevice-syntax-only")
        return SKIPPED

    def parse(source):
        return subprocess.run([nvcc, "-std=c++20", "-arch=sm_90a", f"-I{ROOT / 'src'}", "--fdevice-syntax-only", "-c", source,
                               "-o", os.devnull], capture_output=True, text=True)

    sources = sorted((ROOT / "lab" / "matmul").glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(parse, sources))
    bad = [source for source, result in zip(sources, done) if result.returncode != 0]
    for source, result in zip(sources, done):
        if source in bad:
            print(f"{source.relative_to(ROOT)} does not compile:", result.stderr.strip()[-1500:], sep="\n")
    print(f"lab: {len(sources)} sources, {len(bad)} problem(s)")
    return 1 if bad or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
