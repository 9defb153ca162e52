"""Training on a GPU when something fails: the message names what is missing, saved files stay, the bits are the same.

ctest runs this with the emulated GPU, whose driver also plays the broken ones. On a real GPU the tests of broken drivers skip.
"""
import functools
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import time
import unittest

from command import TENON, CommandTest

SMALL = ["train", "mlp:784-16-10", "--device", "cuda", "--data", "digits:200,50", "--batch", "10", "--epochs", "2"]
EMULATED = "fake" in os.environ.get("TENON_CUDA_DRIVER", "")
WARM = os.environ.get("TENON_CACHE")  # kernels that other tests compiled


@functools.cache
def gpu_problem():
    """Why there is no GPU; "" if there is one. Names a GPU that no machine has, because doctor would measure an existing one."""
    asked = subprocess.run([TENON, "train", "mlp", "--device", "cuda:63", "--out", os.devnull], capture_output=True, text=True)
    return "" if "this machine has" in asked.stderr else asked.stderr.partition("\n")[0]


class GpuTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("TENON_CUDA_DRIVER", "TENON_NVRTC", "TENON_CUBLASLT", "TENON_CUDNN", "TENON_CUDA_BUILT_IN"):
            if name in os.environ:
                cls.environment[name] = os.environ[name]
        if WARM:
            cls.environment["TENON_CACHE"] = WARM
        if gpu_problem():
            cls.tearDownClass()
            raise unittest.SkipTest(gpu_problem())

    def need_emulator(self):
        if not EMULATED:
            self.skipTest("needs the emulated GPU")

    def weights(self, name):
        return (self.folder / name / "model.safetensors").read_bytes()[-40000:]

    def wait_for(self, path, process):
        """Waits until the file holds something: it exists before its first line is written."""
        has_content = lambda: path.exists() and path.stat().st_size > 0
        deadline = time.time() + 120
        while not has_content() and time.time() < deadline and process.poll() is None:
            time.sleep(0.01)
        self.assertTrue(has_content(), f"nothing in {path} within two minutes")


class Facts(GpuTest):
    def test_a_driver_without_gpus_is_found(self):
        self.need_emulator()
        facts = self.json("doctor", "--quick", "--json", TENON_FAKE_CUDA_GPUS="0")["cuda"]
        self.assertIn("finds no GPU", facts["why_none"])
        driver = facts["libraries"][0]
        self.assertEqual((driver["name"], driver["found"], driver["version"]), ("driver", True, "CUDA 13.0"))
        text = self.ok("doctor", "--quick", TENON_FAKE_CUDA_GPUS="0").out
        self.assertNotIn("driver         not found", text)
        self.assertIn("finds no GPU", text)


class Refused(GpuTest):
    """Where --device cuda is not possible, the message says why, the exit code is 7, and no folder is left."""

    def refused(self, says, **settings):
        self.need_emulator()
        self.fails(7, *SMALL, "--out", "none", says=says, **settings)
        self.assertFalse((self.folder / "none").exists())

    def test_no_gpu(self):
        self.refused(["finds no GPU", "nvidia-smi"], TENON_FAKE_CUDA_GPUS="0")

    def test_memory_of_the_gpu_is_planned(self):
        """Weights that do not fit are refused by the plan, before they are allocated, whatever limit is set."""
        self.need_emulator()
        large = ["train", "mlp:784-1500-1500-10", "--device", "cuda", "--data", "digits:20,10", "--batch", "10", "--epochs", "1", "--out", "none"]
        for more in ((), ("--memory-limit", "4GB")):
            result = self.fails(6, *large, *more, says=["more than the 8 MiB of the device", "a smaller network"], TENON_FAKE_CUDA_MEMORY="8")
            self.assertNotIn("raise the limit", result.err)
            self.assertFalse((self.folder / "none").exists())

    def test_missing_gpu(self):
        self.fails(7, *SMALL, "--device", "cuda:7", "--out", "none", says=["cuda:7", "this machine has"])

    def test_old_driver(self):
        self.refused(["CUDA 11.8", "12.0 or newer", "update the driver"], TENON_FAKE_CUDA_DRIVER="11080")

    def test_old_gpu(self):
        self.refused(["(7.5)", "8.0 (Ampere)", "--device cpu"], TENON_FAKE_CUDA_CAPABILITY="75")

    def test_driver_with_a_small_argument_limit(self):
        """Before CUDA 12.1 a launch has at most 4 KB of arguments: training then needs more launches."""
        self.need_emulator()
        deep = ["train", "mlp:784" + "-12" * 24 + "-10", *SMALL[2:], "--set", "clip_norm=1"]
        why = ["inspect", deep[1], "fusion", "--device", "cuda", "--clip-norm", "1"]
        self.assertIn("together the phases need more arguments than a launch can have", self.ok(*why, TENON_FAKE_CUDA_DRIVER="12000").out)
        self.assertNotIn("more arguments", self.ok(*why).out)
        self.ok(*deep, "--out", "many", TENON_FAKE_CUDA_DRIVER="12000")
        self.ok(*deep, "--out", "one")
        self.assertEqual(self.weights("many"), self.weights("one"))

    def test_no_driver(self):
        self.refused(["switched off"], TENON_CUDA_DRIVER="off")
        self.refused(["/none/libcuda.so.1", "--device cpu"], TENON_CUDA_DRIVER="/none/libcuda.so.1")

    def test_no_compiler(self):
        self.refused(["TENON_NVRTC is 'off'", "--device cpu"], TENON_NVRTC="off")
        self.refused(["/none/libnvrtc.so", "nvidia-cuda-nvrtc"], TENON_NVRTC="/none/libnvrtc.so")

    def test_the_cpu_still_trains(self):
        words = [word if word != "cuda" else "cpu" for word in SMALL]
        self.ok(*words, "--out", "cpu", TENON_CUDA_DRIVER="off", TENON_NVRTC="off")


class Memory(GpuTest):
    def test_the_plan_refuses_before_training(self):
        self.need_emulator()
        large = ["train", "mlp:784-512-10", "--device", "cuda", "--data", "digits:8000,50", "--batch", "8000", "--out"]
        self.fails(6, *large, "planned", TENON_FAKE_CUDA_MEMORY="48", says=["more than the 48 MiB of the device", "float32[8000, 512]", "smaller batch"])
        self.fails(6, *large, "batch", TENON_FAKE_CUDA_MEMORY="24", says=["more than the 24 MiB of the device", "float32[8000, 512]", "smaller batch"])

    def test_limit(self):
        self.fails(6, "train", "fcn_r", "--device", "cuda", "--memory-limit", "100MB", "--out", "limit",
                   says=["2.weight", "more than the limit"])
        self.assertFalse((self.folder / "limit").exists())

    def test_a_run_resumes_with_more_memory(self):
        self.need_emulator()
        self.fails(6, *SMALL, "--out", "small", TENON_FAKE_CUDA_MEMORY="8", says="has no room")
        self.ok("train", "--resume", "small")
        self.ok(*SMALL, "--out", "enough")
        self.assertEqual(self.weights("small"), self.weights("enough"))


class CompilerProcesses(GpuTest):
    """Processes that only compile give the same bits as threads. The run survives their failure, and none is left behind."""

    def train(self, name, **settings):
        self.need_emulator()
        self.ok(*SMALL, "--out", name, TENON_CACHE=f"cache-{name}", TENON_FAKE_NVRTC_LOG=f"{name}.log", **settings)
        processes = (self.folder / f"{name}.log").read_text(encoding="utf-8").split()
        return set(processes), len(processes), self.weights(name)

    def is_there(self, process):
        try:
            state = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def test_several(self):
        one, compilations, weights = self.train("threads", TENON_COMPILER_PROCESSES="0")
        self.assertEqual(len(one), 1)
        many, same, with_helpers = self.train("helpers", TENON_COMPILER_PROCESSES="3")
        self.assertIn(len(many), (1, 2, 3))  # one waiting thread for each processor
        self.assertEqual(same, compilations - 1)  # a process that compiles by itself first compiles a short source
        self.assertEqual(with_helpers, weights)
        deadline = time.time() + 20
        while any(self.is_there(process) for process in many) and time.time() < deadline:
            time.sleep(0.05)
        self.assertFalse([process for process in many if self.is_there(process)])

    def test_they_end_while_the_program_continues(self):
        self.need_emulator()
        words = [word if word != "2" else "100000" for word in SMALL]
        program = self.start(*words, "--out", "long", TENON_CACHE="cache-long", TENON_FAKE_NVRTC_LOG="long.log",
                             TENON_COMPILER_PROCESSES="2")
        log, own, others = self.folder / "long.log", str(program.pid), set()
        self.wait_for(log, program)
        deadline = time.time() + 60
        while not others and time.time() < deadline:
            others = set(log.read_text(encoding="utf-8").split()) - {own}
            time.sleep(0.05)
        self.assertTrue(others)
        while any(pathlib.Path(f"/proc/{process}").exists() for process in others) and time.time() < deadline:
            time.sleep(0.1)
        self.assertFalse([process for process in others if pathlib.Path(f"/proc/{process}").exists()], "not even as a zombie")
        self.assertIsNone(program.poll())
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=60)

    def test_they_crash(self):
        _, compilations, weights = self.train("alone", TENON_COMPILER_PROCESSES="0")
        crashed, all_of_them, with_helpers = self.train("crash", TENON_COMPILER_PROCESSES="2", TENON_FAKE_NVRTC_HELPERS="crash")
        self.assertGreater(len(crashed), 1)
        self.assertGreaterEqual(all_of_them, compilations)
        self.assertEqual(with_helpers, weights)

    def test_signals_are_left_to_the_program(self):
        """A terminal or a service manager sends signals to all processes of the group, but only the program handles them."""
        self.need_emulator()
        program = self.start(*SMALL, "--out", "signals", TENON_CACHE="cache-signals", TENON_FAKE_NVRTC_LOG="signals.log",
                             TENON_COMPILER_PROCESSES="2")
        log = self.folder / "signals.log"
        self.wait_for(log, program)
        process = int(log.read_text(encoding="utf-8").split()[0])
        self.assertNotEqual(process, program.pid)
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(process, number)
        _, err = program.communicate(timeout=240)
        self.assertEqual(program.returncode, 0, err)
        self.assertNotIn(str(program.pid), log.read_text(encoding="utf-8").split(), "compiled what a helper did not")

    def test_none_for_a_plan(self):
        self.need_emulator()
        for view in ("plan", "fusion", "passes"):
            self.ok("inspect", "resnet20", view, "--device", "cuda", TENON_CACHE="cache-plan", TENON_FAKE_NVRTC_LOG="plan.log")
        self.assertFalse((self.folder / "plan.log").exists(), "something was compiled")

    def test_headers_are_the_program_s(self):
        """The helper uses the program's headers, because its own file may be newer."""
        self.need_emulator()
        here, there = socket.socketpair()
        helper = subprocess.Popen([TENON, "--compile-kernels-for-tenon"], stdin=there, env=self.environment)
        there.close()
        source = '#include "other.h"\nextern "C" __global__ void k(int* x) { *x = kOther; }\n'
        try:
            for text in (os.environ["TENON_NVRTC"], "k.cu", "90", source, "1", "other.h", "constexpr int kOther = 1;\n"):
                here.sendall(struct.pack("<Q", len(text)) + text.encode())
            here.settimeout(60)
            self.assertGreater(struct.unpack("<Q", here.recv(8, socket.MSG_WAITALL))[0], 0, "bytes of the kernel")
        finally:
            helper.kill()
            helper.wait()
            here.close()

    def test_wrong_number(self):
        self.fails(2, *SMALL, "--out", "wrong", TENON_COMPILER_PROCESSES="many", says=["TENON_COMPILER_PROCESSES", "many"])


class Threads(GpuTest):
    """Steps are prepared in parallel."""

    def test_plans_do_not_depend_on_them(self):
        for model, precision in (("resnet110", "bf16"), ("transformer", "fp32")):
            plans = [self.ok("inspect", model, view, "--device", "cuda", "--precision", precision, "--threads", threads)
                     for threads in ("1", "2", "7") for view in ("plan", "engines")]
            plans = [re.sub("planned in .*", "", plan.out) for plan in plans]
            self.assertEqual(len(set(plans[0::2])), 1)
            self.assertEqual(len(set(plans[1::2])), 1)
            self.assertGreater(plans[0].count("\n"), 64)


class KernelCache(GpuTest):
    """Training gives the same bits with any state of the kernel cache."""

    def test_shared_then_damaged_then_unwritable(self):
        both = [self.start(*SMALL, "--out", name, TENON_CACHE="cache") for name in ("left", "right")]
        for process in both:
            out, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 0, out + err)
        files = sorted((self.folder / "cache" / "kernels").iterdir())
        self.assertTrue(files and all(file.name.endswith(".kernel") for file in files), files)
        for number, file in enumerate(files):
            body = bytearray(file.read_bytes())
            if number % 4 == 0:
                body[len(body) // 2] ^= 1
            elif number % 4 == 1:
                del body[len(body) // 3:]
            elif number % 4 == 2:
                body = bytearray(os.urandom(len(body)))
            else:
                body = bytearray()
            file.write_bytes(body)
        self.ok(*SMALL, "--out", "damaged", TENON_CACHE="cache")
        (self.folder / "file").write_text("no folder\n")
        self.ok(*SMALL, "--out", "unwritable", TENON_CACHE="file")
        self.assertEqual((self.folder / "file").read_text(), "no folder\n")
        for name in ("right", "damaged", "unwritable"):
            self.assertEqual(self.weights(name), self.weights("left"), name)


class Stops(GpuTest):
    LONG = ["train", "mlp:784-16-10", "--device", "cuda", "--data", "digits:800,50", "--batch", "10",
            "--epochs", "2" if EMULATED else "60", "--set", "checkpoint_steps=10"]

    def stop_after_a_checkpoint(self, name, number):
        process = self.start(*self.LONG, "--out", name)
        checkpoints = self.folder / name / "checkpoints"
        self.wait_for(checkpoints / "step-00000020.safetensors", process)  # steps are replayed by then
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def test_interrupted_terminated_and_killed_runs_end_with_the_same_bits(self):
        self.ok(*self.LONG, "--out", "whole")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            name = f"stopped{int(number)}"
            got, out, err = self.stop_after_a_checkpoint(name, number)
            self.assertEqual(got, code, out + err)
            if code > 0:
                self.assertIn("stopped after step", out)
                self.assertIn(f"tenon train --resume {name}", out)
            self.assertIn("continuing after step", self.ok("train", "--resume", name).out)
            self.assertEqual(self.weights(name), self.weights("whole"), name)

    def test_a_broken_kernel_loses_nothing(self):
        self.need_emulator()
        self.ok(*SMALL, "--out", "sound")
        for launch in (12, 22):  # in the first epoch, and after the evaluation that ends it
            name = f"broken{launch}"
            result = self.fails(7, *SMALL, "--out", name, TENON_FAKE_CUDA_FAIL=f"cuGraphLaunch:{launch}:719",
                                says=["CUDA_ERROR_LAUNCH_FAILED", "start it again"])
            self.assertNotIn("Done", result.out)
            self.ok("train", "--resume", name)
            self.assertEqual(self.weights(name), self.weights("sound"), name)

    def test_started_on_one_device_resumed_on_the_other(self):
        self.ok(*SMALL, "--out", "here", "--epochs", "1")
        self.ok("train", "--resume", "here", "--device", "cpu", "--epochs", "2")
        self.ok("train", "--resume", "here", "--device", "cuda", "--epochs", "3")
        self.assertGreater(self.json("eval", "here", "--json")["accuracy"], 0.4)


if __name__ == "__main__":
    unittest.main()
