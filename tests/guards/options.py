#!/usr/bin/env python3
"""Checks that every numeric option of training, optimizers and loaders has a row in tests/train/test_option_ranges.cpp.

Reports each member of a public options struct that no test sets to a value outside its range.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADERS = ("optim.h", "optimizers.h", "lbfgs.h", "schedules.h", "trainer.h", "runs.h", "trained_model.h", "data.h", "loader.h")
TESTS = ROOT / "tests" / "train" / "test_option_ranges.cpp"
STRUCTS = re.compile(r"^( *)struct (?:TENON_API )?(\w*(?:Options|Clip|ParameterGroup|Augmentation|Mixing|Length))\b[^;{]*\{(.*?)^\1\};",
                     re.M | re.S)
NUMBERS = re.compile(r"^ *(?:std::optional<double>|std::int64_t|double|int) ([^;()]+);", re.M)
# Options without a row there: seeds may be any number, labels count from either end, only optimizers set the start of their states,
# and other tests check the rest.
ELSEWHERE = {
    "SlotOptions.start": "src/optim/adaptive.cpp",
    "CsvOptions.label_column": "tests/fuzz/csv.cpp",
    "GenerateOptions.tokens": "tests/train/test_generate.cpp", "GenerateOptions.temperature": "tests/train/test_generate.cpp",
    "GenerateOptions.top_k": "tests/train/test_generate.cpp", "GenerateOptions.top_p": "tests/train/test_generate.cpp",
    "TranslateOptions.beam": "tests/train/test_translate.cpp", "TranslateOptions.length_penalty": "tests/train/test_translate.cpp",
    "TranslateOptions.batch": "tests/train/test_translate.cpp",
}


def numeric_members(header):
    for indent, struct, body in STRUCTS.findall(header):
        yield from numeric_members(body)
        body = re.sub(r"//.*", "", body)
        body = re.sub(r"^ +struct \w+ \{.*?\};", "", body, flags=re.M | re.S)
        for names in NUMBERS.findall(body):
            for name in names.split(","):
                yield struct, re.sub(r"[={].*", "", name, flags=re.S).strip()


def main():
    tests = TESTS.read_text()
    bad, count = [], 0
    for header in HEADERS:
        for struct, name in numeric_members((ROOT / "include" / "tenon" / header).read_text()):
            count += 1
            known = f"{struct}::{name}" in tests
            if f"{struct}.{name}" in ELSEWHERE:
                known = f".{name} = " in (ROOT / ELSEWHERE[f"{struct}.{name}"]).read_text()
            refused = re.search(rf"refused\(\{{[^;]*\.{name} = bad", tests) if struct == "SplitOptions" else None
            if not known and not refused:
                bad.append(f"{header}: {struct}.{name} has no row in {TESTS.relative_to(ROOT)}")
    print("\n".join(bad) or f"{count} numeric options, each refused outside its range by a test")
    return 1 if bad or count < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
