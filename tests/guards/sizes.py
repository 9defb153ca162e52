#!/usr/bin/env python3
"""Checks that source files have at most 600 lines and functions at most 60.

A reader keeps a whole function of that length in view. Exceptions are listed here with a reason; an exception that is no longer
needed fails too. Tests and lab/ are not checked: a table of cases is as long as its cases.

`sizes.py --self-test` checks the counting.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ["include", "src", "cli", "examples", "tools", "bench"]
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}
MOST_LINES, MOST_IN_FUNCTION = 600, 60

TABLE = "a table"
KERNEL = "a kernel: its stages share tiles and registers, which every function of a stage would have to take as parameters"

# (file, function): reason
LONG_FUNCTIONS = {
    ("cli/known_files.cpp", "known_weights"): TABLE,
    ("src/data/drawn/digit_shapes.cpp", "form_texts"): TABLE,
    ("src/data/images/transforms.cpp", "kinds"): TABLE,
    ("src/cuda/kernels/attention/attention.cuh", "attention_forward"): KERNEL,
    ("src/cuda/kernels/attention/attention.cuh", "attention_keys"): KERNEL,
    ("src/cuda/kernels/attention/attention.cuh", "attention_queries"): KERNEL,
    ("src/cuda/kernels/attention/attention_short.cuh", "attention_short_backward"): KERNEL,
    ("src/cuda/kernels/attention/attention_wgmma.cuh", "attention_wgmma_forward"): KERNEL,
    ("src/cuda/kernels/attention/attention_wgmma.cuh", "attention_wgmma_keys"): KERNEL,
    ("src/cuda/kernels/attention/attention_wgmma.cuh", "attention_wgmma_queries"): KERNEL,
    ("src/cuda/kernels/gemm/gemm.cuh", "accumulate"): KERNEL,
}

# What a reader of C++ skips: comments, strings, characters (but not digit separators), directives.
SKIPPED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^\s()\\]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"\b(namespace|extern)\b|^(template\s*<.*>\s*)?(typedef\s+)?(class|struct|union|enum)\b[^()]*$", re.DOTALL)
NAME = re.compile(r"([~\w]+|operator\s*\S+?)\s*\(")


def without_skipped(text):
    """The text with the same lines, without what SKIPPED matches."""
    return SKIPPED.sub(lambda match: "\n" * match[0].count("\n"), text)


def is_function(head):
    """True if a brace after `head` (the text since the last statement or brace) begins the body of a function."""
    return ")" in head and not SCOPE.search(head) and not head.endswith("=")


def functions(text):
    """Yields (name, first line, number of lines) of every function that is not inside another one."""
    open_braces = []  # for each: whether it is a function's, the head, the head's first line
    head, first, line = "", None, 1
    for character in without_skipped(text):
        if character == "{":
            inside = any(function for function, _, _ in open_braces)
            open_braces.append((not inside and is_function(head.strip()), head, first or line))
        elif character == "}" and open_braces:
            function, its_head, its_first = open_braces.pop()
            if function:
                names = NAME.findall(its_head)
                yield names[0] if names else its_head.strip(), its_first, line - its_first + 1
        if character in "{};":
            head, first = "", None
        else:
            if first is None and not character.isspace():
                first = line
            head += character
        line += character == "\n"


def self_test():
    lines = "\n".join(f"  x += '{{' + {n}'000;  // }}" for n in range(9))
    text = f"""namespace a {{
struct S {{
  int sum(int x) const {{
    if (x) {{ return 1; }}
    return 0;
  }}
  int at = {{}};
}};

// A comment is not part of it {{
template <class T>
void with_strings(T x) {{
  print("}} (", R"x(}}
)x");
{lines}
}}
#define BRACE {{ \\
  {{
std::vector<int> table(int a,
                       int b) {{
  return {{
      a, b}};
}}
}}  // namespace a
"""
    found = list(functions(text))
    wanted = [("sum", 3, 4), ("with_strings", 11, 14), ("table", 27, 5)]
    if found != wanted:
        sys.exit(f"sizes: the self-test finds {found}, not {wanted}")
    print("sizes: the self-test passes")


def main():
    problems, needed = [], set()
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
    count = 0
    for path in paths:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > MOST_LINES:
            problems.append(f"{name}: {lines} lines, at most {MOST_LINES}: split the file by what a reader looks for")
        for function, first, length in functions(text):
            count += 1
            if length <= MOST_IN_FUNCTION:
                continue
            if (name, function) in LONG_FUNCTIONS:
                needed.add((name, function))
            else:
                problems.append(f"{name}:{first}: {function}() has {length} lines, at most {MOST_IN_FUNCTION}: split the function")
    for name, function in sorted(set(LONG_FUNCTIONS) - needed):
        problems.append(f"{name}: {function}() is short or gone: take it out of LONG_FUNCTIONS")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        sys.exit(f"sizes: {len(problems)} problem(s)")
    print(f"sizes: {len(paths)} files and {count} functions, {len(LONG_FUNCTIONS)} of them long for a reason")


if __name__ == "__main__":
    self_test() if sys.argv[1:] == ["--self-test"] else main()
