"""Writes one C++ file that includes several test files, each in a namespace of its own.

Compiled together, files share the time for headers and for templates that all of them instantiate: test files take
two thirds of the processor time. Each file still compiles alone and may use any name for its helpers.

usage: compile_together.py OUTPUT SOURCE...
"""

import os
import re
import sys

INCLUDE = re.compile(r'\s*#\s*include\s+(?:"([^"]+)"|(<[^>]+>))')


def leading_includes(source):
    """The #include lines before the file's first declaration, as they must be written in a file of another folder."""
    folder = os.path.dirname(source)
    with open(source, encoding="utf-8") as lines:
        for line in lines:
            found = INCLUDE.match(line)
            if found:
                beside = os.path.join(folder, found[1]) if found[1] else ""
                yield f'"{beside if os.path.exists(beside) else found[1]}"' if found[1] else found[2]
            elif line.strip() and not line.startswith("//"):
                return


def together(sources):
    # Headers come first, outside the namespaces. Their guards make the same lines of the sources do nothing.
    includes = dict.fromkeys(include for source in sources for include in leading_includes(source))
    parts = [f"#include {include}\n" for include in includes]
    for source in sources:
        name = re.sub(r"\W", "_", os.path.splitext(os.path.basename(source))[0])
        parts.append(f'namespace {name}_file {{\n// NOLINTNEXTLINE(bugprone-suspicious-include)\n#include "{source}"\n}}\n')
    return "".join(parts)


def main():
    output, sources = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="utf-8") as file:
        file.write(together(sources))


if __name__ == "__main__":
    main()
