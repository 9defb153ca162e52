#!/usr/bin/env python3
"""Checks the stripped size of the shared library, and that it exports only symbols of Tenon."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

KERNELS_MB = 8  # per architecture; three are stored, one of them PTX
# A function or variable of namespace tenon, or the type information, vtable, thunk or guard of one. The standard library's templates
# of Tenon's types begin with its own namespace.
OURS = re.compile(r"_Z(T[CISTV]|T[hv][n0-9_]+|GV)?Z*N[KRO]*5tenon")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--limit-mb", type=float, default=5.0)
    parser.add_argument("--kernels", type=pathlib.Path, help="kernels compiled ahead, which the library holds")
    options = parser.parse_args()

    with tempfile.NamedTemporaryFile(suffix=".so") as stripped:
        subprocess.run(["strip", "-o", stripped.name, options.library], check=True)
        size = pathlib.Path(stripped.name).stat().st_size / 1e6
    if options.kernels:
        kernels = options.kernels.stat().st_size / 1e6
        if kernels > 3 * KERNELS_MB:
            sys.exit(f"library: kernels compiled ahead take {kernels:.1f} MB, more than {KERNELS_MB} MB an architecture")
        size -= kernels
    if size > options.limit_mb:
        sys.exit(f"library: {options.library.name} is {size:.2f} MB stripped, more than {options.limit_mb} MB: look for"
                 " templates instantiated too widely (nm -S --size-sort)")

    names = [line.split()[-1] for line in subprocess.run(["nm", "-D", "--defined-only", options.library], check=True, text=True,
                                                         stdout=subprocess.PIPE).stdout.splitlines()]
    foreign = [name for name in names if not OURS.match(name)]
    if foreign:
        sys.exit("library: symbols outside namespace tenon are exported; give them internal linkage, or name those of the standard"
                 " library in cmake/exports.map (c++filt reads them):\n  " + "\n  ".join(foreign[:20]))
    print(f"library: {size:.2f} MB stripped (limit {options.limit_mb} MB), {len(names)} symbols exported")


if __name__ == "__main__":
    main()
