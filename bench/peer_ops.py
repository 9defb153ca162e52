#!/usr/bin/env python3
"""Times the operations of bench/ops_perf.cpp in PyTorch, in turn with that program.

    peer_ops.py PROGRAM [rounds turns]      TORCH_THREADS: threads of both (default 2)

A row: operation, minimum microseconds of Tenon and of PyTorch, PyTorch's time over Tenon's (1 and more:
Tenon is not slower). The worst row comes first.
"""
import os
import subprocess
import sys
import time

import torch

program = sys.argv[1]
rounds, turns = (int(a) for a in sys.argv[2:4]) if len(sys.argv) > 3 else (30, 3)
threads = os.environ.get("TORCH_THREADS", "2")
torch.set_num_threads(int(threads))

table, places = torch.randn(1000, 1000), torch.randint(0, 1000, (1000, 1000))
some = torch.randint(0, 1000, (500,))
small = torch.randn(32, 384)
wide = torch.randn(512, 512).double()
a, b = torch.randn(512, 512), torch.randn(512, 512)
rows = {width: torch.randn(100000, width, requires_grad=True) for width in (64, 256)}
picked = torch.randint(0, 100000, (256,))


def embedding_gradient(rows):
    loss = torch.nn.functional.embedding(picked, rows).square().sum()
    return torch.autograd.grad(loss, rows)


mask, flat, row = table > 0, table.reshape(-1), torch.randn(1000)
order, halves = places.reshape(-1) * 1000, torch.randn(1000, 500)
cube, classes = table.reshape(100, 100, 100), torch.randint(0, 1000, (1000,))
learned = table.clone().requires_grad_()


def put_columns():
    table.clone()[:, some] = halves


def gradient(body):
    return lambda: torch.autograd.grad(body(learned), learned)


OPERATIONS = {
    "gather axis 1 [1000,1000]": lambda: torch.gather(table, 1, places),
    "gather axis 0 [1000,1000]": lambda: torch.gather(table, 0, places),
    "index_select columns [1000,500]": lambda: torch.index_select(table, 1, some),
    "scatter_add axis 1 [1000,1000]": lambda: torch.scatter_add(table, 1, places, table),
    "softmax axis 0 [1000,1000]": lambda: torch.softmax(table, 0),
    "softmax axis 1 [1000,1000]": lambda: torch.softmax(table, 1),
    "argmax axis 0 [1000,1000]": lambda: torch.argmax(table, 0),
    "argmax axis 1 [1000,1000]": lambda: torch.argmax(table, 1),
    "sort axis 1 [1000,1000]": lambda: torch.sort(table, 1),
    "topk 5 of axis 1 [1000,1000]": lambda: torch.topk(table, 5, 1),
    "pad [32,384]": lambda: torch.nn.functional.pad(small, (1, 1, 1, 1)),
    "matmul float64 512": lambda: wide @ wide,
    "matmul float64 512 transposed": lambda: wide @ wide.T,
    "matmul float32 512": lambda: a @ b,
    "exp float64 [512,512]": lambda: torch.exp(wide),
    "tanh float64 [512,512]": lambda: torch.tanh(wide),
    "embedding gradient [100000,64] of 256": lambda: embedding_gradient(rows[64]),
    "embedding gradient [100000,256] of 256": lambda: embedding_gradient(rows[256]),
    "flip axis 0 [1000,1000]": lambda: torch.flip(table, (0,)),
    "flip axis 1 [1000,1000]": lambda: torch.flip(table, (1,)),
    "roll both [1000,1000]": lambda: torch.roll(table, (5, 7), (0, 1)),
    "repeat [1000,1000] of [1000,500]": lambda: halves.repeat(1, 2),
    "repeat_interleave axis 1 [1000,1000]": lambda: torch.repeat_interleave(halves, 2, 1),
    "pad [1000,1000] by 3": lambda: torch.nn.functional.pad(table, (3, 3, 3, 3)),
    "transposed copy [1000,1000]": lambda: table.T.contiguous(),
    "permuted copy [100,100,100]": lambda: cube.permute(2, 0, 1).contiguous(),
    "tril [1000,1000]": lambda: torch.tril(table),
    "cumsum axis 0 [1000,1000]": lambda: torch.cumsum(table, 0),
    "cumsum axis 1 [1000,1000]": lambda: torch.cumsum(table, 1),
    "cumprod axis 1 [1000,1000]": lambda: torch.cumprod(table, 1),
    "sort axis 0 [1000,1000]": lambda: torch.sort(table, 0),
    "argsort of 1,000,000": lambda: torch.argsort(flat, stable=True),
    "topk 5 of axis 0 [1000,1000]": lambda: torch.topk(table, 5, 0),
    "topk 100 of 1,000,000": lambda: torch.topk(flat, 100),
    "one_hot [1000] of 1,000": lambda: torch.nn.functional.one_hot(classes, 1000),
    "sum axis 0 [1000,1000]": lambda: torch.sum(table, 0),
    "amax axis 0 [1000,1000]": lambda: torch.amax(table, 0),
    "var axis 0 [1000,1000]": lambda: torch.var(table, 0),
    "logsumexp axis 0 [1000,1000]": lambda: torch.logsumexp(table, 0),
    "concat axis 1 [1000,1000]": lambda: torch.cat((halves, halves), 1),
    "where [1000,1000]": lambda: torch.where(mask, table, row),
    "index_select rows [500,1000]": lambda: torch.index_select(table, 0, some),
    "scatter_add axis 0 [1000,1000]": lambda: torch.scatter_add(table, 0, places, table),
    "scatter axis 1 [1000,1000]": lambda: torch.scatter(table, 1, places, table),
    "index_add rows [1000,1000] of 500": lambda: torch.index_add(table, 0, some, table[:500]),
    "index_put of 1,000,000 places": lambda: flat.index_put((order,), flat),
    "index_put columns [1000,500]": put_columns,
    "gradient of gather axis 1 [1000,1000]": gradient(
        lambda x: (torch.gather(x, 1, places) * x).sum()),
    "gradient of index_select columns [1000,500]": gradient(
        lambda x: torch.index_select(x, 1, some).square().sum()),
    "masked selection [1000,1000]": lambda: table[mask],
}


def least(operation):
    times = []
    for _ in range(rounds + 3):
        start = time.perf_counter()
        operation()
        times.append(1e6 * (time.perf_counter() - start))
    return min(times[3:])


ours, peers = {}, {}
for _ in range(turns):
    output = subprocess.run([program, str(rounds), threads], check=True, capture_output=True,
                            text=True).stdout
    for line in output.splitlines():
        name, value = line.split("\t")
        ours[name] = min(float(value), ours.get(name, 1e30))
    for name, operation in OPERATIONS.items():
        peers[name] = min(least(operation), peers.get(name, 1e30))
for name in sorted(OPERATIONS, key=lambda n: peers[n] / ours[n]):
    print(f"{name:40} {ours[name]:10.1f} {peers[name]:10.1f} {peers[name] / ours[name]:6.2f}")
