#!/usr/bin/env python3
"""Times a training step of PyTorch's recurrent layers on the work of bench/recurrent_perf.cpp.

    peer_recurrent.py [cpu|cuda] [steps batch width] [gru|lstm|rnn|words]    TORCH_THREADS: threads on the CPU (default 2)
"""
import os
import statistics
import sys
import time

import torch

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
steps, batch, width = (int(a) for a in sys.argv[2:5]) if len(sys.argv) > 4 else (32, 32, 128)
kind = sys.argv[5] if len(sys.argv) > 5 else "gru"
torch.set_num_threads(int(os.environ.get("TORCH_THREADS", "2")))
WORDS = 10_000


class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(WORDS, width)
        self.lstm = torch.nn.LSTM(width, width, 2)
        self.head = torch.nn.Linear(width, WORDS)

    def forward(self, index):
        return self.head(self.lstm(self.embedding(index))[0])


if kind == "words":
    net = Words().to(device)
    x, y = (torch.randint(0, WORDS, (steps, batch), device=device) for _ in range(2))
    loss_of = lambda: torch.nn.functional.cross_entropy(net(x).flatten(0, 1), y.flatten())
else:
    net = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM, "rnn": torch.nn.RNN}[kind](width, width).to(device)
    x = torch.randn(steps, batch, width, device=device)
    loss_of = lambda: net(x)[0].square().mean()
optimizer = torch.optim.SGD(net.parameters(), 0.01)


def step():
    optimizer.zero_grad()
    loss = loss_of()
    loss.backward()
    optimizer.step()
    return loss.item()


for _ in range(3):
    step()
times = []
for _ in range(10 if kind == "words" else 60):
    start = time.perf_counter()
    step()
    times.append(1e3 * (time.perf_counter() - start))
print(f"{kind} steps {steps} batch {batch} width {width} on {device}, PyTorch {torch.__version__}: "
      f"step {statistics.median(times):.3f} ms (least {min(times):.3f})")
