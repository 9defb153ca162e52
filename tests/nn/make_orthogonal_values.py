#!/usr/bin/env python3
"""Writes tests/nn/orthogonal_values.inc: weights of torch.nn.utils.parametrizations.orthogonal for an original and a base.

    python3 tests/nn/make_orthogonal_values.py      needs PyTorch
"""
import pathlib

import torch
from torch.nn.utils.parametrizations import orthogonal

torch.manual_seed(3)
MAPS = {"matrix_exp": "MatrixExp", "cayley": "Cayley", "householder": "Householder"}


def numbers(x):
    return "{" + ", ".join(format(v, ".17g") for v in x.detach().reshape(-1).tolist()) + "}"


out = ["// Made by make_orthogonal_values.py: rows, columns, map, original, base, weight"]
for rows, columns in ((3, 3), (4, 2), (2, 4)):
    for name, ours in MAPS.items():
        layer = torch.nn.Linear(columns, rows, bias=False).double()
        orthogonal(layer, orthogonal_map=name)
        held = layer.parametrizations.weight
        with torch.no_grad():
            change = torch.randn(rows, columns)
            change.fill_diagonal_(0)  # PyTorch truncates the diagonal to whole numbers
            held.original += change
        out.append(f"{{{rows}, {columns}, nn::OrthogonalMap::{ours}, {numbers(held.original)}, {numbers(held[0].base)}, {numbers(layer.weight)}}},")
pathlib.Path(__file__).with_name("orthogonal_values.inc").write_text("\n".join(out) + "\n", encoding="utf-8")
