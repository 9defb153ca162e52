#!/usr/bin/env python3
"""Writes docs/nn.md: which of PyTorch's layers, losses, optimizers and schedules Tenon has, by name, and why it lacks the others.

    pip install torch
    tests/conformance/nn_coverage.py
"""
import inspect
import pathlib
import re

import torch
from torch import nn, optim
from torch.nn.utils import parametrizations

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "nn.md"

# Names that differ; a function or several names are written as they are.
OTHERWISE = {
    "SGD": "Sgd", "RMSprop": "RmsProp", "ASGD": "Asgd", "LBFGS": "Lbfgs",
    "StepLR": "step()", "MultiStepLR": "multistep()", "ConstantLR": "constant()", "LinearLR": "ramp(), linear()",
    "ExponentialLR": "exponential()", "PolynomialLR": "polynomial()", "CosineAnnealingLR": "cosine()",
    "CosineAnnealingWarmRestarts": "cosine_restarts()", "CyclicLR": "cyclic()", "OneCycleLR": "one_cycle()",
    "ReduceLROnPlateau": "plateau()", "LambdaLR": "from_function()", "MultiplicativeLR": "multiplicative()",
    "weight_norm": "WeightNorm", "spectral_norm": "SpectralNorm", "orthogonal": "Orthogonal", "SequentialLR": "sequential()", "ChainedScheduler": "product()",
    "NLLLoss2d": "NLLLoss", "Container": "Module",
}
# (pattern of names, reason), the first that fits.
MISSING = [
    (r"Lazy.*", "layers that learn their sizes from the first input: give the sizes"),
    (r"SyncBatchNorm", "a layer sees the batch of one device, and `all_reduce()` takes the parts of all devices at once, so the layer needs a process group. Tenon has no process groups. On one device `BatchNorm` is the same"),
    (r"DataParallel", "a loop over several devices calls `all_reduce`"),
    (r"(RNNBase|RNNCellBase|Container)", "base classes of PyTorch"),
    (r"CrossMapLRN2d", "deprecated form of `LocalResponseNorm`"),
]


def classes(module, base):
    return sorted(name for name, kind in vars(module).items()
                  if inspect.isclass(kind) and issubclass(kind, base) and kind is not base and not name.startswith("_"))


def functions(module):
    return sorted(name for name, f in vars(module).items() if inspect.isfunction(f) and not name.startswith("_") and f.__module__ == module.__name__)


def declared():
    """The classes and functions of the public headers: name -> header."""
    names = {}
    for path in sorted((ROOT / "include" / "tenon").glob("*.h")):
        text = path.read_text()
        pattern = r"(?:class|struct) (?:TENON_API )?(\w+)[^;{]*\{|TENON_\w+\((\w+),|^TENON_API [\w:<> ]+?[ &*](\w+)\("
        for match in re.finditer(pattern, text, re.M):
            names.setdefault(next(filter(None, match.groups())), path.name)
    return names


def table(title, names, known):
    rows, missing = [], {}
    for name in names:
        own = OTHERWISE.get(name, name)
        first = re.match(r"\w+", own)[0]
        header = known.get(first)
        if header and title == "Learning-rate schedules":
            header = "schedules.h"  # other functions have the same names
        if header:
            rows.append(f"| `{name}` | `{own}` | `<tenon/{header}>` |")
        else:
            reason = next((text for pattern, text in MISSING if re.fullmatch(pattern, name)), "not built yet")
            missing.setdefault(reason, []).append(f"`{name}`")
    lines = [f"## {title}", "", f"{len(rows)} of {len(names)}.", "", "| PyTorch | Tenon | header |", "| --- | --- | --- |", *rows, ""]
    for reason, some in missing.items():
        lines.append(f"* {', '.join(some)}: {reason}.")
    return lines + ([""] if missing else []), len(rows)


def main():
    known = declared()
    version = torch.__version__.split("+")[0]
    lines = ["# Layers, losses and optimizers", "", f"Which names of `torch.nn` and `torch.optim` (PyTorch {version}) Tenon has. `tests/conformance/nn_coverage.py` writes this page.",
             "", "Layers and losses are in `namespace tenon::nn`, optimizers and schedules in `namespace tenon::optim`. Options and names of parameters are PyTorch's.",
             "[Operations](operations.md) has the functions, [Optimizers and schedules](optimizers.md) shows how to use them.", ""]
    layers = classes(nn, nn.Module)
    losses = [name for name in layers if "Loss" in name]
    sections = [("Layers", [name for name in layers if "Loss" not in name]), ("Losses", losses), ("Optimizers", classes(optim, optim.Optimizer)),
                ("Learning-rate schedules", classes(optim.lr_scheduler, optim.lr_scheduler.LRScheduler)), ("Parametrizations", functions(parametrizations))]
    for title, names in sections:
        text, count = table(title, names, known)
        lines += text
        print(f"{title}: {count} of {len(names)}")
    lines += ["Tenon also has the optimizers `Levenberg`, `Lion` and `Lamb`, the schedules `inverse_sqrt()` and `warmup()`, and the losses `FocalLoss`, `DiceLoss` and `InfoNCELoss`.", "",
              "## Related pages", "", "[Operations](operations.md) · [Modules](modules.md) · [Optimizers and schedules](optimizers.md) · [Coming from PyTorch](pytorch.md)"]
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
