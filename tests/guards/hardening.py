#!/usr/bin/env python3
"""Checks that command and library are hardened: full RELRO, no executable stack, protected stacks, checked buffers. The command
must be position-independent."""
import argparse
import pathlib
import re
import subprocess
import sys


def readelf(option, file):
    return subprocess.run(["readelf", "-W", option, file], check=True, text=True, stdout=subprocess.PIPE).stdout


def faults(file, release):
    """The missing protections, each with its fix."""
    segments, dynamic, symbols = readelf("-l", file), readelf("-d", file), readelf("--dyn-syms", file)
    if "DYN (" not in readelf("-h", file):
        yield "is loaded at a fixed address: compile with -fPIE and link with -pie"
    if "GNU_RELRO" not in segments:
        yield "has no tables that are read-only after relocation: link with -Wl,-z,relro"
    if not re.search(r"\(FLAGS(_1)?\).*\b(BIND_)?NOW\b", dynamic):
        yield "resolves functions late, so that their table stays writable: link with -Wl,-z,now"
    if not re.search(r"GNU_STACK( +0x[0-9a-f]+){5} RW +0x", segments):
        yield "has an executable stack: an object made from assembler lacks .note.GNU-stack"
    if not release:
        return
    if "__stack_chk_fail" not in symbols:
        yield "does not see what is written beyond arrays: compile with -fstack-protector-strong"
    if not re.search(r" __\w+_chk\b", symbols):
        yield "calls the C library without sizes of buffers: compile with -D_FORTIFY_SOURCE=2"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=pathlib.Path, nargs="+")
    parser.add_argument("--release", action="store_true", help="compiled with optimisation, which checked buffers need")
    options = parser.parse_args()
    found = [f"hardening: {file.name} {fault}" for file in options.files for fault in faults(file, options.release)]
    if found:
        sys.exit("\n".join(found))
    print(f"hardening: {', '.join(file.name for file in options.files)}: full RELRO, no executable stack"
          + (", protected stacks and buffers" if options.release else ""))


if __name__ == "__main__":
    main()
