#!/usr/bin/env python3
"""Checks the stripped size of the shared library, and that it exports only symbols of Tenon."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

KERNELS_MB = 8  # per architecture; three are stored, one of them PTX


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

    names = subprocess.run(["nm", "-D", "--defined-only", "-C", options.library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    # Weak std:: symbols are permitted: the standard library declares its namespace visible.
    foreign = [line for line in names if "tenon::" not in line and " std::" not in line and "__gnu_cxx::" not in line
               and "operator" not in line]
    if foreign:
        sys.exit("library: symbols outside namespace tenon are exported; give them internal linkage:\n  "
                 + "\n  ".join(foreign[:20]))
    print(f"library: {size:.2f} MB stripped (limit {options.limit_mb} MB), {len(names)} symbols exported")


if __name__ == "__main__":
    main()
