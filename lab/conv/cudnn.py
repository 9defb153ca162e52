#!/usr/bin/env python3
"""Times cuDNN, by PyTorch, on the work of main.cpp: cudnn.py [cpu|cuda] [fp32|tf32|bf16] [batch] [milliseconds a row] [layer]

The faster of NCHW and NHWC, each with the fastest deterministic algorithm of cuDNN's own search (torch.backends.cudnn.benchmark);
extra_mb is the peak of memory beyond operands and result.
"""
import json
import statistics
import sys
import time

import torch

LAYERS = {"L1": (3, 128, 96, 11), "L2": (64, 64, 128, 9), "L3": (128, 32, 128, 9), "L4": (128, 16, 128, 7), "L5": (384, 13, 384, 3)}


def median_ms(call, wait, budget):
    def run(calls):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        return 1e3 * (time.perf_counter() - start) / calls

    run(2)
    calls, samples, start = max(1, int(budget / 10 / run(1))), [], time.perf_counter()
    while len(samples) < 3 or 1e3 * (time.perf_counter() - start) < budget:
        samples.append(run(calls))
    return statistics.median(samples)


def passes(x, w, g):
    backward = torch.ops.aten.convolution_backward
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    return {"forward": (lambda: torch.nn.functional.conv2d(x, w), g),
            "by input": (lambda: backward(g, x, w, None, *rest, [True, False, False]), x),
            "by filters": (lambda: backward(g, x, w, None, *rest, [False, True, False]), w)}


def main():
    device, precision, batch, budget, only = [*sys.argv[1:], *["cuda", "fp32", "128", "300", ""][len(sys.argv) - 1:]]
    torch.backends.cudnn.benchmark = torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for layer, (channels, side, filters, kernel) in LAYERS.items():
        if only not in ("", layer):
            continue
        out = side - kernel + 1
        rows = {}
        for layout, order in (("nchw", torch.contiguous_format), ("nhwc", torch.channels_last)):
            x, w, g = (torch.randn(*shape, device=device, dtype=dtype).to(memory_format=order)
                       for shape in ((int(batch), channels, side, side), (filters, channels, kernel, kernel), (int(batch), filters, out, out)))
            for name, (call, result) in passes(x, w, g).items():
                ms = median_ms(call, wait, float(budget))
                extra = 0
                if device == "cuda":
                    torch.cuda.reset_peak_memory_stats()
                    before = torch.cuda.memory_allocated()
                    call()
                    extra = torch.cuda.max_memory_allocated() - before - result.numel() * result.element_size()
                row = {"system": "cudnn", "layer": layer, "pass": name, "precision": precision, "batch": int(batch), "ms": round(ms, 4),
                       "tflops": round(2e-9 * int(batch) * w.numel() * out * out / ms, 2), "extra_mb": round(max(0, extra) / 2**20, 2),
                       "engine": layout}
                print(f"# {layer} {name} {layout}: {ms:.4f} ms", file=sys.stderr, flush=True)
                if name not in rows or ms < rows[name]["ms"]:
                    rows[name] = row
        for row in rows.values():
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
