#!/usr/bin/env python3
"""Installs a build into a scratch folder and builds and runs programs against it as a user would.

Four ways: CMake with the shared library, CMake with the static one, pkg-config with the shared one, pkg-config --static.
The scratch folder is moved after installation, so that the test finds a path of the build machine in a file.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(what, command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"consumer: {what} failed ({done.returncode}): {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def cmake_consumer(kind, prefix, scratch, compiler, uses_shared):
    build = scratch / kind
    run(f"configure {kind}", ["cmake", "-G", "Ninja", "-S", HERE / kind, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}",
                              f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release"])
    run(f"build {kind}", ["cmake", "--build", build])
    run(f"run {kind}", [build / "consumer"])
    check_linkage(f"CMake {kind}", build / "consumer", uses_shared)


def pkgconfig_consumer(name, prefix, scratch, compiler, flags, uses_shared):
    library = next(path.parent for path in prefix.rglob("tenon.pc")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(library / "pkgconfig"), LD_LIBRARY_PATH=str(library))
    words = run("pkg-config", ["pkg-config", "--cflags", "--libs", *flags, "tenon"], env=environment).split()
    if not uses_shared:  # pkg-config lists what a static link needs; the linker chooses the libtenon
        words = [str(library / "libtenon.a") if word == "-ltenon" else word for word in words]
    program = scratch / name
    run(f"build {name}", [compiler, "-std=c++20", HERE / "main.cpp", "-o", program, *words])
    run(f"run {name}", [program], env=environment)
    check_linkage(name, program, uses_shared)


def page_consumer(prefix, scratch, compiler):
    """The project that docs/build.md shows."""
    page = (HERE.parent.parent / "docs" / "build.md").read_text(encoding="utf-8")
    source = scratch / "page"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(re.search(r"```cmake\n(.*?)```", page, re.S)[1])
    (source / "app.cpp").write_text(re.search(r"```cpp\n(.*?)```", page, re.S)[1])
    run("configure docs/build.md", ["cmake", "-G", "Ninja", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                                    f"-DCMAKE_CXX_COMPILER={compiler}"])
    run("build docs/build.md", ["cmake", "--build", source / "build"])
    run("run docs/build.md", [source / "build" / "app"])


def starter_consumer(command, prefix, scratch, compiler):
    """A project written by the installed command's `new` builds without a warning, and trains."""
    source = scratch / "starter"
    run("tenon new", [command, "new", source])
    run("configure the starter", ["cmake", "-G", "Ninja", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                                  f"-DCMAKE_CXX_COMPILER={compiler}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Werror"])
    run("build the starter", ["cmake", "--build", source / "build"])
    said = run("run the starter", [source / "build" / "starter", "digits:300,100", "1"], cwd=scratch)
    if "test accuracy" not in said or not (scratch / "starter.safetensors").exists():
        sys.exit(f"consumer: the starter did not train:\n{said}")


def plugin_consumer(command, prefix, scratch, compiler):
    """The project of examples/plugin, loaded by the installed command; it links no libtenon of its own."""
    build = scratch / "plugin"
    run("configure the plugin", ["cmake", "-G", "Ninja", "-S", HERE.parent.parent / "examples" / "plugin", "-B", build,
                                 f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_COMPILER={compiler}"])
    run("build the plugin", ["cmake", "--build", build])
    check_linkage("the plugin", build / "libstripes.so", False)
    run("run the plugin", [command, "--plugin", build / "libstripes.so", "train", "stripe_net", "--epochs", "1", "--out", scratch / "stripes", "--quiet"])


def check_linkage(name, program, uses_shared):
    needed = run("readelf", ["readelf", "-d", program])
    if ("libtenon.so" in needed) != uses_shared:
        sys.exit(f"consumer: {name} links the wrong library:\n{needed}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, help="the build folder to install from")
    parser.add_argument("--compiler", default="c++")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenon-consumer-") as folder:
        scratch = pathlib.Path(folder)
        run("install", ["cmake", "--install", options.build, "--prefix", scratch / "first"])
        prefix = pathlib.Path(shutil.move(scratch / "first", scratch / "moved"))
        cmake_consumer("shared", prefix, scratch, options.compiler, uses_shared=True)
        cmake_consumer("static", prefix, scratch, options.compiler, uses_shared=False)
        pkgconfig_consumer("pkg-config", prefix, scratch, options.compiler, [], uses_shared=True)
        pkgconfig_consumer("pkg-config --static", prefix, scratch, options.compiler, ["--static"], uses_shared=False)
        page_consumer(prefix, scratch, options.compiler)
        command = prefix / "bin" / "tenon"
        if command.exists():
            run("the installed command", [command, "--version"])
            starter_consumer(command, prefix, scratch, options.compiler)
            plugin_consumer(command, prefix, scratch, options.compiler)
    print("consumer: CMake and pkg-config, shared and static, and the project of docs/build.md: built and run")


if __name__ == "__main__":
    main()
