#!/usr/bin/env python3
"""Compiles and runs the code of the pages for users: README.md and docs/*.md, but not docs/internals.

Each ```cpp block of a page is a function body. It is at namespace scope if it begins with class, struct or template, and a
program if it has a main. check(condition) ends a program with an error. The ```sh blocks of a page are run by bash -e, in order,
in one scratch folder for each page, with the built command on PATH. Messages name the page and its line.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEAD = """#include <tenon/tenon.h>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>
using namespace tenon;
#define check(...) ((__VA_ARGS__) ? (void)0 : (std::printf("%s:%d: check failed: %s\\n", __FILE__, __LINE__, #__VA_ARGS__), std::exit(1)))
"""


def blocks(path):
    """(language, number of the first line, text) of each fenced block."""
    text = path.read_text(encoding="utf-8")
    for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S):
        yield found[1], text[:found.start(2)].count("\n") + 1, found[2]


def programs(path):
    """The page's programs: one with all function bodies, and the blocks that have a main."""
    scope, calls = "", ""
    for language, line, text in blocks(path):
        if language != "cpp":
            continue
        place = f'#line {line} "{path.relative_to(ROOT)}"\n'
        if re.search(r"^int main\(", text, re.M):
            yield place + text
        elif re.match(r"(class|struct|template)\b", text):
            scope += place + text
        else:
            scope += f"static void block_{line}() {{\n{place}{text}}}\n"
            calls += f"  block_{line}();\n"
    if calls:
        yield f"{HEAD}{scope}int main() {{\n{calls}}}\n"


def run(what, command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    if done.returncode != 0:
        print(f"{what} failed ({done.returncode}):\n{done.stdout[-4000:]}", file=sys.stderr)
    return done.returncode == 0


def library_flags(build):
    """Link options: the shared library, or, if only the static one was built, the static one and its dependencies."""
    flags = ["-ltenon"]
    if not (build / "lib" / "libtenon.so").exists():
        asked = lambda *words: subprocess.run(["pkg-config", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        flags += asked("--libs", *asked("--print-requires-private", str(build / "tenon.pc"))) + ["-ldl"]
    return [f"-L{build / 'lib'}", *flags, f"-Wl,-rpath,{build / 'lib'}", "-pthread"]


def try_page(path, options):
    name = path.relative_to(ROOT).as_posix()
    build = pathlib.Path(options.build).resolve()
    good = True
    with tempfile.TemporaryDirectory(prefix="tenon-page-") as folder:
        scratch = pathlib.Path(folder)
        environment = {"PATH": f"{scratch}/bin:{os.environ['PATH']}", "HOME": folder, "TENON_CACHE": f"{folder}/cache"}
        (scratch / "bin").mkdir()
        (scratch / "bin" / "tenon").symlink_to(build / "bin" / "tenon")
        for number, text in enumerate(programs(path)):
            source, program = scratch / f"page{number}.cpp", scratch / f"page{number}"
            source.write_text(text, encoding="utf-8")
            good &= run(f"{name}: compiling", [options.compiler, "-std=c++20", f"-I{ROOT / 'include'}", source, "-o", program,
                                               *library_flags(build)]) \
                and run(f"{name}: running its code", [program], cwd=scratch, env=environment)
        for language, line, text in blocks(path):
            if language == "sh" and path.parent.name == "docs":
                good &= run(f"{name}:{line}: running its commands", ["bash", "-e", "-c", text], cwd=scratch, env=environment, stdin=subprocess.DEVNULL)
    print(f"{name}: {'as it says' if good else 'wrong'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--compiler", default="c++")
    parser.add_argument("pages", nargs="*", help="default: all")
    options = parser.parse_args()
    pages = [pathlib.Path(page).resolve() for page in options.pages] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if not all([try_page(page, options) for page in pages if list(blocks(page))]):
        sys.exit(1)


if __name__ == "__main__":
    main()
