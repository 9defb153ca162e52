#!/usr/bin/env python3
"""Checks the number of files that an operation needs (docs/internals/architecture.md). Three operations of each kind are searched in the
whole source and must be named in the promised files and nowhere else.

If an operation is named in another file, that file began to treat it specially. Move that knowledge into the row, the attributes or
the region of the operation. If an operation really needs more files, change the promise first.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUFFIXES = {".h", ".cpp", ".inc", ".cu", ".cuh"}

# Files that may name an operation too: layers that wrap it (nn), methods that call it (Tensor), names of activations in settings,
# network files and published configurations, reductions with a mask, distributions, and rewrites that make a common pattern cheaper, in files of their own.
OPTIONAL = {"include/tenon/nn.h", "include/tenon/layers.h", "src/nn/layers.cpp", "include/tenon/tensor.h", "src/ops/methods.cpp",
            "src/train/settings/settings.cpp", "src/models/file_layers_activations.cpp", "src/models/activations.cpp",
            "src/models/weights/published_config.cpp", "src/plan/rewrites/pool_rules.cpp", "src/grad/sum.cpp", "include/tenon/masked.h",
            "src/ops/composed/masked.cpp", "src/distributions/composed.cpp"}

# kind, operation, pattern to search for, folders to search, files that name the operation
LANGUAGE = ["src/graph/op_table.inc", "src/ops/rules.inc"]
LIBRARY = ["include", "src"]


def composite(name, family):
    return "composite", name, rf"\b{name}\b", LIBRARY, ["include/tenon/ops.h", f"src/ops/{family}.cpp"]


def element_wise(name, family):
    return ("element-wise primitive", name, rf"\b{name}\b", LIBRARY,
            [*LANGUAGE, f"src/ops/{family}.cpp"])  # and its function in src/scalar, under another name


def heavy(name, family, *engines):
    return ("op with kernels of its own", name, rf"\bOp::{name}\b|^TENON_(OP|RULE)\({name},", LIBRARY,
            [*LANGUAGE, f"src/ops/{family}.cpp", "src/cpu/engines/opaque_engine.cpp",
             "src/programs/attributes.cpp", *engines])  # the last one: the fields that a saved program holds


def engine(name):
    # The CUDA backend has engines of the same names; its own entry lists them.
    return ("engine", name, rf"\b{name}\b(?!\.h)", ["src/cpu", "src/run", "src/plan"],
            ["src/cpu/cpu.h", f"src/cpu/engines/{name}.cpp", "src/cpu/backend.cpp"])


CLAIMS = [
    composite("mish", "activations"),
    composite("huber_loss", "loss"),
    composite("logsumexp", "reduce"),
    element_wise("Expm1", "unary"),
    element_wise("Atan", "unary"),
    element_wise("Erf", "unary"),
    heavy("MaxPool2d", "pool", "src/cpu/engines/reference/reference_pool.cpp", "src/cuda/engines/opaque/opaque_pool.cpp"),
    heavy("AvgPool2d", "pool", "src/cpu/engines/reference/reference_pool.cpp", "src/cuda/engines/opaque/opaque_pool.cpp"),
    heavy("Pad", "movement", "src/cpu/engines/reference/reference_opaque.cpp", "src/cuda/engines/opaque/opaque_movement.cpp"),
    engine("contraction_engine"),
    engine("map_engine"),
    engine("opaque_engine"),
]


def code(path):
    """The code without comments, which may name any operation."""
    return "\n".join(line.split("//")[0] for line in path.read_text(encoding="utf-8").splitlines())


def main():
    texts = {path.relative_to(ROOT).as_posix(): code(path) for folder in [*LIBRARY, "tests/cases"]
             for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES}
    cases = "\n".join(text for name, text in texts.items() if name.startswith("tests/cases/"))
    problems = []
    for kind, name, pattern, folders, promised in CLAIMS:
        word = re.compile(pattern, re.MULTILINE)
        found = {path for path, text in texts.items() if path.startswith(tuple(f + "/" for f in folders)) and word.search(text)}
        for path in sorted(found - set(promised) - OPTIONAL):
            problems.append(f"{name} ({kind}) is named in {path}, which adding one must not touch")
        for path in sorted(set(promised) - found):
            problems.append(f"{name} ({kind}) is not named in {path} any more: correct the promise here and in"
                            " docs/internals/architecture.md")
        if kind != "engine" and not re.search(rf"\b{re.sub('(?<!^)(?=[A-Z])', '_', name).lower()}\b", cases):
            problems.append(f"{name} ({kind}) has no case in tests/cases")
    for problem in problems:
        print(f"op_cost: {problem}", file=sys.stderr)
    if problems:
        sys.exit(f"op_cost: {len(problems)} problem(s)")
    print(f"op_cost: {len(CLAIMS)} ops and engines cost what docs/internals/architecture.md says")


if __name__ == "__main__":
    main()
