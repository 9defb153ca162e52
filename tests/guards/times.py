#!/usr/bin/env python3
"""Checks that times, rates and cache sizes of devices are in one model only (src/device/gpu_model.h, src/cuda/device/gpu_models.*; for
the host src/device/cpu_model.h), and not in other files that plan and run. Otherwise two places could assume different launch costs,
or the number of multiprocessors of one GPU for all GPUs.

The figures of a kernel are ratios of the model's figures: a fraction of a rate, instructions, a number of rounds.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROOMS = ["src/plan", "src/run", "src/cpu", "src/cuda", "src/device"]
HOME = {"src/device/gpu_model.h", "src/device/cpu_model.h", "src/cuda/device/gpu_models.h", "src/cuda/device/gpu_models.cpp"}

# name, pattern
PATTERNS = [
    ("an H200's multiprocessors", r"(?<![\w.])132(?![\w.])"),
    ("a rate or a time", r"(?<![\w.])\d[\d.']*e[+-]?(?:[6-9]|1[0-5])(?!\w)"),
    ("a constant of time", r"\bconstexpr\s+[\w:]+\s+k\w*(?:Microsecond|Nanosecond|Second|Launch(?!es)|Latency|Cycle|Bandwidth|"
                           r"FlopsA|BytesA)\w*\s*="),
]
# file: a part of the line, and the reason why it is not a device time
EXEMPT = {
    "src/plan/program/tune.cpp": ("us <= 1e9", "what a file may hold"),
    "src/run/compile.cpp": ("2e-9 * multiply_adds", "GFLOP for a report"),
    "src/run/tuning/tune.cpp": ("constexpr double k", "how long a person waits for the tuner, and for a library to start"),
    "src/run/tuning/tune_gpu.cpp": ("1e-12", "a tolerance"),
    "src/run/api/tensor_value.cpp": ("1e6", "digits that are printed"),
    "src/cuda/device/opening/rates.cpp": ("", "measures the model's figures"),
    "src/cuda/engines/convolutions/conv_engine.cpp": ("kMostFlops", "arithmetic of one convolution"),
}


# In src/cpu too: cache sizes that its kernels assume.
CPU_PATTERNS = [("a size of caches", r"<<\s*[12]0\b")]


def exempt(name, line):
    return any(name.startswith(place) and part in line for place, (part, _) in EXEMPT.items())


def problems_of(name, lines):
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        for what, pattern in PATTERNS + (CPU_PATTERNS if name.startswith("src/cpu/") else []):
            if re.search(pattern, code) and not exempt(name, code):
                yield f"{name}:{number}: {what}: '{code.strip()}' belongs in src/device/gpu_model.h or cpu_model.h, or is a ratio of what is there"


PLANTED = [
    ("constexpr double kLaunchCycles = 2000;", True), ("constexpr double kLatency = 700;", True),
    ("const double flops = 650e6;", True), ("double even = tiles / 132;", True), ("return bytes / 3.5e12;", True),
    ("constexpr std::int64_t kBytes = 512 << 10;", True), ("constexpr double kShare = 0.65;", False), ("constexpr int kTile = 128;", False), ("x < 1e-4", False),
    ("int k = 1320;", False), ("constexpr int kMaxLaunches = 3;", False),
]


def main():
    for line, wrong in PLANTED:
        if bool(list(problems_of("src/cpu/planted.cpp", [line]))) != wrong:
            sys.exit(f"times: planted '{line}' is judged wrongly")
    problems = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in {".h", ".cpp"} and name not in HOME:
                problems += problems_of(name, path.read_text(encoding="utf-8").splitlines())
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(f"times: {len(problems)} problem(s)")
    print("times: all in the model")


if __name__ == "__main__":
    main()
