"""With small system limits (memory, files, threads) every command succeeds or prints an error; no signal ends it."""
import os
import resource
import struct
import subprocess
import unittest
import zlib

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
SIDE = 1600  # of the images that take more memory to decode than their files have


def progressive_jpeg():
    """One scan of a grey image, whose coefficients libjpeg keeps. Each block is one bit."""
    def segment(marker, content):
        return b"\xff" + bytes([marker]) + struct.pack(">H", len(content) + 2) + content

    return (b"\xff\xd8" + segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC2, struct.pack(">BHHBBBB", 8, SIDE, SIDE, 1, 1, 0x11, 0))
            + segment(0xC4, b"\0\1" + b"\0" * 16) + segment(0xDA, b"\1\1\0\0\0\0") + b"\0" * (SIDE * SIDE // 512) + b"\xff\xd9")


def predicted_tiff():
    data = zlib.compress(bytes(SIDE * SIDE * 3))
    data += b"\0" * (len(data) % 2)
    tags = {256: SIDE, 257: SIDE, 258: 8, 259: 8, 262: 2, 273: 8, 277: 3, 278: SIDE, 279: len(data), 317: 2}
    return (b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(tags))
            + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items()) + bytes(4))


# Two colours, lossless.
WEBP = (bytes.fromhex("52494646a6000000574542505650384c990000002f3fc68f010f700fd57ba8de4375fe030f8adab681ca9ff4109c2f47f47f02d262b5c87f")
        + bytes.fromhex("fcc77f") * 38 + bytes.fromhex("fcf70500"))


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

    def test_memory_for_images(self):
        """An image that does not fit into memory is no damaged image."""
        if self.under(resource.RLIMIT_AS, 200_000 << 10, ["--version"], check=False) != 0:
            self.skipTest("sanitizers reserve the address space")
        for ending, content in (("jpg", progressive_jpeg()), ("tif", predicted_tiff()), ("webp", WEBP)):
            for kind in "ab":
                folder = self.folder / ending / kind
                folder.mkdir(parents=True)
                for k in range(3):
                    (folder / f"{k}.{ending}").write_bytes(content)
            if ending != "jpg" and self.run_command("data", "info", f"folder:{ending},size=8").code != 0:
                continue  # a build without libtiff or libwebp
            codes = set()
            for size in range(10_000, 60_000, 5_000):
                words = ["data", "info", f"folder:{ending},size=8,broken=error"]
                codes.add(self.under(resource.RLIMIT_AS, os.path.getsize(TENON) + (size << 10), words))
            self.assertEqual(codes, {0, 6}, ending)

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
