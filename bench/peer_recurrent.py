#!/usr/bin/env python3
"""Times a training step of PyTorch's nn.GRU on the work of bench/recurrent_perf.cpp.

    peer_recurrent.py [cpu|cuda] [steps batch width]      TORCH_THREADS: threads on the CPU (default 2)
"""
import os
import statistics
import sys
import time

import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
steps, batch, width = (int(a) for a in sys.argv[2:5]) if len(sys.argv) > 4 else (32, 32, 128)
torch.set_num_threads(int(os.environ.get("TORCH_THREADS", "2")))
net = torch.nn.GRU(width, width).to(device)
optimizer = torch.optim.SGD(net.parameters(), 0.01)
x = torch.randn(steps, batch, width, device=device)


def step():
    optimizer.zero_grad()
    loss = net(x)[0].square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(5):
    step()
times = []
for _ in range(60):
    start = time.perf_counter()
    step()
    times.append(1e3 * (time.perf_counter() - start))
print(f"gru steps {steps} batch {batch} width {width} on {device}, PyTorch {torch.__version__}: "
      f"step {statistics.median(times):.3f} ms (least {min(times):.3f})")
