#!/usr/bin/env python3
"""Tests and times Tenon on one NVIDIA GPU, beside PyTorch and JAX, and prints a table.

    ./dev gpu [OPTIONS]          builds, then runs this script
    bench/gpu.py --tenon build/bin/tenon [--tests build/bin/tenon_tests] [--peers FOLDER] [--part tests,small]
                 [--only lenet5_b64,fcn_r] [--precision bf16,tf32,fp32] [--phase train,infer] [--rounds 3] [--within 570]
                 [--tune write] [--data mnist:FOLDER] [--out FILE]

Parts are the device tests (with --tests; a failure ends the run) and groups of rows. Each part takes at most ten minutes on a machine
with a GPU and 16 processors, without the build. After --within seconds nothing new starts, running work is stopped, and the table has the
rows so far. FOLDER holds torch_bench.py and jax_bench.py, which time the same steps. Without FOLDER, PyTorch or JAX, their columns
stay empty. Peers compile in parallel from the start (bench/peer_row.py) and are timed after Tenon's first round. Every timing has the
GPU to itself. Tenon's figure is the median over the rounds, a peer's figure the minimum over its modes. Times are milliseconds per step
with work queued ahead, as in training. The first round measures engine choices (--tune write), as `tenon train --tune write` does.
Memory, in MiB, is Tenon's planned memory and the minimum of PyTorch's peaks.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Test files that take long on a GPU; they start first.
LONG = ("test_wgmma", "test_vendor", "test_vendor_libraries", "test_contraction", "test_conv", "test_map", "test_prologue", "test_opaque",
        "test_simt", "test_attention", "test_channels_last", "test_long_sums")
CASE_SHARES = 6  # processes that share the table of cases
# The project's targets in bf16 on one H200, in ms: training step, inference.
REQUIRED = {"train": {"lenet5_b64": 0.10, "keras_cnn_b128": 0.14, "fcn_r": 0.25, "fcn_s": 0.75, "alexnet_s": 1.0, "alexnet_2012_b128": 4.9,
                      "alexnet_r": 0.8, "resnet50_b16": 3.3, "resnet50_b64": 9.5, "resnet50_b256": 33, "resnet56_b128": 1.7,
                      "lstm_b128": 1.2, "vgg16_head_b32": 2.0, "transformer_b64": 6.6, "gpt2_124m_b16": 28},
            "infer": {"resnet50_b16": 1.14, "resnet50_b64": 3.15, "vgg16_b32": 2.54, "gpt2_124m_b16": 8.9}}
PARTS = {"tests": (), "small": ("lenet5_b64", "keras_cnn_b128", "fcn_r", "fcn_s"),
         "alexnet": ("alexnet_s", "alexnet_2012_b128", "alexnet_r"), "residual": ("resnet50_b16", "resnet50_b64"),
         "large": ("resnet50_b256",), "cifar": ("resnet56_b128", "vgg16_head_b32", "vgg16_b32"),
         "language": ("lstm_b128", "transformer_b64", "gpt2_124m_b16")}
# Workloads of JAX's script, and the numbers of steps per call that are tried: the call of a small step costs more than the step.
JAX = {"lenet5_b64": "1,32", "keras_cnn_b128": "1,32", "fcn_r": "1,32", "fcn_s": "1,32", "alexnet_s": "1", "alexnet_r": "1", "resnet50_b16": "1",
       "resnet50_b64": "1", "resnet50_b256": "1", "resnet56_b128": "1", "lstm_b128": "1", "gpt2_124m_b16": "1"}


class Gpu:
    """The lock of the GPU, so that each timing has the GPU to itself; the peers' processes take the lock too."""

    def __init__(self, within):
        self.folder = tempfile.TemporaryDirectory()
        self.path, self.end = f"{self.folder.name}/lock", time.monotonic() + within
        self.file = open(self.path, "w", encoding="utf-8")

    def left(self):
        return self.end - time.monotonic()

    @contextlib.contextmanager
    def alone(self):
        while True:  # peers that hold it may never end
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if self.left() <= 0:
                    break
                time.sleep(0.05)
        yield
        fcntl.flock(self.file, fcntl.LOCK_UN)


def rows_of(command, gpu, **environment):
    """The JSON lines that a command prints until it ends or its time is over; reports a failure on standard error."""
    name = " ".join(str(part) for part in command if "/" not in str(part))[:90]
    if gpu.left() <= 0:
        print(f"gpu.py: skipped {name}: no time is left", file=sys.stderr)
        return []
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        out, errors = running.communicate(timeout=max(gpu.left(), 0))
        if running.returncode != 0:
            print(f"gpu.py: {name} ended with {running.returncode}: {errors.strip()[-300:]}", file=sys.stderr)
    except subprocess.TimeoutExpired:
        running.kill()
        out = running.communicate()[0]
        print(f"gpu.py: stopped {name}: no time is left", file=sys.stderr)
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
    for row in rows:
        if "ms" not in row:
            print(f"gpu.py: {name}: {row.get('error', 'no time')}", file=sys.stderr)
    return [row for row in rows if "ms" in row]


def wanted_rows(options):
    """For each workload its phases, each with precisions. The tables need inference of some networks only, in bf16."""
    wanted = {}
    names = options.only.split(",") if options.only else [name for part in options.part for name in PARTS[part]]
    for name in names:
        for phase in options.phase.split(","):
            if options.only:
                wanted.setdefault(name, {})[phase] = options.precision
            elif phase == "train" and name in REQUIRED["train"]:
                wanted.setdefault(name, {})[phase] = options.precision
            elif phase == "infer" and name in REQUIRED["infer"] and "bf16" in options.precision.split(","):
                wanted.setdefault(name, {})[phase] = "bf16"
    return wanted


def tenon_rows(options, gpu, name, phases):
    rows = []
    for phase, precisions in phases.items():
        rows += rows_of([options.tenon, "bench", "--device", options.device, "--only", name, "--phase", phase, "--precision", precisions,
                         "--tune", options.tune, "--budget", str(options.budget)], gpu)
    return rows


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def peer_calls(options, gpu, wanted):
    """The requests to the peers' processes, JAX first: while JAX compiles, no process has the GPU to itself."""
    if not pathlib.Path(options.peers).is_dir():
        return []
    jobs = []
    if has("jax"):
        jobs += [("jax", name, "train", precision, JAX[name]) for name, phases in wanted.items() if name in JAX and "train" in phases
                 for precision in phases["train"].split(",")]
    if has("torch"):
        jobs += [("torch", name, phase, precision, options.modes) for name, phases in wanted.items()
                 for phase, precisions in phases.items() for precision in precisions.split(",")]
    return [(job[0], [sys.executable, ROOT / "bench" / "peer_row.py", job[0], options.peers, gpu.path, *job[1:]]) for job in jobs]


def time_all(options, gpu, wanted):
    """Rows of Tenon and of the peers by workload, phase and precision."""
    ours, theirs = {}, {}
    calls = peer_calls(options, gpu, wanted)
    cpus = os.cpu_count() or 2
    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}

    def add(name):
        for row in tenon_rows(options, gpu, name, wanted[name]):
            ours.setdefault(key(row), []).append(row)

    def say_round(number):
        print(f"== round {number} of {options.rounds}, {gpu.left():.0f} s are left", flush=True)

    with concurrent.futures.ThreadPoolExecutor(max(1, cpus - 4)) as pool:
        # Peers queue for the GPU and would get it before a process that asks only sometimes, so Tenon runs one round without them.
        with gpu.alone():
            running = [(which, pool.submit(rows_of, command, gpu, **environment)) for which, command in calls]
            if running:
                print(f"== {len(running)} rows of peers compile beside Tenon's", flush=True)
            for name in wanted:
                add(name)
            say_round(1)
        for number in range(2, options.rounds + 1):
            for name in wanted:
                with gpu.alone():
                    add(name)
            say_round(number)
        for which, rows in running:
            for row in rows.result():
                theirs.setdefault(key(row), []).append({**row, "peer": which})
    return ours, theirs


def key(row):
    return row["workload"], row.get("phase", "train"), row["precision"]


def versions_of(rows):
    """The version of each peer in the rows: {"torch": "2.11.0+cu130"}."""
    return {peer["peer"]: peer["version"] for row in rows for peer in row["peers"] if "version" in peer}


def run_part(options, gpu, name, share=None):
    """Runs a test file in a separate process with a separate temporary folder."""
    if gpu.left() <= 0:
        print(f"{name}: skipped: no time is left", flush=True)
        return {"file": name, "code": 124, "cases": 0, "checks": 0}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder, **({"TENON_TEST_SHARE": share} if share else {})}
        command = [options.tests, f"--source-file=*/tests/cuda/{name}.cpp", "--no-intro"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=ROOT, env=environment, timeout=gpu.left())
        except subprocess.TimeoutExpired:
            print(f"{name}: stopped: no time is left", flush=True)
            return {"file": name, "code": 124, "cases": 0, "checks": 0}
    if done.returncode != 0:
        print(f"{name} ended with {done.returncode}:", *done.stdout.splitlines()[-60:], done.stderr.strip()[-300:], sep="\n", flush=True)
    cases = re.search(r"\[doctest\] test cases: *(\d+)", done.stdout)
    checks = re.search(r"\[doctest\] assertions: *(\d+)", done.stdout)
    return {"file": name, "code": done.returncode, "cases": int(cases[1]) if cases else 0, "checks": int(checks[1]) if checks else 0}


def run_tests(options, gpu):
    """Runs test files in parallel, because compiling kernels takes most of their time; the longest start first."""
    if "tests" not in options.part or not options.tests:
        return None
    start = time.perf_counter()
    files = sorted(path.stem for path in (ROOT / "tests" / "cuda").glob("test_*.cpp"))
    parts = [("test_cases_cuda", f"{k}/{CASE_SHARES}") for k in range(CASE_SHARES)]
    parts += [(name, None) for name in sorted(files, key=lambda n: n not in LONG) if name != "test_cases_cuda"]
    print(f"== device tests: {len(files)} files", flush=True)
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 2)) as pool:
        done = list(pool.map(lambda part: run_part(options, gpu, *part), parts))
    failed = [part["file"] for part in done if part["code"] != 0]
    cases = {part["file"]: part["cases"] for part in done}
    print(f"{sum(cases.values())} test cases, {sum(part['checks'] for part in done):,} checks in "
          f"{time.perf_counter() - start:.0f} s" + (f"; failed: {', '.join(failed)}" if failed else ", all green"), flush=True)
    if failed or not all(part["cases"] for part in done):
        sys.exit("gpu.py: the device tests fail; nothing is timed")
    return done


def run_training(options):
    """Times the whole command on LeNet-5 and real digits: with a cold and a warm kernel cache, then in the other precisions."""
    out = {}
    if not options.data:
        return out
    with tempfile.TemporaryDirectory() as folder:
        for name, precision in (("cold", "bf16"), ("warm", "bf16"), ("fp32", "fp32"), ("tf32", "tf32"), ("fp16", "fp16")):
            start = time.perf_counter()
            done = subprocess.run([options.tenon, "train", "lenet5", "--data", options.data, "--device", options.device, "--precision",
                                   precision, "--out", f"{folder}/{name}"], capture_output=True, text=True,
                                  env={**os.environ, "TENON_CACHE": f"{folder}/cache"})
            out[name] = {"seconds": round(time.perf_counter() - start, 3), "says": [
                line.strip() for line in done.stdout.splitlines() if "best test" in line or "first step" in line]}
            what = name if name == precision else name + " kernel cache"
            print(f"lenet5, {what}: {out[name]['seconds']} s; " + "; ".join(out[name]["says"]), flush=True)
    return out


def commit_here():
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None


def verdict(row):
    words = []
    if row["required"] and row["ms"] > row["required"]:
        words.append("missed")
    if row["best_peer"] and row["best_peer"]["ms"] < row["ms"]:
        words.append("slower")
    if row["peer_mb"] and row["planned_mb"] > row["peer_mb"]:
        words.append("larger")
    return " ".join(words)


def table_of(ours, theirs):
    """Prints one line per row; returns the record for the file."""
    table = []
    print(f"\n{'workload':<18}{'phase':<6}{'':<5}{'Tenon ms':>9}{'spread':>7}{'best peer':>10}  {'which':<14}{'ratio':>6} {'asked':>6}"
          f"{'MiB':>8}{'peer':>8}")
    for name, rows in ours.items():
        ms = statistics.median(row["ms"] for row in rows)
        peers = theirs.get(name, [])
        best = min(peers, key=lambda row: row["ms"], default=None)
        row = {"workload": name[0], "phase": name[1], "precision": name[2], "ms": round(ms, 4),
               "spread": round((max(row["ms"] for row in rows) - min(row["ms"] for row in rows)) / ms, 4),
               "best_peer": best, "ratio": round(best["ms"] / ms, 3) if best else None,
               "required": REQUIRED[name[1]].get(name[0]) if name[2] == "bf16" else None,
               "planned_mb": max(row["planned_mb"] for row in rows),
               "peer_mb": min((row["peak_mb"] for row in peers if row.get("peak_mb")), default=None), "tenon": rows, "peers": peers}
        table.append(row)
        print(f"{name[0]:<18}{name[1]:<6}{name[2]:<5}{ms:>9.4f}{row['spread']:>7.1%}" +
              (f"{best['ms']:>10.4f}  {best['peer'] + ' ' + best['mode']:<14}{row['ratio']:>5.2f}x" if best else " " * 32) +
              (f" {row['required']:>6.2f}" if row["required"] else " " * 7) + f"{row['planned_mb']:>8,.0f}" +
              (f"{row['peer_mb']:>8,.0f}" if row["peer_mb"] else " " * 8) + f"  {verdict(row)}")
    return table


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--tests")
    parser.add_argument("--peers", default=str(ROOT.parent / "shared" / "peers"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", help=f"parts to run: {', '.join(PARTS)}, or all (default: tests,small)")
    parser.add_argument("--only", help="names of rows, as for tenon bench and the peers' scripts")
    parser.add_argument("--precision", default="bf16,tf32,fp32")
    parser.add_argument("--phase", default="train,infer")
    parser.add_argument("--modes", default="compile,eager", help="modes of PyTorch, in this order")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--within", type=float, default=570, help="limit in seconds, without the build")
    parser.add_argument("--budget", type=float, default=0.3)
    parser.add_argument("--tune", default="write", help="mode of the tuner, as for tenon bench")
    parser.add_argument("--data", help="data source, as for tenon train: trains LeNet-5 and times the whole command")
    parser.add_argument("--commit", help="commit that is timed, if there is no git")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.only and options.part:
        parser.error("--only and --part both choose the rows: give one of them")
    options.part = list(PARTS) if options.part == "all" else (options.part or ("" if options.only else "tests,small")).split(",")
    unknown = [part for part in options.part if part and part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}: {', '.join(PARTS)}, all")
    return options


def main():
    options = parse()
    gpu = Gpu(options.within)
    tests = run_tests(options, gpu)
    training = run_training(options)
    table = table_of(*time_all(options, gpu, wanted_rows(options)))
    facts = subprocess.run([options.tenon, "doctor", "--json"], capture_output=True, text=True).stdout
    result = {"date": datetime.datetime.now().isoformat(timespec="seconds"), "commit": options.commit or commit_here(),
              "doctor": json.loads(facts) if facts.startswith("{") else None, "peers": versions_of(table), "tests": tests,
              "training": training, "rows": table}
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
