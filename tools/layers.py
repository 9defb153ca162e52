#!/usr/bin/env python3
"""Checks which folder ("room") may include which: fails on a forbidden #include, or on a cycle of files, sources or rooms.

    tools/layers.py              check the tree
    tools/layers.py --print      check, and print the includes between rooms
    tools/layers.py --self-test  check that planted violations are found

The matrix below decides (docs/internals/architecture.md explains it). A room may always include itself. To add an edge, give the reason
there first; most of the time the code belongs in another room.
"""
import argparse
import pathlib
import re
import sys
import tempfile

# room: the rooms it may include. "room:file" allows that one header of a room only.
MATRIX = {
    "scalar": [],
    "base": [],
    "device": ["scalar:scalar/image_transform.h", "base"],  # the description of image transforms for a GPU
    "graph": ["device:device/buffer.h", "device:device/versions.h", "device:tenon/device.h", "base"],
    "ops": ["graph", "base"],
    "linalg": ["ops", "graph", "base"],  # LAPACK on the host, with gradients composed from operations
    "distributions": ["linalg:tenon/linalg.h", "ops", "graph", "base"],  # composed from operations; multivariate normals need Cholesky factors
    "grad": ["ops", "graph", "base"],
    "plan": ["ops", "graph", "device", "base"],
    "cpu": ["plan", "graph", "device", "scalar", "base"],
    "cuda": ["plan", "graph", "device", "scalar", "base"],
    "backends": ["cpu:cpu/cpu.h", "cuda:cuda/cuda.h", "device", "base"],  # the list of the backends, and facts about them
    "run": ["plan", "device", "graph", "base", "backends:backends/backends.h"],
    "nn": ["linalg:tenon/linalg.h", "ops", "graph", "base"],  # orthogonal parameters are products of reflections
    "optim": ["nn", "grad", "run:tenon/compute.h", "ops", "graph", "base"],
    "data": ["io", "device", "graph", "scalar:scalar/image.h", "scalar:scalar/image_transform.h", "base"],  # datasets are read from files by io's parsers
    "io": ["device", "graph", "base"],
    "models": ["nn", "io", "ops", "graph", "base"],  # networks are TOML files, and weights of others have config.json and tensor files
    "programs": ["io", "run", "ops", "graph", "device", "base"],  # a traced function in a file
    "train": ["backends:tenon/system.h", "models", "nn", "optim", "data", "io", "run", "ops", "grad", "graph", "device", "base"],
}

# Rooms inside a room. A key is a folder; its value lists the sibling folders that each may include. "." is the ground floor: the files
# of the folder itself. Without a ".", these files are the top floor: they may include all rooms of the folder, and none may include them.
INNER = {
    "src/base": {
        ".": [],  # what any code may need
        "system": ["."],  # environment variables, log, cache files
    },
    "src/data": {
        "samples": [],  # the parts of a source, and samples in memory
        "pixels": [],  # image arithmetic with the same bits on every machine
        "tokens": [],  # text to tokens and back
        "drawn": ["samples", "pixels"],  # generated digits and scenes
        "tables": ["samples"],  # CSV files and what reads rows
        "text": ["tables", "tokens", "samples"],  # text datasets and the files of tokenizers
        "images": ["pixels", "tables", "samples"],  # image files, folders, lists and archives
        "loading": ["images", "pixels", "samples"],  # batches, for the CPU and the GPU
    },
    "src/io": {
        ".": [],  # files and bytes
        "archives": ["."],  # gzip, tar, zip
        "images": ["."],  # image codecs
        "text": ["."],  # CSV, JSON, TOML, numbers and encodings
        "tensors": ["archives", "text", "."],  # safetensors, NumPy, PyTorch, GGUF, IDX
        "video": ["images", "."],
    },
    "src/cpu/engines": {
        "reference": [],  # the plain interpreter that tests compare with
        "run": [],  # programs over tiles and chains while they run
        "compile": ["run"],  # regions to programs over tiles
    },
    "src/cpu/kernels": {
        ".": [],  # instruction sets, contracts
        "gemm": ["."],
        "tile": ["."],  # element-wise programs over tiles of memory
        "attention": ["gemm", "tile", "."],
        "conv": ["gemm", "."],
        "formula": ["tile", "."],  # special functions over tiles
        "fourier": ["."],
        "pool": ["gemm", "."],
        "rows": ["."],  # sorting and recurrences along rows
    },
    "src/cuda/kernels": {
        ".": [],  # intrinsics, index arithmetic, random numbers, conversions
        "gemm": ["."],
        "images": ["."],
        "opaque": ["."],  # pooling, movement, sorting, response normalization
        "maps": ["opaque", "."],  # element-wise work, reductions and epilogues
        "attention": ["maps", "."],
        "conv": ["gemm", "maps", "."],
    },
    "src/ops": {
        ".": [],  # operations with rules of their own, and how all are built
        "composed": ["."],  # operations made of others
    },
    "src/plan": {
        "graph": [],  # walks and records of graphs
        "program": ["graph"],  # the contract with the engines: regions, programs, tune tables
        "layout": ["program", "graph"],
        "cleanup": ["program", "graph"],  # graph passes that every graph gets, and how a pass is run
        "rewrites": ["cleanup", "layout", "program", "graph"],  # graph passes for one kind of operation
        "precision": ["rewrites", "cleanup", "layout", "program", "graph"],  # graph passes that choose what is 16-bit
        "regions": ["rewrites", "layout", "program", "graph"],  # nodes to regions
        "merge": ["regions", "program", "graph"],  # regions with their neighbours
        "steps": ["merge", "regions", "cleanup", "program", "graph"],  # order, kernels, checks
        "memory": ["steps", "regions", "program", "graph"],  # the arena
    },
    "src/train": {
        "batches": [],  # batches in memory, mixing, sequence lengths
        "adapting": ["batches"],  # frozen layers, adapters, kept features, standardized targets
        "settings": ["adapting"],  # settings as text, and resolved
        "texts": [],  # decoding of texts
        "tasks": ["texts", "settings", "adapting"],  # one file per task
        "runs": ["settings"],  # the run folder and its records
        "fitting": ["tasks", "runs", "adapting", "batches"],  # the Trainer
        "sessions": ["fitting", "runs", "settings", "adapting", "batches"],  # what a run trains
        "evaluating": ["sessions", "fitting", "tasks", "texts", "runs", "settings", "adapting", "batches"],  # opened models
    },
    "src/cuda/engines": {
        "launch": [],  # shared by all launches: words of sources and arguments, counters
        "maps": ["launch"],  # the printer of element-wise work, reductions and epilogues
        "opaque": ["launch"],  # pooling and movement
        "products": ["maps", "launch"],  # native, simt, wgmma
        "convolutions": ["products", "maps", "launch"],
        "vendor": ["products", "maps", "launch"],  # cuBLASLt, cuDNN
    },
}

# Public headers whose room is not their own name. Every other include/tenon/X.h belongs to room X.
PUBLIC_ROOM = {header: room for room, headers in {
    "base": "dtype error export log notes number parallel plugin shape signature version",
    "graph": "anomaly context cuda_kernel generator host_call precision print shapes_only tensor",
    "ops": "complex creation distillation elementwise elementwise_kernel fft function functional joining loops losses masked operation packed_parts pooling rearrange resampling scattering signal_windows sparse special statistics",
    "grad": "derivatives vmap",
    "run": "compile compute",
    "backends": "system",
    "nn": "containers each_tensor initializers layers loss_layers module more_layers parametrizations pooling_layers random_layers recurrent shape_layers transformer",
    "optim": "averaging lbfgs optimizers schedules",
    "data": "compose dataset images loader sample_random text tokenizer",
    "io": "weights",
    "models": "published_weights",
    "programs": "saved_program",
    "train": "metrics registered runs task train_reports trained_model trainer",
}.items() for header in headers.split()}
UMBRELLA = "tenon/tenon.h"  # includes every public header; for users only, never for the library

# Rooms that use a backend only through its interface (device/backend.h). They must not name a GPU backend in code or in
# comments.
NAMELESS = {"run": ["cuda"], "plan": ["cuda"]}

# Folders outside the library. They may include public headers and their own files only.
CLIENTS = ["cli", "examples"]

# Headers that are slow to compile. Only .cpp files in these folders may include them.
HEAVY = {
    "CLI/": ["cli"],
    "fmt/": ["cli"],
    "nlohmann/": ["cli"],
    "utf8proc": ["src/data"],
    "toml++/": ["src/io"],
    "curl/": ["cli", "src/data", "src/io"],
    # Vendor headers. The library loads these functions by name, so that it builds and runs without a CUDA toolkit.
    "cublas": ["src/cuda"],
    "cudnn": ["src/cuda"],
    "nccl": ["src/cuda"],
    "nvrtc": ["src/cuda"],
    "cuda.h": ["src/cuda"],
    "cuda_runtime": ["src/cuda"],
}

# NVRTC compiles device code too. It has these folders and headers and no standard library.
DEVICE_SUFFIXES = {".cu", ".cuh"}
DEVICE_FOLDERS = ["src/cuda/kernels/", "src/scalar/"]
DEVICE_FOREIGN = {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(<([^>]+)>|"([^"]+)")')


def includes(path):
    """(line number, name, quoted) of every #include of a file; block comments are not parsed."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(2) or match.group(3), match.group(3) is not None


def room_of(name):
    """The room of a file named relative to the root, or None when it belongs to none."""
    parts = name.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if name.startswith("include/tenon/"):
        if name == "include/" + UMBRELLA:
            return "umbrella"
        stem = pathlib.PurePosixPath(name).stem
        return PUBLIC_ROOM.get(stem, stem)
    return parts[0] if parts[0] in CLIENTS else None


class Tree:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.edges = {}  # file -> project files it includes
        self.room_edges = {}  # (room, room) -> an example, "file:line"

    def files(self):
        for folder in ["include", "src", *CLIENTS]:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix in {".h", ".cpp", ".cu", ".cuh", ".inc"}:
                    yield path.relative_to(self.root).as_posix()

    def resolve(self, name, included, quoted):
        """The project file that an #include names, or None for the compiler's and third parties' headers."""
        candidates = [f"include/{included}", f"src/{included}"]
        if quoted:
            candidates.append((pathlib.PurePosixPath(name).parent / included).as_posix())
        for candidate in candidates:
            if (self.root / candidate).is_file():
                return candidate
        return None

    def check(self):
        for name in self.files():
            self.edges[name] = []
            room = room_of(name)
            if room not in MATRIX and room not in CLIENTS and room != "umbrella":
                self.problems.append(f"{name}: there is no room '{room}'; add it to MATRIX"
                                     " (or the public header to PUBLIC_ROOM) in tools/layers.py")
                continue
            if name.startswith("src/"):
                self.check_names(name, room)
            for line, included, quoted in includes(self.root / name):
                self.check_include(name, room, line, included, quoted)
        self.check_cycles(self.edges, "files")
        for circle in circles(self.pairs()):
            self.problems.append(f"cycle of sources, each a header with its source: {', '.join(sorted(circle))}")
        rooms = {}
        for source, target in self.room_edges:
            rooms.setdefault(source, []).append(target)
        self.check_cycles(rooms, "rooms")
        return self.problems

    def pairs(self):
        """The includes between pairs of header and source, each named without its suffix."""
        edges = {}
        for name, targets in self.edges.items():
            own = name.rsplit(".", 1)[0]
            edges.setdefault(own, set()).update(each.rsplit(".", 1)[0] for each in targets)
            edges[own].discard(own)
        return edges

    def check_include(self, name, room, line, included, quoted):
        target = self.resolve(name, included, quoted)
        where = f"{name}:{line}"
        if pathlib.PurePosixPath(name).suffix in DEVICE_SUFFIXES:
            self.check_device(where, included, target)
        if target is None:
            self.check_foreign(name, where, included, quoted)
            return
        self.edges[name].append(target)
        other = room_of(target)
        if target == "include/" + UMBRELLA:
            if room not in CLIENTS:
                self.problems.append(f"{where}: the library may not include <{UMBRELLA}>; include the headers it needs")
        elif room in CLIENTS:
            if not target.startswith("include/") and other != room:
                self.problems.append(f"{where}: {room} includes {included} of room '{other}';"
                                     " it may include public headers (<tenon/…>) only")
        elif other == room:
            self.check_inner(name, where, target)
        elif room != "umbrella":
            self.room_edges.setdefault((room, other), where)
            allowed = MATRIX[room]
            if other not in allowed and f"{other}:{included}" not in allowed:
                self.problems.append(f"{where}: room '{room}' may not include {included} of room '{other}'"
                                     f" (allowed: {', '.join(allowed) or 'nothing'}); move the code or pass the"
                                     " value from a room above")
        if name.startswith("include/") and not target.startswith("include/"):
            self.problems.append(f"{where}: a public header includes {included}, which is not installed")

    def check_names(self, name, room):
        for word in NAMELESS.get(room, []):
            for number, line in enumerate((self.root / name).read_text(encoding="utf-8").splitlines(), 1):
                if word in line.lower():
                    self.problems.append(f"{name}:{number}: room '{room}' says '{word}'; it asks Backend (device/backend.h), whatever"
                                         " the device is")

    def check_inner(self, name, where, target):
        for folder, matrix in INNER.items():
            if not name.startswith(folder + "/"):
                continue
            if not target.startswith(folder + "/"):
                continue  # a file of another room
            inner, other = (each.removeprefix(folder + "/").rpartition("/")[0].split("/")[0] or "." for each in (name, target))
            if inner == other or (inner == "." and "." not in matrix):
                continue  # a file of the same room, or of the top floor
            if inner not in matrix:
                self.problems.append(f"{where}: there is no room '{inner}' in {folder}; add it to INNER in tools/layers.py")
            elif other not in matrix[inner]:
                self.problems.append(f"{where}: room '{inner}' of {folder} may not include {target} of '{other}'"
                                     f" (allowed: {', '.join(matrix[inner]) or 'nothing'})")

    def check_device(self, where, included, target):
        allowed = included in DEVICE_FOREIGN if target is None else any(target.startswith(each) for each in DEVICE_FOLDERS)
        if not allowed:
            self.problems.append(f"{where}: device code may not include {included}, which the run-time compiler does not have"
                                 f" (allowed: {', '.join([*DEVICE_FOLDERS, *sorted(DEVICE_FOREIGN)])})")

    def check_foreign(self, name, where, included, quoted):
        for prefix, homes in HEAVY.items():
            if not included.startswith(prefix):
                continue
            if not name.endswith(".cpp") and not included.endswith("_fwd.hpp"):  # forward declarations
                self.problems.append(f"{where}: <{included}> is slow to parse; include it in a .cpp file only")
            elif not any(name.startswith(home + "/") for home in homes):
                self.problems.append(f"{where}: <{included}> may be included in {', '.join(homes)} only")
            return
        if quoted or included.startswith("tenon/"):
            self.problems.append(f"{where}: {included} does not exist (paths start at include/ or src/)")

    def check_cycles(self, edges, what):
        state, path = {}, []

        def visit(node):
            state[node] = "open"
            path.append(node)
            for target in edges.get(node, []):
                if state.get(target) == "open":
                    cycle = path[path.index(target):] + [target]
                    self.problems.append(f"cycle of {what}: {' -> '.join(cycle)}")
                elif target not in state:
                    visit(target)
            path.pop()
            state[node] = "done"

        for node in sorted(edges):
            if node not in state:
                visit(node)


def circles(edges):
    """The sets of nodes that all reach each other (Tarjan's strongly connected components), of two nodes and more."""
    order, lowest, path, found = {}, {}, [], []

    def visit(node):
        order[node] = lowest[node] = len(order)
        path.append(node)
        for target in edges.get(node, ()):
            if target not in order:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in path:
                lowest[node] = min(lowest[node], order[target])
        if lowest[node] == order[node]:
            circle = set(path[path.index(node):])
            del path[path.index(node):]
            if len(circle) > 1:
                found.append(circle)

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return found


# The violations of the self-test: files, and a part of the expected message (None: no message).
PLANTED = [
    ({"src/base/a.h": "", "src/ops/b.cpp": '#include "base/a.h"\n'}, None),
    ({"src/base/a.h": '#include "ops/b.h"\n', "src/ops/b.h": ""}, "room 'base' may not include ops/b.h"),
    ({"src/cpu/a.cpp": '#include "ops/b.h"\n', "src/ops/b.h": ""}, "room 'cpu' may not include"),
    ({"src/backends/a.cpp": '#include "cpu/cpu.h"\n', "src/cpu/cpu.h": ""}, None),
    ({"src/backends/a.cpp": '#include "cpu/gemm.h"\n', "src/cpu/gemm.h": ""}, "room 'backends' may not include cpu/gemm.h"),
    ({"src/run/a.cpp": '#include "cpu/cpu.h"\n', "src/cpu/cpu.h": ""}, "room 'run' may not include cpu/cpu.h"),
    ({"src/plan/a.cpp": "// On CUDA GPUs\n"}, "room 'plan' says 'cuda'"),
    ({"src/run/a.cpp": "// On GPUs\n"}, None),
    ({"src/base/a.h": '#include "base/b.h"\n', "src/base/b.h": '#include "base/a.h"\n'}, "cycle of files"),
    ({"src/base/a.h": '#include "b.h"\n', "src/base/b.h": '#include "a.h"\n'}, "cycle of files"),
    ({"src/plan/a.h": "", "src/plan/a.cpp": '#include "plan/a.h"\n#include "plan/b.h"\n', "src/plan/b.h": '#include "plan/a.h"\n'},
     "cycle of sources"),
    ({"src/plan/a.h": "", "src/plan/a.cpp": '#include "plan/a.h"\n#include "plan/b.h"\n', "src/plan/b.h": "", "src/plan/b.cpp": '#include "plan/b.h"\n'},
     None),
    ({"src/base/a.h": "", "src/base/a.cpp": '#include "base/b.h"\n', "src/base/b.h": "", "src/base/b.cpp": '#include "base/c.h"\n',
      "src/base/c.h": '#include "base/a.h"\n'}, "cycle of sources, each a header with its source: src/base/a, src/base/b, src/base/c"),
    ({"cli/a.h": "", "cli/a.cpp": '#include "b.h"\n', "cli/b.h": '#include "a.h"\n'}, "cycle of sources"),
    ({"src/graph/node.h": '#include "graph/a.h"\n', "src/graph/a.h": "", "src/graph/a.cpp": '#include "graph/node.h"\n'}, "cycle of sources"),
    ({"src/graph/a.cpp": "#include <tenon/compute.h>\n", "include/tenon/compute.h": ""}, "may not include tenon/compute.h"),
    ({"src/graph/a.cpp": "#include <tenon/dtype.h>\n", "include/tenon/dtype.h": ""}, None),
    ({"src/nn/a.cpp": "#include <tenon/tenon.h>\n", "include/tenon/tenon.h": ""}, "may not include <tenon/tenon.h>"),
    ({"cli/a.cpp": '#include "run/r.h"\n', "src/run/r.h": ""}, "public headers (<tenon/…>) only"),
    ({"cli/a.cpp": '#include "b.h"\n#include <CLI/CLI.hpp>\n#include <tenon/tenon.h>\n', "cli/b.h": "",
      "include/tenon/tenon.h": ""}, None),
    ({"include/tenon/shape.h": '#include "base/a.h"\n', "src/base/a.h": ""}, "which is not installed"),
    ({"cli/a.h": "#include <nlohmann/json.hpp>\n"}, "slow to parse"),
    ({"cli/a.h": "#include <nlohmann/json_fwd.hpp>\n"}, None),
    ({"src/io/a.cpp": "#include <nlohmann/json.hpp>\n"}, "may be included in"),
    ({"src/ops/a.cpp": "#include <toml++/toml.h>\n"}, "may be included in"),
    ({"src/cuda/kernels/a.cuh": '#include "scalar/s.h"\n#include "cuda/kernels/b.cuh"\n#include <cuda_fp16.h>\n',
      "src/cuda/kernels/b.cuh": "", "src/scalar/s.h": ""}, None),
    ({"src/cuda/kernels/a.cuh": "#include <cstdint>\n"}, "device code may not include cstdint"),
    ({"src/cuda/kernels/a.cu": '#include "base/b.h"\n', "src/base/b.h": ""}, "device code may not include base/b.h"),
    ({"src/cuda/engines/a.cpp": '#include "cuda/kernels/b.cuh"\n#include <cudnn.h>\n', "src/cuda/kernels/b.cuh": ""}, None),
    ({"src/cuda/engines/maps/a.cpp": '#include "cuda/engines/launch/b.h"\n', "src/cuda/engines/launch/b.h": "",
      "src/cuda/engines/c.cpp": '#include "cuda/engines/maps/d.h"\n', "src/cuda/engines/maps/d.h": ""}, None),
    ({"src/cuda/engines/launch/a.cpp": '#include "cuda/engines/maps/b.h"\n', "src/cuda/engines/maps/b.h": ""},
     "room 'launch' of src/cuda/engines may not include"),
    ({"src/cuda/engines/launch/a.cpp": '#include "cuda/engines/b.h"\n', "src/cuda/engines/b.h": ""},
     "room 'launch' of src/cuda/engines may not include src/cuda/engines/b.h of '.'"),
    ({"src/io/text/a.cpp": '#include "io/b.h"\n', "src/io/b.h": ""}, None),
    ({"src/io/b.cpp": '#include "io/text/a.h"\n', "src/io/text/a.h": ""}, "room '.' of src/io may not include"),
    ({"src/cuda/engines/attic/a.cpp": '#include "cuda/engines/maps/b.h"\n', "src/cuda/engines/maps/b.h": ""},
     "there is no room 'attic' in src/cuda/engines"),
    ({"src/cuda/a.cpp": '#include "ops/b.h"\n', "src/ops/b.h": ""}, "room 'cuda' may not include"),
    ({"src/run/a.cpp": "#include <cudnn.h>\n"}, "may be included in src/cuda only"),
    ({"src/cuda/device/a.h": "#include <cublasLt.h>\n"}, "slow to parse"),
    ({"src/attic/a.cpp": ""}, "there is no room 'attic'"),
    ({"src/base/a.cpp": '#include "base/gone.h"\n'}, "does not exist"),
]


def self_test():
    for files, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text, encoding="utf-8")
            problems = Tree(root).check()
            if (expected is None and problems) or (expected and not any(expected in each for each in problems)):
                sys.exit(f"layers.py: planted {files}, expected {expected!r}, found {problems}")
    for cycle in ({"a": ["b"], "b": ["a"]}, {"a": ["b"], "b": ["c"], "c": ["b"]}):
        tree = Tree(pathlib.Path("."))
        tree.check_cycles(cycle, "rooms")
        if not tree.problems:
            sys.exit(f"layers.py: the cycle in {cycle} was not found")
    law = Tree(pathlib.Path("."))
    law.check_cycles({room: [each.split(":")[0] for each in allowed] for room, allowed in MATRIX.items()}, "rooms")
    for folder, matrix in INNER.items():
        law.check_cycles(matrix, f"rooms in {folder}")
    if law.problems:
        sys.exit(f"layers.py: the matrix itself has a {law.problems[0]}")
    print(f"layers.py: {len(PLANTED)} planted trees judged rightly; the matrix has no cycle")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--print", action="store_true", help="print the edges between rooms")
    parser.add_argument("--self-test", action="store_true", help="check the checker")
    options = parser.parse_args()
    if options.self_test:
        self_test()
        return
    tree = Tree(options.root)
    problems = tree.check()
    if options.print:
        for (source, target), where in sorted(tree.room_edges.items()):
            print(f"{source:8} -> {target:8} {where}")
    for problem in problems:
        print(f"layers: {problem}", file=sys.stderr)
    if problems:
        sys.exit(f"layers: {len(problems)} problem(s); the rules are in tools/layers.py and docs/internals/architecture.md")
    print(f"layers: {len(tree.edges)} files, {len(tree.room_edges)} edges between rooms, none forbidden, no cycle")


if __name__ == "__main__":
    main()
