#!/usr/bin/env python3
"""Times a training step of a sparse embedding in PyTorch, for comparison with bench/sparse_rows.cpp.

    pip install torch
    bench/peer_sparse_rows.py [ROWS COLUMNS INDICES STEPS]
"""
import statistics
import sys
import time

import torch


def time_step(name, make, sparse, rows, columns, indices, steps):
    table = torch.nn.Embedding(rows, columns, sparse=sparse)
    rule = make(table.parameters())
    generator = torch.Generator().manual_seed(1)
    times = []
    for step in range(steps + 5):
        start = time.perf_counter()
        index = torch.randint(rows, (indices,), generator=generator)
        rule.zero_grad()
        table(index).square().sum().backward()
        rule.step()
        if step >= 5:
            times.append(1e3 * (time.perf_counter() - start))
    print(f"{name:12} {'sparse' if sparse else 'dense':7} {statistics.median(times):10.3f}")


def main():
    rows, columns, indices, steps = [int(a) for a in sys.argv[1:]] or [1000000, 64, 256, 200]
    torch.set_num_threads(2)
    print(f"{'optimizer':12} {'':7} {'step ms':>10}")
    for name, make in (("sgd", lambda p: torch.optim.SGD(p, lr=0.01)), ("adagrad", lambda p: torch.optim.Adagrad(p, lr=0.01)),
                       ("sparse_adam", lambda p: torch.optim.SparseAdam(list(p), lr=0.01))):
        time_step(name, make, True, rows, columns, indices, steps)
    for name, make in (("sgd", lambda p: torch.optim.SGD(p, lr=0.01)), ("adam", lambda p: torch.optim.Adam(p, lr=0.01))):
        time_step(name, make, False, rows, columns, indices, min(steps, 20))


if __name__ == "__main__":
    main()
