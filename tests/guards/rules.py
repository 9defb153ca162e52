#!/usr/bin/env python3
"""Checks rules of the project that a compiler does not check. Each rule has a reason. Exceptions are listed here, not in the code."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

KIND_OF_TASK = r"\bsettings\w*\.task\s*[!=]=|\btask\w*(\(\))?(->|\.)name\(\)\s*[!=]="

# name, folder, exempt files, pattern, reason
RULES = [
    ("getenv", "src", {"src/base/system/env.cpp"}, r"\bgetenv\s*\(", "read the environment through base/system/env.h"),
    ("printing", "src", set(), r"\bstd::(cout|cerr|clog|puts|printf)\b|(?<![\w:])f?printf\s*\(\s*(\"|stdout|stderr)",
     "the library never prints: throw, log through base/system/log.h, or return text"),
    ("exit", "src", set(), r"(?<![\w.])(std::)?(exit|_exit|quick_exit)\s*\(", "the library never ends the program: throw"),
    ("random", "src", set(), r"\bstd::(random_device|mt19937|rand|default_random_engine)\b|\bsrand\s*\(",
     "use base/philox.h: the same numbers on every machine"),
    *[("allocates before main", folder, set(), r"^(static |inline )*const std::(string|vector|\w*map|\w*set)\b[^(]*[={]",
       "a failing allocation before main() ends the process without a message: make it constexpr, or a function")
      for folder in ("src", "cli", "include")],
    ("kind of task", "src", {"src/train/tasks/registry.cpp"}, KIND_OF_TASK, "ask the task (tenon/task.h) instead of which task it is"),
    ("kind of task", "cli", set(), KIND_OF_TASK, "ask the task (tenon/task.h) instead of which task it is"),
    ("fast-math", "", set(), r"-ffast-math|-Ofast", "results follow IEEE 754"),
    ("resolved", "src", {"src/train/settings/recipes.cpp"}, r"\bmodel_info\s*\(",
     "a network is looked up once: take a ResolvedModel (train/settings/resolved.h), or SettingsNetwork::keep() before there is one"),
    ("split once", "src/train", {"src/train/settings/data_source.cpp"}, r"\bsource_parts\s*\(",
     "a data source is split once: take a DataSource (train/settings/data_source.h)"),
    ("opened", "cli", set(), r"settings\(\)\s*\.model_info", "an opened model knows its network: TrainedModel::info()"),
    ("banner", "", set(), r"^\s*//[ -]*-{8,}\s*$", "a heading is one line that fits"),
    ("unfinished", "", {"tests/guards/rules.py"}, r"\b(TODO|FIXME|XXX)\b", "finish it, or write an issue"),
]
FOLDERS = ["include", "src", "cli", "examples", "tests", "cmake", "tools", "bench"]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".py", ".cmake", ".sh"}
CODE = {".h", ".cpp", ".cu", ".cuh"}


def files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            recorded = path.parent.parts[-2:] == ("replay", "sources")  # printed kernels, kept unchanged
            if path.suffix in SUFFIXES and "build" not in path.parts and not recorded:
                yield path.relative_to(ROOT).as_posix(), path


def main():
    problems = []
    for name, path in files():
        lines = path.read_text(encoding="utf-8").splitlines()
        if path.suffix in CODE and (not lines or not lines[0].startswith("//")):
            problems.append(f"{name}:1: a file opens with a comment: what it is for, what does not belong")
        if name.startswith("include/") and "#pragma once" not in lines:
            problems.append(f"{name}:1: a header needs #pragma once")
        for number, line in enumerate(lines, 1):
            code = line.split("//")[0] if path.suffix in CODE else line
            for what, folder, exempt, pattern, reason in RULES:
                text = line if what in ("unfinished", "banner") else code
                if name.startswith(folder) and name not in exempt and name != "tests/guards/rules.py" \
                        and re.search(pattern, text):
                    problems.append(f"{name}:{number}: {what}: {reason}")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(f"rules: {len(problems)} problem(s)")
    print("rules: kept")


if __name__ == "__main__":
    main()
