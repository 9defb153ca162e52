#!/usr/bin/env python3
"""Writes tables of measurements into docs/performance.md and README.md from bench/results/*.json, and counts from the sources.

    bench/tables.py             writes the tables and counts
    bench/tables.py --check     fails when a page disagrees with the results or the sources

A page holds `<!-- table FILE [phase=train,infer] [precision=bf16,…] [columns=…] -->` … `<!-- end -->`; everything between the two
lines is generated. FILE is a record of bench/compare.py, of bench/gpu.py, or one with these fields:

    question, machine, method, peers {name: version}, notes [sentence], rows [{workload, phase, precision, tenon_ms, spread,
    peer, peer_ms, memory_mib, peer_memory_mib, commit, date, same_run}]

`same_run: false` marks a row whose peer was timed in another run on the same kind of machine. `<!-- figure FILE workload phase
precision FIELD -->` … `<!-- end -->` stands for one number within a sentence: ratio, tenon_ms or peer_ms. `<!-- count NAME -->` …
`<!-- end -->` stands for a fact of COUNTS, which is read from the sources.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGES = ["README.md", "docs/performance.md"]
BLOCK = re.compile(r"(<!-- (table|figure|count) ([^>]*?) -->)(.*?)(<!-- end -->)", re.S)
PHASES = {"train": "training", "infer": "inference"}
PEER_MODES = {"eager": "eager", "compile": "compiled", "fused": "eager, fused optimizer", "last": "channels-last",
              "compile-last": "compiled, channels-last", "max": "compiled, max-autotune",
              "max-last": "compiled, max-autotune, channels-last", "max-opt": "compiled, max-autotune, with the update",
              "max-fused": "compiled, max-autotune, fused optimizer", "jit": "jit", "scan32": "32 steps a call", "scan16": "16 steps a call",
              "scan4": "4 steps a call"}
PEER_NAMES = {"jax": "JAX", "torch": "PyTorch"}
HEADS = {"workload": "workload", "phase": "phase", "precision": "precision", "tenon": "Tenon ms", "peer": "best peer",
         "peer_ms": "peer ms", "ratio": "peer / Tenon", "memory": "memory MiB", "peer_memory": "peer memory MiB", "commit": "commit",
         "date": "date"}
FIELDS = {"tenon": "tenon_ms", "peer_ms": "peer_ms", "memory": "memory_mib", "peer_memory": "peer_memory_mib"}  # columns of numbers


def from_compare(record):
    """A run of bench/compare.py."""
    rows = [{"workload": row["workload"], "phase": row["phase"], "precision": row["precision"], "tenon_ms": row["tenon"]["ms"],
             "spread": row["tenon"]["spread"], "peer": f"PyTorch {PEER_MODES[row['torch']['mode']]}", "peer_ms": row["torch"]["ms"],
             "memory_mib": row["tenon"]["peak_mb"], "peer_memory_mib": row["torch"]["peak_mb"], "commit": record["commit"][:8],
             "date": record["date"][:10]} for row in record["results"]]
    return {"machine": f"{record['cpu']} ({record['isa']}), {record['threads']} threads",
            "peers": {"PyTorch": record["torch"]["torch"].split("+")[0]},
            "method": f"bench/compare.py: both sides in turn, {record['rounds']} rounds, medians; memory is the process's peak",
            "notes": [], "rows": rows}


def from_gpu(record):
    """A run of bench/gpu.py."""
    rows = []
    for row in record["rows"]:
        peer = row["best_peer"]
        rows.append({"workload": row["workload"], "phase": row["phase"], "precision": row["precision"], "tenon_ms": row["ms"],
                     "spread": row["spread"], "peer": f"{PEER_NAMES[peer['peer']]} {PEER_MODES[peer['mode']]}", "peer_ms": peer["ms"],
                     "memory_mib": row["tenon"][0].get("planned_mb"), "commit": record["commit"][:8], "date": record["date"][:10]})
    cuda = record["doctor"]["cuda"]
    gpus = cuda["gpus"] if "gpus" in cuda else cuda["cards"]  # the field's name in raw files of earlier versions
    peers = {PEER_NAMES[peer]: version.split("+")[0] for peer, version in record["peers"].items()}
    return {"machine": gpus[0]["name"], "peers": peers,
            "method": "bench/gpu.py: Tenon and the peers in turn in one run, medians; memory is what Tenon plans", "notes": [],
            "rows": rows}


def read(name):
    record = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    if "runs" in record:
        parts = [from_compare(run) for run in record["runs"]]
        return {**parts[0], "rows": [row for part in parts for row in part["rows"]]}
    if "results" in record:
        return from_compare(record)
    return from_gpu(record) if "doctor" in record else record


def number(value):
    """VALUE with three significant digits, or all its digits before the point."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def ratio(row):
    return row["peer_ms"] / row["tenon_ms"] if row.get("peer_ms") else None


def cell(column, row):
    if column == "ratio":
        value = ratio(row)
        return "–" if value is None else f"{value:.2f}" if value >= 1 else f"**{value:.2f}**"
    if column == "phase":
        return PHASES.get(row["phase"], row["phase"])
    if column in FIELDS:
        return number(row.get(FIELDS[column]))
    text = str(row.get(column) or "–")
    return text + " (earlier run)" if column == "peer" and row.get("same_run") is False and text != "–" else text


def chosen(record, options):
    rows = record["rows"]
    for field in ("phase", "precision", "workload"):
        if field in options:
            wanted = options[field].split(",")
            rows = [row for row in rows if row[field] in wanted]
    return rows


def table(arguments):
    name, *words = arguments.split()
    options = dict(word.split("=", 1) for word in words)
    record = read(name)
    rows = chosen(record, options)
    if not rows:
        sys.exit(f"tables.py: no row of bench/results/{name} is {arguments}")
    columns = options["columns"].split(",") if "columns" in options else list(HEADS)
    if "columns" not in options:
        # An empty column is dropped. A column with one value in all rows moves into the line below the table.
        columns = [c for c in columns if not c.endswith("memory") or any(row.get(FIELDS[c]) for row in rows)]
    same = {c: {cell(c, row) for row in rows} for c in ("phase", "precision", "commit", "date")}
    told = [c for c in columns if len(same.get(c, "two")) == 1]
    columns = [c for c in columns if c not in told]
    lines = ["| " + " | ".join(HEADS[c] for c in columns) + " |", "|" + " --- |" * len(columns)]
    lines += ["| " + " | ".join(cell(c, row) for c in columns) + " |" for row in rows]
    facts = [f"{c} {next(iter(same[c]))}" for c in told]
    peers = ", ".join(f"{peer} {version}" for peer, version in record["peers"].items())
    lines += ["", f"{record['machine']}; {', '.join([*facts, peers])}. Method: {record['method']}. Raw file: `bench/results/{name}`."]
    lines += record["notes"]
    return "\n\n" + "\n".join(lines) + "\n\n"


def figure(arguments):
    name, workload, phase, precision, field = arguments.split()
    rows = chosen(read(name), {"workload": workload, "phase": phase, "precision": precision})
    if len(rows) != 1:
        sys.exit(f"tables.py: {len(rows)} rows of bench/results/{name} are {arguments}")
    return f"{ratio(rows[0]):.2f}" if field == "ratio" else number(rows[0][field])


def found(path, pattern):
    """Every match of PATTERN in a source file; at least one, so that a changed source does not become an empty count."""
    matches = re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"), re.M)
    if not matches:
        sys.exit(f"tables.py: {path} has nothing like {pattern}: change COUNTS in bench/tables.py")
    return matches


def commands():
    body = found("cli/main.cpp", r"all_commands\(\) \{([^}]*)\}")[0]
    return re.findall(r"(\w+)_command\(\)", body)


# Facts of the sources that pages state.
COUNTS = {
    "ops": lambda: str(len(found("src/graph/op_table.inc", r"^TENON_(?:OP|UNARY|BINARY|REDUCTION)\("))),
    "commands": lambda: str(len(commands())),
    "command_names": lambda: ", ".join(f"`{name}`" for name in commands()),
    "library_mb": lambda: found("cmake/TenonGuards.cmake", r"--limit-mb ([\d.]+)")[0],
    "header_seconds": lambda: found("cmake/TenonGuards.cmake", r"header_time\.py.*--limit ([\d.]+)")[0],
}


def count(name):
    if name not in COUNTS:
        sys.exit(f"tables.py: there is no count {name}; there are {', '.join(COUNTS)}")
    return COUNTS[name]()


def filled(text):
    kinds = {"table": table, "figure": figure, "count": count}

    def block(match):
        return match[1] + kinds[match[2]](match[3]) + match[5]
    return BLOCK.sub(block, text)


def main():
    check, stale = "--check" in sys.argv, []
    for page in PAGES:
        path = ROOT / page
        old = path.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            stale.append(page)
            if not check:
                path.write_text(new, encoding="utf-8")
    if check and stale:
        sys.exit(f"tables.py: {', '.join(stale)} disagrees with bench/results or the sources: run bench/tables.py")
    print(f"tables: {', '.join(PAGES)} {'agree with bench/results' if check or not stale else 'written'}")


if __name__ == "__main__":
    main()
