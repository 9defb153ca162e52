#!/usr/bin/env python3
"""Checks the names in the Python scripts of the tree: each is defined, and no variable is read by its own first assignment.

Most scripts run on a machine with a GPU or beside PyTorch only. A wrong name in them would fail there, and no test here.
"""
import ast
import builtins
import pathlib
import subprocess
import symtable
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KNOWN = {*dir(builtins), "__file__", "__builtins__"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def tables_of(table):
    yield table
    for inner in table.get_children():
        yield from tables_of(inner)


def undefined(text, name):
    """Names that no scope and no module defines."""
    module = symtable.symtable(text, name, "exec")
    # A function may define a name of the module with `global`.
    defined = {symbol.get_name() for table in tables_of(module) for symbol in table.get_symbols()
               if (table is module or symbol.is_declared_global()) and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace())}
    return {symbol.get_name() for table in tables_of(module) for symbol in table.get_symbols()
            if symbol.is_referenced() and (symbol.is_global() or table is module)} - defined - KNOWN


def own_nodes(function):
    """The nodes of a function without those of the functions and classes in it."""
    nodes = list(function.body) if isinstance(function.body, list) else [function.body]
    while nodes:
        node = nodes.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            nodes += ast.iter_child_nodes(node)


def read_before(function):
    """Local variables that their first assignment reads, with the line: `image = scaled(image)`."""
    nodes = list(own_nodes(function))
    known = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    known |= {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    bound = {}  # name: positions that bind it
    for node in nodes:
        names = [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names = [node.name]
        for name in names:
            bound.setdefault(name, []).append((node.lineno, node.col_offset))
    for node in nodes:
        if not isinstance(node, ast.Assign):
            continue
        inside = [n for n in ast.walk(node.value) if isinstance(n, ast.Name)]
        inner = {n.id for n in inside if isinstance(n.ctx, ast.Store)}  # variables of a comprehension
        inner |= {n.arg for n in ast.walk(node.value) if isinstance(n, ast.arg)}
        for target in (n for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)):
            reads = any(n.id == target.id for n in inside if isinstance(n.ctx, ast.Load)) and target.id not in inner
            if reads and target.id not in known and min(bound[target.id]) >= (node.lineno, node.col_offset):
                yield node.lineno, target.id


def problems(text, name):
    tree = ast.parse(text, name)
    missing = undefined(text, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in missing:
            yield f"{name}:{node.lineno}: '{node.id}' is not defined"
        if isinstance(node, FUNCTIONS):
            for line, variable in read_before(node):
                yield f"{name}:{line}: '{variable}' is read before it has a value"


def self_test():
    assert list(problems("def f(gpu):\n    print(f'{GPU.left()} s')\n", "a.py")) == ["a.py:2: 'GPU' is not defined"]
    assert list(problems("def image():\n    return 1\ndef f():\n    image = g(image())\ndef g(x):\n    return x\n", "a.py")) == [
        "a.py:4: 'image' is read before it has a value"]
    assert not list(problems("import os\ndef f(x):\n    x = [x for x in os.listdir(x)]\n    y = 1\n    y = y + 1\n    z = lambda z: z\n", "a.py"))


def main():
    self_test()
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() or [str(path.relative_to(ROOT)) for folder in ("bench", "lab", "tools", "tests")
                                      for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [problem for name in names for problem in problems((ROOT / name).read_text(encoding="utf-8"), name)]
    print("\n".join(found) or f"scripts: {len(names)} scripts, every name is defined")
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main())
