#!/usr/bin/env python3
"""Times PyTorch's scaled_dot_product_attention on the work of bench/attention_perf.cpp.

    peer_attention.py [cpu|cuda] [fp32|bf16] [batch heads length size]...    TORCH_THREADS: threads on the CPU (default 2)
"""
import os
import sys
import time

import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
dtype = torch.bfloat16 if len(sys.argv) > 2 and sys.argv[2] == "bf16" else torch.float32
numbers = [int(a) for a in sys.argv[3:]]
shapes = [numbers[k : k + 4] for k in range(0, len(numbers), 4)] or [
    [4, 12, 64, 64], [2, 12, 512, 64], [1, 12, 1024, 64], [1, 2, 4096, 64]]
torch.set_num_threads(int(os.environ.get("TORCH_THREADS", "2")))


def timed(f):
    ms = []
    for k in range(18):
        start = time.perf_counter()
        f()
        if device == "cuda":
            torch.cuda.synchronize()
        if k >= 3:
            ms.append(1e3 * (time.perf_counter() - start))
    ms.sort()
    return ms[len(ms) // 2], ms[0]


for batch, heads, length, size in shapes:
    q, k, v, g = (torch.randn(batch, length, heads, size, device=device, dtype=dtype).transpose(1, 2) for _ in range(4))
    attention = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    with torch.no_grad():
        one = timed(attention)
    for x in (q, k, v):
        x.requires_grad_()
    two = timed(lambda: torch.autograd.grad(attention(), (q, k, v), g))
    name = "fp32" if dtype == torch.float32 else "bf16"
    print(f"[{batch}, {heads}, {length}, {size}] {name}: forward {one[0]:.3f} ({one[1]:.3f}), "
          f"with gradients {two[0]:.3f} ({two[1]:.3f})", flush=True)
