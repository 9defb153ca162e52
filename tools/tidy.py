#!/usr/bin/env python3
"""clang-tidy over the library and the command, on all cores, skipping what has not changed since it was last found clean.

A file is unchanged when it, every project header it includes (however deeply) and .clang-tidy are; the record is kept in the
build folder. Tests are left out: their macros say little to it. So is device code (.cu, .cuh), which is not g++'s to compile.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
FOREIGN = re.compile("_(avx2|avx512|amx|neon)$")  # files that another processor's build compiles


@functools.lru_cache(maxsize=None)
def project_includes(path):
    found = []
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        for base in (ROOT / "src", ROOT / "include", path.parent):
            if (base / name).is_file():
                found.append((base / name).resolve())
                break
    return found


def fingerprint(path):
    """Hash of a file, all project headers below it and the settings."""
    seen, waiting = set(), [path]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting.extend(project_includes(current))
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for each in sorted(seen):
        digest.update(each.read_bytes())
    return digest.hexdigest()


def one_by_one(command):
    """The commands of the files that a command compiles as one, or itself."""
    if not re.search(r"/Unity/unity_\w+\.cxx$", command["file"]):
        return [command]
    files = re.findall(r'^#include "(.*)"', pathlib.Path(command["file"]).read_text(), re.MULTILINE)
    return [dict(command, file=file, command=command["command"].replace(command["file"], file)) for file in files]


def separated(build):
    """The build's compile commands, a file each, in a folder of their own without the compiler's precompiled headers, which clang
    cannot read."""
    commands = [each for command in json.loads((build / "compile_commands.json").read_text()) for each in one_by_one(command)]
    for command in commands:
        command["command"] = re.sub(r"-Winvalid-pch|-include \S*cmake_pch\.hxx", "", command["command"])
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return commands, folder


def tidy(path, build):
    done = subprocess.run(["clang-tidy-14", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
                           "--extra-arg=-Wno-unknown-pragmas", path],
                          capture_output=True, text=True)
    return path, done.returncode, done.stdout + ("" if done.stdout else done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="only these; default: all of src, cli and examples")
    options = parser.parse_args()
    commands, folder = separated(options.build)
    known = {pathlib.Path(command["file"]).resolve() for command in commands}
    wanted = {path.resolve() for path in options.files} or {
        path for room in ("src", "cli", "examples") for path in (ROOT / room).rglob("*.cpp")
        if path in known or not FOREIGN.search(path.stem)}
    unknown = wanted - known
    if unknown:
        sys.exit(f"tidy: the build does not compile {', '.join(map(str, sorted(unknown)))}")

    record_file = options.build / "tidy.json"
    record = json.loads(record_file.read_text()) if record_file.is_file() else {}
    prints = {path: fingerprint(path) for path in sorted(wanted)}
    waiting = [path for path in prints if record.get(str(path)) != prints[path]]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, code, output in pool.map(lambda path: tidy(path, folder), waiting):
            if code == 0:
                record[str(path)] = prints[path]
            else:
                bad += 1
                print(output.strip())
    record_file.write_text(json.dumps(record))
    if bad:
        sys.exit(f"tidy: {bad} of {len(wanted)} files are not clean")
    print(f"tidy: {len(wanted)} files clean ({len(waiting)} looked at)")


if __name__ == "__main__":
    main()
