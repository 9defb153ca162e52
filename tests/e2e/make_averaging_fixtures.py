#!/usr/bin/env python3
"""Writes fixtures/averaging.safetensors with PyTorch: averages of weights and accumulated gradients of a small network.

    tests/e2e/make_averaging_fixtures.py [FOLDER]      (PyTorch 2.15 made the committed file)

Cases: "ema", "swa" (with update_bn over the batches at the end) and "accumulated" (the mean gradient of three batches, clipped).
Each has the initial state of the network ("start/"), the data ("x", "y": [steps, batch, …]) and the result ("end/").
"""
import pathlib
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

STEPS, BATCH = 24, 8


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 3))


def state(prefix, module):
    return {f"{prefix}/{name}": value.clone() for name, value in module.state_dict().items()}


def steps(net, x, y, after=lambda step: None, accumulate=1, clip=None):
    adam = torch.optim.Adam(net.parameters(), lr=0.02)
    for k in range(STEPS):
        (nn.functional.mse_loss(net(x[k]), y[k]) / accumulate).backward()
        if (k + 1) % accumulate == 0:
            if clip is not None:
                nn.utils.clip_grad_norm_(net.parameters(), clip)
            adam.step()
            adam.zero_grad()
        after(k)


def case(name, train):
    net = network()
    out = state("start", net)
    out["x"], out["y"] = torch.randn(STEPS, BATCH, 4), torch.randn(STEPS, BATCH, 3)
    out.update(state("end", train(net, out["x"], out["y"])))
    return {f"{name}/{key}": value.contiguous() for key, value in out.items()}


def ema(net, x, y):
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    steps(net, x, y, lambda step: average.update_parameters(net))
    return average


def swa(net, x, y):
    average = AveragedModel(net)
    steps(net, x, y, lambda step: average.update_parameters(net) if step % 4 == 3 else None)
    update_bn(list(x), average)
    return average


def accumulated(net, x, y):
    steps(net, x, y, accumulate=3, clip=0.5)
    return net


def main():
    torch.set_num_threads(1)
    tensors = {}
    for name, train in (("ema", ema), ("swa", swa), ("accumulated", accumulated)):
        tensors.update(case(name, train))
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "fixtures")
    save_file(tensors, folder / "averaging.safetensors")


if __name__ == "__main__":
    main()
