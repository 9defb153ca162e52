#!/usr/bin/env python3
"""Times the benchmark workloads in PyTorch, for comparison with Tenon.

    bench/peer_torch.py [--only lenet5_b64,fcn_r] [--phase train,infer] [--precision fp32,bf16] [--modes all] [--threads N]
    bench/peer_torch.py --serve      answers each JSON request, one per line, with one row (for bench/compare.py)

A row: workload, phase, precision, mode, batch, ms (median), ms_min, items_per_s, peak_mb (resident, of the whole process), setup_s
(building, compiling and the first step). A step is the same as in `tenon bench`. Training: forward pass, loss, gradients, and SGD with
momentum 0.9 and weight decay 5e-4. Inference: the forward pass. Data is random and stays on the device. If the folder TENON_PEERS
(or ../shared/peers) holds torch_bench.py, its workloads are available too (resnet50_b16, gpt2_124m_b4_t64, …), with their updates.

Modes (every mode that makes sense for the workload is tried; the fastest gives PyTorch's figure):
  eager       modules as most people write them           fused     the same, with the fused optimizer
  last        channels-last, fused optimizer              compile   torch.compile, fused optimizer
  compile-last  the same on channels-last                 max       torch.compile with max-autotune and the C++ wrapper
  max-last    the same on channels-last                   max-opt   as max, with the optimizer's step compiled too
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import torch
import torch._inductor
import torch.nn as nn
import torch.nn.functional as F

MODES = ["eager", "fused", "last", "compile", "compile-last", "max", "max-last", "max-opt"]


def convolutional(classes, *layers):
    """Layers as (maps, kernel, padding, pooling) of images 1x28x28, then dense sizes; activation by kind of pooling."""
    activation = {nn.AvgPool2d: nn.Tanh, nn.MaxPool2d: nn.ReLU}
    modules, maps, size, act = [], 1, 28, None
    for layer in layers:
        if isinstance(layer, int):
            if not isinstance(modules[-2], (nn.Flatten, nn.Linear)):
                modules.append(nn.Flatten())
                maps = maps * size * size
            modules += [nn.Linear(maps, layer), act()]
            maps = layer
            continue
        out, kernel, padding, pool = layer
        act = activation.get(pool, act)
        modules += [nn.Conv2d(maps, out, kernel, padding=padding), act()]
        maps, size = out, size + 2 * padding - kernel + 1
        if pool:
            modules.append(pool(2))
            size //= 2
    return nn.Sequential(*modules, nn.Linear(maps, classes))


def dense(*sizes):
    modules = []
    for a, b in zip(sizes[:-2], sizes[1:-1]):
        modules += [nn.Linear(a, b), nn.Sigmoid()]
    return nn.Sequential(*modules, nn.Linear(sizes[-2], sizes[-1]))


def lenet5():
    return convolutional(10, (6, 5, 2, nn.AvgPool2d), (16, 5, 0, nn.AvgPool2d), (120, 5, 0, None), 84)


def keras_cnn():
    return convolutional(10, (32, 3, 0, nn.MaxPool2d), (64, 3, 0, nn.MaxPool2d), (64, 3, 0, None), 64)


def ten_classes(*sample):
    return lambda batch, device: (torch.randn(batch, *sample, device=device), torch.randint(10, (batch,), device=device))


# name: (network, batch of data on a device, batch size, update)
WORKLOADS = {
    "lenet5_b64": (lenet5, ten_classes(1, 28, 28), 64, "sgd"),
    "keras_cnn_b128": (keras_cnn, ten_classes(1, 28, 28), 128, "sgd"),
    "fcn_r": (lambda: dense(784, 2048, 4096, 1024, 10), ten_classes(784), 1024, "sgd"),
}
PARAMETERS = {"lenet5_b64": 61_706, "keras_cnn_b128": 93_322, "fcn_r": 14_205_962}
PEERS = pathlib.Path(os.environ.get("TENON_PEERS") or pathlib.Path(__file__).resolve().parents[2] / "shared" / "peers")
if (PEERS / "torch_bench.py").exists():
    sys.path.insert(0, str(PEERS))
    import torch_bench
    WORKLOADS = {**torch_bench.WORKLOADS, **WORKLOADS}


def modes_for(workload, phase):
    """The modes that make sense. For large networks, modes that search for minutes are left out."""
    spatial = WORKLOADS[workload][1](1, "cpu")[0].dim() == 4
    return [m for m in MODES if (spatial or "last" not in m) and (phase == "train" or m not in ("fused", "max-opt"))
            and (workload in PARAMETERS or "max" not in m)]


def compiled(function, mode, phase):
    if mode.startswith("max"):
        options = {**torch._inductor.list_mode_options("max-autotune-no-cudagraphs"), "cpp_wrapper": True}
    else:
        options = {}
    if phase == "infer":
        options["freezing"] = True
    return torch.compile(function, options=options)


def make_step(workload, phase, precision, mode):
    """The function of one timed step."""
    build, data, batch, rule = WORKLOADS[workload]
    torch.manual_seed(0)
    net = build().train(phase == "train")
    assert sum(p.numel() for p in net.parameters()) == PARAMETERS.get(workload, sum(p.numel() for p in net.parameters())), workload
    x, y = data(batch, "cpu")
    if "last" in mode:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    autocast = lambda: torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16")
    wrap = (lambda f: f) if mode in ("eager", "fused", "last") else (lambda f: compiled(f, mode, phase))

    def forward():
        with autocast():
            return net(x)

    def forward_loss():
        with autocast():
            return F.cross_entropy(net(x), y)

    if phase == "infer":
        run = wrap(forward)

        def infer():
            with torch.no_grad():
                run()

        return infer
    fused = {} if mode in ("eager", "max-opt") else {"fused": True}
    learnt = [p for p in net.parameters() if p.requires_grad]
    if rule == "adamw":
        optimizer = torch.optim.AdamW(learnt, lr=1e-4, weight_decay=0.1, **fused)
    else:
        optimizer = torch.optim.SGD(learnt, lr=1e-3, momentum=0.9, weight_decay=5e-4, **fused)
    loss, update = wrap(forward_loss), optimizer.step
    if mode == "max-opt":
        update = compiled(optimizer.step, "max", phase)

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss().backward()
        if rule == "sgd_clip":
            nn.utils.clip_grad_norm_(learnt, 5.0)
        update()

    return train


def resident_peak_mb():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def timed(step, budget_s):
    """(median, minimum) milliseconds over about budget_s seconds of steps, after a warm-up; without a budget, of one step."""
    for _ in range(3):
        start = time.perf_counter()
        step()
        one = max(time.perf_counter() - start, 1e-5)
        if budget_s == 0:
            return one * 1e3, one * 1e3
        if one > 1:
            break
    times = []
    for _ in range(max(5 if one < 1 else 3, min(200, int(budget_s / one)))):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), min(times)


class Peer:
    def __init__(self):
        self.steps = {}

    def row(self, workload, phase, precision, mode, budget_s):
        row = dict(workload=workload, phase=phase, precision=precision, mode=mode, batch=WORKLOADS[workload][2])
        key = (workload, phase, precision, mode)
        try:
            if key not in self.steps:
                start = time.perf_counter()
                step = make_step(*key)
                step()
                self.steps[key] = (step, time.perf_counter() - start)
            step, setup_s = self.steps[key]
            ms, least = timed(step, budget_s)
        except Exception as error:  # a mode that cannot run is a row that says so; the others go on
            return row | dict(error=f"{type(error).__name__}: {str(error)[:200]}")
        return row | dict(ms=round(ms, 4), ms_min=round(least, 4), items_per_s=round(row["batch"] / ms * 1e3, 1),
                          peak_mb=round(resident_peak_mb(), 1), setup_s=round(setup_s, 3))


def serve(peer):
    """One request per line: {"modes": [workload, phase]} or {"row": [workload, phase, precision, mode, budget_s]}."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what compilers print must not come between the answers
    print(json.dumps(dict(torch=torch.__version__, python=sys.version.split()[0], threads=torch.get_num_threads(),
                          isa=torch.backends.cpu.get_cpu_capability())), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        answer = modes_for(*request["modes"]) if "modes" in request else peer.row(*request["row"])
        print(json.dumps(answer), file=answers, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(WORKLOADS))
    parser.add_argument("--phase", default="train")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--modes", default="all")
    parser.add_argument("--threads", type=int, default=0, help="0: all")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds timed per row")
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    peer = Peer()
    if options.serve:
        return serve(peer)
    for workload in options.only.split(","):
        for phase in options.phase.split(","):
            for precision in options.precision.split(","):
                known = modes_for(workload, phase)
                for mode in known if options.modes == "all" else [m for m in options.modes.split(",") if m in known]:
                    print(json.dumps(peer.row(workload, phase, precision, mode, options.budget)), flush=True)


if __name__ == "__main__":
    main()
