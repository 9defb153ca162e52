"""With small system limits (memory, files, threads) every command succeeds or prints an error; no signal ends it."""
import os
import resource
import subprocess
import unittest

from command import TENON, CommandTest

COMMANDS = [
    ["models"],
    ["summary", "lenet5"],
    ["data", "info", "csv:rows.csv"],
    ["tokenizer", "encode", "tokenizer.json", "--file", "text.txt"],
    ["tokenizer", "train", "text.txt", "--out", "own.json"],
    ["train", "mlp", "--data", "digits:100,20", "--epochs", "1", "--quiet", "--out", "RUN"],
    ["weights", "info", "rows.csv"],
    ["doctor", "--quick"],
]
# Address space beside the program itself, whose size depends on whether it contains GPU kernels.
KILOBYTES = [10_000, 14_000, 16_000, 18_000, 20_000, 22_000, 26_000, 30_000, 50_000, 90_000]


class Limits(CommandTest):
    runs = 0

    def setUp(self):
        (self.folder / "rows.csv").write_text("a,b,label\n" + "".join(f"{k},{k * k},{'xy'[k % 2]}\n" for k in range(40)))
        (self.folder / "text.txt").write_text("the sea is wide\n" * 500)
        self.ok("tokenizer", "train", "text.txt", "--out", "tokenizer.json")

    def under(self, what, value, words, check=True):
        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(what, (value, value))

        self.runs += 1
        words = [f"run{self.runs}" if word == "RUN" else word for word in words]
        done = subprocess.run([TENON, *words], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              preexec_fn=limit, timeout=120, text=True, errors="replace")
        said = f"{' '.join(words)} under {value}: exit code {done.returncode}\n{done.stderr[-500:]}"
        if check:
            self.assertGreaterEqual(done.returncode, 0, said)
        if check and done.returncode:
            self.assertIn("error", done.stderr, said)
        return done.returncode

    def test_memory(self):
        if self.under(resource.RLIMIT_AS, 200_000 << 10, ["--version"], check=False) != 0:
            self.skipTest("sanitizers reserve the address space")
        for words in COMMANDS:
            for size in KILOBYTES:
                self.under(resource.RLIMIT_AS, os.path.getsize(TENON) + (size << 10), words)

    def test_memory_for_the_start(self):
        """In steps of a few pages around the least memory with which the command starts."""
        if self.under(resource.RLIMIT_AS, 200_000 << 10, ["--version"], check=False) != 0:
            self.skipTest("sanitizers reserve the address space")
        fails, starts = 0, 200_000
        while starts - fails > 64:
            middle = (fails + starts) // 2
            code = self.under(resource.RLIMIT_AS, middle << 10, ["--version"], check=False)
            fails, starts = (middle, starts) if code else (fails, middle)
        codes = {self.under(resource.RLIMIT_AS, size << 10, ["--version"]) for size in range(starts - 256, starts + 128, 8)}
        self.assertLessEqual(codes, {0, 6, 127})  # 127: the dynamic linker refuses, before the command

    def test_open_files(self):
        for words in COMMANDS:
            for count in 3, 4, 5, 6, 8:
                self.under(resource.RLIMIT_NOFILE, count, words)


if __name__ == "__main__":
    unittest.main()
