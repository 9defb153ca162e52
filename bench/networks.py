#!/usr/bin/env python3
"""Times steps of whole networks on the CPU beside every peer in one run: PyTorch, JAX (training), OpenVINO and ONNX Runtime
(inference), with the peers' own scripts in the folder TENON_PEERS (or ../shared/peers).

    ./dev bench --networks [OPTIONS]
    bench/networks.py --tenon build/bin/tenon [--only resnet56_b128,fcn_s] [--phase train,infer] [--precision fp32,bf16]
                      [--systems torch,jax,onnx] [--modes last,compile-last] [--within SECONDS]
                      [--realtime] [--again] [--results FILE] [--table FILE]

A row is a workload, a phase and a precision. Its measurements run one after another: Tenon; PyTorch, where each mode is tried for two
steps and the fastest is timed; the other peers; Tenon again. Each measurement is written to --results when it ends. A run that was
killed, or stopped by --within, therefore continues. Existing measurements are repeated only with --again. A figure is the
median of a measurement; Tenon's figure is the median of both. The ratio is the best peer's time over Tenon's.
"""
import argparse
import datetime
import importlib.metadata
import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

from compare import ROOT, Tenon, Torch, commit, cpu_model

PEERS = pathlib.Path(os.environ.get("TENON_PEERS") or ROOT.parent / "shared" / "peers")
ROWS = "fcn_s,alexnet_s,alexnet_r,resnet56_b128,lstm_b128,resnet50_b16,gpt2_124m_b4_t64,vgg16_head_b32"
SYSTEMS = {"train": ["torch", "jax"], "infer": ["torch", "onnx"]}  # onnx: OpenVINO and ONNX Runtime
# The modes of PyTorch that were the fastest for at least one network.
MODES = {(True, "train"): ["last", "compile-last"], (False, "train"): ["fused", "compile"],
         (True, "infer"): ["last", "compile-last"], (False, "infer"): ["eager", "compile"]}
PACKAGES = ["torch", "jax", "openvino", "onnxruntime"]


def versions():
    """Facts of the peers that this Python has."""
    found = []
    for package in PACKAGES:
        try:
            found.append(f"{package}: {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return ", ".join(found)


def first(options):
    """The prefix that gives a command real-time priority."""
    return ["chrt", "--rr", "1"] if options.realtime else []


def of_torch(workload, phase, precision, options):
    """PyTorch in its fastest mode."""
    torch = Torch(options.threads, first(options))
    images = "last" in torch.modes(workload, phase)
    modes = options.modes.split(",") if options.modes else MODES[images, phase]
    trials = {mode: torch.row(workload, phase, precision, mode, 0) for mode in modes}
    for mode in modes:  # twice: the first steps of a mode may be slow
        trials[mode] = min(trials[mode], torch.row(workload, phase, precision, mode, 0), key=lambda row: row.get("ms", math.inf))
    good = [mode for mode in modes if "ms" in trials[mode]]
    row = {"error": str(trials)}
    if good:
        row = torch.row(workload, phase, precision, min(good, key=lambda mode: trials[mode]["ms"]), options.budget)
    torch.close()
    return [dict(row, mode="torch " + row.get("mode", ""))]


def of_script(script, *arguments):
    """The rows that a peer's script prints; the script runs in a separate process."""
    def measure(workload, phase, precision, options):
        command = [*first(options), sys.executable, str(PEERS / script), "--only", workload, "--precision", precision, "--budget", str(options.budget)]
        threads = str(options.threads)
        environment = dict(os.environ, JAX_PLATFORMS="cpu", OMP_NUM_THREADS=threads, CUDA_VISIBLE_DEVICES="")
        try:
            done = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, timeout=options.longest)
        except subprocess.TimeoutExpired:
            return [dict(error=f"not done in {options.longest} s")]
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return rows or [dict(error=done.stderr[-300:])]
    return measure


def of_tenon(workload, phase, precision, options):
    return [Tenon(options.tenon, options.threads, first(options)).row(workload, phase, precision, "tenon", options.budget)]


ROWS_OF = {"tenon": of_tenon, "torch": of_torch, "jax": of_script("jax_bench.py"), "onnx": of_script("infer_bench.py")}


class Results:
    """The file of measurements: one list per row, by the name of the row."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.rows = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")

    def add(self, key, part, rows):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        for row in rows:
            kept = {k: row[k] for k in ("mode", "ms", "ms_min", "batch", "peak_mb", "error") if k in row}
            self.rows.setdefault(key, []).append(dict(part=part, at=now, commit=commit(), **kept))
        self.write()


def measure(options, results, deadline):
    """Whether all rows are complete."""
    for key in itertools.product(*(part.split(",") for part in (options.only, options.phase, options.precision))):
        done = {row["part"] for row in results.rows.get(" ".join(key), [])}
        for part, system in enumerate(["tenon", *SYSTEMS[key[1]], "tenon"]):
            if part in done or system not in ("tenon", *options.systems.split(",")):
                continue
            if time.monotonic() > deadline:
                return False
            rows = [{"mode": system, **row} for row in ROWS_OF[system](*key, options)]
            results.add(" ".join(key), part, rows)
            for row in rows:
                print(f"{' '.join(key):36} {row['mode']:18} {row.get('ms', row.get('error'))}", flush=True)
    return True


def table(results):
    lines = [f"{'workload':18} {'phase':6} {'prec':5} {'Tenon ms':>9} {'spread':>7} {'best peer ms':>13}  {'which':24} {'ratio':>5}  others, ms"]
    ratios = {"train": [], "infer": []}
    commits, dates = set(), set()
    for key, rows in results.rows.items():
        mine = [row["ms"] for row in rows if row["mode"] == "tenon"]
        peers = sorted((row for row in rows if row["mode"] != "tenon" and "ms" in row), key=lambda row: row["ms"])
        commits |= {row["commit"][:7] for row in rows}
        dates |= {row["at"][:10] for row in rows}
        if not mine:
            continue
        workload, phase, precision = key.split()
        ours = statistics.median(mine)
        line = f"{workload:18} {phase:6} {precision:5} {ours:9.1f} {(max(mine) - min(mine)) / ours:7.1%}"
        if peers:
            ratios[phase].append(peers[0]["ms"] / ours)
            line += f" {peers[0]['ms']:13.1f}  {peers[0]['mode']:24} {ratios[phase][-1]:5.2f}  "
            line += ", ".join(f"{row['mode']} {row['ms']:.1f}" for row in peers[1:])
        lines.append(line.rstrip())
    for phase, of_phase in ratios.items():
        if of_phase:
            mean = math.exp(statistics.fmean(math.log(r) for r in of_phase))
            lines.append(f"{'' if phase == 'infer' else chr(10)}{phase}: {len(of_phase)} rows, geometric mean {mean:.2f}, least {min(of_phase):.2f}")
    head = [f"Whole networks beside every peer in one run, a measurement after another: bench/networks.py. {cpu_model()},",
            f"commit {', '.join(sorted(commits))}, {', '.join(sorted(dates))}; {versions()}.",
            "Medians in ms; Tenon before and after the peers, with the spread of both.", ""]
    return "\n".join(head + lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default=str(ROOT / "build" / "bin" / "tenon"))
    parser.add_argument("--only", default=ROWS)
    parser.add_argument("--phase", default="train,infer")
    parser.add_argument("--precision", default="fp32,bf16")
    parser.add_argument("--systems", default="torch,jax,onnx")
    parser.add_argument("--modes", help="modes of PyTorch; default: those that were the fastest for some network")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of steps per measurement")
    parser.add_argument("--within", type=float, default=math.inf, help="start no measurement after so many seconds")
    parser.add_argument("--longest", type=float, default=150, help="limit of a peer's script in seconds")
    parser.add_argument("--realtime", action="store_true", help="run all sides with real-time priority (needs root)")
    parser.add_argument("--again", action="store_true", help="measure these rows again; discard their old figures")
    parser.add_argument("--results", default=str(ROOT / "build" / "bench" / "networks.json"))
    parser.add_argument("--table", help="also write the table to this file")
    options = parser.parse_args()
    if not PEERS.is_dir():
        parser.error(f"{PEERS} is no folder: TENON_PEERS names that of the peers' scripts")
    deadline = time.monotonic() + options.within
    results = Results(options.results)
    if options.again:
        for key in [k for k in results.rows if all(k.split()[i] in part.split(",") for i, part in
                                                    enumerate((options.only, options.phase, options.precision)))]:
            del results.rows[key]
    complete = measure(options, results, deadline)
    text = table(results)
    print("\n" + text)
    if options.table:
        pathlib.Path(options.table).write_text(text, encoding="utf-8")
    sys.exit(0 if complete else 3)


if __name__ == "__main__":
    main()
