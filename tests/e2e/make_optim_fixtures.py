#!/usr/bin/env python3
"""Writes optimizers.safetensors: optimizers, LBFGS and schedules of PyTorch, step by step, in float64.

    pip install torch numpy safetensors
    tests/e2e/make_optim_fixtures.py [FOLDER]

Each optimizer gets the same gradients for a matrix and a vector. The vector is a group with half the learning rate and a weight
decay of its own. The learning rate falls by 2 % in every step. Stored are parameters and states after the steps in KEPT. Lion and
LAMB, which PyTorch lacks, are written here from their papers.
"""
import pathlib
import sys
import unittest.mock

import numpy as np
import torch
from safetensors.torch import save_file
from torch.optim import lr_scheduler

STEPS, KEPT = 60, (1, 2, 5, 6, 10, 30, 60)


class Lion(torch.optim.Optimizer):
    """Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                m = self.state[p].setdefault("exp_avg", torch.zeros_like(p))
                beta1, beta2 = group["betas"]
                update = torch.sign(beta1 * m + (1 - beta1) * p.grad) + group["weight_decay"] * p
                p -= group["lr"] * update
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


class Lamb(torch.optim.Optimizer):
    """You et al., "Large batch optimization for deep learning", 2020, algorithm 2, with phi(z) = z."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                t = state["step"] = state.get("step", 0) + 1
                m = state.setdefault("exp_avg", torch.zeros_like(p))
                v = state.setdefault("exp_avg_sq", torch.zeros_like(p))
                m.copy_(beta1 * m + (1 - beta1) * p.grad)
                v.copy_(beta2 * v + (1 - beta2) * p.grad ** 2)
                ratio = m / (1 - beta1 ** t) / ((v / (1 - beta2 ** t)).sqrt() + group["eps"])
                direction = ratio + group["weight_decay"] * p
                p -= group["lr"] * p.norm() / direction.norm() * direction


O = torch.optim
OPTIMIZERS = {
    "adagrad": (O.Adagrad, dict(lr=0.1)),
    "adagrad_options": (O.Adagrad, dict(lr=0.1, lr_decay=0.03, weight_decay=0.05, initial_accumulator_value=0.2, eps=1e-3)),
    "adagrad_maximize": (O.Adagrad, dict(lr=0.1, maximize=True)),
    "adadelta": (O.Adadelta, dict()),
    "adadelta_options": (O.Adadelta, dict(lr=0.5, rho=0.8, eps=1e-3, weight_decay=0.05, maximize=True)),
    "adamax": (O.Adamax, dict()),
    "adamax_options": (O.Adamax, dict(lr=0.05, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.05, maximize=True)),
    "nadam": (O.NAdam, dict()),
    "nadam_options": (O.NAdam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.05, momentum_decay=0.02, maximize=True)),
    "nadam_decoupled": (O.NAdam, dict(lr=0.05, weight_decay=0.05, decoupled_weight_decay=True)),
    "radam": (O.RAdam, dict()),
    "radam_options": (O.RAdam, dict(lr=0.05, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.05, maximize=True)),
    "radam_decoupled": (O.RAdam, dict(lr=0.05, betas=(0.8, 0.7), weight_decay=0.05, decoupled_weight_decay=True)),
    "rprop": (O.Rprop, dict()),
    "rprop_options": (O.Rprop, dict(lr=0.05, etas=(0.6, 1.4), step_sizes=(0.01, 0.2), maximize=True)),
    "asgd": (O.ASGD, dict()),
    "asgd_options": (O.ASGD, dict(lr=0.05, lambd=0.02, alpha=0.6, t0=8, weight_decay=0.05, maximize=True)),
    "adafactor": (O.Adafactor, dict()),
    "adafactor_options": (O.Adafactor, dict(lr=0.2, beta2_decay=-0.6, eps=(1e-4, 0.5), d=1.1, weight_decay=0.05, maximize=True)),
    "lion": (Lion, dict(lr=0.01)),
    "lion_options": (Lion, dict(lr=0.03, betas=(0.7, 0.8), weight_decay=0.05)),
    "lamb": (Lamb, dict(lr=0.02)),
    "lamb_options": (Lamb, dict(lr=0.05, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.05)),
}
MUON = {
    "muon": dict(lr=0.02),
    "muon_options": dict(lr=0.05, weight_decay=0.05, momentum=0.8, nesterov=False, ns_steps=3, adjust_lr_fn="match_rms_adamw"),
    "muon_spectral": dict(lr=0.05, adjust_lr_fn="spectral_unclamped"),
}


def tensor(values):
    return torch.from_numpy(values)


def follow(optimizer, parameters, grads):
    """Parameters and states after the steps of KEPT, stacked."""
    schedule = lr_scheduler.ExponentialLR(optimizer, 0.98)
    trails = {}
    for k in range(STEPS):
        for name, p in parameters.items():
            p.grad = grads[name][k].clone()
        optimizer.step()
        schedule.step()
        if k + 1 not in KEPT:
            continue
        for name, p in parameters.items():
            trails.setdefault(name, []).append(p.detach().clone())
            for key, value in optimizer.state[p].items():
                if torch.is_tensor(value) and key not in ("step", "mu"):
                    trails.setdefault(f"{name}.{key}", []).append(value.detach().double().clone())
    return {key: torch.stack(values) for key, values in trails.items()}


def optimizer_fixtures():
    rng = np.random.default_rng(7)
    shapes = {"matrix": (4, 3), "vector": (5,), "tall": (6, 2), "wide": (2, 5)}
    start = {name: tensor(rng.standard_normal(shape)) for name, shape in shapes.items()}
    # Gradients of very different sizes; the fourth is 0.
    sizes = np.exp(rng.standard_normal(STEPS))
    sizes[3] = 0
    grads = {name: tensor(np.stack([s * (rng.standard_normal(shape) + 0.5) for s in sizes])) for name, shape in shapes.items()}
    out = {f"start/{name}": value for name, value in start.items()} | {f"grads/{name}": value for name, value in grads.items()}

    def parameters(*names):
        return {name: torch.nn.Parameter(start[name].clone()) for name in names}

    for name, (kind, options) in OPTIMIZERS.items():
        some = parameters("matrix", "vector")
        second = {"params": [some["vector"]], "lr": options.get("lr", kind([torch.zeros(1)]).defaults["lr"]) / 2}
        if kind is not O.Rprop:
            second["weight_decay"] = 0.1
        optimizer = kind([{"params": [some["matrix"]]}, second], **options)
        out |= {f"{name}/{key}": value for key, value in follow(optimizer, some, grads).items()}
    with unittest.mock.patch("torch.bfloat16", torch.float64):  # Muon's iterations in float64
        for name, options in MUON.items():
            some = parameters("tall", "wide")
            out |= {f"{name}/{key}": value for key, value in follow(O.Muon(some.values(), **options), some, grads).items()}
    return out


# ---- LBFGS ------------------------------------------------------------------------------------------------------------------

LBFGS = {
    "wolfe": dict(line_search_fn="strong_wolfe", max_iter=4, history_size=5),
    "fixed": dict(lr=0.02, max_iter=6, history_size=3),
    "long": dict(lr=0.8, line_search_fn="strong_wolfe"),
}


def rosenbrock(p, q):
    x = torch.cat([p.flatten(), q])
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def lbfgs_fixtures(steps=12):
    rng = np.random.default_rng(3)
    start = tensor(rng.uniform(-1, 1, (2, 3))), tensor(rng.uniform(-1, 1, 2))
    out = {"lbfgs/p": start[0], "lbfgs/q": start[1]}
    for name, options in LBFGS.items():
        p, q = (torch.nn.Parameter(value.clone()) for value in start)
        optimizer = O.LBFGS([p, q], **options)

        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(p, q)
            loss.backward()
            return loss

        losses, trail = [], []
        for _ in range(steps):
            losses.append(float(optimizer.step(closure)))
            trail.append(torch.cat([p.detach().flatten(), q.detach()]))
        out[f"lbfgs_{name}/losses"] = torch.tensor(losses, dtype=torch.float64)
        out[f"lbfgs_{name}/trail"] = torch.stack(trail)
        out[f"lbfgs_{name}/evaluations"] = torch.tensor(optimizer.state[p]["func_evals"])
    return out


# ---- Schedules --------------------------------------------------------------------------------------------------------------

def curve(make, steps, figures=None, lr=1.0):
    optimizer = O.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    schedule = make(optimizer)
    values = []
    for k in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step(*([] if figures is None else [figures[k]]))
    return torch.tensor(values, dtype=torch.float64)


def schedule_fixtures():
    s = lr_scheduler
    figures = [5, 4, 3, 3, 3, 3, 3, 2.95, 2.9, 2.9, 2.9, 2.9, 2.9, 1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 4, 4, 4, 4, 4]
    out = {
        "constant": curve(lambda o: s.ConstantLR(o, 0.3, 4), 8),
        "ramp": curve(lambda o: s.LinearLR(o, 0.25, 0.75, 7), 12),
        "cyclic": curve(lambda o: s.CyclicLR(o, 0.1, 1.0, 4, cycle_momentum=False), 20),
        "cyclic_uneven": curve(lambda o: s.CyclicLR(o, 0.1, 0.9, 3, 5, mode="triangular2", cycle_momentum=False), 30),
        "cyclic_range": curve(lambda o: s.CyclicLR(o, 0.2, 1.0, 5, mode="exp_range", gamma=0.95, cycle_momentum=False), 30),
        "lambda": curve(lambda o: s.LambdaLR(o, lambda k: 1 / (1 + 0.3 * k)), 12),
        "multiplicative": curve(lambda o: s.MultiplicativeLR(o, lambda k: 0.9 if k % 2 else 1.05), 12),
        "sequential": curve(lambda o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.StepLR(o, 2, 0.5)], [3, 9]), 18),
        "chained": curve(lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)], o), 10),
        "one_cycle_linear": curve(lambda o: s.OneCycleLR(o, 1.0, 20, pct_start=0.4, anneal_strategy="linear", div_factor=10,
                                                         final_div_factor=100, cycle_momentum=False), 20),
        "one_cycle_three": curve(lambda o: s.OneCycleLR(o, 1.0, 21, three_phase=True, cycle_momentum=False), 21),
        "plateau_max": curve(lambda o: s.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=1, threshold=0.01), 28, figures),
        "plateau_abs": curve(lambda o: s.ReduceLROnPlateau(o, factor=0.5, patience=1, threshold=0.06, threshold_mode="abs", cooldown=2), 28, figures),
        "plateau_max_abs": curve(lambda o: s.ReduceLROnPlateau(o, mode="max", factor=0.7, patience=2, threshold=0.5, threshold_mode="abs",
                                                               min_lr=0.2, eps=0.05), 28, figures),
    }
    return {f"schedule/{name}": values for name, values in out.items()} | {"schedule/figures": torch.tensor(figures, dtype=torch.float64)}


def main():
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)  # also of scalar states
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "fixtures"
    path = folder / "optimizers.safetensors"
    tensors = optimizer_fixtures() | lbfgs_fixtures() | schedule_fixtures()
    save_file(tensors, path, metadata={"made_by": f"tests/e2e/make_optim_fixtures.py with PyTorch {torch.__version__.split('+')[0]}"})
    print(f"{path}: {len(tensors)} tensors, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
