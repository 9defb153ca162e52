"""Runs the built command for the tests of this folder: plain, in a pseudo-terminal, or in the background.

The binary is named by TENON_COMMAND. Every test class gets an empty folder, in which the command runs, and a cache folder of its
own, so that nothing on the machine plays a part.
"""
import fcntl
import gzip
import json
import os
import pathlib
import pty
import random
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest
import zlib

TENON = os.path.abspath(os.environ.get("TENON_COMMAND", "build/bin/tenon"))


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class CommandTest(unittest.TestCase):
    maxDiff = None
    command = TENON

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tenon-cli-"))
        cls.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(cls.folder),
            "TENON_CACHE": str(cls.folder / "cache"),
            "TENON_DATA_DIR": str(cls.folder / "data"),
        }
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH"):
            if name in os.environ:
                cls.environment[name] = os.environ[name]

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def start(self, *words, **more):
        return subprocess.Popen(
            [self.command, *words], cwd=self.folder, env={**self.environment, **more}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_command(self, *words, timeout=240, **more):
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=timeout)
        return Result(process.returncode, out, err)

    def ok(self, *words, **more):
        result = self.run_command(*words, **more)
        self.assertEqual(result.code, 0, f"tenon {' '.join(words)}: {result}")
        return result

    def json(self, *words, **more):
        return json.loads(self.ok(*words, **more).out)

    def samples(self, spec):
        """How many samples a source has of each class, whatever the part they are in."""
        parts = [part["counts"] for part in self.json("data", "info", spec, "--json").values() if isinstance(part, dict) and "counts" in part]
        return [sum(counts) for counts in zip(*parts)]

    def fails(self, code, *words, says=(), **more):
        """The exit code, one line that begins with 'error:', and the essential words."""
        result = self.run_command(*words, **more)
        what = f"tenon {' '.join(words)}: {result}"
        self.assertEqual(result.code, code, what)
        self.assertEqual(len([line for line in result.err.splitlines() if line.startswith("error: ")]), 1, what)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, result.err, what)
        return result

    def in_terminal(self, *words, columns=100, **more):
        """Exit code and everything that a terminal of this width would have been sent."""
        try:
            child, terminal = pty.fork()
        except OSError as error:
            self.skipTest(f"no pseudo-terminals here: {error}")
        if child == 0:
            # Before the command can ask for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
            os.chdir(self.folder)
            os.execve(TENON, [TENON, *words], {**self.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8", **more})
        out = b""
        while True:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            out += piece
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), out.decode()


def write_png(path, rows, channels=1):
    """8-bit PNG, grey, RGB or RGBA, from rows of bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    width = len(rows[0]) // channels
    head = struct.pack(">IIBBBBB", width, len(rows), 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def idx(shape, values):
    return bytes([0, 0, 8, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + bytes(values)


def write_idx(path, shape, values):
    path.write_bytes(idx(shape, values))


def write_packed_idx(path, shape, values):
    path.write_bytes(gzip.compress(idx(shape, values), 1))


def write_npy(path, kind, shape, values, form):
    """A .npy file of a NumPy type such as "<f4", whose values struct packs as `form`."""
    head = str({"descr": kind, "fortran_order": False, "shape": shape})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{form}", *values))


def table(count, seed, header="a,b,label\n", label=True):
    """Rows of two numbers and whether the first is larger."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        a, b = draw.random(), draw.random()
        rows.append(f"{a:.3f},{b:.3f}" + (f",{'yes' if a > b else 'no'}" if label else ""))
    return header + "\n".join(rows) + "\n"
