#!/usr/bin/env python3
"""Checks and times Tenon on one NVIDIA card, beside PyTorch and JAX, and ends in a table.

    ./dev gpu [OPTIONS]          builds, and runs this
    bench/gpu.py --tenon build/bin/tenon [--tests build/bin/tenon_tests] [--peers FOLDER] [--part all]
                 [--only lenet5_b64,fcn_r] [--precision bf16,tf32,fp32] [--phase train,infer] [--rounds 3] [--data mnist:FOLDER] [--out FILE]

With --tests the device tests run first, on the card; a failure ends everything. FOLDER holds torch_bench.py and jax_bench.py,
which time the same steps; without it, or without PyTorch or JAX, the columns stay empty. Each round times Tenon and then the
peers; a figure is the median over Tenon's rounds and the least of what a peer's modes gave. Milliseconds a step, device-bound:
work is queued ahead as in training. Floors are bytes and FLOP of the step over the rates measured on the card.
"""
import argparse
import concurrent.futures
import datetime
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
# Test files that take long on a card.
LONG = ("test_wgmma", "test_vendor", "test_contraction", "test_conv", "test_map", "test_prologue", "test_opaque", "test_simt")
CASE_SHARES = 6  # processes that share the table of cases
# ms a training step on one H200 that the project asks of itself (bf16).
REQUIRED = {"lenet5_b64": 0.10, "keras_cnn_b128": 0.14, "fcn_r": 0.25, "fcn_s": 0.75, "alexnet_s": 1.0, "alexnet_2012_b128": 4.9,
            "alexnet_r": 0.8, "resnet50_b16": 3.3, "resnet50_b64": 9.5, "resnet50_b256": 33, "resnet56_b128": 1.7, "lstm_b128": 1.2,
            "vgg16_head_b32": 2.0, "transformer_b64": 6.6, "gpt2_124m_b16": 28}
# Rows in parts, so that each part with its peers, whose processes compile for minutes, stays within ten minutes.
PARTS = {"small": "lenet5_b64,keras_cnn_b128,fcn_r,fcn_s", "alexnet": "alexnet_s,alexnet_2012_b128,alexnet_r",
         "residual": "resnet50_b16,resnet50_b64,resnet50_b256", "cifar": "resnet56_b128,vgg16_head_b32,vgg16_b32",
         "language": "lstm_b128,transformer_b64,gpt2_124m_b16"}


def rows_of(command, **environment):
    """JSON lines that a command prints; none, with a word on standard error, when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0:
        print(f"gpu.py: {' '.join(map(str, command[:3]))} ended with {done.returncode}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return rows


def tenon_rows(options):
    return rows_of([options.tenon, "bench", "--device", options.device, "--only", options.only, "--phase", options.phase,
                    "--precision", options.precision, "--budget", str(options.budget)])


def torch_rows(options):
    script = pathlib.Path(options.peers) / "torch_bench.py"
    return rows_of([sys.executable, script, "--only", options.only, "--modes", options.modes, "--precision", options.precision,
                    "--phase", options.phase])


def jax_rows(options):
    script = pathlib.Path(options.peers) / "jax_bench.py"
    if "train" not in options.phase.split(","):
        return []
    return rows_of([sys.executable, script, "--only", options.only, "--precision", options.precision, "--scan", "1,32"],
                   XLA_PYTHON_CLIENT_PREALLOCATE="false")


def has(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


def key(row):
    return row["workload"], row.get("phase", "train"), row["precision"]


def run_part(options, name, share=None):
    """A file of tests in a process of its own, which keeps its files in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TMPDIR": folder, **({"TENON_TEST_SHARE": share} if share else {})}
        done = subprocess.run([options.tests, f"--source-file=*/tests/cuda/{name}.cpp", "--no-intro"], capture_output=True, text=True,
                              cwd=ROOT, env=environment)
    if done.returncode != 0:
        print(f"{name} ended with {done.returncode}:", *done.stdout.splitlines()[-60:], done.stderr.strip()[-300:], sep="\n", flush=True)
    cases = re.search(r"\[doctest\] test cases: *(\d+)", done.stdout)
    checks = re.search(r"\[doctest\] assertions: *(\d+)", done.stdout)
    return {"file": name, "code": done.returncode, "cases": int(cases[1]) if cases else 0, "checks": int(checks[1]) if checks else 0}


def run_tests(options):
    """Files side by side, for most of their time goes into compiling kernels; those that take long first."""
    if not options.tests:
        return None
    start = time.perf_counter()
    files = sorted(path.stem for path in (ROOT / "tests" / "cuda").glob("test_*.cpp"))
    parts = [("test_cases_cuda", f"{k}/{CASE_SHARES}") for k in range(CASE_SHARES)]
    parts += [(name, None) for name in sorted(files, key=lambda n: n not in LONG) if name != "test_cases_cuda"]
    print(f"== device tests: {len(files)} files", flush=True)
    with concurrent.futures.ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 2) // 2))) as pool:
        done = list(pool.map(lambda part: run_part(options, *part), parts))
    failed = [part["file"] for part in done if part["code"] != 0]
    cases = {part["file"]: part["cases"] for part in done}
    print(f"{sum(cases.values())} test cases, {sum(part['checks'] for part in done):,} checks in "
          f"{time.perf_counter() - start:.0f} s" + (f"; failed: {', '.join(failed)}" if failed else ", all green"), flush=True)
    if failed or not all(part["cases"] for part in done):
        sys.exit("gpu.py: the device tests fail; nothing is timed")
    return done


def run_training(options):
    """LeNet-5 on real digits, from command to result: kernel cache cold and warm, then in the other precisions."""
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", required=True)
    parser.add_argument("--tests")
    parser.add_argument("--peers", default=str(ROOT.parent / "shared" / "peers"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", choices=[*PARTS, "all"], help="rows of one part (default: small)")
    parser.add_argument("--only", help="rows by name, as tenon bench and the peers' scripts take them")
    parser.add_argument("--precision", default="bf16,tf32,fp32")
    parser.add_argument("--phase", default="train,infer")
    parser.add_argument("--modes", default="eager,compile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.3)
    parser.add_argument("--data", help="as tenon train takes it: trains LeNet-5 and times the whole command")
    parser.add_argument("--commit", help="what is timed, where there is no git to ask")
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.only and options.part:
        parser.error("--only and --part both choose the rows: give one of them")
    options.only = options.only or (",".join(PARTS.values()) if options.part == "all" else PARTS[options.part or "small"])

    tests = run_tests(options)
    training = run_training(options)
    peers = []
    if pathlib.Path(options.peers).is_dir():
        peers = [(name, rows) for name, rows in (("torch", torch_rows), ("jax", jax_rows)) if has(name)]
    ours, theirs = {}, {}
    for number in range(options.rounds):
        for row in tenon_rows(options):
            ours.setdefault(key(row), []).append(row)
        if number == options.rounds // 2:  # in the middle: their processes compile for minutes
            for name, rows in peers:
                print(f"== timing {name}", flush=True)
                for row in rows(options):
                    theirs.setdefault(key(row), []).append({**row, "peer": name})
    table = []
    print(f"\n{'workload':<16}{'phase':<7}{'':<6}{'Tenon ms':>10}{'spread':>8}{'best peer':>11}  {'which':<16}{'ratio':>6}  {'asked':>6}")
    for name, rows in ours.items():
        ms = statistics.median(row["ms"] for row in rows)
        spread = (max(row["ms"] for row in rows) - min(row["ms"] for row in rows)) / ms
        best = min(theirs.get(name, []), key=lambda row: row["ms"], default=None)
        asked = REQUIRED.get(name[0]) if name[1:] == ("train", "bf16") else None
        table.append({"workload": name[0], "phase": name[1], "precision": name[2], "ms": round(ms, 4), "spread": round(spread, 4),
                      "best_peer": best, "ratio": round(best["ms"] / ms, 3) if best else None, "required": asked,
                      "tenon": rows, "peers": theirs.get(name, [])})
        print(f"{name[0]:<16}{name[1]:<7}{name[2]:<6}{ms:>10.4f}{spread:>7.1%} " +
              (f"{best['ms']:>10.4f}  {best['peer'] + ' ' + best['mode']:<16}{best['ms'] / ms:>5.2f}x" if best else " " * 34) +
              (f"  {asked:>6.2f}{'' if ms <= asked else ' missed'}" if asked else " slower" if best and best["ms"] < ms else ""))
    facts = subprocess.run([options.tenon, "doctor", "--json"], capture_output=True, text=True).stdout
    result = {"date": datetime.datetime.now().isoformat(timespec="seconds"),
              "commit": options.commit or commit_here(),
              "doctor": json.loads(facts) if facts.startswith("{") else None, "tests": tests, "training": training, "rows": table}
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(f"written to {options.out}")


if __name__ == "__main__":
    main()
