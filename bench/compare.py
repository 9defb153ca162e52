#!/usr/bin/env python3
"""Times Tenon and PyTorch in turn on this machine, prints a table, and writes build/bench/CPU-steps.json.

    ./dev bench [OPTIONS]        builds the command, provides PyTorch, and runs this
    bench/compare.py --tenon build/bin/tenon [--only lenet5_b64,keras_cnn_b128,fcn_r] [--phase train,infer] [--precision fp32,bf16]
                     [--threads N] [--rounds 7] [--budget 0.5] [--realtime] [--out FILE]

For each workload all modes of PyTorch (bench/peer_torch.py) are tried once. Modes within 1.25 times the fastest are kept, at most
four. Then come the rounds: Tenon, PyTorch's modes, Tenon, PyTorch's modes, … Each measurement times `budget` seconds of steps and
gives a median. A figure is the median over the rounds. Its spread is (maximum - minimum) / median. The ratio is the time of PyTorch's
best mode over Tenon's. Both sides have the same threads and precision, and one runs while the other waits. A busy machine is
reported, because its figures are unreliable unless --realtime gives both sides real-time priority.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Tenon:
    name = "tenon"

    def __init__(self, command, threads, prefix):
        self.command, self.threads = [*prefix, command, "bench"], threads

    def version(self):
        return subprocess.run([self.command[-2], "--version"], capture_output=True, text=True).stdout.strip()

    def row(self, workload, phase, precision, mode, budget):
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            done = subprocess.run([*self.command, "--only", workload, "--phase", phase, "--precision", precision, "--threads",
                                   str(self.threads), "--budget", str(budget), "--json", file.name], capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"compare.py: tenon bench failed with code {done.returncode}: {done.stderr.strip()}")
            return json.loads(file.read().decode().splitlines()[-1])


class Torch:
    """PyTorch in a separate process that waits between requests, so that it compiles only once."""
    name = "torch"

    def __init__(self, threads, prefix):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), CUDA_VISIBLE_DEVICES="")
        self.log = tempfile.TemporaryFile(mode="w+")
        command = [*prefix, sys.executable, str(ROOT / "bench" / "peer_torch.py"), "--serve", "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=environment)
        self.facts = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        while line and not line.startswith(("{", "[")):
            line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            sys.exit(f"compare.py: peer_torch.py ended: {self.log.read()[-2000:]}")
        return json.loads(line)

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return self.answer()

    def modes(self, workload, phase):
        return self.ask(modes=[workload, phase])

    def row(self, *arguments):
        return self.ask(row=arguments)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def busy_share(seconds=1.0):
    """The share of the CPUs that other processes use now."""
    def read():
        with open("/proc/stat", encoding="ascii") as stat:
            ticks = [int(t) for t in stat.readline().split()[1:]]
        return sum(ticks), ticks[3] + ticks[4]

    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 1 - (idle_after - idle) / max(1, total_after - total)


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit():
    run = lambda *a: subprocess.run(["git", *a], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    changed = bool(run("status", "--porcelain", "--untracked-files=no"))
    return (run("rev-parse", "HEAD") or "unknown") + ("-changed" if changed else "")


def summarize(rows):
    """Median, minimum and spread over the rounds of one system."""
    medians = [row["ms"] for row in rows]
    middle = statistics.median(medians)
    return {**rows[-1], "ms": round(middle, 4), "ms_min": min(row["ms_min"] for row in rows), "rounds": medians,
            "spread": round((max(medians) - min(medians)) / middle, 4), "items_per_s": round(rows[-1]["batch"] / middle * 1e3, 1),
            "setup_s": min(row["setup_s"] for row in rows)}


def compare(tenon, torch, workload, phase, precision, options):
    trials = [torch.row(workload, phase, precision, mode, options.budget) for mode in torch.modes(workload, phase)]
    good = sorted((row for row in trials if "ms" in row), key=lambda row: row["ms_min"])
    if not good:
        sys.exit(f"compare.py: PyTorch failed on {workload} in every mode: {trials}")
    modes = [row["mode"] for row in good if row["ms_min"] <= 1.25 * good[0]["ms_min"]][:4]
    mine, theirs, busy = [], {mode: [] for mode in modes}, []
    for _ in range(options.rounds):
        busy.append(busy_share(0.3))
        mine.append(tenon.row(workload, phase, precision, "tenon", options.budget))
        for mode in modes:
            theirs[mode].append(torch.row(workload, phase, precision, mode, options.budget))
    ours, peers = summarize(mine), [summarize(rows) for rows in theirs.values()]
    best = min(peers, key=lambda row: row["ms"])
    return dict(workload=workload, phase=phase, precision=precision, batch=ours["batch"], ratio=round(best["ms"] / ours["ms"], 3),
                ratio_of_least=round(min(p["ms_min"] for p in peers) / ours["ms_min"], 3), busy=round(statistics.median(busy), 3),
                realtime=options.realtime, tenon=ours, torch=best,
                torch_modes={row["mode"]: row.get("ms", row.get("error")) for row in trials})


HEADER = (f"{'workload':16} {'phase':6} {'prec':5} {'tenon ms':>10} {'spread':>7} {'torch ms':>10} {'spread':>7} {'torch mode':13}"
          f" {'ratio':>6} {'tenon items/s':>14} {'MB':>6} {'torch MB':>8}")


def print_result(r):
    t, p = r["tenon"], r["torch"]
    print(f"{r['workload']:16} {r['phase']:6} {r['precision']:5} {t['ms']:10.3f} {t['spread']:7.1%} {p['ms']:10.3f} {p['spread']:7.1%}"
          f" {p['mode']:13} {r['ratio']:6.2f} {t['items_per_s']:14,.0f} {t['peak_mb']:6.0f} {p['peak_mb']:8.0f}"
          + (f"   (others used {r['busy']:.0%} of the CPUs)" if r["busy"] > 0.1 and not r["realtime"] else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tenon", default=str(ROOT / "build" / "bin" / "tenon"))
    parser.add_argument("--only", default="lenet5_b64,keras_cnn_b128,fcn_r")
    parser.add_argument("--phase", default="train")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--threads", type=int, default=0, help="0: all CPUs of this process")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of steps per measurement")
    parser.add_argument("--realtime", action="store_true", help="run both sides with real-time priority (needs root)")
    parser.add_argument("--out", help="default: build/bench/CPU-steps.json")
    options = parser.parse_args()
    if not os.access(options.tenon, os.X_OK):
        sys.exit(f"compare.py: {options.tenon} does not exist: run ./dev build")
    threads = options.threads or len(os.sched_getaffinity(0))
    busy = busy_share()
    if busy > 0.1 and not options.realtime:
        print(f"Other processes use {busy:.0%} of the CPUs: the figures below will be wrong.", file=sys.stderr)
    prefix = ["chrt", "--rr", "1"] if options.realtime else []
    tenon, torch = Tenon(options.tenon, threads, prefix), Torch(threads, prefix)
    print(f"{cpu_model()}, {threads} threads, PyTorch {torch.facts['torch']} ({torch.facts['isa']})\n\n{HEADER}", flush=True)
    results = []
    for workload in options.only.split(","):
        for phase in options.phase.split(","):
            for precision in options.precision.split(","):
                results.append(compare(tenon, torch, workload, phase, precision, options))
                print_result(results[-1])
    torch.close()
    date = datetime.datetime.now(datetime.timezone.utc)
    first = results[0]["tenon"]
    record = dict(date=date.isoformat(timespec="seconds"), commit=commit(), cpu=cpu_model(), isa=first.get("isa"), threads=threads,
                  system=f"{platform.system()} {platform.release()}", tenon=tenon.version(), torch=torch.facts,
                  busy_before=round(busy, 3), realtime=options.realtime,
                  rounds=options.rounds, budget_s=options.budget, results=results)
    name = re.sub(r"[^A-Za-z0-9]+", "-", cpu_model()).strip("-").lower()
    out = pathlib.Path(options.out) if options.out else ROOT / "build" / "bench" / f"{name}-steps.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"\nThe ratio is PyTorch's time over Tenon's. Written to {out}")


if __name__ == "__main__":
    main()
