#!/usr/bin/env python3
"""Runs clang-tidy over the library and the command on all cores. Skips files that have not changed since they were last clean.

A file is unchanged if the file, every project header that it includes directly or indirectly, and .clang-tidy are unchanged. The
build folder keeps the record. Tests are excluded, because clang-tidy finds little behind their macros. Device code (.cu, .cuh) is
excluded, because g++ does not compile it.

Reading headers takes most of the time, so several files of a room (src/ROOM) with the same flags are checked as one unity file. If that
finds anything (for instance two files that define one name), each file is checked alone, and only these results count.
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

import compile_together

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
FOREIGN = re.compile("_(avx2|avx512|amx|neon)$")  # files for other instruction sets
FILES_AT_ONCE = 24  # as in cmake/TenonLibrary.cmake: so many files define no name twice
PROGRAM = re.compile(r"^int main\(", re.MULTILINE)
# Aliases. The checks for unused aliases look at the main file only.
SHORT_NAME = re.compile(r"^\s*(?:namespace (\w+) = |using (?:::)?(?:\w+::)+(\w+);)", re.MULTILINE)
COMMENT = re.compile(r"//.*")


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
    """Hash of a file, all project headers that it includes, and the settings."""
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
    """The commands of the files in a unity file, or the command itself."""
    if not re.search(r"/Unity/unity_\w+\.cxx$", command["file"]):
        return [command]
    files = re.findall(r'^#include "(.*)"', pathlib.Path(command["file"]).read_text(), re.MULTILINE)
    return [dict(command, file=file, command=command["command"].replace(command["file"], file)) for file in files]


def separated(build):
    """The build's compile commands, one per file, in a separate folder. Precompiled headers of the compiler, which clang cannot
    read, and options of GCC's optimizer, which clang does not know, are removed."""
    commands = [each for command in json.loads((build / "compile_commands.json").read_text()) for each in one_by_one(command)]
    for command in commands:
        # What the optimizer may do changes no finding, and would keep files of one room apart.
        command["command"] = re.sub(r"-Winvalid-pch|-include \S*cmake_pch\.hxx|--param=\S+|-f(?:no|stack|tree)-\S+|-mstringop-\S+|"
                                    r"-O\w+|-[UD]_FORTIFY_SOURCE\S*", "", command["command"])
        command["command"] = re.sub(" +", " ", command["command"])
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    return commands, folder.resolve()


def stands_alone(path):
    """Whether a file must be checked alone, because it may have an unused alias."""
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    names = ["".join(found) for found in SHORT_NAME.findall(text)]
    return any(len(re.findall(rf"\b{name}\b", text)) < 2 for name in names)


def is_program(path):
    return bool(PROGRAM.search(path.read_text(encoding="utf-8")))


def unity_text(files):
    """Programs are in a namespace each, because every one defines main."""
    if is_program(files[0]):
        return compile_together.together([str(path) for path in files])
    return "".join(f'// NOLINTNEXTLINE(bugprone-suspicious-include)\n#include "{path}"\n' for path in files)


def room(path):
    """src/ROOM, or the folder of a file elsewhere."""
    parts = path.relative_to(ROOT).parts if path.is_relative_to(ROOT) else path.parts
    return parts[:2] if parts[0] == "src" else parts[:-1]


def batches(waiting, commands, folder):
    """Lists of files to check together, and the unity file of each list. The longest come first."""
    flags, groups = {}, {}
    for command in commands:
        path = pathlib.Path(command["file"]).resolve()
        words = re.sub(r" -o \S+", "", command["command"]).replace(command["file"], "FILE")
        if path not in flags and path.is_file():  # some are written by the build
            flags[path] = words
            groups.setdefault((room(path), is_program(path), words), []).append((path, command))
    found = []
    for number, group in enumerate(groups.values()):
        group.sort(key=lambda each: each[0])
        for begin in range(0, len(group), FILES_AT_ONCE):
            part = [path for path, _ in group[begin:begin + FILES_AT_ONCE] if path in waiting]
            alone = [path for path in part if stands_alone(path)]
            part = [path for path in part if path not in alone]
            found += [([path], path) for path in (alone if len(part) > 1 else alone + part)]
            if len(part) > 1:
                together = folder / f"together_{number}_{begin}.cpp"
                together.write_text(unity_text(part))
                commands.append(dict(group[0][1], file=str(together), command=flags[part[0]].replace("FILE", str(together))))
                found.append((part, together))
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return sorted(found, key=lambda batch: -sum(path.stat().st_size for path in batch[0]))


def clang_tidy(path, build, *without):
    """Whether the file is clean, and the messages, without some of the compiler's warnings."""
    done = subprocess.run(["clang-tidy-14", "--quiet", "-p", build,
                           *(f"--extra-arg=-Wno-{each}" for each in ("unknown-warning-option", "unknown-pragmas", *without)), path],
                          capture_output=True, text=True)
    return done.returncode == 0, done.stdout + ("" if done.stdout else done.stderr)


def look_at(batch, build):
    """For each file of a batch: whether it is clean, and its messages."""
    files, together = batch
    # In a unity file clang sees a constant of one file shadowed by a local of another, and main in a namespace, where it must return a
    # value. Within a file g++ warns of both.
    if len(files) > 1 and clang_tidy(together, build, "shadow", "return-type")[0]:
        return [(path, True, "") for path in files]
    return [(path, *clang_tidy(path, build)) for path in files]


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
        for found in pool.map(lambda batch: look_at(batch, folder), batches(set(waiting), commands, folder)):
            for path, clean, output in found:
                if clean:
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
