#!/usr/bin/env python3
"""Times rows of one workload with a peer's script. bench/gpu.py runs many of these processes in parallel.

    peer_row.py torch|jax FOLDER LOCK WORKLOAD PHASE PRECISION MODES

FOLDER holds torch_bench.py and jax_bench.py. Compiling a step takes a minute of one processor; timing the step takes a second of the
GPU. So processes compile in parallel, and a process times only while it holds the file LOCK alone. JAX tries kernels on the GPU while it
compiles, so it shares the lock with other compiling processes until it times. MODES are torch_bench.py's modes, or the numbers of steps per
call of jax_bench.py. Prints rows as the scripts do, one JSON object per line, with the peer's version.
"""
import contextlib
import fcntl
import json
import sys
import time


class Lock:
    """The lock of the GPU, held until the process ends."""

    def __init__(self, path):
        self.file, self.held = open(path, "w", encoding="utf-8"), False

    def take(self):
        if not self.held:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.held = True

    @contextlib.contextmanager
    def shared(self):
        if not self.held:
            fcntl.flock(self.file, fcntl.LOCK_SH)
        yield
        if not self.held:
            fcntl.flock(self.file, fcntl.LOCK_UN)


def say(row):
    print(json.dumps(row), flush=True)


def fault(workload, phase, precision, mode, error):
    say({"workload": workload, "phase": phase, "precision": precision, "mode": mode, "error": f"{type(error).__name__}: {str(error)[:300]}"})


def with_torch(lock, workload, phase, precision, modes):
    import torch
    import torch_bench

    try:
        from torch._inductor.output_code import CompiledFxGraph
    except ImportError:  # a version that keeps it elsewhere: compiled with the lock held
        lock.take()
    else:
        run = CompiledFxGraph.__call__

        def run_alone(graph, inputs):  # a graph's first run chooses among kernels
            lock.take()
            return run(graph, inputs)

        CompiledFxGraph.__call__ = run_alone
    for mode in modes:
        if mode == "eager":
            lock.take()
        try:
            say({**torch_bench.run(workload, "cuda", precision, mode, phase, 0.5), "version": torch.__version__})
        except Exception as error:  # out of memory, most likely
            fault(workload, phase, precision, mode, error)
        torch._dynamo.reset()
        torch.cuda.empty_cache()


def with_jax(lock, workload, phase, precision, modes):
    import jax
    import jax_bench

    class Clock:
        """Stands for the module time in jax_bench.py. Its second call comes after the first step and before any timing."""
        looks = 0

        @classmethod
        def perf_counter(cls):
            cls.looks += 1
            now = time.perf_counter()
            if cls.looks == 2:
                fcntl.flock(lock.file, fcntl.LOCK_UN)
                lock.take()
            return now

    jax_bench.time = Clock
    for mode in modes:
        Clock.looks = 0
        try:
            with lock.shared():
                say({**jax_bench.run(workload, precision, int(mode), 0.5), "version": jax.__version__})
        except Exception as error:
            fault(workload, phase, precision, mode, error)


def main():
    which, folder, path, workload, phase, precision, modes = sys.argv[1:]
    sys.argv = sys.argv[:1]
    sys.path.insert(0, folder)
    {"torch": with_torch, "jax": with_jax}[which](Lock(path), workload, phase, precision, modes.split(","))


if __name__ == "__main__":
    main()
